"""Ratios and new weights chunk by chunk: what a model adds to the columns of a file, and the sums over all chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix, filled, require_finite_columns
from quasiratio.errors import InvalidInputError, SupportWarning
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Expression, Feature, Table, parse_expression
from quasiratio.sample import WeightedSample
from quasiratio.wording import shortened
from quasiratio.workflows.running_counts import EventCounts, RangeCount

__all__ = ["NewColumns", "RatioStream"]


@dataclass(frozen=True)
class NewColumns:
    """Names of the columns that are added.

    Attributes:
        ratio: The ratio; with members also `<ratio>_std` and `<ratio>_member_0`, `_1`, ...
        weight: The new weight.
    """

    ratio: str = "ratio"
    weight: str = "weight_reweighted"

    def of_members(self, n_members: int) -> list[str]:
        """Return the names for the spread and each member.

        Example:
            >>> NewColumns().of_members(2)
            ['ratio_std', 'ratio_member_0', 'ratio_member_1']
        """
        return [f"{self.ratio}_std", *(f"{self.ratio}_member_{k}" for k in range(n_members))]

    def of_variations(self, names: Sequence[str]) -> list[str]:
        """Return the names for ratio and weight of each variation.

        Example:
            >>> NewColumns().of_variations(["nominal", "up"])
            ['ratio_nominal', 'weight_nominal', 'ratio_up', 'weight_up']
        """
        weight = "weight" if self.weight == NewColumns.weight else self.weight
        return [text for name in names for text in (f"{self.ratio}_{name}", f"{weight}_{name}")]


@dataclass
class RatioStream:
    """Chunks in, chunks with more columns out, and the sums over all of them.

    Args:
        model: A fitted ratio estimator or reweighter.
        inputs: The features of the model, in the order of the fit.
        weight: The weight before; one where there is none.
        fit_selection: The selection of the fit.
        names: Names of the new columns.
        members: Whether to add the spread of the members and the ratio of each.
        ranges: Counts the events outside the training data.
        variations: The weights before by name, the nominal one first, for a model of several weights.
    """

    model: RatioPredictor
    inputs: list[Feature]
    weight: Expression | None
    fit_selection: Expression | None
    names: NewColumns
    members: bool
    ranges: RangeCount
    variations: Mapping[str, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.features = [feature.name for feature in self.inputs]
        self.used = [name for feature in self.inputs for name in feature.columns]
        self.counts = EventCounts(ranges=self.ranges)
        self.new_columns = [self.names.ratio, self.names.weight]
        if self.variations:
            self.new_columns = self.names.of_variations(list(self.variations))
            if self.members:
                msg = "Got a request for the members of a model of several weights; expected none, as they are not written."
                raise InvalidInputError(msg, advice="Leave `members` out.")
        if self.members:
            n_members = self.model.n_members
            if n_members < 2:
                msg = (
                    "Got a request for the members of a model that is no ensemble; expected one with at least two. "
                    "Fit again with n_members=8, or leave the members out."
                )
                raise InvalidInputError(msg)
            self.new_columns += self.names.of_members(n_members)

    def require_usable(self, table: Table) -> None:
        """Raise unless the table has what is needed, and not yet what is added."""
        table.require_numbers([*self.used, *self._weight_names])
        taken = [name for name in self.new_columns if name in table.columns]
        if taken or len(set(self.new_columns)) < len(self.new_columns):
            shown = ", ".join(repr(name) for name in taken or self.new_columns)
            msg = (
                f"Got {shown} as new columns, but {table.label!r} has such a column or they are the same; expected "
                "names that are free."
            )
            raise InvalidInputError(msg, advice="Choose others with `ratio_name` and `weight_name`.")

    def read_columns(self, table: Table) -> list[str]:
        """Return all columns, and the elements such as `jet_pt[0]` that are used."""
        used = [*self.used, *self._weight_names]
        known = [name for name in self._expression_names(self.fit_selection) if name in table.columns]
        if len(known) < len(self._expression_names(self.fit_selection)):
            self.fit_selection = None  # it needs columns that this file does not have
        return list(dict.fromkeys([*table.columns, *used]))

    @property
    def may_miss(self) -> set[str]:
        """Elements that an event need not have."""
        required = {
            name for feature in self.inputs for name in feature.columns if name not in feature.may_miss
        }
        required |= set(self._weight_names)
        return {name for feature in self.inputs for name in feature.may_miss} - required

    @property
    def _weight_names(self) -> list[str]:
        of_variations = [name for one in self.variations.values() for name in one.names]
        return [*self._expression_names(self.weight), *of_variations]

    @staticmethod
    def _expression_names(expression: Expression | None) -> tuple[str, ...]:
        return () if expression is None else expression.names

    def chunks(
        self, table: Table, selection: str | None, *, chunk_events: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Read a table, and yield its chunks with our columns.

        Args:
            table: Events to reweight.
            selection: Events to take; all when left out.
            chunk_events: As for `Table.chunks`.
        """
        condition = parse_expression(selection) if selection else None
        for chunk in table.chunks(
            self.read_columns(table), selection=condition, chunk_events=chunk_events, may_miss=self.may_miss
        ):
            yield self.extended(chunk, table)

    def extended(self, chunk: Mapping[str, Any], table: Table) -> dict[str, Any]:
        """Return the columns of the file with ours beside them."""
        n_events = len(next(iter(chunk.values())))
        kept = {name: chunk[name] for name in table.columns if name in chunk}  # not what cannot be read
        if n_events == 0:
            return kept | dict.fromkeys(self.new_columns, np.empty(0))
        precision = np.float64 if self.model.is_exact_ else np.float32
        matrix: FeatureMatrix = np.empty((n_events, len(self.features)), dtype=precision)
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite, which the model refuses
            for column, feature in enumerate(self.inputs):
                matrix[:, column] = feature.values(chunk, n_events)
        sample = self._sample(matrix)
        ratio, members = self._predicted(sample)
        weights = np.ones(n_events) if self.weight is None else self._weights(self.weight, chunk, n_events)
        with np.errstate(invalid="ignore"):  # a weight of zero times an infinite ratio
            new_weights = self.model.weight_scale * weights * ratio
        self.counts.add(matrix, weights, new_weights, ratio)
        if self.fit_selection is not None:
            self.counts.n_unselected += int(np.sum(~self.fit_selection.evaluate_mask(chunk, n_events)))
        columns = [ratio, new_weights, *_spread(members)]
        if self.variations:
            columns = list(self._varied(sample, ratio, chunk))
        return kept | dict(zip(self.new_columns, columns, strict=True))

    def _varied(
        self,
        sample: WeightedSample,
        ratio: npt.NDArray[np.float64],
        chunk: Mapping[str, Any],
    ) -> Iterator[npt.NDArray[np.float64]]:
        """Return the ratio and the new weight of each variation."""
        ratios = ratio[:, None] * self.model.predict_quotients(sample)
        for place, (name, expression) in enumerate(self.variations.items()):
            before = self._weights(expression, chunk, len(sample))
            with np.errstate(invalid="ignore"):
                yield from (
                    ratios[:, place],
                    self.model.varied(name).weight_scale * before * ratios[:, place],
                )

    def _sample(self, matrix: FeatureMatrix) -> WeightedSample:
        of_fit = dict(zip(self.model.feature_list(), self.features, strict=False))  # the model compares them
        fill = {of_fit[name]: value for name, value in self.model.fill_.items() if name in of_fit}
        matrix = filled(matrix, self.features, fill)
        require_finite_columns(matrix, tuple(self.features))
        return WeightedSample.adopt(matrix, np.ones(len(matrix)), self.features, fill)

    def _predicted(self, sample: WeightedSample) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if not self.model.predicts_unseen:
            self.counts.seen += self.model.fingerprint_.seen(sample)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predicted = self.model.predict_with_members(sample, members=self.members)
        self.counts.n_nonpositive += predicted.n_nonpositive
        for warning in caught:  # what is counted over all chunks is not said for each
            if not (isinstance(warning.message, SupportWarning) and self.ranges.ranges):
                warnings.warn(warning.message, stacklevel=2)
        return predicted.ratio, predicted.members

    @staticmethod
    def _weights(expression: Expression, chunk: Mapping[str, Any], n_events: int) -> npt.NDArray[np.float64]:
        weights = expression.evaluate(chunk, n_events).astype(np.float64)
        n_bad = int(np.sum(~np.isfinite(weights)))
        if n_bad:
            msg = (
                f"Got {n_bad} weights that are NaN or infinite from the expression {shortened(expression.text)!r}; expected "
                "finite weights. Leave these events out with a selection."
            )
            raise InvalidInputError(msg)
        return weights


def _spread(members: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    if len(members):
        yield members.std(axis=0, ddof=1)
        yield from members
