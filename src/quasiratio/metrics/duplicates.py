"""Events that occur more than once: files read twice, oversampling, a target that contains the reference."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.sample import WeightedSample

__all__ = ["n_duplicates", "n_shared", "row_hashes"]

_FIRST, _FACTOR, _SHIFT = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 29


def row_hashes(features: FeatureMatrix) -> npt.NDArray[np.uint64]:
    """Return a 64-bit number per event that is the same for the same features, and hardly ever otherwise.

    Example:
        >>> hashes = row_hashes(np.array([[1, 2], [2, 1], [1, 2]], dtype=np.float32))
        >>> (hashes == hashes[0]).tolist()
        [True, False, True]
    """
    bits = np.ascontiguousarray(features + features.dtype.type(0.0)).view(np.uint32)  # -0.0 becomes 0.0
    state = np.full(len(features), _FIRST, dtype=np.uint64)
    for column in range(bits.shape[1]):  # two for each feature in float64
        state = (state ^ bits[:, column]) * np.uint64(_FACTOR)
        state ^= state >> np.uint64(_SHIFT)
    return state


def n_duplicates(sample: WeightedSample) -> int:
    """Return how many events have the same features as an earlier one.

    Example:
        >>> n_duplicates(WeightedSample([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [1.0, 2.0]]))
        2
    """
    return len(sample) - len(np.unique(row_hashes(sample.features)))


def n_shared(reference: WeightedSample, target: WeightedSample) -> int:
    """Return how many target events have the same features as a reference event.

    Example:
        >>> n_shared(WeightedSample([[1.0], [2.0]]), WeightedSample([[2.0], [3.0], [2.0]]))
        2
    """
    known = np.unique(row_hashes(reference.features))
    wanted = row_hashes(target.features)
    places = np.searchsorted(known, wanted)
    places[places == len(known)] = 0
    return int(np.sum(known[places] == wanted))
