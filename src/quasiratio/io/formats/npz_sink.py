"""NPZ files: raw columns that grow beside the target, zipped at the end, so that memory stays bounded."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from quasiratio.io.column import Column
from quasiratio.io.elements import is_awkward
from quasiratio.io.formats.npz_file import METADATA_MEMBER
from quasiratio.io.table_sink import Compression, is_utf8

__all__ = ["NpzSink"]

_BLOCK_BYTES = 1 << 20


class NpzSink:
    """A new NPZ file; see `TableSink`. One raw file per column, in the directory of `path`, comes first."""

    def __init__(self, path: Path, compression: Compression | None) -> None:
        self._path = path
        self._method = zipfile.ZIP_STORED if compression is None else zipfile.ZIP_DEFLATED
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._n_events = 0

    def unwritable(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> list[str]:
        """Return the columns that are no one-dimensional arrays of a type that needs no pickle."""
        return [
            name
            for name, column in columns.items()
            if is_awkward(chunk[name])
            or chunk[name].ndim != 1
            or column.dtype.hasobject
            or column.dtype.names is not None
            or f"{name}.npy" == METADATA_MEMBER
            or not is_utf8(name)
        ]

    def append(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        """Add the values of each column to its raw file."""
        for index, (name, column) in enumerate(columns.items()):
            values: npt.NDArray[Any] = np.ascontiguousarray(chunk[name], dtype=column.dtype)
            self._dtypes[name] = column.dtype
            with self._raw(index).open("ab") as file:
                values.tofile(file)
        self._n_events += len(next(iter(chunk.values())))

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Zip the columns, and the metadata if there is any."""
        with zipfile.ZipFile(self._path, "w", self._method, compresslevel=1) as archive:
            for index, (name, dtype) in enumerate(self._dtypes.items()):
                with (
                    archive.open(f"{name}.npy", "w", force_zip64=True) as member,
                    self._raw(index).open("rb") as raw,
                ):
                    _write_header(member, (self._n_events,), dtype)
                    shutil.copyfileobj(raw, member, _BLOCK_BYTES)
                self._raw(index).unlink()
            if metadata:
                stored = io.BytesIO()
                np.save(stored, np.array(json.dumps(metadata)), allow_pickle=False)
                archive.writestr(METADATA_MEMBER, stored.getvalue())

    def abandon(self) -> None:
        """Leave the raw files to whoever removes the directory."""

    def _raw(self, index: int) -> Path:
        return self._path.with_name(f"column{index}.raw")


def _write_header(member: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    description = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(
        member, {"descr": description, "fortran_order": False, "shape": shape}
    )
