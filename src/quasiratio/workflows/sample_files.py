"""The samples that a workflow reads: files, features, weights and selection, read alike everywhere."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from quasiratio.errors import FeatureWarning, InvalidInputError
from quasiratio.io import Feature, Table, default_features, open_table, parse_features, read_sample
from quasiratio.io.weight_names import require_named_weight
from quasiratio.sample import WeightedSample

_LOOKS_LIKE_A_WEIGHT = re.compile(r"weight|wgt|(^|[_.])w(t)?([_.]|$)|^w\d*$|sf$", re.IGNORECASE)

__all__ = ["Files", "SampleFiles", "chosen_features", "require_weight"]

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A path, a pattern such as `data/*.root:tree`, or several of them."""


@dataclass(frozen=True)
class SampleFiles:
    """Files of one sample, and how to weight and select their events.

    Args:
        files: Paths, patterns, `file.root:tree`.
        weight: Expression of the weight; one when left out.
        selection: Condition on the events; all when left out.
        tree: Tree of ROOT files whose path names none.
        allow_large: Read small files that unpack to gigabytes.
    """

    files: Files
    weight: str | None = None
    selection: str | None = None
    tree: str | None = None
    allow_large: bool = False

    def open(self) -> Table:
        """Open the files; nothing but headers is read."""
        return open_table(self.files, tree=self.tree, allow_large=self.allow_large)

    def read(self, table: Table, columns: Sequence[str | Feature]) -> WeightedSample:
        """Read these features, and the weights, of all selected events."""
        require_weight(table, self.weight)
        return read_sample(table, features=columns, weight=self.weight, selection=self.selection)


def chosen_features(
    wanted: Sequence[str] | None, samples: Sequence[SampleFiles], tables: Sequence[Table]
) -> list[Feature]:
    """Return the features that were asked for, or those that all samples have to offer.

    Samples may have different weights; the columns of neither weight are features by default.
    """
    if wanted:
        features = parse_features(wanted, tables)
        _require_weights(samples, tables)
        return features
    offered = [
        default_features([table], sample.weight, sample.selection)
        for sample, table in zip(samples, tables, strict=True)
    ]
    shared = [name for name in offered[0] if all(name in names for names in offered[1:])]
    if not shared:
        labels = " and ".join(repr(table.label) for table in tables)
        msg = (
            f"Got {labels}, which share no column to use as a feature by default; expected numeric columns "
            "of the same name, besides weights and identifiers."
        )
        raise InvalidInputError(msg, advice="Name the features with `features`.")
    _require_weights(samples, tables)
    _warn_of_weights(shared)
    return [Feature(name, name) for name in shared]


def _require_weights(samples: Sequence[SampleFiles], tables: Sequence[Table]) -> None:
    for sample, table in zip(samples, tables, strict=True):
        require_weight(table, sample.weight)


def require_weight(table: Table, weight: str | None) -> None:
    """Raise where no weight was given, although a column of a table with events is named like one."""
    if table.n_events:
        require_named_weight(table, weight)


def _warn_of_weights(features: Sequence[str]) -> None:
    suspects = [name for name in features if _LOOKS_LIKE_A_WEIGHT.search(name)]
    if suspects:
        msg = f"By default {', '.join(map(repr, suspects))} would be learned from like any feature, but may be weights."
        advice = "Name the weight with `weight`, or the features with `features`."
        warnings.warn(FeatureWarning(msg, advice=advice), stacklevel=2)
