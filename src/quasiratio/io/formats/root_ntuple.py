"""RNTuples through uproot: the columns of newer ROOT files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasiratio.io.column import Column
from quasiratio.io.damage import reading
from quasiratio.io.formats.root_source import opened_root, root_metadata
from quasiratio.io.table_file import Chunk
from quasiratio.io.table_sink import column_of

__all__ = ["RootNtuple", "describe_ntuple"]

_ASSUMED_LENGTH = 8  # of lists and text, for the size of chunks only


@dataclass(frozen=True, eq=False)
class RootNtuple:
    """One RNTuple of a ROOT file; see `TableFile`. Its columns are the fields of the first level."""

    path: Path
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

        with reading(str(self.path), "ROOT"), opened_root(self.path) as file:
            wanted = set(names)
            fields = file[self.tree].iterate(
                filter_field=lambda field: field.path.partition(".")[0] in wanted,
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
        return root_metadata(self.path)


def describe_ntuple(path: Path, name: str, ntuple: Any) -> RootNtuple:  # noqa: ANN401 - uproot has no types
    """Describe the fields by the types of an array without events."""
    empty = ntuple.arrays(entry_stop=0, library="ak")
    columns = {field: column_of(field, empty[field]) for field in empty.fields}
    return RootNtuple(path, name, int(ntuple.num_entries), columns)
