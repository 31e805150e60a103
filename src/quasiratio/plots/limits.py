"""Limits of an axis that a runaway method cannot blow up, and marks for what lies beyond them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

__all__ = ["mark_beyond", "robust_limits", "symmetric_powers"]

FloatArray = npt.NDArray[np.float64]


def robust_limits(
    trusted: Iterable[npt.ArrayLike], others: Iterable[npt.ArrayLike] = (), *, stretch: float = 0.5
) -> tuple[float, float]:
    """Return limits that contain what is trusted, and the others as far as they stay near it.

    Args:
        trusted: Values that must be inside, such as those of the target.
        others: Values that may extend the limits, such as those of the methods.
        stretch: How far beyond the trusted range the others may reach, as a share of that range.

    Example:
        >>> robust_limits([[0.0, 1.0]], [[0.5, 1e9]], stretch=0.5)
        (-0.08, 1.58)
    """
    inside = _finite(trusted)
    lower, upper = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 1.0)
    span = upper - lower or max(abs(upper), 1.0)
    beyond = _finite(others)
    if len(beyond):
        lowest, highest = lower - stretch * span, upper + stretch * span
        lower = min(lower, max(float(beyond.min()), lowest))
        upper = max(upper, min(float(beyond.max()), highest))
    return lower - 0.08 * span, upper + 0.08 * span


def mark_beyond(axes: Axes, x: FloatArray, values: FloatArray, color: str) -> None:
    """Draw triangles at the edge of `axes`, whose limits are set, where values lie beyond it."""
    lower, upper = axes.get_ylim()
    margin = 0.03 * (upper - lower)
    for beyond, marker, place in (
        (values > upper, "^", upper - margin),
        (values < lower, "v", lower + margin),
    ):
        if np.any(beyond):
            axes.plot(
                x[beyond],
                np.full(int(beyond.sum()), place),
                marker,
                color=color,
                markersize=2.5,
                label="_beyond",
            )


def symmetric_powers(linear: float, reach: float) -> tuple[float, list[float]]:
    """Return a power of ten that bounds the linear part of a symmetric logarithmic axis, and its ticks.

    Args:
        linear: Size below which the axis should be linear.
        reach: Largest absolute value on the axis.

    Example:
        >>> symmetric_powers(3.0, 500.0)
        (10.0, [-100.0, 0.0, 100.0])
    """
    least = max(linear, 1e-12 * reach, np.finfo(np.float64).tiny)
    bound = float(10.0 ** np.ceil(np.log10(least)))
    decades = max(0.0, float(np.log10(reach / bound))) if reach > 0 else 0.0
    step = max(1, int(decades // 3))
    powers = bound * 10.0 ** np.arange(min(step, int(decades)), decades + 1e-9, step)
    return bound, [*(-powers[::-1]).tolist(), 0.0, *powers.tolist()]


def _finite(arrays: Iterable[npt.ArrayLike]) -> FloatArray:
    flat = [np.ravel(np.asarray(array, dtype=np.float64)) for array in arrays]
    joined = np.concatenate(flat) if flat else np.empty(0)
    return joined[np.isfinite(joined)]
