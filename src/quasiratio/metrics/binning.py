"""The binning of the paper: uniform bins between percentiles of the two samples.

Percentiles are those of the events, whatever their weights: a percentile of signed weights need be
neither unique nor ordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values

__all__ = [
    "ValueTails",
    "checked_edges",
    "natural_edges",
    "natural_edges_of",
    "radial_edges",
    "uniform_edges",
]

_TAIL = 1e-3


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

    Args:
        values_a: Values of one sample.
        values_b: Values of the other.
        n_bins: Number of bins of values that are no whole numbers, and the most for those that are.

    Example:
        >>> natural_edges([0, 1, 1, 2], [0, 1, 3]).tolist()
        [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    first, second = (ValueTails.of(_nonempty(values)) for values in (values_a, values_b))
    return natural_edges_of(first, second, n_bins=n_bins)


@dataclass
class ValueTails:
    """What the edges of an observable depend on, over the values of one part of a sample, or of several.

    Attributes:
        n_values: Number of values.
        n_kept: How many of the smallest and of the largest values are kept: those beyond the percentiles, and some.
        smallest: The smallest values.
        largest: The largest values.
        are_whole: Whether all are whole numbers.

    Example:
        >>> values = np.random.default_rng(0).normal(size=5000)
        >>> tails = ValueTails.of(values[:1000], 5000)
        >>> tails.add(values[1000:])
        >>> bool(np.allclose(tails.percentiles, np.percentile(values, [0.1, 99.9]), rtol=1e-14))
        True
    """

    n_values: int
    n_kept: int
    smallest: FloatArray
    largest: FloatArray
    are_whole: bool

    @classmethod
    def of(cls, values: FloatArray, n_most: int | None = None) -> Self:
        """Begin with some values, of a sample that has no more than `n_most`; these are all when left out."""
        n_kept = 2 + int((len(values) if n_most is None else n_most) * _TAIL)
        tails = cls(0, n_kept, np.empty(0), np.empty(0), are_whole=True)
        tails.add(values)
        return tails

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add finite values."""
        self.n_values += len(values)
        self.smallest = _smallest(np.concatenate([self.smallest, values]), self.n_kept)
        self.largest = -_smallest(-np.concatenate([self.largest, values]), self.n_kept)
        self.are_whole = self.are_whole and bool(np.array_equal(values, np.floor(values)))

    def merge(self, other: ValueTails) -> None:
        """Add what was found in other values."""
        self.n_values += other.n_values
        self.smallest = _smallest(np.concatenate([self.smallest, other.smallest]), self.n_kept)
        self.largest = -_smallest(-np.concatenate([self.largest, other.largest]), self.n_kept)
        self.are_whole = self.are_whole and other.are_whole

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.smallest.min()), float(self.largest.max())

    @property
    def percentiles(self) -> tuple[float, float]:
        """The percentiles of `uniform_edges`, between values as those of NumPy."""
        return (
            _between(np.sort(self.smallest), (self.n_values - 1) * _TAIL),
            -_between(np.sort(-self.largest), (self.n_values - 1) * _TAIL),
        )


def natural_edges_of(first: ValueTails, second: ValueTails, *, n_bins: int) -> FloatArray:
    """Return the edges of `natural_edges` for samples of which only this much is known.

    Args:
        first: What is known of one sample.
        second: What is known of the other.
        n_bins: As for `natural_edges`.
    """
    lower = min(first.bounds[0], second.bounds[0])
    upper = max(first.bounds[1], second.bounds[1])
    if upper - lower < n_bins and first.are_whole and second.are_whole and lower < upper:
        return np.arange(lower - 0.5, upper + 1.0)
    return _common_range([first.percentiles, second.percentiles], n_bins)


def _smallest(values: npt.NDArray[Any], n_kept: int) -> FloatArray:
    kept = np.partition(values, n_kept)[:n_kept] if len(values) > n_kept else values
    return kept.astype(np.float64)


def _between(ordered: FloatArray, position: float) -> float:
    """Return the value at a position that may lie between two of them."""
    before = int(position)
    after = min(before + 1, len(ordered) - 1)
    return float(ordered[before] + (ordered[after] - ordered[before]) * (position - before))


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
