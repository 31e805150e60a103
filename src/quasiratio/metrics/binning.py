"""The binning of the paper: uniform bins between percentiles of the two samples.

Percentiles are those of the events, whatever their weights: a percentile of signed weights need be
neither unique nor ordered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values
from quasiratio.metrics.value_tails import ValueTails, bulk_of

__all__ = [
    "checked_edges",
    "natural_edges",
    "natural_edges_of",
    "radial_edges",
    "uniform_edges",
]


def uniform_edges(
    values_a: npt.ArrayLike,
    values_b: npt.ArrayLike,
    *,
    n_bins: int = 99,
    lower_percentile: float = 0.1,
    upper_percentile: float = 99.9,
) -> FloatArray:
    """Return uniform edges from the larger lower to the smaller upper percentile of two samples.

    Args:
        values_a: Values of one sample.
        values_b: Values of the other.
        n_bins: Number of bins.
        lower_percentile: Percentile of the unweighted events where the range begins.
        upper_percentile: Percentile of the unweighted events where the range ends.

    Example:
        >>> uniform_edges([0, 10], [2, 20], n_bins=2, lower_percentile=0, upper_percentile=100).tolist()
        [2.0, 6.0, 10.0]
    """
    samples = (_nonempty(values_a), _nonempty(values_b))
    if not 0 <= lower_percentile < upper_percentile <= 100:
        msg = (
            f"Got the percentiles {lower_percentile} and {upper_percentile}; "
            "expected the lower before the upper, both between 0 and 100."
        )
        raise InvalidInputError(msg)
    ranges = [np.percentile(sample, [lower_percentile, upper_percentile]).tolist() for sample in samples]
    return _common_range(ranges, n_bins)


def radial_edges(
    values_a: npt.ArrayLike, values_b: npt.ArrayLike, *, n_bins: int = 99, upper_percentile: float = 99.9
) -> FloatArray:
    """Return uniform edges from zero to the smaller upper percentile of two samples of radii.

    Args:
        values_a: Nonnegative values of one sample.
        values_b: Nonnegative values of the other.
        n_bins: Number of bins.
        upper_percentile: Percentile of the unweighted events where the range ends.

    Example:
        >>> radial_edges([1, 10], [2, 20], n_bins=2, upper_percentile=100).tolist()
        [0.0, 5.0, 10.0]
    """
    samples = (_nonempty(values_a), _nonempty(values_b))
    if not 0 < upper_percentile <= 100:
        msg = f"Got the percentile {upper_percentile}; expected a number between 0 and 100."
        raise InvalidInputError(msg)
    return _linear_edges(0.0, float(min(np.percentile(s, upper_percentile) for s in samples)), n_bins)


def natural_edges(values_a: npt.ArrayLike, values_b: npt.ArrayLike, *, n_bins: int = 99) -> FloatArray:
    """Return one bin per value where both samples hold few whole numbers, else `uniform_edges`.

    The smallest or largest value has a bin of its own where many events share it and a gap follows: it may stand for a
    missing one, and -999 would leave a single bin for all others.

    Args:
        values_a: Values of one sample.
        values_b: Values of the other.
        n_bins: Number of bins of values that are no whole numbers, and the most for those that are.

    Example:
        >>> natural_edges([0, 1, 1, 2], [0, 1, 3]).tolist()
        [-0.5, 0.5, 1.5, 2.5, 3.5]
        >>> score = np.append(np.linspace(0.0, 1.0, 90), np.full(10, -999.0))
        >>> natural_edges(score, score, n_bins=2).round(2).tolist()
        [-999.0, 0.0, 0.5, 1.0]
    """
    first, second = (ValueTails.of(_nonempty(values)) for values in (values_a, values_b))
    return natural_edges_of(first, second, n_bins=n_bins)


def natural_edges_of(first: ValueTails, second: ValueTails, *, n_bins: int) -> FloatArray:
    """Return the edges of `natural_edges` for samples of which only this much is known.

    Args:
        first: What is known of one sample.
        second: What is known of the other.
        n_bins: As for `natural_edges`.
    """
    samples = (first, second)
    are_whole = first.are_whole and second.are_whole
    lower, upper = min(one.bounds[0] for one in samples), max(one.bounds[1] for one in samples)
    if upper - lower < n_bins and are_whole and lower < upper:
        return np.arange(lower - 0.5, upper + 1.0)
    inner = bulk_of(samples, n_bins)
    if inner is None:
        return _common_range([one.percentiles for one in samples], n_bins)
    if are_whole and 0.0 < inner.highest - inner.lowest < n_bins:
        edges = np.arange(inner.lowest - 0.5, inner.highest + 1.0)
    else:
        edges = _linear_edges(inner.low, inner.high, n_bins)
    below = [lower] if inner.leaves_lowest else []
    above = [np.nextafter(upper, np.inf)] if inner.leaves_highest else []
    return np.concatenate([below, edges, above])


def _common_range(ranges: Sequence[Sequence[float]], n_bins: object) -> FloatArray:
    return _linear_edges(max(low for low, _ in ranges), min(high for _, high in ranges), n_bins)


def checked_edges(edges: npt.ArrayLike) -> FloatArray:
    """Return the edges as an increasing float64 array of its own, or raise.

    Example:
        >>> checked_edges([0, 1]).tolist()
        [0.0, 1.0]
    """
    bounds = checked_values(edges, "edges")
    if len(bounds) < 2 or not np.all(np.diff(bounds) > 0):
        msg = f"Got {len(bounds)} edges that do not increase; expected at least two, in increasing order."
        raise InvalidInputError(msg)
    return bounds.copy()


def _nonempty(values: npt.ArrayLike) -> FloatArray:
    checked = checked_values(values, "values")
    if len(checked) == 0:
        msg = "Got a sample without events; expected at least one to choose the range from."
        raise InvalidInputError(msg)
    return checked


def _linear_edges(lower: float, upper: float, n_bins: object) -> FloatArray:
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        msg = f"Got n_bins = {n_bins!r}; expected a positive integer."
        raise InvalidInputError(msg)
    if not lower < upper:
        msg = (
            f"The two samples share no range: it would go from {lower:.6g} to {upper:.6g}. "
            "Expected overlapping samples of a varying observable; pass edges of your own, or leave it out."
        )
        raise InvalidInputError(msg)
    return np.linspace(lower, upper, int(n_bins) + 1)
