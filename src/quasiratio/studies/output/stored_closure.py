"""Histograms as plain numbers, so that figures can be drawn again from the stored rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.metrics import (
    MethodClosure,
    ObservableClosure,
    WeightedHistogram,
    chi_squared,
    tsallis_relative_entropy,
)

if TYPE_CHECKING:
    from quasiratio.metrics.arrays import FloatArray

__all__ = [
    "FiniteRatios",
    "finite_ratios",
    "histogram_from_numbers",
    "histogram_to_numbers",
    "stored_closure",
]

_INFINITE = 1e6


class FiniteRatios(NamedTuple):
    """Ratios that can be histogrammed, and the share of events that could not be."""

    ratio: npt.NDArray[np.float64]
    infinite_fraction: float


def finite_ratios(ratio: npt.ArrayLike) -> FiniteRatios:
    """Set ratios that are NaN or beyond a million to zero, which leaves their events out, and count them.

    Cross-entropy drives the logit to infinity where the target density is negative; no ratio of the studies
    comes near a million.

    Example:
        >>> finite_ratios([1.5, float("inf")])
        FiniteRatios(ratio=array([1.5, 0. ]), infinite_fraction=0.5)
    """
    values = np.asarray(ratio, dtype=np.float64)
    usable = np.abs(values) < _INFINITE  # False for NaN
    return FiniteRatios(np.where(usable, values, 0.0), float(np.mean(~usable)))


_DIGITS = 9


def histogram_to_numbers(histogram: WeightedHistogram) -> dict[str, Any]:
    """Return a histogram as lists of numbers with nine digits.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> histogram_to_numbers(weighted_histogram([0.5, 3.0], edges=[0.0, 1.0, 2.0]))["flow"]
        [0.0, 1.0, 0.0, 1.0]
    """
    flow = (
        histogram.underflow,
        histogram.overflow,
        histogram.underflow_variance,
        histogram.overflow_variance,
    )
    return {
        "edges": _rounded(histogram.edges),
        "values": _rounded(histogram.values),
        "variances": _rounded(histogram.variances),
        "flow": _rounded(np.array(flow)),
    }


def histogram_from_numbers(numbers: Mapping[str, Any]) -> WeightedHistogram:
    """Return the histogram that was stored.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> stored = histogram_to_numbers(weighted_histogram([0.5, 3.0], edges=[0.0, 1.0, 2.0]))
        >>> histogram_from_numbers(stored).sum_of_weights
        2.0
    """
    edges, values, variances = (np.asarray(numbers[name]) for name in ("edges", "values", "variances"))
    return WeightedHistogram(edges, values, variances, *(float(value) for value in numbers["flow"]))


def stored_closure(
    name: str,
    target: Mapping[str, Any],
    reference: Mapping[str, Any],
    methods: Mapping[str, Mapping[str, Any]],
) -> ObservableClosure:
    """Return the closure of one observable from stored histograms of unit sum.

    Args:
        name: Name of the observable.
        target: Stored histogram of the target.
        reference: Stored histogram of the reference before reweighting.
        methods: Stored histograms of the reweighted reference, by method.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> stored = histogram_to_numbers(weighted_histogram([0.5, 1.5], edges=[0.0, 1.0, 2.0]).normalized())
        >>> stored_closure("x", stored, stored, {"none": stored})["none"].chi_squared.value
        0.0
    """
    at_target = histogram_from_numbers(target)

    def entry(method: str, numbers: Mapping[str, Any]) -> MethodClosure:
        histogram = histogram_from_numbers(numbers)
        return MethodClosure(
            method,
            histogram,
            chi_squared(histogram, at_target),
            tsallis_relative_entropy(histogram, at_target),
        )

    return ObservableClosure(
        name,
        at_target,
        entry("reference", reference),
        tuple(entry(method, numbers) for method, numbers in methods.items()),
    )


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]
