r"""Closure: does the reweighted reference look like the target?

The reference's weights are multiplied by the ratio, $w_i \to w_i\,r(x_i)$, and each observable of the
result is compared with the target's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, require_finite
from quasiratio.metrics.binning import uniform_edges
from quasiratio.metrics.chi_squared import chi_squared
from quasiratio.metrics.closure_result import ClosureResult, MethodClosure, ObservableClosure
from quasiratio.metrics.histogram import WeightedHistogram, weighted_histogram
from quasiratio.metrics.training_error import TrainingError, total_chi_squared
from quasiratio.metrics.tsallis import tsallis_relative_entropy
from quasiratio.metrics.wasserstein import sliced_wasserstein
from quasiratio.sample import WeightedSample

__all__ = ["MethodFill", "closure", "filled_closure", "sample_shares"]

BEFORE = "reference"
Observable = str | Callable[[FeatureMatrix], npt.ArrayLike] | tuple[npt.ArrayLike, npt.ArrayLike]
Edges = npt.ArrayLike | Callable[[FloatArray, FloatArray], npt.ArrayLike]


def closure(
    reference: WeightedSample,
    ratios: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    target: WeightedSample,
    *,
    observables: Sequence[str] | Mapping[str, Observable] | None = None,
    edges: Mapping[str, Edges] | None = None,
    n_bins: int = 99,
    alpha: float = 2.0,
    wasserstein: bool = False,
    training_sizes: tuple[float, float] | None = None,
) -> ClosureResult:
    """Compare the reweighted reference with the target, observable by observable.

    Args:
        reference: The sample that is reweighted.
        ratios: The ratio at each reference event, or a mapping of method names to such arrays. An array
            of shape `(n_members, n)` holds the predictions of an ensemble: their mean is the ratio, and
            the spread of the members' bin contents (not of their events) becomes `member_band`, and enters
            `total_chi_squared`.
        target: The sample to compare with.
        observables: Names of features, or a mapping of names to a feature's name, to a function of the
            `(n, d)` features, or to a pair of arrays (values of the reference, of the target). Every
            feature when left out.
        edges: Edges of single observables by name, or functions of the two samples' values such as
            `radial_edges`; `uniform_edges` with `n_bins` for the others.
        n_bins: Number of bins where no edges are given.
        alpha: Order of the Tsallis relative entropy.
        wasserstein: Whether to compute the one-dimensional Wasserstein distances, which take a sort.
        training_sizes: Effective sizes of the reference and of the target that the methods were trained on, for
            the `total_chi_squared` of methods without members.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (WeightedSample(rng.normal(m, 1, (20_000, 1)), names=["x"]) for m in (0, 0.5))
        >>> x = reference.features[:, 0]
        >>> result = closure(reference, {"exact": np.exp(0.5 * x - 0.125)}, target, n_bins=20)
        >>> print(result)
        observable  method     chi2/ndof  ndof     D_S2  left out
        x           reference        114    19    0.251         0
        x           exact           1.13    19  0.00223         0
        >>> result["x"]["exact"].chi_squared.n_dof
        19
    """
    methods = _checked_ratios(ratios, len(reference))
    chosen = _observable_values(observables, reference, target)
    own_edges = dict(edges or {})
    unknown = sorted(set(own_edges) - set(chosen))
    if unknown:
        msg = f"Got edges for {unknown}; expected names among the observables {list(chosen)}."
        raise InvalidInputError(msg)
    shares = (
        None
        if training_sizes is None
        else sample_shares((reference.effective_size, target.effective_size), training_sizes)
    )
    comparison = _Comparison(reference.weights, target.weights, methods, alpha, wasserstein, shares)
    entries = []
    for name, (at_reference, at_target) in chosen.items():
        try:
            bounds = own_edges.get(name)
            if bounds is None:
                bounds = uniform_edges(at_reference, at_target, n_bins=n_bins)
            elif callable(bounds):
                bounds = bounds(at_reference, at_target)
            entries.append(comparison.compare(name, at_reference, at_target, bounds))
        except InvalidInputError as error:
            msg = f"Observable {name!r}: {error}"
            raise InvalidInputError(msg) from error
    return ClosureResult(tuple(entries))


@dataclass(frozen=True)
class _Comparison:
    """What is common to all observables: the weights, the ratios and the options."""

    weights_reference: FloatArray
    weights_target: FloatArray
    ratios: Mapping[str, FloatArray]
    alpha: float
    wasserstein: bool
    shares: tuple[float, float] | None

    def compare(
        self, name: str, at_reference: FloatArray, at_target: FloatArray, edges: npt.ArrayLike
    ) -> ObservableClosure:
        target = weighted_histogram(at_target, self.weights_target, edges=edges)

        def filled(weights: FloatArray) -> WeightedHistogram:
            return weighted_histogram(at_reference, weights, edges=edges)

        def distance(weights: FloatArray) -> float | None:
            if not self.wasserstein:
                return None
            if not (weights.sum() > 0 and self.weights_target.sum() > 0):
                return np.nan
            return sliced_wasserstein(
                at_reference, at_target, first_weights=weights, second_weights=self.weights_target
            )

        methods, distances = {}, {BEFORE: distance(self.weights_reference)}
        for method, ratio in self.ratios.items():
            weights = self.weights_reference * (ratio if ratio.ndim == 1 else ratio.mean(axis=0))
            members = () if ratio.ndim == 1 else tuple(filled(self.weights_reference * one) for one in ratio)
            methods[method], distances[method] = MethodFill(filled(weights), members), distance(weights)
        before = filled(self.weights_reference)
        return filled_closure(
            name, target, before, methods, alpha=self.alpha, shares=self.shares, distances=distances
        )


class MethodFill(NamedTuple):
    """The reference as one method reweights it.

    Attributes:
        histogram: Its histogram.
        members: Those with the ratios of single members, where there are several.
    """

    histogram: WeightedHistogram
    members: tuple[WeightedHistogram, ...] = ()


def filled_closure(
    name: str,
    target: WeightedHistogram,
    reference: WeightedHistogram,
    methods: Mapping[str, MethodFill],
    *,
    alpha: float = 2.0,
    shares: tuple[float, float] | None = None,
    distances: Mapping[str, float | None] | None = None,
) -> ObservableClosure:
    """Compare histograms of one observable, whoever has filled them: histograms of parts of a sample add up.

    Args:
        name: Name of the observable.
        target: Histogram of the target.
        reference: Histogram of the reference, of the same edges.
        methods: What methods make of it.
        alpha: Order of the Tsallis relative entropy.
        shares: Effective sizes of reference and target over those of the training, where known.
        distances: Wasserstein distances by method, and of the reference.
    """
    target = target.normalized()

    def entry(method: str, fill: MethodFill) -> MethodClosure:
        histogram = _normalized(fill.histogram, method)
        contents = None
        error = None
        if len(fill.members) > 1:
            contents = np.array([_normalized(member, method).values for member in fill.members])
            error = TrainingError.of_members(contents)
        elif shares is not None and method != BEFORE:
            error = TrainingError.of_sample_sizes(histogram, target, shares)
        return MethodClosure(
            method,
            histogram,
            chi_squared(histogram, target),
            tsallis_relative_entropy(histogram, target, alpha=alpha),
            (distances or {}).get(method),
            None if contents is None else np.asarray(np.std(contents, axis=0, ddof=1)),
            error,
            None if error is None else total_chi_squared(histogram, target, error),
        )

    before = entry(BEFORE, MethodFill(reference))
    return ObservableClosure(name, target, before, tuple(entry(*item) for item in methods.items()))


def sample_shares(sizes: tuple[float, float], training_sizes: tuple[float, float]) -> tuple[float, float]:
    """Return the effective sizes of the samples over those of the training."""
    if not all(0 < size < np.inf for size in training_sizes):
        msg = (
            f"Got training_sizes = {training_sizes!r}; expected two positive numbers, the effective sizes of the "
            "reference and of the target that were trained on."
        )
        raise InvalidInputError(msg)
    return sizes[0] / training_sizes[0], sizes[1] / training_sizes[1]


def _normalized(histogram: WeightedHistogram, method: str) -> WeightedHistogram:
    try:
        return histogram.normalized()
    except InvalidInputError as error:
        msg = f"Method {method!r}: {error}"
        raise InvalidInputError(msg) from error


def _checked_ratios(
    ratios: npt.ArrayLike | Mapping[str, npt.ArrayLike], n_events: int
) -> dict[str, FloatArray]:
    given = dict(ratios) if isinstance(ratios, Mapping) else {"ratio": ratios}
    checked = {}
    for method, values in given.items():
        if method in (BEFORE, "target"):
            msg = f"Got a method called {method!r}; expected any other name: this one means the sample."
            raise InvalidInputError(msg)
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.shape[-1] != n_events:
            msg = (
                f"Got ratios of method {method!r} of shape {array.shape} and type {array.dtype}; expected "
                f"numbers of shape ({n_events},), or (n_members, {n_events}): one per reference event."
            )
            raise InvalidInputError(msg)
        require_finite(array, f"ratios of method {method!r}")
        checked[str(method)] = array.astype(np.float64, copy=False)
    return checked


def _observable_values(
    observables: Sequence[str] | Mapping[str, Observable] | None,
    reference: WeightedSample,
    target: WeightedSample,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the values of each observable at the reference and at the target events."""
    if observables is None:
        if set(reference.names) != set(target.names):
            msg = (
                f"Got the features {list(reference.names)} and {list(target.names)}; expected the same in "
                "both samples. Name those to compare with observables=[...]."
            )
            raise InvalidInputError(msg)
        observables = reference.names
    if isinstance(observables, str):
        observables = [observables]
    named: dict[str, Any] = (
        dict(observables) if isinstance(observables, Mapping) else {name: name for name in observables}
    )
    return {
        name: (
            _values(name, what, 0, reference),
            _values(name, what, 1, target),
        )
        for name, what in named.items()
    }


def _values(name: str, what: Any, side: int, sample: WeightedSample) -> FloatArray:  # noqa: ANN401
    if isinstance(what, str):
        if what not in sample.names:
            msg = (
                f"Got the observable {what!r}; expected a feature among {list(sample.names)}, or a function."
            )
            raise InvalidInputError(msg)
        values = sample.features[:, sample.names.index(what)]
    elif callable(what):
        values = what(sample.features)
    elif isinstance(what, tuple | list) and len(what) == 2:
        values = what[side]
    else:
        msg = (
            f"Got {type(what).__name__} for the observable {name!r}; expected a feature's name, a function "
            "of the features, or a pair (values of the reference, values of the target)."
        )
        raise InvalidInputError(msg)
    return checked_values(values, f"values of {name!r}", n_expected=len(sample))
