"""Parquet files through pyarrow: one row group per chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quasiratio.io.column import Column
from quasiratio.io.elements import is_awkward
from quasiratio.io.extras import require_extra
from quasiratio.io.formats.parquet_file import METADATA_KEY
from quasiratio.io.table_sink import Compression, is_utf8

__all__ = ["ParquetSink"]

_CODECS = {"zstd": "zstd", "lz4": "lz4", "zlib": "gzip", None: "none"}


class ParquetSink:
    """A new Parquet file; see `TableSink`."""

    def __init__(self, path: Path, compression: Compression | None) -> None:
        self._parquet = require_extra("pyarrow.parquet", extra="parquet", purpose="to write a Parquet file")
        self._path, self._codec = path, _CODECS[compression]
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
            self._writer.add_key_value_metadata({METADATA_KEY: json.dumps(metadata).encode()})
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
