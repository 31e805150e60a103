"""What can be said about samples before anything is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quasiratio.metrics.duplicates import n_duplicates, n_shared
from quasiratio.metrics.overlap import FeatureOverlap, feature_overlaps
from quasiratio.metrics.recommendation import Recommendation, recommend_method
from quasiratio.metrics.weights import WeightDiagnostics, weight_diagnostics
from quasiratio.sample import WeightedSample

__all__ = ["Inspection", "SampleInspection", "inspect_samples"]


@dataclass(frozen=True)
class SampleInspection:
    """One sample: its weights, its duplicates and the ranges of its features."""

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
    """

    reference: SampleInspection
    target: SampleInspection | None
    overlaps: tuple[FeatureOverlap, ...]
    n_shared: int
    recommendation: Recommendation | None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def inspect_samples(reference: WeightedSample, target: WeightedSample | None = None) -> Inspection:
    """Describe a reference and, where there is one, the target it is to be reweighted to.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (WeightedSample(rng.normal(mean, 1.0, 5000)) for mean in (0.0, 0.5))
        >>> inspect_samples(reference, target).recommendation.method
        'direct'
    """
    first = _inspected(reference, "reference" if target is not None else "sample")
    if target is None:
        return Inspection(first, None, (), 0, None)
    second = _inspected(target, "target")
    overlaps = feature_overlaps(reference, target)
    recommendation = recommend_method(first.weights, second.weights, overlaps)
    return Inspection(first, second, overlaps, n_shared(reference, target), recommendation)


def _inspected(sample: WeightedSample, role: str) -> SampleInspection:
    sample.require_positive_sum(role)
    lowest, highest = np.min(sample.features, axis=0), np.max(sample.features, axis=0)
    ranges = {
        name: (float(low), float(high)) for name, low, high in zip(sample.names, lowest, highest, strict=True)
    }
    return SampleInspection(weight_diagnostics(sample), n_duplicates(sample), ranges)
