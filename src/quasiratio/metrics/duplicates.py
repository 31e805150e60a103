"""Events that occur more than once: files read twice, oversampling, a target that contains the reference."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.sample import WeightedSample

__all__ = ["MOST_HASHES", "compared_hashes", "n_duplicates", "n_shared", "repeated", "row_hashes", "shared"]

MOST_HASHES = 2**25
"""Events of one sample, in the mean, of which the numbers are held to find those that occur again: 0.3 GB."""

_FIRST, _FACTOR, _SHIFT = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 29
_BLOCK_EVENTS = 2**18


def row_hashes(features: FeatureMatrix) -> npt.NDArray[np.uint64]:
    """Return a 64-bit number per event that is the same for the same features, and hardly ever otherwise.

    Example:
        >>> hashes = row_hashes(np.array([[1, 2], [2, 1], [1, 2]], dtype=np.float32))
        >>> (hashes == hashes[0]).tolist()
        [True, False, True]
    """
    state = np.full(len(features), _FIRST, dtype=np.uint64)
    for start in range(0, len(features), _BLOCK_EVENTS):
        block, of_block = features[start : start + _BLOCK_EVENTS], state[start : start + _BLOCK_EVENTS]
        bits = np.ascontiguousarray(block + block.dtype.type(0.0)).view(np.uint32)  # -0.0 becomes 0.0
        for column in range(bits.shape[1]):  # two for each feature in float64
            of_block ^= bits[:, column]
            of_block *= np.uint64(_FACTOR)
            of_block ^= of_block >> np.uint64(_SHIFT)
    return state


def compared_hashes(features: FeatureMatrix, share: float) -> npt.NDArray[np.uint64]:
    """Return the numbers of that share of all different events whose numbers are smallest: the same in every sample.

    Example:
        >>> events = np.arange(4000, dtype=np.float32)[:, None]
        >>> 900 < len(compared_hashes(events, 0.25)) < 1100
        True
    """
    hashes = row_hashes(features)
    return hashes if share >= 1 else hashes[hashes < np.uint64(share * 2.0**64)]


def repeated(hashes: npt.NDArray[np.uint64]) -> int:
    """Return how many of these numbers have occurred before; they are sorted in place, as there may be many."""
    hashes.sort()
    return int(np.count_nonzero(hashes[1:] == hashes[:-1]))


def shared(known: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> int:
    """Return how many of the wanted numbers are known; the known ones are sorted in place."""
    known.sort()
    n_found = 0
    for start in range(0, len(wanted) if len(known) else 0, _BLOCK_EVENTS):
        some = wanted[start : start + _BLOCK_EVENTS]
        places = np.searchsorted(known, some)
        places[places == len(known)] = 0
        n_found += int(np.count_nonzero(known[places] == some))
    return n_found


def n_duplicates(sample: WeightedSample) -> int:
    """Return how many events have the same features as an earlier one.

    Example:
        >>> n_duplicates(WeightedSample([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [1.0, 2.0]]))
        2
    """
    return repeated(row_hashes(sample.features))


def n_shared(reference: WeightedSample, target: WeightedSample) -> int:
    """Return how many target events have the same features as a reference event.

    Example:
        >>> n_shared(WeightedSample([[1.0], [2.0]]), WeightedSample([[2.0], [3.0], [2.0]]))
        2
    """
    return shared(row_hashes(reference.features), row_hashes(target.features))
