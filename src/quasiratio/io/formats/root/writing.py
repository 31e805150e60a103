"""ROOT files through uproot: a TTree that grows by one basket per branch and chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import Column
from quasiratio.io.elements import is_awkward
from quasiratio.io.extras import require_extra
from quasiratio.io.file_format import NewFile, is_utf8
from quasiratio.io.formats.root.reading import COUNTER, METADATA_NAME

__all__ = ["RootSink"]

_ALGORITHMS = {"zstd": "ZSTD", "lz4": "LZ4", "zlib": "ZLIB"}
_FASTEST = 1


class RootSink:
    """A TTree in a new file; see `TableSink`.

    ROOT keeps the length of a jagged branch in a counter branch. Where the input had one (`njet` for
    `jet_pt` and `jet_eta`), the same branch counts in the output, as 32-bit integers; otherwise `n` and the
    name of the branch is added.
    """

    def __init__(self, new: NewFile) -> None:
        uproot = require_extra("uproot", extra="root", purpose="to write a ROOT file")
        codec = None if new.compression is None else getattr(uproot, _ALGORITHMS[new.compression])(_FASTEST)
        self._file = uproot.recreate(new.path, compression=codec)
        self._tree_name = new.tree
        self._tree: Any = None
        self._counters: dict[str, str] = {}

    def unwritable(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> list[str]:
        """Return the columns that are no numbers, lists of numbers or text, or have no usable name."""
        return [
            name
            for name, column in columns.items()
            if not name or not is_utf8(name) or not _is_writable(column, chunk[name])
        ]

    def append(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        """Write one basket per branch."""
        arrays = {name: _as_written(column, chunk[name]) for name, column in columns.items()}
        if self._tree is None:
            self._create(arrays)
        self._require_counters(arrays)
        counted = set(self._counters.values())
        if len(next(iter(arrays.values()))):  # a basket without events would confuse readers
            self._tree.extend({name: values for name, values in arrays.items() if name not in counted})

    def _create(self, arrays: Mapping[str, Any]) -> None:
        types = {name: _branch_type(values) for name, values in arrays.items()}
        taken = set(arrays)
        for name, values in arrays.items():
            if isinstance(types[name], str) and types[name] != "string":
                self._counters[name] = _counter(name, values, arrays, taken)
                taken.add(self._counters[name])
        counted = set(self._counters.values())
        self._tree = self._file.mktree(
            self._tree_name,
            {name: kind for name, kind in types.items() if name not in counted},
            counter_name=lambda name: self._counters[name],
            initial_basket_capacity=100,
        )

    def _require_counters(self, arrays: Mapping[str, Any]) -> None:
        """Raise where branches that share a counter differ in their lengths, or from the counter."""
        import awkward as ak  # noqa: PLC0415 - optional

        lengths: dict[str, tuple[str, npt.NDArray[Any]]] = {}
        for name, counter in self._counters.items():
            given = ak.to_numpy(ak.num(arrays[name], axis=1))
            other, expected = lengths.setdefault(counter, (name, arrays.get(counter, given)))
            if not np.array_equal(given, expected) or not np.array_equal(given, arrays.get(counter, given)):
                msg = (
                    f"Got the jagged column {name!r} with other lengths than {counter!r} or {other!r} say; expected "
                    f"{counter!r} to be the number of values in each event. Leave {counter!r} out, or correct it."
                )
                raise InvalidInputError(msg)

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write the metadata as a TObjString, and close the file."""
        if metadata:
            self._file[METADATA_NAME] = json.dumps(metadata)
        self._file.close()

    def abandon(self) -> None:
        """Close the file without completing it."""
        self._file.close()


def _is_writable(column: Column, values: Any) -> bool:  # noqa: ANN401 - NumPy or awkward
    if column.kind == "text":
        return is_awkward(values) or values.dtype.kind != "S"  # bytes are in no particular encoding
    is_known_number = column.dtype.kind in "fiub" and column.dtype.itemsize <= 8
    return is_known_number and not (column.kind == "other" and is_awkward(values))


def _as_written(column: Column, values: Any) -> Any:  # noqa: ANN401 - NumPy or awkward
    """Return what uproot takes: NumPy arrays of numbers, and lists or text as awkward arrays."""
    if not is_awkward(values) and column.kind != "text":
        return values.astype(np.float32) if column.dtype == np.float16 else values
    import awkward as ak  # noqa: PLC0415 - optional

    if column.kind == "text":
        return ak.fill_none(ak.Array(values), "")
    return ak.to_numpy(values) if column.is_numeric else ak.values_astype(values, column.dtype)


def _branch_type(values: Any) -> Any:  # noqa: ANN401 - NumPy or awkward in, a type or its name out
    if not is_awkward(values):
        return np.dtype((values.dtype, values.shape[1:])) if values.ndim > 1 else values.dtype
    import awkward as ak  # noqa: PLC0415 - optional

    content = ak.type(values).content
    return (
        "string" if content.parameters.get("__array__") == "string" else f"var * {content.content.primitive}"
    )


def _counter(name: str, values: Any, arrays: Mapping[str, Any], taken: set[str]) -> str:  # noqa: ANN401
    """Return the name of the branch that counts this one: the one of the input, or a new one."""
    import awkward as ak  # noqa: PLC0415 - optional

    marked = ak.parameters(values).get(COUNTER)
    if marked is not None and (marked not in arrays or _is_scalar_integer(arrays[marked])):
        return str(marked)
    counter = f"n{name}"
    while counter in taken:
        counter += "_"
    return counter


def _is_scalar_integer(values: Any) -> bool:  # noqa: ANN401 - NumPy or awkward
    return not is_awkward(values) and values.ndim == 1 and values.dtype.kind in "iu"
