"""The checks every metric makes on the arrays it is given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = ["FloatArray", "checked_values", "checked_weights", "require_positive_sum"]

FloatArray = npt.NDArray[np.float64]


def checked_values(values: npt.ArrayLike, role: str, *, n_expected: int | None = None) -> FloatArray:
    """Return a one-dimensional float64 array of finite values, or say what is wrong with it.

    Example:
        >>> checked_values([1, 2], "ratios").tolist()
        [1.0, 2.0]
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        msg = f"Got {role} of shape {array.shape} and type {array.dtype}; expected numbers, one per event."
        raise InvalidInputError(msg)
    if n_expected is not None and len(array) != n_expected:
        msg = f"Got {len(array)} {role} for {n_expected} events; expected one per event."
        raise InvalidInputError(msg)
    require_finite(array, role)
    return array.astype(np.float64, copy=False)


def require_finite(array: npt.NDArray[np.generic], role: str) -> None:
    """Raise, with their number, where values are NaN or infinite."""
    n_bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if n_bad:
        msg = (
            f"Got {n_bad} of {array.size} {role} that are NaN or infinite; expected finite numbers. "
            "Find out where they come from, then remove these events."
        )
        raise InvalidInputError(msg)


def checked_weights(weights: npt.ArrayLike | None, n_events: int, role: str) -> FloatArray:
    """Return the signed weights, all one when left out.

    Example:
        >>> checked_weights(None, 2, "weights").tolist()
        [1.0, 1.0]
    """
    return np.ones(n_events) if weights is None else checked_values(weights, role, n_expected=n_events)


def require_positive_sum(weights: FloatArray, role: str) -> float:
    """Return the sum of the signed weights, or raise: only a positive sum can be normalised.

    Example:
        >>> require_positive_sum(np.array([2.0, -0.5]), "weights")
        1.5
    """
    total = float(weights.sum())
    if not total > 0:
        msg = f"The {role} sum to {total:.6g}; expected a positive sum. Check their signs and the selection."
        raise InvalidInputError(msg)
    return total
