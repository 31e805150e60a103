r"""What the weights cost: diagnostics before anything is trained.

Weights that do not depend on the features multiply the variance of every stochastic gradient. With
$W$ scaled to mean one, the paper's identity (arXiv:2410.10216, its equation for the variance of the
gradient) is $\mathrm{Var}(W g) - \mathrm{Var}(g) = \mathbb{E}[(W^2 - W)\,g^2]$, and
$\mathbb{E}[W^2 - W] = \mathrm{Var}(W)$. Where $W < 0$ the summand is always positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import checked_values, require_positive_sum
from quasiratio.sample import WeightedSample, size_of_sums

__all__ = ["WeightDiagnostics", "WeightSums", "excess_gradient_variance", "weight_diagnostics"]


@dataclass(frozen=True)
class WeightDiagnostics:
    r"""Numbers that tell how hard a set of signed weights is to learn from.

    Args:
        n_events: Number of events.
        negative_fraction: Fraction of events with a negative weight.
        sum_of_weights: Signed sum.
        effective_size: $(\sum w)^2 / \sum w^2$.
        mixture_coefficient: $c = \sum_{w \ge 0} w / \sum w$.
        weight_variance: $\mathbb{E}[W^2 - W]$ with $W$ scaled to mean one; zero for equal weights.
        largest_share: $\max |w| / \sum |w|$: near one, a single event decides.

    Example:
        >>> print(weight_diagnostics([1.0, 1.0, 1.0, -1.0]))
        events                4
        negative fraction     0.25
        sum of weights        2
        effective size        1 (25% of the events)
        mixture coefficient c 1.5
        E[W^2 - W]            3
        largest share of |w|  0.25
    """

    n_events: int
    negative_fraction: float
    sum_of_weights: float
    effective_size: float
    mixture_coefficient: float
    weight_variance: float
    largest_share: float

    def __str__(self) -> str:
        rows = {
            "events": f"{self.n_events}",
            "negative fraction": f"{self.negative_fraction:.4g}",
            "sum of weights": f"{self.sum_of_weights:.6g}",
            "effective size": f"{self.effective_size:.6g} ({100 * self.effective_size / self.n_events:.3g}% of the events)",
            "mixture coefficient c": f"{self.mixture_coefficient:.5g}",
            "E[W^2 - W]": f"{self.weight_variance:.4g}",
            "largest share of |w|": f"{self.largest_share:.3g}",
        }
        return "\n".join(f"{name:<22}{text}" for name, text in rows.items())


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
    positive: float = 0.0
    largest: float = 0.0

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
        self.largest = max(self.largest, largest)
        with np.errstate(over="ignore"):  # a sum beyond all numbers is infinite, and shown as such
            self.total += float(weights.sum())
            self.positive += float(weights[weights >= 0].sum())

    def merge(self, other: WeightSums) -> None:
        """Add the sums over other events."""
        exponent = max(self.exponent, other.exponent)
        self.scaled_squares = sum(
            math.ldexp(one.scaled_squares, 2 * (one.exponent - exponent)) for one in (self, other)
        )
        self.exponent = exponent
        self.n_events += other.n_events
        self.n_negative += other.n_negative
        self.total += other.total
        self.positive += other.positive
        self.largest = max(self.largest, other.largest)

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

    @property
    def diagnostics(self) -> WeightDiagnostics:
        """What the weights cost; their sum is positive."""
        size = self.effective_size
        return WeightDiagnostics(
            n_events=self.n_events,
            negative_fraction=self.negative_fraction,
            sum_of_weights=self.total,
            effective_size=size,
            mixture_coefficient=max(1.0, self.positive / self.total),
            weight_variance=self.n_events / size - 1.0,
            largest_share=self.largest / (2.0 * self.positive - self.total),
        )

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {
            "n_events": self.n_events,
            "sum_of_weights": self.total,
            "negative_fraction": self.negative_fraction,
            "effective_size": self.effective_size,
        }


def weight_diagnostics(weights: npt.ArrayLike | WeightedSample) -> WeightDiagnostics:
    """Describe the signed weights of one class.

    Args:
        weights: The signed weights, of positive sum, or a sample that has them.

    Example:
        >>> weight_diagnostics([2.0, -1.0, 2.0]).negative_fraction
        0.3333333333333333
    """
    w = checked_values(weights.weights if isinstance(weights, WeightedSample) else weights, "weights")
    require_positive_sum(w, "weights")
    sums = WeightSums()
    sums.add(w)
    return sums.diagnostics


def excess_gradient_variance(
    weights: npt.ArrayLike, squared_gradients: npt.ArrayLike, *, normalize: bool = True
) -> float:
    r"""Return $\mathbb{E}[(W^2 - W)\,g^2]$, what signed weights add to the variance of a gradient.

    The left-hand side of the identity, the measured variance, is in `quasiratio.training`.

    Args:
        weights: Signed weights $W$, one per event.
        squared_gradients: $g^2$ per event, of the loss without its weight.
        normalize: Scale the weights to mean one first, as the identity assumes.

    Example:
        >>> excess_gradient_variance([3.0, -1.0], [1.0, 1.0])  # the variance of the weights
        4.0
    """
    w = checked_values(weights, "weights")
    g2 = checked_values(squared_gradients, "squared gradients", n_expected=len(w))
    if np.any(g2 < 0):
        msg = f"Got {int(np.count_nonzero(g2 < 0))} negative squared gradients; expected the squares."
        raise InvalidInputError(msg)
    if normalize:
        w = w * (len(w) / require_positive_sum(w, "weights"))
    return float(np.mean((w**2 - w) * g2))
