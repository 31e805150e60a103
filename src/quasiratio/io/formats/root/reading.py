"""ROOT files through uproot: which tree is meant, and the columns of a TTree or an RNTuple, read by chunks."""

from __future__ import annotations

import json
import struct
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.extras import require_extra
from quasiratio.io.file_format import Chunk, Location, TableFile, column_of, reading
from quasiratio.io.remote import FilePath

__all__ = ["COUNTER", "METADATA_NAME", "RootNtuple", "RootTree", "open_root_file"]

METADATA_NAME = "quasiratio_metadata"
"""Name of the TObjString that holds the metadata as JSON."""

COUNTER = "quasiratio_counter"
"""Parameter of the awkward arrays that we read: the branch that holds the number of values per event."""

_NTUPLE_CLASS = "ROOT::RNTuple"
_OBJECT = np.dtype(object)
_NUMERIC = {"AsDtype", "AsDouble32", "AsFloat16"}
_ASSUMED_LENGTH = 8  # of lists and text, for the size of chunks only
_HEADER_BYTES = 20
_LARGE_FILE_VERSION = 1_000_000  # from here on positions have eight bytes
_CLASSES = {"TTree", "TNtuple", "TNtupleD", _NTUPLE_CLASS}


def _opened_root(path: FilePath) -> Any:  # noqa: ANN401 - uproot has no types
    """Return the open file, a context manager; errors are for `reading` to translate."""
    uproot = require_extra("uproot", extra="root", purpose="to read a ROOT file")
    require_extra("awkward", extra="root", purpose="to read a ROOT file")
    with path.open("rb") if isinstance(path, Path) else path.open("rb", ahead=_HEADER_BYTES) as file:
        begin = file.read(_HEADER_BYTES)
    if begin[:4] != b"root":
        msg = (
            f"Got {str(path)!r}, which is not a ROOT file; expected one that begins with the letters 'root'. "
            "Check what wrote it, or its suffix."
        )
        raise InvalidInputError(msg)
    _require_complete(path, begin)
    if not isinstance(path, Path):
        return uproot.open(
            {str(path): None}, array_cache=None, object_cache=None
        )  # a colon is part of the address
    handler = uproot.source.file.MultithreadedFileSource  # faster than uproot's default for local files
    return uproot.open(path, handler=handler, array_cache=None, object_cache=None)


def _require_complete(path: FilePath, begin: bytes) -> None:
    """Raise where the file ends before the end that its header states: uproot may open it all the same."""
    stated = _HEADER_BYTES
    size = path.stat().st_size if isinstance(path, Path) else path.described().get("size", sys.maxsize)
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


def _tree_and_class(path: FilePath, file: Any, tree: str | None) -> tuple[str, str]:  # noqa: ANN401 - uproot
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


def _with_cycle(path: FilePath, file: Any, tree: str) -> tuple[str, str]:  # noqa: ANN401 - uproot
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


def _root_metadata(path: FilePath) -> dict[str, Any]:
    """Return what the writer stored beside the tree, empty if nothing."""
    with reading(str(path), "ROOT"), _opened_root(path) as file:
        return dict(json.loads(str(file[METADATA_NAME]))) if METADATA_NAME in file else {}


