"""Elements of columns with several values per event (`jet_pt[0]`), and what can be made of all (`len(jet_pt)`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from quasiratio.io.column import Pick

__all__ = ["element_of", "is_awkward", "picked", "reduced"]


def is_awkward(values: Any) -> bool:  # noqa: ANN401 - any array
    """Whether `values` is an awkward array, found out without importing awkward.

    Example:
        >>> is_awkward(np.zeros(3))
        False
    """
    return type(values).__module__.partition(".")[0] == "awkward"


def element_of(values: Any, index: int) -> tuple[npt.NDArray[Any], int]:  # noqa: ANN401 - NumPy or awkward
    """Return one element of each event, and the number of events that are too short to have it.

    Where there is no such element the value is NaN, and the array one of floats.

    Example:
        >>> element_of(np.array([[1, 2], [3, 4]]), 1)
        (array([2, 4]), 0)
        >>> element_of(np.array([[1, 2], [3, 4]]), 2)
        (array([nan, nan]), 2)
    """
    if not is_awkward(values):
        array = np.asarray(values)
        if index < array.shape[1]:
            return np.ascontiguousarray(array[:, index]), 0
        return np.full(len(array), np.nan), len(array)
    import awkward as ak  # noqa: PLC0415 - optional

    is_long_enough = ak.to_numpy(ak.num(values, axis=1)) > index
    if is_long_enough.all():
        return ak.to_numpy(values[:, index]), 0
    chosen = ak.to_numpy(values[is_long_enough][:, index])
    elements = np.full(len(values), np.nan, dtype=np.result_type(chosen.dtype, np.float32))
    elements[is_long_enough] = chosen
    return elements, int(np.sum(~is_long_enough))


def reduced(values: Any, reduction: str) -> tuple[npt.NDArray[Any], int]:  # noqa: ANN401 - NumPy or awkward
    """Return the number, sum, smallest or largest of the values of each event, and how many events have none to return.

    An event without values has the number and the sum zero, but no smallest and no largest value: NaN.

    Example:
        >>> reduced(np.array([[1, 2], [3, 4]]), "sum"), reduced(np.array([[1, 2], [3, 4]]), "len")
        ((array([3., 7.]), 0), (array([2, 2]), 0))
    """
    if is_awkward(values):
        import awkward as ak  # noqa: PLC0415 - optional

        lengths = ak.to_numpy(ak.num(values, axis=1))
        flat = ak.to_numpy(ak.flatten(values))
    else:
        array = np.asarray(values)
        lengths, flat = np.full(len(array), array.shape[1]), array.reshape(-1)
    if reduction == "len":
        return lengths, 0
    starts, has_any = np.cumsum(lengths) - lengths, lengths > 0
    result = np.zeros(len(lengths)) if reduction == "sum" else np.full(len(lengths), np.nan)
    if has_any.any():  # `reduceat` takes no empty stretches; those in between have no values to miss
        operation = {"sum": np.add, "min": np.minimum, "max": np.maximum}[reduction]
        result[has_any] = operation.reduceat(flat.astype(np.float64), starts[has_any])
    return result, 0 if reduction == "sum" else int(np.sum(~has_any))


def picked(values: Any, pick: Pick) -> tuple[Any, int]:  # noqa: ANN401 - NumPy or awkward
    """Return a column, an element of it or a reduction, and the number of events that lack it."""
    if pick is None:
        return values, 0
    return element_of(values, pick) if isinstance(pick, int) else reduced(values, pick)
