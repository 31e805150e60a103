r"""Where two samples lie, feature by feature: can the reference be reweighted to the target at all?

Everything here is computed from counts in at most two hundred bins of equal population, so that samples of
many millions of events take seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.metrics.parts import Blocks, SampleParts, in_parts
from quasiratio.metrics.sample_sums import SampleSums, sample_sums
from quasiratio.sample import WeightedSample, positive_sum

__all__ = ["FeatureOverlap", "feature_overlaps", "overlaps_of_sums"]

_N_BINS = 200
_N_WIDE = 40  # fewer bins for the overlap, which statistical fluctuations of the bins make smaller
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


def feature_overlaps(
    reference: WeightedSample | SampleParts, target: WeightedSample | SampleParts
) -> tuple[FeatureOverlap, ...]:
    """Compare two samples feature by feature.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> samples = [WeightedSample(rng.uniform(low, low + 1.0, 50_000), names=["x"]) for low in (0.0, 0.25)]
        >>> (x,) = feature_overlaps(*samples)
        >>> round(x.distance, 2), round(x.overlap, 2), round(x.outside, 2)
        (0.25, 0.74, 0.25)
    """
    samples = in_parts(reference), in_parts(target)
    sums = [sample_sums(sample) for sample in samples]
    return overlaps_of_sums(samples, sums)


def overlaps_of_sums(
    samples: tuple[SampleParts, SampleParts], sums: Sequence[SampleSums]
) -> tuple[FeatureOverlap, ...]:
    """Compare two samples whose first sums are known; it takes two more passes over the events.

    Args:
        samples: Reference and target.
        sums: What `sample_sums` found in them.
    """
    first, second = (sample.names for sample in samples)
    if first != second:
        msg = (
            f"Got the features {list(first)} and {list(second)}; expected the same in the same "
            "order. Select the features that both samples have."
        )
        raise InvalidInputError(msg)
    for of_sample, role in zip(sums, ("reference", "target"), strict=True):
        positive_sum(of_sample.weights.total, role)
    probed = np.concatenate([_probed(*pair) for pair in zip(samples, sums, strict=True)])
    edges = [_edges(values) for values in probed.T]
    lowest, highest = sums[0].lowest, sums[0].highest
    counts = [sum(sample.each(_counted, edges, lowest, highest), _Counts()) for sample in samples]
    return tuple(
        _overlap(
            name, [of_sample.range_of(column) for of_sample in sums], [one.columns[column] for one in counts]
        )
        for column, name in enumerate(first)
    )


def _probed(sample: SampleParts, sums: SampleSums) -> FeatureMatrix:
    """Return every so many-th event, some hundred thousand in all."""
    stride = -(-sums.weights.n_events // _N_PROBED)
    first = [-before % stride for before in itertools.accumulate(sums.n_events[:-1], initial=0)]
    return np.concatenate([part for part in sample.each(_probed_part, stride, own=first) if len(part)])


def _probed_part(blocks: Blocks, stride: int, start: int) -> FeatureMatrix:
    parts: list[FeatureMatrix] = []
    for features, _ in blocks:
        parts.append(features[start::stride])
        start = (start - len(features)) % stride
    return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)


def _edges(probed: FeatureMatrix) -> FeatureMatrix:
    """Return inner edges of bins that hold about equally many events of the two samples together."""
    return np.unique(np.quantile(probed, np.linspace(0.0, 1.0, _N_BINS + 1), method="nearest"))


@dataclass
class _Column:
    """Sums of the weights of one sample in bins of one feature."""

    signed: FloatArray
    absolute: FloatArray
    outside: float = 0.0


@dataclass
class _Counts:
    """Sums of one sample in the bins of all features; they add up."""

    columns: list[_Column] = field(default_factory=list)

    def __add__(self, other: _Counts) -> _Counts:
        if not self.columns:
            return other
        return _Counts(
            [
                _Column(one.signed + two.signed, one.absolute + two.absolute, one.outside + two.outside)
                for one, two in zip(self.columns, other.columns, strict=True)
            ]
        )


def _counted(
    blocks: Blocks, edges: Sequence[FeatureMatrix], lowest: FeatureMatrix, highest: FeatureMatrix
) -> _Counts:
    """Fill the bins with the events of one part, and count what is beyond the range of the reference."""
    columns = [_Column(np.zeros(len(one) + 1), np.zeros(len(one) + 1)) for one in edges]
    for features, weights in blocks:
        abs_weights = np.abs(weights)
        for column, values, inner, low, high in zip(columns, features.T, edges, lowest, highest, strict=True):
            bins = np.searchsorted(inner, values, side="right")
            column.signed += np.bincount(bins, weights, minlength=len(inner) + 1)
            column.absolute += np.bincount(bins, abs_weights, minlength=len(inner) + 1)
            column.outside += float(abs_weights[(values < low) | (values > high)].sum())
    return _Counts(columns)


def _overlap(name: str, ranges: Sequence[tuple[float, float]], columns: Sequence[_Column]) -> FeatureOverlap:
    signed = [column.signed / column.signed.sum() for column in columns]
    n_bins = len(columns[0].absolute)
    starts = np.arange(0, n_bins, max(1, n_bins // _N_WIDE))  # each value of a count or a flag stays a bin
    merged = [np.add.reduceat(column.absolute, starts) for column in columns]
    return FeatureOverlap(
        name,
        ranges[0],
        ranges[1],
        float(np.abs(np.cumsum(signed[0] - signed[1])).max()),
        float(np.minimum(*(one / one.sum() for one in merged)).sum()),
        float(columns[1].outside / columns[1].absolute.sum()),
    )
