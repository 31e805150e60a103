r"""A straight line through points, with errors, and what is left of a correlation when a third number is held fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student_t

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values

__all__ = ["LinearFit", "PartialCorrelation", "linear_fit", "partial_correlation"]

_FEWEST_WITH_ERROR = 3


@dataclass(frozen=True)
class LinearFit:
    """A straight line by least squares, and the correlation of its points.

    Args:
        slope: Rise per unit of x.
        intercept: Value at x = 0.
        correlation: Pearson's R; NaN where all y are equal.
        slope_error: Standard error of the slope from the scatter about the line; NaN for two points.
        n_points: Points of the fit.

    Example:
        >>> LinearFit(slope=2.0, intercept=1.0, correlation=0.9).at(3.0)
        7.0
    """

    slope: float
    intercept: float
    correlation: float
    slope_error: float = math.nan
    n_points: int = 0

    def at(self, x: float) -> float:
        """Return the value of the line."""
        return self.slope * x + self.intercept

    @property
    def correlation_error(self) -> float:
        """Standard error of the correlation."""
        return float((1 - self.correlation**2) / max(1.0, self.n_points - 2.0) ** 0.5)

    def ratio_to(self, other: LinearFit) -> tuple[float, float]:
        """Return the ratio of the slopes and its standard error to first order.

        Example:
            >>> steep, flat = (LinearFit(s, 0.0, 1.0, slope_error=0.1 * s, n_points=9) for s in (3.0, 1.0))
            >>> steep.ratio_to(flat)[0], round(steep.ratio_to(flat)[1], 3)
            (3.0, 0.424)
        """
        ratio = self.slope / other.slope
        relative = np.hypot(self.slope_error / self.slope, other.slope_error / other.slope)
        return ratio, float(abs(ratio) * relative)

    def ratio_interval(self, other: LinearFit, *, level: float = 0.68) -> tuple[float, float]:
        r"""Return the interval of the ratio of the slopes by Fieller's theorem.

        All $\rho$ with $(a - \rho b)^2 \le t^2 (\sigma_a^2 + \rho^2 \sigma_b^2)$: it holds its level also where the
        slope in the denominator is hardly known, and has no end there.

        Args:
            other: The line in the denominator.
            level: How often the interval contains the true ratio.

        Example:
            >>> steep, flat = (LinearFit(s, 0.0, 1.0, slope_error=0.1 * s, n_points=52) for s in (3.0, 1.0))
            >>> [round(end, 2) for end in steep.ratio_interval(flat)]
            [2.6, 3.46]
            >>> unknown = LinearFit(1.0, 0.0, 0.1, slope_error=5.0, n_points=52)
            >>> steep.ratio_interval(unknown)
            (-inf, inf)
        """
        t = float(student_t.ppf(0.5 + level / 2, min(self.n_points, other.n_points) - 2))
        square = other.slope**2 - (t * other.slope_error) ** 2
        if not square > 0:
            return -math.inf, math.inf
        product = self.slope * other.slope
        root = math.sqrt(product**2 - square * (self.slope**2 - (t * self.slope_error) ** 2))
        return (product - root) / square, (product + root) / square


def linear_fit(x: npt.ArrayLike, y: npt.ArrayLike) -> LinearFit:
    """Fit a straight line with equal weights.

    Args:
        x: Positions, at least two of them different.
        y: Values.

    Example:
        >>> line = linear_fit([0.0, 1.0, 2.0, 3.0], [0.0, 1.1, 1.9, 3.0])
        >>> round(line.slope, 3), round(line.slope_error, 3), round(line.correlation, 4)
        (0.98, 0.042, 0.9981)
    """
    first = checked_values(x, "values of x")
    second = checked_values(y, "values of y", n_expected=len(first))
    if len(first) == 0 or np.ptp(first) == 0:
        msg = (
            f"Got {len(first)} points at one position; expected at least two positions to fit a line through."
        )
        raise InvalidInputError(msg)
    dx, dy = first - first.mean(), second - second.mean()
    slope = float(dx @ dy / (dx @ dx))
    spread = float(np.sqrt((dx @ dx) * (dy @ dy)))
    error = math.nan
    if len(first) >= _FEWEST_WITH_ERROR:
        scatter = float(np.sum((dy - slope * dx) ** 2)) / (len(first) - 2)
        error = float(np.sqrt(scatter / (dx @ dx)))
    return LinearFit(
        slope,
        float(second.mean() - slope * first.mean()),
        float(dx @ dy) / spread if spread > 0 else math.nan,
        error,
        len(first),
    )


@dataclass(frozen=True)
class PartialCorrelation:
    """A correlation with a third number held fixed.

    Args:
        value: The correlation.
        error: Its standard error where the true value is zero.
        p_value: Chance of one at least as large, of either sign, where the true value is zero.
    """

    value: float
    error: float
    p_value: float


def partial_correlation(x: npt.ArrayLike, y: npt.ArrayLike, *, given: npt.ArrayLike) -> PartialCorrelation:
    """Correlate x and y among points of equal `given`: the means at each of its values are taken out.

    No shape is assumed for how x and y depend on `given`.

    Example:
        >>> partial_correlation([0, 1, 0, 1], [1, 2, 5, 6], given=[0, 0, 9, 9]).value
        1.0
    """
    groups, place = np.unique(checked_values(given, "values held fixed"), return_inverse=True)
    rest = [_without_means(checked_values(values, "values"), place, len(groups)) for values in (x, y)]
    spread = float(np.sqrt((rest[0] @ rest[0]) * (rest[1] @ rest[1])))
    n_free = len(place) - len(groups) - 1
    if spread == 0 or n_free < 1:
        return PartialCorrelation(
            float("nan") if spread == 0 else float(rest[0] @ rest[1]) / spread, *(float("nan"),) * 2
        )
    value = min(1.0, max(-1.0, float(rest[0] @ rest[1]) / spread))
    if abs(value) == 1.0:
        return PartialCorrelation(value, n_free**-0.5, 0.0)
    statistic = abs(value) * np.sqrt(n_free / (1 - value**2))
    return PartialCorrelation(value, n_free**-0.5, float(2 * student_t.sf(statistic, n_free)))


def _without_means(values: FloatArray, place: npt.NDArray[np.intp], n_groups: int) -> FloatArray:
    means = np.bincount(place, values, n_groups) / np.bincount(place, minlength=n_groups)
    return np.asarray(values - means[place])
