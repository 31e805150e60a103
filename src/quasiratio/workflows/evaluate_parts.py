"""A model judged on samples that stay in their files: histograms and sums over all events, and a bounded number of events.

Two passes over the files. The first finds what the edges of the bins depend on. In the second each worker predicts the
ratios of its file, fills the histograms, and keeps some events at random. What adds up is computed from all events, as of
one merged file; what needs events side by side (the risk, the omnibus test, the figures of weights, calibration and support)
from those that were kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.estimators.fingerprint import SeenEvents
from quasiratio.metrics import ClosureResult, weighted_histogram
from quasiratio.metrics.binning import natural_edges_of
from quasiratio.metrics.closure import MethodFill, filled_closure, sample_shares
from quasiratio.metrics.histogram import WeightedHistogram
from quasiratio.metrics.parts import Blocks
from quasiratio.metrics.value_tails import ValueTails
from quasiratio.metrics.weights import WeightSums
from quasiratio.networks.mlp import TILE
from quasiratio.report.evaluation import MODEL, Evaluation, evaluate_model
from quasiratio.sample import WeightedSample, positive_sum
from quasiratio.workflows.file_parts import FileParts
from quasiratio.workflows.fitted_model import LoadedModel

__all__ = ["MOST_JUDGED", "evaluate_in_parts", "restricted"]

MOST_JUDGED = 1_000_000
"""Events of a sample, in the mean, that are kept for what needs events side by side."""

_SEED = 0


@dataclass
class _ColumnSums:
    """What the first pass finds: weights, tails of all columns, and which columns are copies of others."""

    weights: WeightSums
    tails: list[ValueTails]
    copies: npt.NDArray[np.bool_]

    def merge(self, other: _ColumnSums) -> None:
        self.weights.merge(other.weights)
        for one, two in zip(self.tails, other.tails, strict=True):
            one.merge(two)
        self.copies &= other.copies


@dataclass(frozen=True)
class _Plan:
    """What the second pass does with each file."""

    model: LoadedModel
    names: tuple[str, ...]
    fill: Mapping[str, float]
    edges: Mapping[str, npt.NDArray[np.float64]]
    share_kept: float
    is_reference: bool


class _Fill(NamedTuple):
    """Histograms of one observable: as it is and, for the reference, reweighted by the model and by each member."""

    before: WeightedHistogram
    after: tuple[WeightedHistogram, ...] = ()

    def plus(self, other: _Fill) -> _Fill:
        pairs = zip(self.after, other.after, strict=True)
        return _Fill(self.before + other.before, tuple(one + two for one, two in pairs))


@dataclass
class _FilledSums:
    """What the second pass finds."""

    fills: dict[str, _Fill]
    kept: list[tuple[FeatureMatrix, npt.NDArray[np.float64]]] = field(default_factory=list)
    reweighted: WeightSums = field(default_factory=WeightSums)
    seen: SeenEvents = field(default_factory=SeenEvents)

    def merge(self, other: _FilledSums) -> None:
        self.fills = {name: fill.plus(other.fills[name]) for name, fill in self.fills.items()}
        self.kept += other.kept
        self.reweighted.merge(other.reweighted)
        self.seen += other.seen


def evaluate_in_parts(
    model: LoadedModel,
    reference: FileParts,
    target: FileParts,
    *,
    n_bins: int,
    edges: Mapping[str, npt.ArrayLike],
    training_sizes: tuple[float, float] | None,
) -> tuple[Evaluation, tuple[WeightedSample, WeightedSample]]:
    """Judge a model on two samples in files; return also the events that were kept.

    Args:
        model: The model, which is sent to the workers.
        reference: Files of the reference: the features of the model, then further observables.
        target: Files of the target, with the same columns.
        n_bins: Bins of each observable.
        edges: Edges of single observables, by name.
        training_sizes: As for `evaluate_model`.
    """
    names, samples = reference.names, (reference, target)
    sums = [_merged(sample.each(_column_sums, len(names), sample.n_events)) for sample in samples]
    for one, role in zip(sums, ("reference", "target"), strict=True):
        positive_sum(one.weights.total, role)
    bounds = _edges(names, len(model.features), sums, edges, n_bins)
    found = []
    for sample in samples:
        share = min(1.0, MOST_JUDGED / sample.n_events)
        plan = _Plan(model, names, sample.reading.fill, bounds, share, is_reference=sample is reference)
        found.append(_merged(sample.each(_filled_sums, plan, own=range(len(sample.reading.table.files)))))
    kept = [_kept(one, sample) for one, sample in zip(found, samples, strict=True)]
    judged = restricted(kept[0], model), restricted(kept[1], model)
    extra = {
        name: (kept[0].features[:, column], kept[1].features[:, column])
        for column, name in enumerate(names)
        if column >= len(model.features)
    }
    some = evaluate_model(
        model.estimator,
        *judged,
        observables=extra,
        edges=bounds,
        n_bins=n_bins,
        training_sizes=training_sizes,
    )
    diagnostics = [one.weights.diagnostics for one in sums]
    sizes = some.training_sizes
    shares = (
        sample_shares((diagnostics[0].effective_size, diagnostics[1].effective_size), sizes)
        if sizes
        else None
    )
    entries = []
    for name in bounds:
        (before, (after, *members)), (of_target, _) = found[0].fills[name], found[1].fills[name]
        entries.append(
            filled_closure(name, of_target, before, {MODEL: MethodFill(after, tuple(members))}, shares=shares)
        )
    positive_sum(found[0].reweighted.total, "reweighted reference")
    seen = (0.0, 0.0) if model.estimator.predicts_unseen else (found[0].seen.share, found[1].seen.share)
    everything = replace(
        some,
        closure=ClosureResult(tuple(entries)),
        reference=diagnostics[0],
        reweighted=found[0].reweighted.diagnostics,
        target=diagnostics[1],
        seen=seen,
        n_judged=(len(judged[0]), len(judged[1])),
    )
    return everything, judged


def restricted(sample: WeightedSample, model: LoadedModel) -> WeightedSample:
    """Return the sample with the features of the model only, in the precision of its fit."""
    n_features, precision = len(model.features), np.dtype(np.float64 if model.is_exact else np.float32)
    if sample.n_features == n_features and sample.features.dtype == precision:
        return sample
    features: FeatureMatrix = np.ascontiguousarray(sample.features[:, :n_features], dtype=precision)
    fill = {name: value for name, value in sample.fill.items() if name in sample.names[:n_features]}
    return WeightedSample.adopt(features, np.array(sample.weights), sample.names[:n_features], fill)


def _merged(parts: Any) -> Any:  # noqa: ANN401 - sums of either pass
    first, *others = parts
    for other in others:
        first.merge(other)
    return first


def _column_sums(blocks: Blocks, n_columns: int, n_most: int) -> _ColumnSums:
    tails = [ValueTails.of(np.empty(0), n_most) for _ in range(n_columns)]
    sums = _ColumnSums(WeightSums(), tails, np.ones((n_columns, n_columns), bool))
    for features, weights in blocks:
        sums.weights.add(weights)
        for column, tail in enumerate(sums.tails):
            tail.add(features[:, column])
            for other in range(column):
                if sums.copies[column, other]:
                    sums.copies[column, other] = np.array_equal(features[:, column], features[:, other])
    return sums


def _edges(
    names: Sequence[str],
    n_features: int,
    sums: Sequence[_ColumnSums],
    given: Mapping[str, npt.ArrayLike],
    n_bins: int,
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the edges of what is compared: not of features with one value, nor of copies of other ones."""
    copies = sums[0].copies & sums[1].copies
    bounds: dict[str, npt.NDArray[np.float64]] = {}
    for column, name in enumerate(names):
        tails = [one.tails[column] for one in sums]
        if column < n_features:
            is_constant = max(tail.bounds[1] for tail in tails) == min(tail.bounds[0] for tail in tails)
            is_copy = any(copies[column, other] for other in range(column) if names[other] in bounds)
            if is_constant or is_copy:
                continue
        known = given.get(name)
        bounds[name] = natural_edges_of(*tails, n_bins=n_bins) if known is None else np.asarray(known, float)
    return bounds


