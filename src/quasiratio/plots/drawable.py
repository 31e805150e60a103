"""What a figure can be drawn from: arrays that are not empty, finite, and of matching lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, require_finite

__all__ = ["drawable_grid", "drawable_values", "positive_limit", "require_choice"]


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
