"""Results in the kind of array that the user gave: frames get a series back, awkward arrays an awkward one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_kind_of"]


def as_kind_of(events: Any, values: npt.NDArray[np.float64], *, name: str) -> Any:  # noqa: ANN401
    """Return one value per event like the events themselves.

    Args:
        events: What the user gave: a pandas frame or series, an awkward array, or anything else.
        values: One value per event.
        name: Name of the series, where it becomes one.

    Returns:
        A pandas series with the index of the events, an awkward array, or `values` as they are.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"pt": [30.0, 50.0]}, index=[7, 9])
        >>> as_kind_of(frame, np.array([1.0, 2.0]), name="weight").index.tolist()
        [7, 9]
    """
    # Whoever has such an array has imported its package; nothing is imported here.
    package = type(events).__module__.partition(".")[0]
    if package == "pandas" and hasattr(events, "index"):
        return sys.modules["pandas"].Series(values, index=events.index, name=name)
    if package == "awkward":
        return sys.modules["awkward"].Array(values)
    return values
