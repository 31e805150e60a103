"""A table: the events of one or several files of any format, read in chunks so that memory stays bounded."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from quasiratio.errors import InvalidInputError, OmittedColumnWarning
from quasiratio.io.column import Column, Pick, require_numbers, split_element
from quasiratio.io.elements import picked
from quasiratio.io.file_format import Chunk, TableFile
from quasiratio.io.locations import Spec, locate, named_twice
from quasiratio.io.remote import FilePath
from quasiratio.registry import FORMATS

if TYPE_CHECKING:
    from quasiratio.io.expression.evaluation import Expression

__all__ = ["Table", "open_table", "read_metadata"]

_CHUNK_BYTES = 50_000_000
_CHUNK_EVENTS = (1_000, 400_000)  # fewer make many small reads, more gain nothing


@dataclass(frozen=True, eq=False)
class Table:
    """Files with the same columns, as one long table. Build one with `open_table`.

    Attributes:
        files: The readers, in the order of their events.
        columns: The columns by name, in the order of the first file.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/events.npz", pt=[30.0, 50.0, 20.0], n_jets=[2, 3, 1])
        ...     table = open_table(f"{directory}/events.npz")
        ...     [chunk["pt"].tolist() for chunk in table.chunks(["pt"], chunk_events=2)]
        [[30.0, 50.0], [20.0]]
        >>> table.n_events, table.numeric_columns()
        (3, ['pt', 'n_jets'])
    """

    files: tuple[TableFile, ...]
    columns: Mapping[str, Column] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.files[0].columns)))
        for other in self.files[1:]:
            _require_same_columns(self.files[0], other)

    @property
    def n_events(self) -> int:
        """Number of events in all files."""
        return sum(file.n_events for file in self.files)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, each with its tree where there is one."""
        return tuple(file.source for file in self.files)

    @property
    def label(self) -> str:
        """A short name for messages: the file, or the first one and how many follow."""
        more = len(self.files) - 1
        return self.files[0].source + (f" and {more} more" if more else "")

    def parts(self) -> list[Table]:
        """Return a table for each file, which other processes can read wherever they were started.

        Example:
            >>> import tempfile, numpy as np
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     for i in range(2):
            ...         np.savez(f"{directory}/part{i}.npz", pt=[30.0, 50.0])
            ...     [part.n_events for part in open_table(f"{directory}/part*.npz").parts()]
            [2, 2]
        """
        return [Table((_absolute(file),)) for file in self.files]

    def __reduce__(self) -> tuple[type[Table], tuple[tuple[TableFile, ...]]]:
        return Table, (self.files,)  # the columns follow from the files

    def numeric_columns(self) -> list[str]:
        """Names of the columns with one number (or boolean) per event."""
        return [name for name, column in self.columns.items() if column.is_numeric]

    def require_numbers(self, names: Sequence[str]) -> None:
        """Raise unless each name is a numeric column, or an element of a jagged one such as `jet_pt[0]`."""
        require_numbers(names, self.columns)

    def chunk_events(self, names: Sequence[str] | None = None) -> int:
        """Events per chunk that keep these columns at about 50 MB in memory."""
        wanted = list(dict.fromkeys(split_element(name, self.columns)[0] for name in self._names(names)))
        largest = max((file.bytes_per_event(wanted) for file in self.files), default=1.0)
        return int(np.clip(_CHUNK_BYTES / max(largest, 1.0), *_CHUNK_EVENTS))

    def chunks(
        self,
        names: Sequence[str] | None = None,
        *,
        chunk_events: int | None = None,
        selection: Expression | None = None,
        may_miss: Collection[str] = (),
    ) -> Iterator[Chunk]:
        """Read the events in order, some at a time.

        Args:
            names: Columns, elements of jagged columns such as `jet_pt[0]`, and `len`, `sum`, `min` or `max` of one, such
                as `len(jet_pt)`; all columns when left out.
            chunk_events: The most events in one chunk; by default as many as take about 50 MB.
            selection: A condition on the events to keep. An element that an event does not have compares
                as NaN, so that `jet_pt[0] > 30` drops events without jets. Chunks may then be empty.
            may_miss: Names among `names` that are NaN in events without that element; elsewhere a missing element is
                refused.

        Yields:
            The columns by name: NumPy arrays, jagged columns and text as awkward arrays.
        """
        wanted = self._without_unreadable(self._names(names))
        tested = list(selection.names) if selection is not None else []
        require_numbers(tested, self.columns)
        places = {name: split_element(name, self.columns) for name in (*wanted, *tested)}
        read = list(dict.fromkeys(column for column, _ in places.values()))
        if chunk_events is None:
            chunk_events = self.chunk_events(read)
        elif chunk_events < 1:
            msg = f"Got chunk_events={chunk_events}; expected at least one event per chunk."
            raise InvalidInputError(msg)
        return self._iterate(wanted, places, read, chunk_events, selection, frozenset(may_miss))

    def _iterate(
        self,
        wanted: list[str],
        places: Mapping[str, tuple[str, Pick]],
        read: list[str],
        chunk_events: int,
        selection: Expression | None,
        may_miss: Collection[str],
    ) -> Iterator[Chunk]:
        for file in self.files:
            for chunk in file.chunks(read, chunk_events):
                kept = chunk
                if selection is not None:
                    tested = {
                        name: picked(chunk[places[name][0]], places[name][1])[0] for name in selection.names
                    }
                    mask = selection.evaluate_mask(tested, len(next(iter(chunk.values()))))
                    kept = {name: values[mask] for name, values in chunk.items()}
                yield {
                    name: _require_element(kept, name, *places[name], file.source, may_miss)
                    for name in wanted
                }

    def _without_unreadable(self, names: list[str]) -> list[str]:
        omitted = [name for name in names if any(name in file.unreadable for file in self.files)]
        if omitted:
            listed = ", ".join(repr(name) for name in omitted)
            message = f"Left out from {self.label!r}, as they are neither numbers, lists of numbers nor text: {listed}."
            warnings.warn(message, OmittedColumnWarning, stacklevel=3)
        return [name for name in names if name not in omitted]

    def _names(self, names: Sequence[str] | None) -> list[str]:
        return list(self.columns) if names is None else list(dict.fromkeys(names))


