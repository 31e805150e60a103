"""Parquet files through pyarrow: read batch by batch, written with one row group per chunk."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.elements import is_awkward
from quasiratio.io.extras import require_extra
from quasiratio.io.file_format import Chunk, FileFormat, Location, NewFile, is_utf8, reading
from quasiratio.io.remote import FilePath

__all__ = ["PARQUET", "ParquetSink", "ParquetTable", "open_parquet_file"]

_METADATA_KEY = b"quasiratio"

_OBJECT = np.dtype(object)
_CODECS = {"zstd": "zstd", "lz4": "lz4", "zlib": "gzip", None: "none"}
_BUFFER_BYTES = 1 << 20  # without it, a column of a whole row group is held at once


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """One Parquet file; see `TableFile`."""

    path: FilePath
    n_events: int
    columns: Mapping[str, Column]
    unreadable: frozenset[str]
    sizes: Mapping[str, float]

    @property
    def source(self) -> str:
        """The path."""
        return str(self.path)

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Mean size of an event in memory, with these columns only."""
        return sum(self.sizes[name] for name in names)

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        with reading(self.source, "Parquet"), _opened(self.path) as file:
            batches = file.iter_batches(batch_size=chunk_events, columns=list(names), use_threads=False)
            for batch in batches:
                yield {name: self._values(self.columns[name], batch.column(name)) for name in names}

    def _values(self, column: Column, values: Any) -> Any:  # noqa: ANN401 - arrow in, NumPy or awkward out
        if hasattr(values, "dictionary_decode"):
            values = values.dictionary_decode()
        if column.is_numeric:
            return self._numbers(column, values)
        ak = require_extra(
            "awkward", extra="root", purpose=f"to read the column {column.name!r} of lists or text"
        )
        if column.kind != "jagged":
            return ak.from_arrow(values)
        self._require_no_nulls(column, values.null_count)
        numbers = self._numbers(column, values.flatten())
        if hasattr(values.type, "list_size"):
            return numbers.reshape(len(values), values.type.list_size)
        return ak.unflatten(numbers, values.value_lengths().to_numpy())

    def _numbers(self, column: Column, values: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - arrow in
        if column.dtype.kind != "f":
            self._require_no_nulls(column, values.null_count)
        array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)  # missing floats become NaN
        return array.astype(column.dtype, copy=False)

    def _require_no_nulls(self, column: Column, n_missing: int) -> None:
        if n_missing:
            msg = (
                f"Got {n_missing} missing values in the {column.kind} column {column.name!r} of {self.source!r}; "
                "expected a value in every event. Fill or drop them first."
            )
            raise InvalidInputError(msg)

    def metadata(self) -> dict[str, Any]:
        """What the writer stored in the schema, empty if nothing."""
        with reading(self.source, "Parquet"), _opened(self.path) as file:
            return dict(json.loads((file.metadata.metadata or {}).get(_METADATA_KEY, b"{}")))


def open_parquet_file(location: Location) -> ParquetTable:
    """Read the schema and describe the columns."""
    path = location.path
    with reading(str(path), "Parquet"), _opened(path) as file:
        columns = {field.name: _column(field) for field in file.schema_arrow}
        n_events = int(file.metadata.num_rows)
        if len(columns) != len(file.schema_arrow) or not columns:
            msg = f"Got {str(path)!r} without columns, or with repeated names; expected columns of different names."
            raise InvalidInputError(msg)
        unreadable = frozenset(
            field.name for field in file.schema_arrow if not _is_readable(field, columns[field.name])
        )
        return ParquetTable(path, n_events, columns, unreadable, _sizes(file.metadata, columns, n_events))


@contextlib.contextmanager
def _opened(path: FilePath) -> Iterator[Any]:
    parquet = require_extra("pyarrow.parquet", extra="parquet", purpose="to read a Parquet file")
    with contextlib.ExitStack() as stack:
        source = path if isinstance(path, Path) else stack.enter_context(path.open("rb"))
        yield stack.enter_context(parquet.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER_BYTES))


def _column(field: Any) -> Column:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 - optional

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return Column(field.name, "text", _OBJECT)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = _numeric_dtype(kind.value_type)
        return Column(field.name, "other", _OBJECT) if inner is None else Column(field.name, "jagged", inner)
    dtype = _numeric_dtype(kind)
    return (
        Column(field.name, "other", _OBJECT)
        if dtype is None
        else Column(field.name, kind_of_dtype(dtype), dtype)
    )


def _is_readable(field: Any, column: Column) -> bool:  # noqa: ANN401 - pyarrow has no types
    """Whether awkward has a type for the values; it has none for decimals."""
    if column.kind != "other":
        return True
    import pyarrow as pa  # noqa: PLC0415 - optional

    ak = require_extra("awkward", extra="root", purpose=f"to read the column {column.name!r}")
    try:
        ak.from_arrow(pa.array([], field.type))
    except (NotImplementedError, TypeError, ValueError):
        return False
    return True


def _numeric_dtype(kind: Any) -> np.dtype[Any] | None:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415 - optional

    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


def _sizes(metadata: Any, columns: Mapping[str, Column], n_events: int) -> dict[str, float]:  # noqa: ANN401
    """Return the bytes per event of each column: its item size, or what the lists take in the file."""
    sizes = {name: float(column.dtype.itemsize) for name, column in columns.items()}
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            name = chunk.path_in_schema.partition(".")[0]
            if name in columns and not columns[name].is_numeric:
                sizes[name] += chunk.total_uncompressed_size / max(n_events, 1)
    return sizes


class ParquetSink:
    """A new Parquet file; see `TableSink`."""

    def __init__(self, new: NewFile) -> None:
        self._parquet = require_extra("pyarrow.parquet", extra="parquet", purpose="to write a Parquet file")
        self._path, self._codec = new.path, _CODECS[new.compression]
        self._writer: Any = None
        self._schema: Any = None

    def unwritable(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> list[str]:
        """Return the columns that arrow has no type for, or whose names it cannot store."""
        return [name for name in columns if not is_utf8(name) or not _has_arrow_type(chunk[name])]

    def append(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        """Write one row group."""
        import pyarrow as pa  # noqa: PLC0415 - optional

        table = pa.table({name: _as_arrow(chunk[name]) for name in columns})
        if self._writer is None:
            self._schema = table.schema
            self._writer = self._parquet.ParquetWriter(self._path, self._schema, compression=self._codec)
        if len(table):
            self._writer.write_table(table.cast(self._schema), row_group_size=len(table))

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write the metadata beside the schema, and close the file."""
        if metadata and self._writer is not None:
            self._writer.add_key_value_metadata({_METADATA_KEY: json.dumps(metadata).encode()})
        self.abandon()

    def abandon(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def _as_arrow(values: Any) -> Any:  # noqa: ANN401 - NumPy or awkward in, arrow out
    import pyarrow as pa  # noqa: PLC0415 - optional

    if is_awkward(values):
        import awkward as ak  # noqa: PLC0415 - optional

        return ak.to_arrow(values, extensionarray=False, list_to32=True, string_to32=True)
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(native.reshape(-1)), values.shape[1])
    return pa.array(native)


def _has_arrow_type(values: Any) -> bool:  # noqa: ANN401 - NumPy or awkward
    try:
        _as_arrow(values[:1])
    except Exception:  # noqa: BLE001 - arrow, awkward and NumPy each have their own
        return False
    return True


PARQUET = FileFormat(open_parquet_file, ParquetSink)
