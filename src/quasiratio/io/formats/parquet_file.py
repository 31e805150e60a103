"""Parquet files through pyarrow, read batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.damage import reading
from quasiratio.io.extras import require_extra
from quasiratio.io.table_file import Chunk

__all__ = ["METADATA_KEY", "ParquetTable", "open_parquet_file"]

METADATA_KEY = b"quasiratio"

_OBJECT = np.dtype(object)
_BUFFER_BYTES = 1 << 20  # without it, a column of a whole row group is held at once


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """One Parquet file; see `TableFile`."""

    path: Path
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
            return dict(json.loads((file.metadata.metadata or {}).get(METADATA_KEY, b"{}")))


def open_parquet_file(path: Path) -> ParquetTable:
    """Read the schema and describe the columns."""
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


def _opened(path: Path) -> Any:  # noqa: ANN401 - pyarrow has no types
    parquet = require_extra("pyarrow.parquet", extra="parquet", purpose="to read a Parquet file")
    return parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)


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
