"""TTrees through uproot, read basket by basket."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.damage import reading
from quasiratio.io.formats.root_source import opened_root, root_metadata
from quasiratio.io.table_file import Chunk

__all__ = ["COUNTER", "RootTree", "describe_tree"]

COUNTER = "quasiratio_counter"
"""Parameter of the awkward arrays that we read: the branch that holds the number of values per event."""

_OBJECT = np.dtype(object)
_NUMERIC = {"AsDtype", "AsDouble32", "AsFloat16"}


@dataclass(frozen=True, eq=False)
class RootTree:
    """One tree of a ROOT file; see `TableFile`. Branches of objects are known by name only."""

    path: Path
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
        with reading(str(self.path), "ROOT"), opened_root(self.path) as file:
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
        return root_metadata(self.path)


def describe_tree(path: Path, name: str, tree: Any) -> RootTree:  # noqa: ANN401 - uproot has no types
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
