r"""The partition of two signed samples into four ordinary ones.

Splitting each class by the sign of its weights writes both densities as signed mixtures,
$q_y = c_y\,p_{y+} + (1 - c_y)\,p_{y-}$, of probability densities that ordinary classifiers can learn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["POSSIBLE_SIGNS", "SIGN_CLASSES", "SignClass", "carried_classes", "sign_classes", "sign_parts"]


class SignClass(NamedTuple):
    """One of the four parts: a label (0 reference, 1 target) and the sign of the weights."""

    label: int
    sign: int

    def __str__(self) -> str:
        return f"{'target' if self.label else 'reference'}{'+' if self.sign > 0 else '-'}"


POSSIBLE_SIGNS = ([1], [1, -1])
"""Signs of the weights that a sample can have: its sum is positive."""
SIGN_CLASSES = (SignClass(0, +1), SignClass(0, -1), SignClass(1, +1), SignClass(1, -1))


def sign_classes(
    labels: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], tuple[SignClass, ...]]:
    """Number the events by label and sign, leaving out classes that carry no weight.

    Zero weights count as positive. A class whose weights are all zero (or that has no events) is dropped;
    its events, which weigh nothing, join the other sign of their label.

    Returns:
        The class index of each event, and the classes in order.

    Example:
        >>> index, present = sign_classes(np.array([False, True, True]), np.array([1.0, 2.0, -1.0]))
        >>> index.tolist(), [str(c) for c in present]
        ([0, 1, 2], ['reference+', 'target+', 'target-'])
    """
    fourfold = sign_parts(labels, weights)
    numbers, present = carried_classes(np.bincount(fourfold, weights=np.abs(weights), minlength=4))
    return numbers[fourfold], present


def sign_parts(labels: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return which of the four `SIGN_CLASSES` each event belongs to.

    Example:
        >>> sign_parts(np.array([False, True, True]), np.array([1.0, 2.0, -1.0])).tolist()
        [0, 2, 3]
    """
    return np.asarray(2 * labels.astype(np.int64) + (weights < 0))


def carried_classes(sums: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], tuple[SignClass, ...]]:
    """Number the four `SIGN_CLASSES`, leaving out those that carry no weight.

    Args:
        sums: Sum of the absolute weights of each of the four.

    Returns:
        The class index of each of the four, and the classes in order.

    Example:
        >>> numbers, present = carried_classes(np.array([3.0, 0.0, 2.0, 1.0]))
        >>> numbers.tolist(), len(present)
        ([0, 0, 1, 2], 3)
    """
    carried = sums > 0
    numbers = np.cumsum(carried) - 1
    for index in np.flatnonzero(~carried):
        numbers[index] = numbers[index ^ 1]
    present = tuple(part for part, is_carried in zip(SIGN_CLASSES, carried, strict=True) if is_carried)
    return numbers, present
