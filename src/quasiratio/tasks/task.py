"""Work that is cut into tasks which need nothing of each other, and the rows that come out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Row", "Settings", "Task"]

Settings = Mapping[str, Any]
"""Plain JSON values. Keys of a study that the command line may change: `seeds`, `methods`, `published_settings`."""


@dataclass(frozen=True)
class Task:
    """A piece of work that needs no other.

    Args:
        key: Its name, unique within the work.
        arguments: Plain JSON values; all that the function of the work gets to know. A `seed` among them is stored
            with every row.
        rows: Keys of the rows it will yield, where they are known beforehand. The task then counts as done
            when all of them are stored; if it runs again, `arguments["known"]` lists those that are, and
            need not be computed.

    Example:
        >>> Task("seed-1", {"seed": 1}).rows
        ()
    """

    key: str
    arguments: Mapping[str, Any]
    rows: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    """One result.

    Args:
        key: Its name, unique within the work.
        values: Plain JSON values; NaN and infinity are kept.

    Example:
        >>> Row("sigma_w=2/mlp", {"area": 0.3}).values["area"]
        0.3
    """

    key: str
    values: Mapping[str, Any]
