"""A part of a table: so many of its events, for one of several processes that share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quasiratio.io.column import Column
from quasiratio.io.file_format import Chunk, TableFile
from quasiratio.io.remote import FilePath
from quasiratio.io.table import Table

__all__ = ["table_part"]


def table_part(table: Table, number: int, n_parts: int) -> Table:
    """Return one of `n_parts` equal stretches of the events of a table; together they are all of its events.

    Files that lie in the stretch of another part are not read. A file on a border is read from its beginning to the end of
    the stretch, so that many files are shared faster than one.

    Args:
        table: The table.
        number: Which part, from zero.
        n_parts: Number of parts.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for i in range(3):
        ...         np.savez(f"{directory}/part{i}.npz", pt=[10.0 * i, 10.0 * i + 1.0, 10.0 * i + 2.0])
        ...     table = open_table(f"{directory}/part*.npz")
        ...     [[chunk["pt"].tolist() for chunk in table_part(table, k, 2).chunks(["pt"])] for k in range(2)]
        [[[0.0, 1.0, 2.0], [10.0]], [[11.0, 12.0], [20.0, 21.0, 22.0]]]
    """
    first, last = (table.n_events * edge // n_parts for edge in (number, number + 1))
    parts: list[TableFile] = []
    begin = 0
    for file in table.files:
        start, stop = max(first - begin, 0), min(last - begin, file.n_events)
        if start < stop:
            parts.append(file if (start, stop) == (0, file.n_events) else _FilePart(file, start, stop))
        begin += file.n_events
    return Table(tuple(parts or [_FilePart(table.files[0], 0, 0)]))


@dataclass(frozen=True)
class _FilePart:
    """The events of a file from `start` to before `stop`."""

    file: TableFile
    start: int
    stop: int

    @property
    def path(self) -> FilePath:
        return self.file.path

    @property
    def source(self) -> str:
        return self.file.source

    @property
    def n_events(self) -> int:
        return self.stop - self.start

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.file.columns

    @property
    def unreadable(self) -> frozenset[str]:
        return self.file.unreadable

    def bytes_per_event(self, names: Sequence[str]) -> float:
        return self.file.bytes_per_event(names)

    def metadata(self) -> dict[str, Any]:
        return self.file.metadata()

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        begin = 0
        for chunk in self.file.chunks(names, chunk_events):
            n_events = len(next(iter(chunk.values())))
            chosen = slice(max(self.start - begin, 0), min(self.stop - begin, n_events))
            if chosen.start < chosen.stop:
                yield {name: values[chosen] for name, values in chunk.items()}
            begin += n_events
            if begin >= self.stop:
                return
