"""The samples that a command names: files, features, weights and selection, read alike everywhere."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quasiratio.errors import FeatureWarning, InvalidInputError, LargeFileError

if TYPE_CHECKING:
    from quasiratio.io import Feature, Table
    from quasiratio.sample import WeightedSample

_LOOKS_LIKE_A_WEIGHT = re.compile(r"weight|wgt|(^|[_.])w(t)?([_.]|$)|^w\d*$|sf$", re.IGNORECASE)

__all__ = ["SampleFiles", "chosen_features", "feature_line", "require_weight_option"]


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

    files: Sequence[str]
    weight: str | None = None
    selection: str | None = None
    tree: str | None = None
    allow_large: bool = False

    def open(self) -> Table:
        """Open the files; nothing but headers is read."""
        from quasiratio.io import open_table  # noqa: PLC0415 - keeps --help fast

        try:
            return open_table(self.files, tree=self.tree, allow_large=self.allow_large)
        except LargeFileError as error:
            msg = str(error).replace("Give allow_large=True", "Add --allow-large")
            raise InvalidInputError(msg) from None

    def read(self, table: Table, columns: Sequence[str | Feature]) -> WeightedSample:
        """Read these features, and the weights, of all selected events."""
        from quasiratio.io import read_sample  # noqa: PLC0415 - keeps --help fast

        require_weight_option(table, self.weight)
        return read_sample(table, features=columns, weight=self.weight, selection=self.selection)


def chosen_features(
    wanted: Sequence[str] | None, samples: Sequence[SampleFiles], tables: Sequence[Table]
) -> list[Feature]:
    """Return the features that were asked for, or those that all samples have to offer.

    Samples may have different weights; the columns of neither weight are features by default.
    """
    from quasiratio.io import Feature, default_features, parse_features  # noqa: PLC0415 - keeps --help fast

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
            "of the same name, besides weights and identifiers. Name the features with --features."
        )
        raise InvalidInputError(msg)
    _require_weights(samples, tables)
    _warn_of_weights(shared)
    return [Feature(name, name) for name in shared]


def _require_weights(samples: Sequence[SampleFiles], tables: Sequence[Table]) -> None:
    for sample, table in zip(samples, tables, strict=True):
        require_weight_option(table, sample.weight)


def require_weight_option(table: Table, weight: str | None) -> None:
    """Raise where no weight was given, although a column is named like one."""
    from quasiratio.io import weight_columns  # noqa: PLC0415 - keeps --help fast

    found = weight_columns(table) if weight is None and table.n_events else []
    if found:
        listed = ", ".join(repr(name) for name in found[:3]) + (", ..." if len(found) > 3 else "")
        option = shlex.join(["--weight", found[0]])
        msg = (
            f"Got no weight for {table.label!r}, which has the column{'s' if len(found) > 1 else ''} {listed}; expected "
            f"the weight to be named. Add {option}, or --weight 1 for unweighted events."
        )
        raise InvalidInputError(msg)


def _warn_of_weights(features: Sequence[str]) -> None:
    suspects = [name for name in features if _LOOKS_LIKE_A_WEIGHT.search(name)]
    if suspects:
        msg = (
            f"By default {', '.join(map(repr, suspects))} would be learned from like any feature, but may be weights. "
            "Name the weight with --weight, or the features with --features."
        )
        warnings.warn(msg, FeatureWarning, stacklevel=2)


def feature_line(features: Sequence[str | Feature]) -> str:
    """Return the line that says which features are in use, with the formulas of those that have a name.

    Example:
        >>> from quasiratio.io import parse_features
        >>> feature_line(["pt", *parse_features(["ptg=pt/1000", "cos(phi)"], [])])
        'Features (3): pt, ptg = pt/1000, cos(phi)'
    """
    return f"Features ({len(features)}): {', '.join(_shown(feature) for feature in features)}"


def _shown(feature: str | Feature) -> str:
    if isinstance(feature, str) or feature.name == feature.text:
        return str(getattr(feature, "name", feature))
    return f"{feature.name} = {feature.text}"
