"""A model applied to a file of any length: events pass through in chunks, and all columns are kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix, filled, require_finite_columns
from quasiratio.errors import InvalidInputError, NegativeDensityWarning, SupportWarning
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.event_sketch import SeenEvents
from quasiratio.estimators.reweighter import Reweighter, predicts_unseen
from quasiratio.io import Expression, Feature, Table, create_table, parse_expression, parse_features
from quasiratio.io.weight_names import require_named_weight
from quasiratio.sample import WeightedSample
from quasiratio.wording import shortened
from quasiratio.workflows.applied_model import AppliedModel, NewColumns
from quasiratio.workflows.feature_ranges import RangeCount
from quasiratio.workflows.weight_sums import WeightSums

__all__ = ["AppliedModel", "NewColumns", "apply_to_file"]

Progress = Callable[[int, int], None]


def apply_to_file(
    model: RatioEstimator | Reweighter,
    table: Table,
    output: str | os.PathLike[str],
    *,
    features: Sequence[str | Feature],
    weight: str | None = None,
    selection: str | None = None,
    names: NewColumns | None = None,
    members: bool = False,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    fit_selection: str | None = None,
    tree: str = "events",
    compression: Any = "auto",  # noqa: ANN401 - what `create_table` takes
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> AppliedModel:
    """Write a copy of `table` with the ratio and the new weight of every event.

    Memory does not grow with the file. Nothing is left behind if anything fails.

    Args:
        model: A fitted ratio estimator or reweighter.
        table: Events to reweight.
        output: The new file; its suffix says the format.
        features: The features of the model, in the order of the fit: columns, elements or formulas.
        weight: Expression of the weight before; one when left out, if no column is named like a weight.
        selection: Events to write; all when left out.
        names: Names of the new columns; none may be in the table.
        members: Add the spread of the members and the ratio of each; needs an ensemble.
        ranges: Smallest and largest value of each feature in the training data, to count who is outside.
        fit_selection: The selection of the fit, to count the events that it would have left out.
        tree: Name of the tree, for ROOT files.
        compression: As for `create_table`.
        metadata: Stored beside the events.
        progress: Called after each chunk with the events done and the events at most.

    Example:
        >>> import tempfile
        >>> import quasiratio as qr
        >>> from quasiratio.io import open_table
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(np.repeat([0.0, 0.5], 2000), 1.0), np.repeat([0, 1], 2000)
        >>> model = qr.DirectRatio(max_steps=100, random_state=0).fit({"x": X}, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/in.npz", x=X[:2000], w=np.ones(2000))
        ...     table = open_table(f"{directory}/in.npz")
        ...     done = apply_to_file(model, table, f"{directory}/out.npz", features=["x"], weight="w")
        ...     list(open_table(f"{directory}/out.npz").columns)
        ['x', 'w', 'ratio', 'weight_reweighted']
        >>> done.n_events, bool(abs(done.after.total / done.before.total - 1) < 0.01)
        (2000, True)
    """
    names = names or NewColumns()
    stream = _Stream(
        model,
        parse_features(features, [table]),
        parse_expression(weight) if weight else None,
        parse_expression(fit_selection) if fit_selection else None,
        names,
        members,
        RangeCount(ranges or {}),
    )
    stream.require_usable(table)
    require_named_weight(table, weight)
    condition = parse_expression(selection) if selection else None
    n_read = 0
    with create_table(
        output, tree=tree, compression=compression, metadata=metadata, inputs=[table]
    ) as writer:
        for chunk in table.chunks(stream.read_columns(table), selection=condition, may_miss=stream.may_miss):
            writer.append(stream.extended(chunk, table))
            n_read += len(next(iter(chunk.values())))
            if progress is not None:
                progress(n_read, table.n_events)
        if n_read == 0:
            raise _nothing_left(table, selection)
    done = stream.result()
    for warning in done.warnings():
        warnings.warn(warning, stacklevel=2)
    return done


@dataclass
class _Stream:
    """Chunks in, chunks with more columns out, and the sums over all of them."""

    model: RatioEstimator | Reweighter
    inputs: list[Feature]
    weight: Expression | None
    fit_selection: Expression | None
    names: NewColumns
    members: bool
    ranges: RangeCount

    def __post_init__(self) -> None:
        self.features = [feature.name for feature in self.inputs]
        self.used = [name for feature in self.inputs for name in feature.columns]
        self.before, self.after = WeightSums(), WeightSums()
        self.n_nonpositive = self.n_unselected = self.n_infinite = 0
        self.lowest, self.highest = np.inf, -np.inf
        self.seen, self.out_of_fold = SeenEvents(), predicts_unseen(self.model)
        self.new_columns = [self.names.ratio, self.names.weight]
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
        table.require_numbers([*self.used, *self._expression_names(self.weight)])
        taken = [name for name in self.new_columns if name in table.columns]
        if taken or len(set(self.new_columns)) < len(self.new_columns):
            shown = ", ".join(repr(name) for name in taken or self.new_columns)
            msg = (
                f"Got {shown} as new columns, but {table.label!r} has such a column or they are the same; expected "
                "names that are free. Choose others with --ratio-name and --weight-name."
            )
            raise InvalidInputError(msg)

    def read_columns(self, table: Table) -> list[str]:
        """Return all columns, and the elements such as `jet_pt[0]` that are used."""
        used = [*self.used, *self._expression_names(self.weight)]
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
        required |= set(self._expression_names(self.weight))
        return {name for feature in self.inputs for name in feature.may_miss} - required

    @staticmethod
    def _expression_names(expression: Expression | None) -> tuple[str, ...]:
        return () if expression is None else expression.names

    def extended(self, chunk: Mapping[str, Any], table: Table) -> dict[str, Any]:
        """Return the columns of the file with ours beside them."""
        n_events = len(next(iter(chunk.values())))
        kept = {name: chunk[name] for name in table.columns if name in chunk}  # not what cannot be read
        if n_events == 0:
            return kept | dict.fromkeys(self.new_columns, np.empty(0))
        is_exact = _fitted(self.model).is_exact_
        matrix = np.empty((n_events, len(self.features)), dtype=np.float64 if is_exact else np.float32)
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite, which the model refuses
            for column, feature in enumerate(self.inputs):
                matrix[:, column] = feature.values(chunk, n_events)
        ratio, members = self._predicted(matrix)
        weights = np.ones(n_events) if self.weight is None else self._weights(self.weight, chunk, n_events)
        scale = self.model.scale_ if isinstance(self.model, Reweighter) else 1.0
        with np.errstate(invalid="ignore"):  # a weight of zero times an infinite ratio
            new_weights = scale * weights * ratio
        self._count(matrix, weights, new_weights, ratio)
        if self.fit_selection is not None:
            self.n_unselected += int(np.sum(~self.fit_selection.evaluate_mask(chunk, n_events)))
        columns = [ratio, new_weights, *_spread(members)]
        return kept | dict(zip(self.new_columns, columns, strict=True))

    def _predicted(self, matrix: FeatureMatrix) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        fill = _fitted(self.model).fill_
        matrix = filled(matrix, self.features, fill)
        require_finite_columns(matrix, tuple(self.features))
        sample = WeightedSample.adopt(matrix, np.ones(len(matrix)), self.features, fill)
        if not self.out_of_fold:
            self.seen += self.model.fingerprint_.seen(sample)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if self.members:
                ratio, members = self.model._predict(sample, members=True)
            else:
                ratio, members = self.model.predict_ratio(sample), np.empty((0, len(matrix)))
        for warning in caught:  # what is counted over all chunks is not said for each
            if isinstance(warning.message, NegativeDensityWarning) and warning.message.n_events:
                self.n_nonpositive += warning.message.n_events
            elif not (isinstance(warning.message, SupportWarning) and self.ranges.ranges):
                warnings.warn(warning.message, stacklevel=2)
        return ratio, members

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

    def _count(
        self,
        matrix: FeatureMatrix,
        weights: npt.NDArray[np.float64],
        new_weights: npt.NDArray[np.float64],
        ratio: npt.NDArray[np.float64],
    ) -> None:
        is_finite = np.isfinite(ratio)
        n_infinite = int(len(ratio) - np.count_nonzero(is_finite))
        if n_infinite:
            self.n_infinite += n_infinite
            new_weights, ratio = new_weights[is_finite], ratio[is_finite]
        self.before.add(weights)
        self.after.add(new_weights)
        if len(ratio):
            self.lowest, self.highest = min(self.lowest, ratio.min()), max(self.highest, ratio.max())
        if self.ranges.ranges:
            self.ranges.add(matrix)

    def result(self) -> AppliedModel:
        """Return the sums over all chunks."""
        return AppliedModel(
            self.before.n_events,
            tuple(self.new_columns),
            self.before,
            self.after,
            (float(self.lowest), float(self.highest)),
            self.n_nonpositive,
            self.n_infinite,
            self.ranges.result(),
            self.n_unselected,
            self.seen.share,
        )


def _fitted(model: RatioEstimator | Reweighter) -> Any:  # noqa: ANN401 - knows its features
    return model.ratios_[0] if isinstance(model, Reweighter) else model


def _spread(members: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    if len(members):
        yield members.std(axis=0, ddof=1)
        yield from members


def _nothing_left(table: Table, selection: str | None) -> InvalidInputError:
    why = (
        f"of which the selection {shortened(selection)!r} keeps none" if selection else "which has no events"
    )
    return InvalidInputError(f"Got {table.label!r}, {why}; expected at least one. Check the file.")