@dataclass(frozen=True, eq=False)
class RootTree:
    """One tree of a ROOT file; see `TableFile`. Branches of objects are known by name only."""

    path: FilePath
    tree: str
    n_events: int
    columns: Mapping[str, Column]
    unreadable: frozenset[str]
    sizes: Mapping[str, float]
    counters: Mapping[str, str]

    @property
    def source(self) -> str:
        """The path and the tree."""
        return f"{self.path}:{self.tree}"

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Mean size of an event in memory, with these columns only."""
        return sum(self.sizes[name] for name in names)

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        all_flat = all(self.columns[name].is_numeric for name in names)
        with reading(str(self.path), "ROOT"), _opened_root(self.path) as file:
            branches = file[self.tree].iterate(
                filter_name=set(names).__contains__,
                filter_branch=lambda branch: len(branch.branches) == 0,
                step_size=chunk_events,
                library="np" if all_flat else "ak",
                how=dict,
            )
            for chunk in branches:
                yield {name: chunk[name] if all_flat else self._values(name, chunk[name]) for name in names}

    def _values(self, name: str, values: Any) -> Any:  # noqa: ANN401 - awkward in, NumPy or awkward out
        """Turn an awkward array into a NumPy array where it is regular; else mark which branch counts it."""
        import awkward as ak  # noqa: PLC0415 - optional

        if self.columns[name].kind == "text":
            return values
        if values.layout.purelist_isregular:
            return ak.to_numpy(values)
        counter = self.counters.get(name)
        return values if counter is None else ak.with_parameter(values, COUNTER, counter)

    def metadata(self) -> dict[str, Any]:
        """What the writer stored beside the tree, empty if nothing."""
        return _root_metadata(self.path)


def _describe_tree(path: FilePath, name: str, tree: Any) -> RootTree:  # noqa: ANN401 - uproot has no types
    """Describe the branches that hold data; those whose names are not unique in the tree are passed over."""
    leaves = [branch for branch in tree.itervalues(recursive=True) if len(branch.branches) == 0]
    repeated = Counter(branch.name for branch in leaves)
    branches = {branch.name: branch for branch in leaves if repeated[branch.name] == 1}
    columns = {key: _column(branch) for key, branch in branches.items()}
    n_events = int(tree.num_entries)
    return RootTree(
        path=path,
        tree=name,
        n_events=n_events,
        columns=columns,
        unreadable=frozenset(
            key for key, column in columns.items() if column.dtype == _OBJECT and column.kind == "other"
        ),
        sizes={key: _bytes_per_event(branch, columns[key], n_events) for key, branch in branches.items()},
        counters={key: b.count_branch.name for key, b in branches.items() if b.count_branch is not None},
    )


def _column(branch: Any) -> Column:  # noqa: ANN401 - uproot has no types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes that uproot does not know
        interpretation = branch.interpretation
    what = type(interpretation).__name__
    if what == "AsStrings":
        return Column(branch.name, "text", _OBJECT)
    is_list = what == "AsJagged"
    content = interpretation.content if is_list else interpretation
    if type(content).__name__ not in _NUMERIC or content.to_dtype.names is not None:
        return Column(branch.name, "other", _OBJECT)
    dtype, shape = content.to_dtype.base, (*content.to_dtype.shape, *getattr(content, "to_dims", ()))
    if not is_list and shape == ():
        return Column(branch.name, kind_of_dtype(dtype), dtype)
    if len(shape) + is_list == 1:
        return Column(branch.name, "jagged", dtype)
    return Column(branch.name, "other", _OBJECT if is_list else dtype)


def _bytes_per_event(branch: Any, column: Column, n_events: int) -> float:  # noqa: ANN401 - uproot has no types
    stored = float(branch.uncompressed_bytes) / max(n_events, 1)
    return max(stored, float(column.dtype.itemsize)) if column.is_numeric else stored + 8.0


@dataclass(frozen=True, eq=False)
class RootNtuple:
    """One RNTuple of a ROOT file; see `TableFile`. Its columns are the fields of the first level."""

    path: FilePath
    tree: str
    n_events: int
    columns: Mapping[str, Column]
    unreadable: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The path and the name of the RNTuple."""
        return f"{self.path}:{self.tree}"

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Size of an event in memory, with these columns only; lists count as if they had eight elements."""
        lengths = (1 if self.columns[name].is_numeric else _ASSUMED_LENGTH for name in names)
        return float(
            sum(self.columns[name].dtype.itemsize * n for name, n in zip(names, lengths, strict=True))
        )

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        import awkward as ak  # noqa: PLC0415 - optional

        with reading(str(self.path), "ROOT"), _opened_root(self.path) as file:
            wanted = tuple(names)
            below = tuple(
                f"{name}." for name in names
            )  # a name may hold a dot itself, as weights at a point do
            fields = file[self.tree].iterate(
                filter_field=lambda field: field.path in wanted or field.path.startswith(below),
                step_size=chunk_events,
                library="ak",
            )
            for chunk in fields:
                arrays = {name: chunk[name] for name in names}
                yield {
                    name: ak.to_numpy(values) if self._is_regular(name, values) else values
                    for name, values in arrays.items()
                }

    def _is_regular(self, name: str, values: Any) -> bool:  # noqa: ANN401 - an awkward array
        column = self.columns[name]
        return column.is_numeric or (column.kind == "jagged" and bool(values.layout.purelist_isregular))

    def metadata(self) -> dict[str, Any]:
        """What the writer stored beside the RNTuple, empty if nothing."""
        return _root_metadata(self.path)


def _describe_ntuple(path: FilePath, name: str, ntuple: Any) -> RootNtuple:  # noqa: ANN401 - uproot has no types
    """Describe the fields by the types of an array without events; none are read, which may be megabytes on a server."""
    form, _ = ntuple.to_akform()
    empty = form.length_zero_array()
    columns = {field: column_of(field, empty[field]) for field in empty.fields}
    return RootNtuple(path, name, int(ntuple.num_entries), columns)


def open_root_file(location: Location) -> TableFile:
    """Open a tree by name, or the only one of the file, and describe its columns."""
    path = location.path
    with reading(str(path), "ROOT"), _opened_root(path) as file:
        name, kind = _tree_and_class(path, file, location.tree)
        describe = _describe_ntuple if kind == _NTUPLE_CLASS else _describe_tree
        described: TableFile = describe(path, name, file[name])
    if not described.columns:
        msg = f"Got the tree {name!r} of {str(path)!r}, which has no branches; expected at least one."
        raise InvalidInputError(msg)
    return described
