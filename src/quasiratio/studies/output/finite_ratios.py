"""Ratios of a risk without a minimum: some are infinite, and must neither stop a study nor hide in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["FiniteRatios", "finite_ratios"]

_INFINITE = 1e6


class FiniteRatios(NamedTuple):
    """Ratios that can be histogrammed, and the share of events that could not be."""

    ratio: npt.NDArray[np.float64]
    infinite_fraction: float


def finite_ratios(ratio: npt.ArrayLike) -> FiniteRatios:
    """Set ratios that are NaN or beyond a million to zero, which leaves their events out, and count them.

    Cross-entropy drives the logit to infinity where the target density is negative; no ratio of the studies
    comes near a million.

    Example:
        >>> finite_ratios([1.5, float("inf")])
        FiniteRatios(ratio=array([1.5, 0. ]), infinite_fraction=0.5)
    """
    values = np.asarray(ratio, dtype=np.float64)
    usable = np.abs(values) < _INFINITE  # False for NaN
    return FiniteRatios(np.where(usable, values, 0.0), float(np.mean(~usable)))
