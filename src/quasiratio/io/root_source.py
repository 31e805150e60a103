"""Opening ROOT files with uproot: is it one, which tree is meant, what was stored beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.io.damage import reading
from quasiratio.io.extras import require_extra

__all__ = ["METADATA_NAME", "NTUPLE_CLASS", "opened_root", "root_metadata", "tree_and_class"]

METADATA_NAME = "quasiratio_metadata"
"""Name of the TObjString that holds the metadata as JSON."""

NTUPLE_CLASS = "ROOT::RNTuple"
_CLASSES = {"TTree", "TNtuple", "TNtupleD", NTUPLE_CLASS}


def opened_root(path: Path) -> Any:  # noqa: ANN401 - uproot has no types
    """Return the open file, a context manager; errors are for `reading` to translate."""
    uproot = require_extra("uproot", extra="root", purpose="to read a ROOT file")
    require_extra("awkward", extra="root", purpose="to read a ROOT file")
    with path.open("rb") as file:
        if file.read(4) != b"root":
            msg = (
                f"Got {str(path)!r}, which is not a ROOT file; expected one that begins with the letters 'root'. "
                "Check what wrote it, or its suffix."
            )
            raise InvalidInputError(msg)
    handler = uproot.source.file.MultithreadedFileSource  # faster than uproot's default for local files
    return uproot.open(path, handler=handler, array_cache=None, object_cache=None)


def tree_and_class(path: Path, file: Any, tree: str | None) -> tuple[str, str]:  # noqa: ANN401 - uproot
    """Return the name and the class of the tree that is meant, or raise with the names of those there are."""
    classes = file.classnames(recursive=True, cycle=False)
    trees = {name: kind for name, kind in classes.items() if kind in _CLASSES}
    listed = ", ".join(repr(name) for name in trees)
    if not trees:
        msg = (
            f"Got {str(path)!r}, which contains no tree; expected a TTree or an RNTuple. Check what wrote it."
        )
        raise InvalidInputError(msg)
    first = next(iter(trees))
    if tree is None and len(trees) > 1:
        msg = f"Got {str(path)!r} with the trees {listed}; expected one to be named. Write '{path}:{first}'."
        raise InvalidInputError(msg)
    name = first if tree is None else tree.partition(";")[0].strip("/")
    if name not in trees:
        msg = f"Got the tree {tree!r}, which is not in {str(path)!r}; expected {listed}. Write '{path}:{first}'."
        raise InvalidInputError(msg)
    return name, trees[name]


def root_metadata(path: Path) -> dict[str, Any]:
    """Return what the writer stored beside the tree, empty if nothing."""
    with reading(str(path), "ROOT"), opened_root(path) as file:
        return dict(json.loads(str(file[METADATA_NAME]))) if METADATA_NAME in file else {}
