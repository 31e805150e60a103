"""Counts over the chunks of a file of any length: sums of weights, and events outside the range of the training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.sample import size_of_sums
from quasiratio.wording import percent

__all__ = ["OutsideRange", "RangeCount", "WeightSums"]

_NOTABLE_FRACTION = 1e-3


@dataclass
class WeightSums:
    """Running sums over signed weights.

    Example:
        >>> sums = WeightSums()
        >>> for weights in ([1.0, -1.0], [2.0]):
        ...     sums.add(np.array(weights))
        >>> sums.total, round(sums.negative_fraction, 3), round(sums.effective_size, 3)
        (2.0, 0.333, 0.667)
    """

    n_events: int = 0
    n_negative: int = 0
    total: float = 0.0
    scaled_squares: float = 0.0
    exponent: int = -5000

    def add(self, weights: npt.NDArray[np.float64]) -> None:
        """Add the weights of a chunk."""
        self.n_events += len(weights)
        self.n_negative += int(np.count_nonzero(weights < 0))
        # The squares are kept in units of a power of two, so that none is too large or too small for a number.
        largest = float(np.abs(weights).max(initial=0.0))
        exponent = math.frexp(largest)[1]
        if largest and exponent > self.exponent:
            self.scaled_squares = math.ldexp(self.scaled_squares, 2 * (self.exponent - exponent))
            self.exponent = exponent
        scaled = np.ldexp(weights, -self.exponent)
        self.scaled_squares += float(scaled @ scaled)
        with np.errstate(over="ignore"):  # a sum beyond all numbers is infinite, and shown as such
            self.total += float(weights.sum())

    @property
    def negative_fraction(self) -> float:
        """Fraction of events with a negative weight."""
        return self.n_negative / max(self.n_events, 1)

    @property
    def effective_size(self) -> float:
        r"""$(\sum w)^2 / \sum w^2$."""
        if not math.isfinite(self.total):
            return 0.0
        return size_of_sums(math.ldexp(self.total, -self.exponent), self.scaled_squares)

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {
            "n_events": self.n_events,
            "sum_of_weights": self.total,
            "negative_fraction": self.negative_fraction,
            "effective_size": self.effective_size,
        }


@dataclass(frozen=True)
class OutsideRange:
    """Events outside the training range of one feature.

    Attributes:
        name: Name of the feature.
        lowest: Smallest value in the training data.
        highest: Largest value there.
        outside: Fraction of the events outside of it.
        far_outside: Fraction of the events that are farther outside than the range is wide.
    """

    name: str
    lowest: float
    highest: float
    outside: float
    far_outside: float

    @property
    def is_notable(self) -> bool:
        """Whether more than a thousandth lies outside, or anything far outside."""
        return self.outside > _NOTABLE_FRACTION or self.far_outside > 0

    def __str__(self) -> str:
        far = (
            f", {percent(self.far_outside, digits=3)} farther than the range is wide"
            if self.far_outside > 0
            else ""
        )
        return f"{self.name!r} ({percent(self.outside, digits=3)} outside {self.lowest:.5g} .. {self.highest:.5g}{far})"


class RangeCount:
    """Count, chunk by chunk, the events outside the ranges of the training data.

    Args:
        ranges: Smallest and largest value of each feature, in the order of the features.

    Example:
        >>> count = RangeCount({"pt": (20.0, 500.0)})
        >>> count.add(np.array([[30.0], [510.0], [30000.0], [40.0]], dtype=np.float32))
        >>> print(count.result()[0])
        'pt' (50.000% outside 20 .. 500, 25.000% farther than the range is wide)
    """

    def __init__(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        self.ranges = dict(ranges)
        self._bounds = np.array([self.ranges[name] for name in self.ranges]).reshape(-1, 2)
        self._counts = np.zeros((2, len(self.ranges)), dtype=np.int64)
        self._n_events = 0

    def add(self, features: FeatureMatrix) -> None:
        """Count the events of one chunk, `(n, d)`."""
        self._n_events += len(features)
        if not len(features):
            return
        lowest, highest = self._bounds[:, 0], self._bounds[:, 1]
        width = highest - lowest
        # Most chunks lie inside; then the extremes are all there is to look at.
        smallest, largest = features.min(axis=0), features.max(axis=0)
        for column in np.flatnonzero((smallest < lowest) | (largest > highest)):
            values = features[:, column].astype(np.float64)
            beyond = np.maximum(lowest[column] - values, values - highest[column])
            self._counts[:, column] += [int((beyond > 0).sum()), int((beyond > width[column]).sum())]

    def result(self) -> tuple[OutsideRange, ...]:
        """Return the fractions so far, one entry per feature."""
        fractions = self._counts / max(self._n_events, 1)
        return tuple(
            OutsideRange(name, *bounds, float(fractions[0, column]), float(fractions[1, column]))
            for column, (name, bounds) in enumerate(self.ranges.items())
        )
