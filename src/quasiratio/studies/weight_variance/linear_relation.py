"""Straight lines with errors, and what is left of a correlation when a third number is held fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student_t

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values

__all__ = ["LinearRelation", "PartialCorrelation", "linear_relation", "partial_correlation"]


@dataclass(frozen=True)
class LinearRelation:
    """A line by least squares.

    Args:
        slope: Rise per unit of x.
        slope_error: Its standard error, from the scatter about the line.
        intercept: Value at x = 0.
        correlation: Pearson's R.
        n_points: Points of the fit.
    """

    slope: float
    slope_error: float
    intercept: float
    correlation: float
    n_points: int

    def ratio_to(self, other: LinearRelation) -> tuple[float, float]:
        """Return the ratio of the slopes and its standard error.

        Example:
            >>> steep, flat = (LinearRelation(s, 0.1 * s, 0.0, 1.0, 9) for s in (3.0, 1.0))
            >>> steep.ratio_to(flat)[0], round(steep.ratio_to(flat)[1], 3)
            (3.0, 0.424)
        """
        ratio = self.slope / other.slope
        relative = np.hypot(self.slope_error / self.slope, other.slope_error / other.slope)
        return ratio, float(abs(ratio) * relative)


def linear_relation(x: npt.ArrayLike, y: npt.ArrayLike) -> LinearRelation:
    """Fit a line with equal weights.

    Args:
        x: Positions, at least three, not all equal.
        y: Values.

    Example:
        >>> line = linear_relation([0.0, 1.0, 2.0, 3.0], [0.0, 1.1, 1.9, 3.0])
        >>> round(line.slope, 3), round(line.slope_error, 3), round(line.correlation, 4)
        (0.98, 0.042, 0.9981)
    """
    first = checked_values(x, "values of x")
    second = checked_values(y, "values of y", n_expected=len(first))
    if len(first) < 3 or np.ptp(first) == 0:
        msg = (
            f"Got {len(first)} points; expected at least three at two positions to fit a line with its error."
        )
        raise InvalidInputError(msg)
    dx, dy = first - first.mean(), second - second.mean()
    slope = float(dx @ dy / (dx @ dx))
    scatter = float(np.sum((dy - slope * dx) ** 2)) / (len(first) - 2)
    spread = float(np.sqrt((dx @ dx) * (dy @ dy)))
    return LinearRelation(
        slope,
        float(np.sqrt(scatter / (dx @ dx))),
        float(second.mean() - slope * first.mean()),
        float(dx @ dy) / spread if spread > 0 else float("nan"),
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
