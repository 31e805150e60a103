"""What can be said about samples before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quasiratio.metrics.duplicates import MOST_HASHES, repeated, shared
from quasiratio.metrics.overlap import FeatureOverlap, overlaps_of_sums
from quasiratio.metrics.parts import SampleParts, in_parts
from quasiratio.metrics.recommendation import Recommendation, recommend_method
from quasiratio.metrics.sample_sums import SampleSums, sample_sums
from quasiratio.metrics.weights import WeightDiagnostics
from quasiratio.sample import WeightedSample, positive_sum

__all__ = ["Inspection", "SampleInspection", "inspect_samples"]


@dataclass(frozen=True)
class SampleInspection:
    """One sample: its weights, its duplicates (see `Inspection.share_compared`) and the ranges of its features."""

    weights: WeightDiagnostics
    n_duplicates: int
    ranges: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Inspection:
    """One sample, or two that are to be compared.

    Attributes:
        reference: The reference, or the only sample.
        target: The target, or `None`.
        overlaps: One entry per feature; empty for one sample.
        n_shared: Target events with the same features as a reference event.
        recommendation: The method for the two samples; `None` for one.
        share_compared: Share of the different events among which repeated and shared ones were counted; below one, where
            there are more than memory should hold, their numbers are estimates.
    """

    reference: SampleInspection
    target: SampleInspection | None
    overlaps: tuple[FeatureOverlap, ...]
    n_shared: int
    recommendation: Recommendation | None
    share_compared: float = 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def inspect_samples(
    reference: WeightedSample | SampleParts, target: WeightedSample | SampleParts | None = None
) -> Inspection:
    """Describe a reference and, where there is one, the target it is to be reweighted to.

    Args:
        reference: A sample, or one in parts that would not fit into memory, which are gone through three times.
        target: The other one.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (WeightedSample(rng.normal(mean, 1.0, 5000)) for mean in (0.0, 0.5))
        >>> inspect_samples(reference, target).recommendation.method
        'direct'
    """
    samples = [in_parts(one) for one in (reference, target) if one is not None]
    share = min(1.0, MOST_HASHES / max(1, *(sample.n_events for sample in samples)))
    sums = [sample_sums(sample, hashed_share=share) for sample in samples]
    roles = ["sample"] if target is None else ["reference", "target"]
    found = [
        _inspected(one, sample.names, role, share)
        for one, sample, role in zip(sums, samples, roles, strict=True)
    ]
    if target is None:
        return Inspection(found[0], None, (), 0, None, share)
    overlaps = overlaps_of_sums((samples[0], samples[1]), sums)
    recommendation = recommend_method(found[0].weights, found[1].weights, overlaps)
    n_shared = round(shared(sums[0].hashes, sums[1].hashes) / share)
    return Inspection(found[0], found[1], overlaps, n_shared, recommendation, share)


def _inspected(sums: SampleSums, names: Sequence[str], role: str, share: float) -> SampleInspection:
    positive_sum(sums.weights.total, role)
    ranges = {name: sums.range_of(column) for column, name in enumerate(names)}
    return SampleInspection(sums.weights.diagnostics, round(repeated(sums.hashes) / share), ranges)
