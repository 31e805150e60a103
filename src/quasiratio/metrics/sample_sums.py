"""What a first pass over the events of a sample finds: ranges, sums of weights, and which events occur again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.metrics.duplicates import compared_hashes
from quasiratio.metrics.parts import Blocks, SampleParts
from quasiratio.metrics.weights import WeightSums

__all__ = ["SampleSums", "sample_sums"]


@dataclass
class SampleSums:
    """Sums over the events of one part of a sample, or of several.

    Attributes:
        n_events: Events of each part.
        lowest: Smallest value of each feature.
        highest: Largest value of each feature.
        weights: Sums over the signed weights.
        hashes: Numbers of the events that are compared; see `compared_hashes`.
    """

    n_events: tuple[int, ...]
    lowest: FeatureMatrix
    highest: FeatureMatrix
    weights: WeightSums = field(default_factory=WeightSums)
    hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def range_of(self, column: int) -> tuple[float, float]:
        """Return the smallest and the largest value of one feature."""
        return float(self.lowest[column]), float(self.highest[column])


def sample_sums(sample: SampleParts, *, hashed_share: float = 0.0) -> SampleSums:
    """Go through all events once.

    Args:
        sample: The events.
        hashed_share: Of all different events, the share whose numbers are kept.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics.parts import WholeSample
        >>> sums = sample_sums(WholeSample(WeightedSample([[1.0], [3.0]], [2.0, -1.0])))
        >>> sums.range_of(0), sums.weights.total
        ((1.0, 3.0), 1.0)
    """
    parts = list(sample.each(_of_part, len(sample.names), hashed_share))
    total = WeightSums()
    for part in parts:
        total.merge(part.weights)
    return SampleSums(
        tuple(n_events for part in parts for n_events in part.n_events),
        np.min([part.lowest for part in parts], axis=0),
        np.max([part.highest for part in parts], axis=0),
        total,
        np.concatenate([part.hashes for part in parts]),
    )


def _of_part(blocks: Blocks, n_features: int, hashed_share: float) -> SampleSums:
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    weights, hashes = WeightSums(), [np.empty(0, np.uint64)]
    for features, of_events in blocks:
        if len(of_events):
            lowest = np.minimum(lowest, np.min(features, axis=0))
            highest = np.maximum(highest, np.max(features, axis=0))
            weights.add(of_events)
            if hashed_share:
                hashes.append(compared_hashes(features, hashed_share))
    return SampleSums((weights.n_events,), lowest, highest, weights, np.concatenate(hashes))
