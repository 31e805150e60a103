"""ROOT files: a TTree or an RNTuple, whichever the name stands for."""

from __future__ import annotations

from pathlib import Path

from quasiratio.errors import InvalidInputError
from quasiratio.io.damage import reading
from quasiratio.io.formats.root_ntuple import describe_ntuple
from quasiratio.io.formats.root_source import NTUPLE_CLASS, opened_root, tree_and_class
from quasiratio.io.formats.root_tree import describe_tree
from quasiratio.io.table_file import TableFile

__all__ = ["open_root_file"]


def open_root_file(path: Path, tree: str | None) -> TableFile:
    """Open a tree by name, or the only one of the file, and describe its columns."""
    with reading(str(path), "ROOT"), opened_root(path) as file:
        name, kind = tree_and_class(path, file, tree)
        describe = describe_ntuple if kind == NTUPLE_CLASS else describe_tree
        described: TableFile = describe(path, name, file[name])
    if not described.columns:
        msg = f"Got the tree {name!r} of {str(path)!r}, which has no branches; expected at least one."
        raise InvalidInputError(msg)
    return described
