r"""Where two samples lie, feature by feature: can the reference be reweighted to the target at all?

Everything here is computed from counts in at most two hundred bins of equal population, so that samples of
many millions of events take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.sample import WeightedSample

__all__ = ["FeatureOverlap", "feature_overlaps"]

_N_BINS = 200
_N_MERGED = 5  # fewer bins for the overlap, which statistical fluctuations of the bins make smaller
_N_PROBED = 100_000


@dataclass(frozen=True)
class FeatureOverlap:
    r"""One feature of two samples.

    Attributes:
        name: Name of the feature.
        reference_range: Smallest and largest value in the reference.
        target_range: The same in the target.
        distance: Kolmogorov distance $\max_x |F_0(x) - F_1(x)|$ of the signed distributions, each scaled to
            unit sum. It may exceed one where weights are negative.
        overlap: $\int \min(p_0, p_1)$ of the densities of absolute weights: one where the samples agree,
            zero where they never meet.
        outside: Fraction of the target's absolute weight outside the reference's range.
    """

    name: str
    reference_range: tuple[float, float]
    target_range: tuple[float, float]
    distance: float
    overlap: float
    outside: float


def feature_overlaps(reference: WeightedSample, target: WeightedSample) -> tuple[FeatureOverlap, ...]:
    """Compare two samples feature by feature.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> samples = [WeightedSample(rng.uniform(low, low + 1.0, 50_000), names=["x"]) for low in (0.0, 0.25)]
        >>> (x,) = feature_overlaps(*samples)
        >>> round(x.distance, 2), round(x.overlap, 2), round(x.outside, 2)
        (0.25, 0.74, 0.25)
    """
    if reference.names != target.names:
        msg = (
            f"Got the features {list(reference.names)} and {list(target.names)}; expected the same in the same "
            "order. Select the features that both samples have."
        )
        raise InvalidInputError(msg)
    samples = (reference, target)
    for sample, role in zip(samples, ("reference", "target"), strict=True):
        sample.require_positive_sum(role)
    return tuple(
        _overlap(name, *((sample.features[:, column], sample.weights) for sample in samples))
        for column, name in enumerate(reference.names)
    )


Column = tuple[FeatureMatrix, FloatArray]


def _overlap(name: str, reference: Column, target: Column) -> FeatureOverlap:
    ranges = [(float(values.min()), float(values.max())) for values, _ in (reference, target)]
    edges = _edges(reference[0], target[0])
    signed, absolute = zip(*(_fractions(edges, *column) for column in (reference, target)), strict=True)
    (lowest, highest), (values, weights) = ranges[0], target
    abs_weights = np.abs(weights)
    outside = abs_weights[(values < lowest) | (values > highest)].sum() / abs_weights.sum()
    return FeatureOverlap(
        name,
        ranges[0],
        ranges[1],
        float(np.abs(np.cumsum(signed[0] - signed[1])).max()),
        float(np.minimum(*absolute).sum()),
        float(outside),
    )


def _edges(*samples: FeatureMatrix) -> FeatureMatrix:
    """Return inner edges of bins that hold about equally many events of the two samples together."""
    probed = np.concatenate([values[:: -(-len(values) // _N_PROBED)] for values in samples])
    return np.unique(np.quantile(probed, np.linspace(0.0, 1.0, _N_BINS + 1), method="nearest"))


def _fractions(
    edges: FeatureMatrix, values: FeatureMatrix, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    bins = np.searchsorted(edges, values, side="right")
    signed = np.bincount(bins, weights, minlength=len(edges) + 1)
    absolute = np.bincount(bins, np.abs(weights), minlength=len(edges) + 1)
    merged = np.add.reduceat(absolute, np.arange(0, len(absolute), _N_MERGED))
    return signed / signed.sum(), merged / merged.sum()
