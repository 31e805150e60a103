"""Elements of columns with several values per event: `jet_pt[0]` is the first value of each event."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["element_of", "is_awkward"]


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
