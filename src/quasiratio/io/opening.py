"""The door for files: whatever their format, they become one `Table`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.io.formats.npz import open_npz_file
from quasiratio.io.formats.parquet import open_parquet_file
from quasiratio.io.formats.root import open_root_file
from quasiratio.io.locations import Location, Spec, locate, named_twice
from quasiratio.io.table import Table
from quasiratio.io.table_file import TableFile

__all__ = ["open_table", "read_metadata"]


def open_table(spec: Spec, *, tree: str | None = None, allow_large: bool = False) -> Table:
    """Open files as one table; nothing but their headers is read.

    Args:
        spec: A path to a `.root`, `.parquet` or `.npz` file, `file.root:tree`, a glob such as
            `"data/*.root:events"`, or a list of those. Several files are one long table, and must have the
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
    files = [_open(location, allow_large=allow_large) for location in locate(spec, tree=tree)]
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


def _open(location: Location, *, allow_large: bool) -> TableFile:
    if location.suffix == ".root":
        return open_root_file(location.path, location.tree)
    if location.suffix == ".parquet":
        return open_parquet_file(location.path)
    return open_npz_file(location.path, allow_large=allow_large)


def _require_distinct(files: list[TableFile]) -> None:
    """Raise where one tree was named twice: once by its name and once not, with its cycle and without."""
    seen: dict[tuple[Path, str], set[str]] = {}
    for file in files:
        tree, _, cycle = file.source.removeprefix(f"{file.path}:").partition(";")
        cycles = seen.setdefault((file.path.resolve(), tree), set())
        if cycles and (not cycle or {cycle, ""} & cycles):
            raise named_twice(file.path)
        cycles.add(cycle)
