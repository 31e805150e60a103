"""Which method to use on two samples, and why, from numbers that cost no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quasiratio.metrics.overlap import FeatureOverlap
from quasiratio.metrics.weights import WeightDiagnostics
from quasiratio.wording import percent

__all__ = ["Recommendation", "recommend_method"]

_FEW_EFFECTIVE_EVENTS = 2_000
_NOTABLE_OUTSIDE = 0.005
_LITTLE_OVERLAP = 0.2
_STRONG_CANCELLATION = 3.0
_DOMINANT_SHARE = 0.01


@dataclass(frozen=True)
class Recommendation:
    """A method, the reason for it, and what to watch.

    Attributes:
        method: `"sign-resolved"` or `"direct"`.
        loss: The loss of the direct method, else `None`.
        reason: One sentence.
        cautions: What in these samples limits any method; one sentence each.
    """

    method: str
    loss: str | None
    reason: str
    cautions: tuple[str, ...]


def recommend_method(
    reference: WeightDiagnostics, target: WeightDiagnostics, overlaps: Sequence[FeatureOverlap] = ()
) -> Recommendation:
    """Choose a method by the signs of the weights.

    Without negative weights the ordinary classifier has a bounded risk. With them the sign-resolved
    classifier has one whatever the signs of the densities, which is why nothing needs to be known about them. It also has the
    smallest median error of all methods on every benchmark with negative weights: both toys, six dimensions, signed jets with
    equal and with different shares, from 10,000 events per class to 2,000,000; but for `AutoRatio`, which contains it and may win
    by a quarter. A test reads the stored rows and holds it to that.

    Args:
        reference: Diagnostics of the reference's weights.
        target: Diagnostics of the target's weights.
        overlaps: How the two samples overlap, feature by feature.

    Example:
        >>> from quasiratio.metrics import weight_diagnostics
        >>> signed = weight_diagnostics([1.0, 1.0, 1.0, -1.0] * 1000)
        >>> recommend_method(weight_diagnostics([1.0] * 4000), signed).method
        'sign-resolved'
    """
    samples = {"reference": reference, "target": target}
    cautions = tuple(_cautions(samples, overlaps))
    signed = {role: s.negative_fraction for role, s in samples.items() if s.negative_fraction > 0}
    if not signed:
        reason = "no weight is negative, so that the risk of the ordinary classifier is bounded below"
        return Recommendation("direct", "bce", reason, cautions)
    which = " and ".join(f"{percent(fraction)} of the {role}'s" for role, fraction in signed.items())
    reason = (
        f"{which} weights are negative; its risk is bounded below whatever the signs of weights and densities, and it has the "
        "smallest median errors on the benchmarks with negative weights"
    )
    return Recommendation("sign-resolved", None, reason, cautions)


def _cautions(samples: dict[str, WeightDiagnostics], overlaps: Sequence[FeatureOverlap]) -> list[str]:
    found = []
    for role, weights in samples.items():
        if weights.effective_size < _FEW_EFFECTIVE_EVENTS:
            found.append(
                f"The {role} has an effective size of {weights.effective_size:.4g} events only; fit an ensemble "
                "(`n_members=8`) and look at its spread."
            )
        if weights.mixture_coefficient > _STRONG_CANCELLATION:
            found.append(
                f"Weights of opposite sign cancel strongly in the {role} (c = {weights.mixture_coefficient:.3g}); "
                "expect a noisy ratio."
            )
        if weights.largest_share > _DOMINANT_SHARE:
            found.append(
                f"One event carries {percent(weights.largest_share)} of the absolute weight of the {role}; "
                "look at the largest weights."
            )
    for feature in overlaps:
        if feature.outside > _NOTABLE_OUTSIDE:
            found.append(
                f"{percent(feature.outside)} of the target weight lies outside the reference's range of "
                f"{feature.name!r}, where no reweighting can reach."
            )
        elif feature.overlap < _LITTLE_OVERLAP:
            found.append(
                f"The samples overlap by {percent(feature.overlap)} only in {feature.name!r}; few reference events "
                "will carry large ratios."
            )
    return found
