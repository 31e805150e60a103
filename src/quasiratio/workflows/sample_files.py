"""The samples that a workflow reads: files, features, weights and selection, read alike everywhere."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from quasiratio.errors import FeatureWarning, InvalidInputError
from quasiratio.io import (
    Feature,
    Table,
    default_features,
    open_table,
    parse_features,
    parse_weights,
    read_sample,
    read_weights,
)
from quasiratio.io.features import unused_weights
from quasiratio.io.weight_names import require_named_weight
from quasiratio.sample import WeightedSample
from quasiratio.tasks import WorkerPool
from quasiratio.wording import first_of

_LOOKS_LIKE_A_WEIGHT = re.compile(r"(^|[_.])wt?([_.]|$)|sf$", re.IGNORECASE)

__all__ = ["Files", "SampleFiles", "Variations", "chosen_features", "require_weight", "varied_files"]

Variations = dict[str, npt.NDArray[np.float64]]
"""Values of several weights by name, the nominal one first."""

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
        weights: Expressions of several weights by name, the nominal one first, which is `weight`; none where there is one.
    """

    files: Files
    weight: str | None = None
    selection: str | None = None
    tree: str | None = None
    allow_large: bool = False
    weights: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Table:
        """Open the files; nothing but headers is read."""
        return open_table(self.files, tree=self.tree, allow_large=self.allow_large)

    def read(
        self, table: Table, columns: Sequence[str | Feature], *, pool: WorkerPool | None = None
    ) -> WeightedSample:
        """Read these features, and the weights, of all selected events, file by file where there is a pool."""
        require_weight(table, self.weight)
        return read_sample(table, features=columns, weight=self.weight, selection=self.selection, pool=pool)

    def read_variations(self, table: Table) -> Variations | None:
        """Read all weights of all selected events, where there are several."""
        return read_weights(table, self.weights, selection=self.selection) if self.weights else None

    @property
    def variation_line(self) -> str:
        """The weights, for people."""
        listed = (name if name == text else f"{name} = {text}" for name, text in self.weights.items())
        return f"Weights: {', '.join(listed)}"

    @property
    def weight_columns(self) -> str | None:
        """An expression with the columns of all weights."""
        return " + ".join(f"({text})" for text in self.weights.values()) or self.weight


def varied_files(
    files: Sequence[SampleFiles], tables: Sequence[Table], weights: Sequence[str], weight: str | None
) -> list[SampleFiles]:
    """Give several weights to the samples that have none of their own."""
    if weight is not None:
        msg = f"Got the weight {weight!r} beside several weights; expected one or the other."
        raise InvalidInputError(msg, advice="Name the nominal weight first in `weights`.")
    open_ones = [table for one, table in zip(files, tables, strict=True) if one.weight is None]
    if not open_ones:
        msg = "Got several weights, and a weight of its own for each sample; expected a sample that has the several."
        raise InvalidInputError(msg, advice="Leave out `reference_weight` or `target_weight`.")
    parsed = parse_weights(weights, open_ones)
    nominal = next(iter(parsed.values()))
    return [one if one.weight is not None else replace(one, weight=nominal, weights=parsed) for one in files]


def chosen_features(
    wanted: Sequence[str] | None,
    samples: Sequence[SampleFiles],
    tables: Sequence[Table],
    say: Callable[[str], None] | None = None,
) -> list[Feature]:
    """Return the features that were asked for, or those that all samples have to offer.

    Samples may have different weights; the columns of neither weight, and those that are named like another weight, are no
    features by default. The latter are told to `say`.
    """
    if wanted:
        features = parse_features(wanted, tables)
        _require_weights(samples, tables)
        return features
    _require_weights(samples, tables)
    offered = [
        default_features([table], sample.weight_columns, sample.selection)
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
    _warn_of_weights(shared)
    if say is not None:
        _tell_left_out(samples, tables, say)
    return [Feature(name, name) for name in shared]


def _require_weights(samples: Sequence[SampleFiles], tables: Sequence[Table]) -> None:
    for sample, table in zip(samples, tables, strict=True):
        require_weight(table, sample.weight)


def require_weight(table: Table, weight: str | None) -> None:
    """Raise where no weight was given, although a column of a table with events is named like one."""
    if table.n_events:
        require_named_weight(table, weight)


def _tell_left_out(
    samples: Sequence[SampleFiles], tables: Sequence[Table], say: Callable[[str], None]
) -> None:
    unused = [
        unused_weights([table], sample.weight_columns) for sample, table in zip(samples, tables, strict=True)
    ]
    names = [name for name in unused[0] if all(name in others for others in unused[1:])]
    if names:
        say(f"Named like weights, so no features unless asked for by name: {first_of(names, 8)}")


def _warn_of_weights(features: Sequence[str]) -> None:
    suspects = [name for name in features if _LOOKS_LIKE_A_WEIGHT.search(name)]
    if suspects:
        msg = f"By default {', '.join(map(repr, suspects))} would be learned from like any feature, but may be weights."
        advice = "Name the weight with `weight`, or the features with `features`."
        warnings.warn(FeatureWarning(msg, advice=advice), stacklevel=2)
