"""Sums of weights over chunks of events: what `WeightedSample` says of arrays, for files of any length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["WeightSums"]


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
    total_of_squares: float = 0.0

    def add(self, weights: npt.NDArray[np.float64]) -> None:
        """Add the weights of a chunk."""
        self.n_events += len(weights)
        self.n_negative += int(np.count_nonzero(weights < 0))
        self.total += float(weights.sum())
        with np.errstate(over="ignore"):  # then the effective size is zero, as it should be
            self.total_of_squares += float(weights @ weights)

    @property
    def negative_fraction(self) -> float:
        """Fraction of events with a negative weight."""
        return self.n_negative / max(self.n_events, 1)

    @property
    def effective_size(self) -> float:
        r"""$(\sum w)^2 / \sum w^2$."""
        size = self.total_of_squares**0.5
        return (self.total / size) ** 2 if size > 0 else 0.0

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {
            "n_events": self.n_events,
            "sum_of_weights": self.total,
            "negative_fraction": self.negative_fraction,
            "effective_size": self.effective_size,
        }