def _filled_sums(blocks: Blocks, plan: _Plan, number: int) -> _FilledSums:
    """Predict the ratios of one file, fill the histograms, and keep some events."""
    model, estimator = plan.model, plan.model.estimator
    rng = np.random.default_rng([_SEED, int(plan.is_reference), number])
    n_after = 0 if not plan.is_reference else 1 + (estimator.n_members if estimator.n_members > 1 else 0)
    nothing = {name: weighted_histogram(np.empty(0), edges=bounds) for name, bounds in plan.edges.items()}
    sums = _FilledSums({name: _Fill(empty, (empty,) * n_after) for name, empty in nothing.items()})
    for features, weights in blocks:
        if not len(weights):
            continue
        whole = WeightedSample.adopt(features, np.ones(len(weights)), plan.names, plan.fill)
        sample = restricted(whole, model)
        n_here = len(weights)
        if not estimator.predicts_unseen:
            sums.seen += estimator.fingerprint_.seen(sample)
        after = []
        if plan.is_reference:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # said of the events that are kept
                # A handful is rounded otherwise than as part of a sample: the last event stands for what misses.
                full = np.pad(sample.features, ((0, max(0, TILE - n_here)), (0, 0)), mode="edge")
                events = WeightedSample.adopt(full, np.ones(len(full)), sample.names, sample.fill)
                predicted = estimator.predict_with_members(events, members=n_after > 1)
            after = [weights * ratio[:n_here] for ratio in (predicted.ratio, *predicted.members)]
            sums.reweighted.add(after[0])
        for name, fill in sums.fills.items():
            values, bounds = features[:, plan.names.index(name)], plan.edges[name]
            filled = [weighted_histogram(values, w, edges=bounds) for w in (weights, *after)]
            sums.fills[name] = fill.plus(_Fill(filled[0], tuple(filled[1:])))
        chosen = slice(None) if plan.share_kept >= 1 else rng.random(len(weights)) < plan.share_kept
        sums.kept.append((features[chosen], weights[chosen]))
    return sums


def _kept(sums: _FilledSums, sample: FileParts) -> WeightedSample:
    features, weights = zip(*sums.kept, strict=True)
    return WeightedSample.adopt(
        np.concatenate(features), np.concatenate(weights), sample.names, sample.reading.fill
    )
