r"""The grid of the study, and the weights at each of its points.

Weights do not depend on the features: $W = 1 + \frac{\sigma_w}{\sqrt{\eta(1-\eta)}} (\eta - B)$ with
$B \sim \mathrm{Bernoulli}(\eta)$. Then $\mathrm{E}\,W = 1$, $\mathrm{Var}\,W = \sigma_w^2$, and a fraction $\eta$ of the
weights is negative as long as $\eta < \sigma_w^2 / (1 + \sigma_w^2)$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["UNWEIGHTED", "GridPoint", "grid_points"]

_LOWEST_FRACTION = 0.02
_SHORT_OF_END = 0.999
_SIGMA_RANGE = (1.0, 5.0)


@dataclass(frozen=True)
class GridPoint:
    r"""A point $(\sigma_w, \eta)$.

    Args:
        sigma_w: Standard deviation of the weights.
        eta: Fraction of negative weights.

    Example:
        >>> point = GridPoint(sigma_w=2.0, eta=0.2)
        >>> point.weight_if_positive, point.weight_if_negative
        (2.0, -3.0)
        >>> round(point.mixture_coefficient, 6)  # c = E[W; W > 0]
        1.6
    """

    sigma_w: float
    eta: float

    @property
    def weight_if_positive(self) -> float:
        """The weight of events with B = 0."""
        return 1.0 + self.sigma_w * math.sqrt(self.eta / (1.0 - self.eta))

    @property
    def weight_if_negative(self) -> float:
        """The weight of events with B = 1."""
        return 1.0 - self.sigma_w * math.sqrt((1.0 - self.eta) / self.eta)

    @property
    def mixture_coefficient(self) -> float:
        """The expected c of both classes."""
        return (1.0 - self.eta) * self.weight_if_positive

    @property
    def name(self) -> str:
        """Name within keys."""
        return f"sigma={self.sigma_w:.4f}/eta={self.eta:.5f}"


UNWEIGHTED = GridPoint(sigma_w=0.0, eta=0.5)
"""All weights are one."""


def grid_points(n_sigma: int, n_eta: int) -> list[GridPoint]:
    r"""Return the grid: $\sigma_w$ uniform in [1, 5], and for each $\eta$ uniform from 0.02 to just below its end.

    Example:
        >>> points = grid_points(50, 20)
        >>> len(points), points[0], round(points[-1].eta, 3)
        (1000, GridPoint(sigma_w=1.0, eta=0.02), 0.961)
    """
    return [
        GridPoint(float(sigma), float(eta))
        for sigma in np.linspace(*_SIGMA_RANGE, n_sigma)
        for eta in np.linspace(_LOWEST_FRACTION, _SHORT_OF_END * sigma**2 / (1 + sigma**2), n_eta)
    ]
