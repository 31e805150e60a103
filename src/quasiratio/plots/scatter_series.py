"""Points of a study, and the straight line through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_values

__all__ = ["LinearFit", "ScatterSeries", "linear_fit"]


@dataclass(frozen=True)
class LinearFit:
    """A straight line by least squares, and the correlation of its points.

    Args:
        slope: Rise per unit of x.
        intercept: Value at x = 0.
        correlation: Pearson's R; NaN where all y are equal.

    Example:
        >>> LinearFit(slope=2.0, intercept=1.0, correlation=0.9).at(3.0)
        7.0
    """

    slope: float
    intercept: float
    correlation: float

    def at(self, x: float) -> float:
        """Return the value of the line."""
        return self.slope * x + self.intercept


def linear_fit(x: npt.ArrayLike, y: npt.ArrayLike) -> LinearFit:
    """Fit a straight line with equal weights.

    Args:
        x: Positions, at least two of them different.
        y: Values.

    Example:
        >>> linear_fit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
        LinearFit(slope=2.0, intercept=1.0, correlation=1.0)
    """
    first = drawable_values(x, "values of x")
    second = drawable_values(y, "values of y", n_expected=len(first))
    if np.ptp(first) == 0:
        msg = (
            f"Got {len(first)} points at one position; expected at least two positions to fit a line through."
        )
        raise InvalidInputError(msg)
    dx, dy = first - first.mean(), second - second.mean()
    slope = float(dx @ dy / (dx @ dx))
    spread = float(np.sqrt((dx @ dx) * (dy @ dy)))
    correlation = float(dx @ dy) / spread if spread > 0 else float("nan")
    return LinearFit(slope, float(second.mean() - slope * first.mean()), correlation)


@dataclass(frozen=True, eq=False)
class ScatterSeries:
    """The points of one method, each perhaps with a third number that colours it.

    Args:
        name: Name of the method.
        x: Positions.
        y: Values.
        color: A number per point, or `None`.

    Example:
        >>> ScatterSeries("mlp", [1.0, 1.0, 2.0], [0.1, 0.3, 0.5]).medians().y.tolist()
        [0.2, 0.5]
    """

    name: str
    x: FloatArray
    y: FloatArray
    color: FloatArray | None = None

    def __post_init__(self) -> None:
        positions = drawable_values(self.x, f"values of x of {self.name!r}")
        object.__setattr__(self, "x", positions)
        for field in ("y", "color"):
            given = getattr(self, field)
            if given is not None or field == "y":
                role = f"values of {field} of {self.name!r}"
                object.__setattr__(self, field, drawable_values(given, role, n_expected=len(positions)))

    def fit(self) -> LinearFit:
        """Fit a straight line through all points."""
        return linear_fit(self.x, self.y)

    def medians(self) -> ScatterSeries:
        """Return one point per distinct x: the median of its values."""
        positions = np.unique(self.x)
        return ScatterSeries(
            self.name, positions, np.array([np.median(self.y[self.x == x]) for x in positions])
        )
