"""What can be drawn: arrays that are finite and of matching lengths, and axes that a runaway method cannot blow up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, require_finite

__all__ = [
    "drawable_grid",
    "drawable_values",
    "mark_beyond",
    "positive_limit",
    "require_choice",
    "robust_limits",
    "symmetric_powers",
]


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


def drawable_values(values: npt.ArrayLike, role: str, *, n_expected: int | None = None) -> FloatArray:
    """Return a float64 array of at least one finite value, or say what is wrong with it.

    Example:
        >>> drawable_values([1, 2], "risks").tolist()
        [1.0, 2.0]
    """
    array = checked_values(values, role)
    if n_expected is not None and len(array) != n_expected:
        msg = f"Got {len(array)} {role}; expected {n_expected}, one for each of the other values."
        raise InvalidInputError(msg)
    if len(array) == 0:
        msg = f"Got no {role}; expected at least one value to draw."
        raise InvalidInputError(msg)
    return array


def drawable_grid(
    values: npt.ArrayLike, role: str, *, shape: tuple[int, int], finite: bool = True
) -> FloatArray:
    """Return a float64 array of that shape, or say what is wrong with it.

    Args:
        values: The numbers.
        role: What they are, in the plural.
        shape: The shape they must have.
        finite: Whether NaN and infinities are refused; if not, one finite number is enough.

    Example:
        >>> drawable_grid([[1, 2]], "risks", shape=(1, 2)).shape
        (1, 2)
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.shape != shape:
        msg = f"Got {role} of shape {array.shape} and type {array.dtype}; expected numbers of shape {shape}."
        raise InvalidInputError(msg)
    if finite:
        require_finite(array, role)
    elif not np.isfinite(array).any():
        msg = f"Got {role} that are all NaN or infinite; expected some finite numbers to draw."
        raise InvalidInputError(msg)
    return array.astype(np.float64, copy=False)


def positive_limit(value: float, name: str) -> float:
    """Return a finite positive number, or raise.

    Example:
        >>> positive_limit(5, "pull_limit")
        5.0
    """
    if not 0 < value < math.inf:
        msg = f"Got {name} = {value}; expected a positive number."
        raise InvalidInputError(msg)
    return float(value)


def require_choice(value: str, name: str, choices: Sequence[str]) -> None:
    """Raise where an option is none of its choices.

    Example:
        >>> require_choice("pull", "lower", ("pull", "difference"))
    """
    if value not in choices:
        msg = f"Got {name} = {value!r}; expected one of {', '.join(map(repr, choices))}."
        raise InvalidInputError(msg)