def _absolute(file: TableFile) -> TableFile:
    """Return a reader whose path does not depend on the current directory."""
    reader: Any = file
    if isinstance(file.path, Path) and hasattr(reader, "__dataclass_fields__"):
        reader = replace(reader, path=file.path.absolute())
    return cast(TableFile, reader)


def _require_element(
    chunk: Chunk, name: str, column: str, pick: Pick, source: str, may_miss: Collection[str]
) -> object:
    values, n_short = picked(chunk[column], pick)
    if n_short and name not in may_miss:
        msg = (
            f"Got {name!r}, but {n_short} of {len(chunk[column])} events read from {source!r} have fewer elements; "
            f"expected that element in every event. Write 'fill({name}, 0)' with a value for the others, select the "
            "events that have it, or leave it out."
        )
        raise InvalidInputError(msg)
    return values


def _require_same_columns(first: TableFile, other: TableFile) -> None:
    for name in [*first.columns, *other.columns]:
        for one, two in ((first, other), (other, first)):
            if name not in two.columns:
                msg = (
                    f"Got the column {name!r} in {one.source!r} but not in {two.source!r}; expected the same "
                    "columns in all files of one table. Leave that file out, or write the files again."
                )
                raise InvalidInputError(msg)
        left, right = first.columns[name], other.columns[name]
        if (left.kind, left.dtype) != (right.kind, right.dtype):
            msg = (
                f"Got the column {name!r} as {left.kind} ({left.dtype}) in {first.source!r} and as {right.kind} "
                f"({right.dtype}) in {other.source!r}; expected one type in all files of one table. "
                "Leave that file out, or write the files again."
            )
            raise InvalidInputError(msg)


def open_table(spec: Spec, *, tree: str | None = None, allow_large: bool = False) -> Table:
    """Open files as one table; nothing but their headers is read.

    Args:
        spec: A path to a `.root`, `.parquet` or `.npz` file, `file.root:tree`, a glob such as
            `"data/*.root:events"`, an address such as `"https://host/events.root"`, a file with a list of those
            (`"@files.txt"`, one per line, relative to the directory of the list), or a list of those. Several files are one long table, and must have the
            same columns of the same types.
        tree: The tree of ROOT files whose path names none; needed where a file has several. A cycle may
            follow, as in `"events;1"`; without one the newest is meant.
        allow_large: Open `.npz` files also where a small file would unpack to gigabytes.

    Example:
        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for i in range(2):
        ...         np.savez(f"{directory}/part{i}.npz", pt=[30.0, 50.0])
        ...     open_table(f"{directory}/part*.npz").n_events
        4
    """
    located = locate(spec, tree=tree, allow_large=allow_large)
    files: list[TableFile] = [FORMATS[location.suffix].open(location) for location in located]
    _require_distinct(files)
    return Table(tuple(files))


def read_metadata(spec: Spec) -> dict[str, Any]:
    """Return what `create_table` stored beside the events of a file, empty if nothing.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import create_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with create_table(f"{directory}/new.npz", metadata={"model": "v1"}) as writer:
        ...         writer.append({"pt": np.array([30.0, 50.0])})
        ...     read_metadata(f"{directory}/new.npz")
        {'model': 'v1'}
    """
    table = open_table(spec)
    if len(table.files) != 1:
        msg = f"Got {len(table.files)} files ({table.label!r}); expected one, as each has its own metadata."
        raise InvalidInputError(msg)
    return table.files[0].metadata()


def _require_distinct(files: list[TableFile]) -> None:
    """Raise where one tree was named twice: once by its name and once not, with its cycle and without."""
    seen: dict[tuple[FilePath, str], set[str]] = {}
    for file in files:
        tree, _, cycle = file.source.removeprefix(f"{file.path}:").partition(";")
        cycles = seen.setdefault((file.path.resolve(), tree), set())
        if cycles and (not cycle or {cycle, ""} & cycles):
            raise named_twice(file.path)
        cycles.add(cycle)
