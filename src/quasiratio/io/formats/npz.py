"""NPZ files: a zip of one-dimensional arrays, one per column, read and written as streams of bounded memory."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError, LargeFileError
from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.elements import is_awkward
from quasiratio.io.file_format import Chunk, FileFormat, Location, NewFile, is_utf8, reading
from quasiratio.io.remote import FilePath

__all__ = ["NPZ", "NpzFile", "NpzSink", "open_npz_file"]

METADATA_MEMBER = "_metadata.npy"
"""A text array of no dimension that holds JSON; `np.load` shows it as `_metadata`."""

_MAX_METADATA_BYTES = 64_000_000
_BLOCK_BYTES = 1 << 20
_LARGE_BYTES, _LARGE_FACTOR = 1_000_000_000, 50


@dataclass(frozen=True, eq=False)
class NpzFile:
    """One NPZ file; see `TableFile`."""

    path: FilePath
    n_events: int
    columns: Mapping[str, Column]
    unreadable: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The path."""
        return str(self.path)

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Size of an event in memory, with these columns only."""
        return float(sum(self.columns[name].dtype.itemsize for name in names))

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(reading(self.source, "NPZ"))
            archive = stack.enter_context(_opened(self.path))
            streams = []
            for name in names:
                stream = stack.enter_context(archive.open(f"{name}.npy"))
                streams.append((name, stream, _read_header(stream, name, self.source)[1]))
            for start in range(0, self.n_events, chunk_events):
                n_events = min(chunk_events, self.n_events - start)
                yield {name: _read_values(stream, dtype, n_events) for name, stream, dtype in streams}

    def metadata(self) -> dict[str, Any]:
        """What the writer stored beside the columns, empty if nothing."""
        with reading(self.source, "NPZ"), _opened(self.path) as archive:
            if METADATA_MEMBER not in archive.namelist():
                return {}
            with archive.open(METADATA_MEMBER) as stream:
                shape, dtype = _header(stream)
                if shape != () or dtype.kind != "U" or dtype.itemsize > _MAX_METADATA_BYTES:
                    return {}
                return dict(json.loads(str(np.frombuffer(stream.read(dtype.itemsize), dtype)[0])))


def open_npz_file(location: Location) -> NpzFile:
    """Read the headers of all members, and check that they are columns of one table."""
    path = location.path
    columns = {}
    lengths = {}
    with reading(str(path), "NPZ"), _opened(path) as archive:
        if not location.allow_large:
            _require_expected_size(path, archive)
        for member in archive.namelist():
            if member == METADATA_MEMBER:
                continue
            name = member.removesuffix(".npy")
            if name == member or name in columns:
                msg = (
                    f"Got {str(path)!r} with the member {member!r}; expected .npy members of different names, one "
                    "per column. Write the file with numpy.savez."
                )
                raise InvalidInputError(msg)
            with archive.open(member) as stream:
                lengths[name], dtype = _read_header(stream, name, str(path))
                if stream.tell() + lengths[name] * dtype.itemsize > archive.getinfo(member).file_size:
                    msg = f"the column {name!r} ends early"
                    raise EOFError(msg)
            columns[name] = Column(name, kind_of_dtype(dtype), dtype.newbyteorder("="))
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{name!r} ({length})" for name, length in lengths.items()) or "no columns"
        msg = (
            f"Got {str(path)!r} with columns of different lengths, or none: {given}; expected one value per event "
            "in each. Write the file again."
        )
        raise InvalidInputError(msg)
    return NpzFile(path, next(iter(lengths.values())), columns)


@contextlib.contextmanager
def _opened(path: FilePath) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _read_header(stream: IO[bytes], name: str, path: str) -> tuple[int, np.dtype[Any]]:
    shape, dtype = _header(stream)
    if dtype.hasobject or dtype.names is not None:
        msg = (
            f"Got the array {name!r} of type {dtype} in {path!r}; expected plain numbers (objects would need "
            "pickle, which can run code). Write each column as an array of numbers."
        )
        raise InvalidInputError(msg)
    if len(shape) != 1:
        msg = (
            f"Got the array {name!r} of shape {shape} in {path!r}; expected one dimension, a column with one value "
            "per event. Write its columns as separate arrays."
        )
        raise InvalidInputError(msg)
    if type(shape[0]) is not int or shape[0] < 0:
        msg = f"Got the array {name!r} of shape {shape} in {path!r}; expected a number of events. Write the file again."
        raise InvalidInputError(msg)
    return shape[0], dtype


def _require_expected_size(path: FilePath, archive: zipfile.ZipFile) -> None:
    """Raise where little data would become more than a gigabyte, as no measured numbers do."""
    n_bytes = sum(member.file_size for member in archive.infolist())
    size = path.stat().st_size if isinstance(path, Path) else int(path.described().get("size", n_bytes))
    if n_bytes > max(_LARGE_BYTES, _LARGE_FACTOR * size):
        msg = (
            f"Got {str(path)!r} of {size / 1e6:.1f} MB, whose columns unpack to {n_bytes / 1e9:.1f} GB; expected a file "
            "that does not grow as much."
        )
        raise LargeFileError(msg, advice="Add `allow_large=True` if that is what it holds.")


def _read_values(stream: IO[bytes], dtype: np.dtype[Any], n_events: int) -> npt.NDArray[Any]:
    """Read the next values of a member, in the byte order of this machine."""
    buffer = np.empty(n_events * dtype.itemsize, np.uint8)
    position = 0
    while position < len(buffer):
        data = stream.read(min(len(buffer) - position, _BLOCK_BYTES))
        if not data:
            msg = "a column ends early"
            raise EOFError(msg)
        buffer[position : position + len(data)] = np.frombuffer(data, np.uint8)
        position += len(data)
    return np.frombuffer(buffer, dtype, n_events).astype(dtype.newbyteorder("="), copy=False)


class NpzSink:
    """A new NPZ file; see `TableSink`. One raw file per column, in the directory of `path`, comes first."""

    def __init__(self, new: NewFile) -> None:
        self._path = new.path
        self._method = zipfile.ZIP_STORED if new.compression is None else zipfile.ZIP_DEFLATED
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
                    archive.open(self._member(f"{name}.npy"), "w", force_zip64=True) as member,
                    self._raw(index).open("rb") as raw,
                ):
                    _write_header(member, (self._n_events,), dtype)
                    shutil.copyfileobj(raw, member, _BLOCK_BYTES)
                self._raw(index).unlink()
            if metadata:
                stored = io.BytesIO()
                np.save(stored, np.array(json.dumps(metadata)), allow_pickle=False)
                archive.writestr(self._member(METADATA_MEMBER), stored.getvalue(), compresslevel=1)

    def abandon(self) -> None:
        """Leave the raw files to whoever removes the directory."""

    def _member(self, name: str) -> zipfile.ZipInfo:
        """Return a member without the time of writing: the same events give the same file."""
        member = zipfile.ZipInfo(name)  # of 1980
        member.compress_type = self._method
        return member

    def _raw(self, index: int) -> Path:
        return self._path.with_name(f"column{index}.raw")


def _write_header(member: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    description = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(
        member, {"descr": description, "fortran_order": False, "shape": shape}
    )


NPZ = FileFormat(open_npz_file, NpzSink, compressions=(None, "zlib"))
