"""Opening ROOT files with uproot: is it one, which tree is meant, what was stored beside it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.io.damage import reading
from quasiratio.io.extras import require_extra

__all__ = ["METADATA_NAME", "NTUPLE_CLASS", "opened_root", "root_metadata", "tree_and_class"]

METADATA_NAME = "quasiratio_metadata"
"""Name of the TObjString that holds the metadata as JSON."""

NTUPLE_CLASS = "ROOT::RNTuple"
_HEADER_BYTES = 20
_LARGE_FILE_VERSION = 1_000_000  # from here on positions have eight bytes
_CLASSES = {"TTree", "TNtuple", "TNtupleD", NTUPLE_CLASS}


def opened_root(path: Path) -> Any:  # noqa: ANN401 - uproot has no types
    """Return the open file, a context manager; errors are for `reading` to translate."""
    uproot = require_extra("uproot", extra="root", purpose="to read a ROOT file")
    require_extra("awkward", extra="root", purpose="to read a ROOT file")
    with path.open("rb") as file:
        begin = file.read(_HEADER_BYTES)
    if begin[:4] != b"root":
        msg = (
            f"Got {str(path)!r}, which is not a ROOT file; expected one that begins with the letters 'root'. "
            "Check what wrote it, or its suffix."
        )
        raise InvalidInputError(msg)
    _require_complete(path, begin)
    handler = uproot.source.file.MultithreadedFileSource  # faster than uproot's default for local files
    return uproot.open(path, handler=handler, array_cache=None, object_cache=None)


def _require_complete(path: Path, begin: bytes) -> None:
    """Raise where the file ends before the end that its header states: uproot may open it all the same."""
    size, stated = path.stat().st_size, _HEADER_BYTES
    if len(begin) == _HEADER_BYTES:
        version, _, short_end = struct.unpack(">iii", begin[4:16])
        (long_end,) = struct.unpack(">q", begin[12:20])
        stated = long_end if version >= _LARGE_FILE_VERSION else short_end
    if size < stated:
        msg = (
            f"Got {str(path)!r}, which cannot be read as ROOT ({size} bytes, where its header states {stated}); expected "
            "a complete ROOT file. It is truncated: copy or write it again."
        )
        raise InvalidInputError(msg)


def tree_and_class(path: Path, file: Any, tree: str | None) -> tuple[str, str]:  # noqa: ANN401 - uproot
    """Return the name and the class of the tree that is meant, or raise with the names of those there are.

    The name keeps its cycle where one was given.
    """
    if tree is not None and ";" in tree:
        return _with_cycle(path, file, tree)
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
    name = first if tree is None else tree.strip("/")
    if name not in trees:
        msg = f"Got the tree {tree!r}, which is not in {str(path)!r}; expected {listed}. Write '{path}:{first}'."
        raise InvalidInputError(msg)
    return name, trees[name]


def _with_cycle(path: Path, file: Any, tree: str) -> tuple[str, str]:  # noqa: ANN401 - uproot
    classes = file.classnames(recursive=True, cycle=True)
    trees = {name: kind for name, kind in classes.items() if kind in _CLASSES}
    name = tree.strip("/")
    if name not in trees:
        plain = name.partition(";")[0]
        cycles = sorted(known for known in trees if known.partition(";")[0] == plain) or list(trees)
        listed = ", ".join(repr(known) for known in cycles) or "no tree at all"
        msg = f"Got the tree {tree!r}, which is not in {str(path)!r}; expected {listed}. Check the cycle after ';'."
        raise InvalidInputError(msg)
    return name, trees[name]


def root_metadata(path: Path) -> dict[str, Any]:
    """Return what the writer stored beside the tree, empty if nothing."""
    with reading(str(path), "ROOT"), opened_root(path) as file:
        return dict(json.loads(str(file[METADATA_NAME]))) if METADATA_NAME in file else {}
