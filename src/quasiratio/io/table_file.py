"""What a reader of one file offers; `Table` joins any number of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from quasiratio.io.column import Column

__all__ = ["Chunk", "TableFile"]

Chunk = dict[str, Any]
"""Columns of consecutive events: NumPy arrays, and awkward arrays where events have several values."""


class TableFile(Protocol):
    """One file, opened far enough to know its columns. It holds no open handle between reads."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def source(self) -> str:
        """The path, with the tree where there is one."""
        ...

    @property
    def n_events(self) -> int:
        """Number of events."""
        ...

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns in the order of the file."""
        ...

    @property
    def unreadable(self) -> frozenset[str]:
        """Columns that are there but cannot be read, such as objects of a C++ class."""
        ...

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Mean size of an event in memory, with these columns only."""
        ...

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        ...

    def metadata(self) -> dict[str, Any]:
        """What the writer stored beside the events, empty if nothing."""
        ...
