"""Histograms of signed weights, with what fell outside their range kept in sight.

Counting is boost-histogram's, with its `Weight` storage. A bin holds the events with
`lower <= value < upper`; whatever lies outside the edges is in the underflow and the overflow, and
`sum_of_weights` is that of the whole sample.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import boost_histogram as bh
import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, checked_weights
from quasiratio.metrics.binning import checked_edges, uniform_edges

__all__ = ["WeightedHistogram", "as_histograms", "weighted_histogram"]

_BLOCK_EVENTS = 2**16
"""Sums of short sums keep digits that one long sum loses."""


@dataclass(frozen=True, eq=False)
class WeightedHistogram:
    """Sums of signed weights in bins, and the sums of their squares.

    Args:
        edges: The `n_bins + 1` increasing edges.
        values: Sum of the weights in each bin.
        variances: Sum of the squared weights in each bin.
        underflow: Sum of the weights below the first edge.
        overflow: Sum of the weights at or above the last edge.
        underflow_variance: Sum of the squared weights below the first edge.
        overflow_variance: Sum of the squared weights at or above the last edge.

    Example:
        >>> h = weighted_histogram([0.5, 1.5, 1.6, 9.0], [1.0, 2.0, -0.5, 1.0], edges=[0.0, 1.0, 2.0])
        >>> h.values.tolist(), h.variances.tolist(), h.overflow, h.sum_of_weights
        ([1.0, 1.5], [1.0, 4.25], 1.0, 3.5)
    """

    edges: FloatArray
    values: FloatArray
    variances: FloatArray
    underflow: float
    overflow: float
    underflow_variance: float
    overflow_variance: float

    def __post_init__(self) -> None:
        for name in ("edges", "values", "variances"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_bins(self) -> int:
        """Number of bins, without those of the flow."""
        return len(self.values)

    @property
    def sum_of_weights(self) -> float:
        """Signed sum of the weights of the whole sample, inside and outside the edges."""
        return float(self.values.sum()) + self.underflow + self.overflow

    @property
    def density(self) -> FloatArray:
        """Values divided by the width of the bin and the sum of weights of the whole sample."""
        return np.asarray(self.values / np.diff(self.edges) / self.require_nonzero_sum())

    def require_same_edges(self, other: WeightedHistogram) -> None:
        """Raise where the other histogram has other bins."""
        if not np.array_equal(self.edges, other.edges):
            msg = f"Got histograms of {self.n_bins} and {other.n_bins} bins whose edges differ; expected the same."
            raise InvalidInputError(msg)

    def require_nonzero_sum(self) -> float:
        """Return the sum of weights of the whole sample, or raise where it cannot normalise anything."""
        total = self.sum_of_weights
        if total == 0:
            msg = "The weights of the histogram sum to zero; expected a sum that can be normalised."
            raise InvalidInputError(msg)
        return total

    def __add__(self, other: WeightedHistogram) -> WeightedHistogram:
        """Return the histogram of the events of both, which have the same edges.

        Example:
            >>> one, two = (weighted_histogram([x], edges=[0.0, 1.0, 2.0]) for x in (0.5, 1.5))
            >>> (one + two).values.tolist()
            [1.0, 1.0]
        """
        self.require_same_edges(other)
        names = [one.name for one in fields(self)][1:]
        return WeightedHistogram(self.edges, *(getattr(self, name) + getattr(other, name) for name in names))

    def scaled(self, factor: float) -> WeightedHistogram:
        """Return the histogram of the weights multiplied by `factor`."""
        return WeightedHistogram(
            self.edges,
            self.values * factor,
            self.variances * factor**2,
            self.underflow * factor,
            self.overflow * factor,
            self.underflow_variance * factor**2,
            self.overflow_variance * factor**2,
        )

    def normalized(self) -> WeightedHistogram:
        """Return the histogram scaled to a sum of one over the whole sample."""
        return self.scaled(1.0 / self.require_nonzero_sum())

    def to_hist(self, name: str = "x", *, label: str = "") -> Any:  # noqa: ANN401 - hist has no stubs
        """Return a `hist.Hist` with `Weight` storage, flow bins included.

        Example:
            >>> weighted_histogram([0.5, 3.0], edges=[0.0, 1.0, 2.0]).to_hist("pt").sum(flow=True).value
            2.0
        """
        import hist  # noqa: PLC0415 - slow to import, and seldom needed

        axis = hist.axis.Variable(self.edges, name=name, label=label or name)
        converted = hist.Hist(axis, storage=hist.storage.Weight())
        view = converted.view(flow=True)
        view.value = np.concatenate([[self.underflow], self.values, [self.overflow]])
        view.variance = np.concatenate([[self.underflow_variance], self.variances, [self.overflow_variance]])
        return converted


def weighted_histogram(
    values: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, edges: npt.ArrayLike
) -> WeightedHistogram:
    """Fill a histogram with signed weights.

    Args:
        values: One finite value per event.
        weights: The signed weights; all one when left out.
        edges: Increasing edges of the bins.

    Example:
        >>> weighted_histogram([-1.0, 0.2, 0.4], edges=[0.0, 1.0]).underflow
        1.0
    """
    checked = checked_values(values, "values")
    bounds = checked_edges(edges)
    of_events = checked_weights(weights, len(checked), "weights")
    sums, squares = np.zeros(len(bounds) + 1), np.zeros(len(bounds) + 1)
    for start in range(0, len(checked), _BLOCK_EVENTS):
        here = slice(start, start + _BLOCK_EVENTS)
        filled = bh.Histogram(bh.axis.Variable(bounds), storage=bh.storage.Weight())
        filled.fill(checked[here], weight=of_events[here])
        view = filled.view(flow=True)
        sums += view.value
        squares += view.variance
    return WeightedHistogram(
        bounds,
        sums[1:-1],
        squares[1:-1],
        float(sums[0]),
        float(sums[-1]),
        float(squares[0]),
        float(squares[-1]),
    )


def as_histograms(
    first: npt.ArrayLike | WeightedHistogram,
    second: npt.ArrayLike | WeightedHistogram,
    weights_first: npt.ArrayLike | None,
    weights_second: npt.ArrayLike | None,
    edges: npt.ArrayLike | None,
) -> tuple[WeightedHistogram, WeightedHistogram]:
    """Return two histograms over one set of edges, from values and weights or as they were given.

    Example:
        >>> pair = as_histograms([0.5, 1.5], [0.5, 0.6], None, None, [0.0, 1.0, 2.0])
        >>> [h.values.tolist() for h in pair]
        [[1.0, 1.0], [2.0, 0.0]]
    """
    if isinstance(first, WeightedHistogram) and isinstance(second, WeightedHistogram):
        if any(option is not None for option in (weights_first, weights_second, edges)):
            msg = "Got histograms together with weights or edges; expected histograms alone, or values."
            raise InvalidInputError(msg)
        first.require_same_edges(second)
        return first, second
    if isinstance(first, WeightedHistogram) or isinstance(second, WeightedHistogram):
        msg = "Got one histogram and one array of values; expected two histograms or two arrays."
        raise InvalidInputError(msg)
    bounds = uniform_edges(first, second) if edges is None else edges
    return (
        weighted_histogram(first, weights_first, edges=bounds),
        weighted_histogram(second, weights_second, edges=bounds),
    )
