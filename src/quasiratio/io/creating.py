"""Writing tables: chunk by chunk into a temporary place beside the target, which appears only when complete."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from quasiratio.atomic_files import place, scratch_path
from quasiratio.errors import InvalidInputError, OmittedColumnWarning, QuasiratioError
from quasiratio.io.column import Column
from quasiratio.io.elements import is_awkward
from quasiratio.io.file_format import Compression, NewFile, TableSink, column_of
from quasiratio.io.locations import suffix_of
from quasiratio.io.table import Table
from quasiratio.registry import FORMATS

__all__ = ["TableWriter", "create_table"]


class TableWriter:
    """A file in the making; a context manager from `create_table`.

    When the block ends, the file takes its name; when the block raises (Ctrl-C included) it is removed, and
    a file that was there before stays as it was.

    Attributes:
        metadata: What is stored beside the events; may be changed until the block ends.
        n_events: Number of events written so far.
    """

    def __init__(
        self, path: Path, tree: str, metadata: dict[str, Any], compression: Compression | None
    ) -> None:
        self.path, self.metadata, self.n_events = path, metadata, 0
        self._tree, self._compression = tree, compression
        self._columns: dict[str, Column] = {}
        self._given: list[str] = []
        self._directory: Path | None = None
        self._sink: TableSink | None = None

    def __enter__(self) -> Self:
        with _writing(self.path):
            self._directory = scratch_path(self.path.parent)
            self._directory.mkdir(mode=0o700)
            try:
                self._sink = self._open(self._directory / f"part{self.path.suffix}")
            except BaseException:
                shutil.rmtree(self._directory, ignore_errors=True)
                raise
        return self

    def _open(self, temporary: Path) -> TableSink:
        sink: TableSink = FORMATS[suffix_of(self.path)].sink(
            NewFile(temporary, self._tree, self._compression)
        )
        return sink

    def append(self, columns: Mapping[str, Any]) -> None:
        """Write events: one array per column, awkward where events have several values.

        The columns and types of the first call hold for all. Columns that the format cannot hold are left
        out, with one warning that names them.
        """
        if self._sink is None:
            msg = (
                "Got events for a table that is not open; expected append() within 'with create_table(...)'."
            )
            raise InvalidInputError(msg)
        chunk = {name: v if is_awkward(v) else np.asarray(v) for name, v in columns.items()}
        self._require_lengths(chunk)
        described = {name: column_of(name, values) for name, values in chunk.items()}
        with _writing(self.path):
            if not self._columns:
                self._begin(self._sink, described, chunk)
            self._require_same(described, chunk)
            self._sink.append(self._columns, chunk)
        self.n_events += len(next(iter(chunk.values())))

    def _begin(self, sink: TableSink, described: dict[str, Column], chunk: Mapping[str, Any]) -> None:
        self._given = list(described)
        omitted = sink.unwritable(described, chunk)
        self._columns = {name: column for name, column in described.items() if name not in omitted}
        if not self._columns:
            msg = f"Got no column that can be written to {str(self.path)!r}; expected numbers. Choose another format."
            raise InvalidInputError(msg)
        if omitted:
            names = ", ".join(repr(name) for name in omitted)
            message = f"Left out of {str(self.path)!r}, as {self.path.suffix} cannot hold them: {names}."
            warnings.warn(message, OmittedColumnWarning, stacklevel=3)

    def _require_lengths(self, chunk: Mapping[str, Any]) -> None:
        lengths = {
            name: len(values) if is_awkward(values) or values.ndim else -1 for name, values in chunk.items()
        }
        if len(set(lengths.values())) != 1 or -1 in lengths.values():
            msg = f"Got columns of lengths {lengths}; expected arrays of one length, one value per event."
            raise InvalidInputError(msg)

    def _require_same(self, described: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        if set(described) != set(self._given):
            changed = sorted(set(described) ^ set(self._given))
            msg = f"Got columns that some chunks have and others have not: {changed}; expected the same in each."
            raise InvalidInputError(msg)
        for name, column in self._columns.items():
            if described[name] != column and len(chunk[name]) and not _is_untyped(chunk[name]):
                msg = (
                    f"Got the column {name!r} as {described[name].kind} ({described[name].dtype}) after "
                    f"{column.kind} ({column.dtype}); expected one type in all chunks. Convert the array."
                )
                raise InvalidInputError(msg)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._discard()

    def _finish(self) -> None:
        if self._sink is None or self._directory is None or not self._columns:
            msg = f"Got no events to write to {str(self.path)!r}; expected at least one append(), even an empty one."
            raise InvalidInputError(msg)
        with _writing(self.path):
            _require_json(self.metadata)
            self._sink.finish(self.metadata)
            self._sink = None
            place(self._directory / f"part{self.path.suffix}", self.path)

    def _discard(self) -> None:
        if self._sink is not None:
            with contextlib.suppress(Exception):  # what failed before is on its way to the user
                self._sink.abandon()
            self._sink = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def create_table(
    path: str | os.PathLike[str],
    *,
    tree: str = "events",
    metadata: Mapping[str, Any] | None = None,
    compression: Compression | Literal["auto"] | None = "auto",
    inputs: Iterable[Table] = (),
) -> TableWriter:
    """Create a `.root`, `.parquet` or `.npz` file that is filled by chunks.

    Args:
        path: The file; one that exists is replaced at the end.
        tree: The name of the tree, for ROOT files.
        metadata: What can be written as JSON, stored beside the events; `read_metadata` returns it.
        compression: `"zstd"`, `"lz4"`, `"zlib"` or `None`; by default zstd at its fastest, and none for
            `.npz`, which knows zlib only.
        inputs: Tables that are read meanwhile; `path` must not be one of their files.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with create_table(f"{directory}/new.npz") as writer:
        ...         writer.append({"pt": np.array([30.0, 50.0]), "n_jets": np.array([2, 3])})
        ...     open_table(f"{directory}/new.npz").n_events
        2
    """
    target = Path(path)
    suffix = suffix_of(target)
    if not tree.strip("/ ") or ";" in tree:
        msg = f"Got the tree name {tree!r}; expected a name such as 'events', without a semicolon."
        raise InvalidInputError(msg)
    _require_json(metadata)
    codec = _codec(suffix, compression)
    if target.is_dir():
        msg = f"Got the directory {str(target)!r} to write to; expected a file name. Choose another."
        raise InvalidInputError(msg)
    for table in inputs:
        _require_other_file(target, table)
    return TableWriter(target, tree, dict(metadata or {}), codec)


def _require_json(metadata: Mapping[str, Any] | None) -> None:
    """Raise before the work begins, not when it is to be stored."""
    try:
        json.dumps(metadata)
    except (TypeError, ValueError, RecursionError) as error:
        msg = (
            f"Got metadata that cannot be written as JSON ({error}); expected dicts, lists, text and numbers."
        )
        raise InvalidInputError(msg) from error


def _codec(suffix: str, compression: str | None) -> Compression | None:
    choices: tuple[Compression | None, ...] = FORMATS[suffix].compressions
    if compression == "auto":
        return choices[0]
    if compression not in choices:
        msg = f"Got compression={compression!r} for {suffix} files; expected one of {['auto', *choices]}."
        raise InvalidInputError(msg)
    return next(choice for choice in choices if choice == compression)


def _require_other_file(target: Path, table: Table) -> None:
    for file in table.files:
        path = file.path if isinstance(file.path, Path) else None  # outputs are local
        if path is not None and target.exists() and path.exists() and target.samefile(path):
            msg = f"Got {str(target)!r} as output and as input; expected different files. Choose another output."
            raise InvalidInputError(msg)


def _is_untyped(values: Any) -> bool:  # noqa: ANN401 - NumPy or awkward
    """Whether a chunk of empty lists says nothing about the type of their values."""
    return is_awkward(values) and "unknown" in str(values.type)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except QuasiratioError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        msg = (
            f"Got {str(path)!r} to write, which failed ({reason}); expected a directory that can be written, with "
            "room. Choose another output; nothing was left behind."
        )
        raise InvalidInputError(msg) from error
