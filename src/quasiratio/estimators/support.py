"""Where a ratio cannot be trusted, because the reference has (almost) no events there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.model_files.document import Document, Measured, Name, as_measured, from_measured
from quasiratio.sample import effective_size
from quasiratio.wording import percent

__all__ = ["SupportDiagnostic", "SupportDocument", "diagnose_support"]

FloatArray = npt.NDArray[np.float64]
EventArrays = tuple[FeatureMatrix, FloatArray, FloatArray]
"""Features, ratios and signed weights of a sample."""

_MIN_REFERENCE_EVENTS = 10
_NOTABLE_FRACTION = 0.005


class SupportDocument(Document):
    """`SupportDiagnostic`."""

    outside_range: dict[Name, Measured]
    largest_supported_ratio: Measured
    beyond_support: Measured
    n_reference: int


@dataclass(frozen=True)
class SupportDiagnostic:
    r"""How much of the target the reference cannot be reweighted to.

    Attributes:
        outside_range: Per feature, the fraction of the target's $|w|$ outside the range of the reference.
        largest_supported_ratio: The value of $|r|$ beyond which only ten reference events lie.
        beyond_support: Fraction of the target's $|w|$ at larger $|r|$, less twice what these ten events carry
            after reweighting: target weight that no reference event stands for.
        n_reference: Number of reference events, as far as their weights let them count, $(\sum |w|)^2 / \sum w^2$.
    """

    outside_range: dict[str, float]
    largest_supported_ratio: float
    beyond_support: float
    n_reference: int

    @property
    def warning(self) -> str:
        """A sentence about what is wrong, or nothing.

        Small samples do not reach each other's extremes; that alone is no reason to warn.
        """
        notable = max(_NOTABLE_FRACTION, 3 * _MIN_REFERENCE_EVENTS / self.n_reference)
        parts = [
            f"{percent(fraction)} of the target weight lies outside the reference's range of {name!r}"
            for name, fraction in self.outside_range.items()
            if fraction > notable
        ]
        if self.beyond_support > notable:
            parts.append(
                f"{percent(self.beyond_support)} of the target weight has |ratio| above "
                f"{self.largest_supported_ratio:.4g}, where only {_MIN_REFERENCE_EVENTS} reference events lie"
            )
        if not parts:
            return ""
        return "; ".join(parts) + ". No reweighting of this reference can reach there; nothing was clipped."

    def document(self) -> SupportDocument:
        """Describe where a ratio can be trusted."""
        return SupportDocument(
            outside_range={name: as_measured(fraction) for name, fraction in self.outside_range.items()},
            largest_supported_ratio=as_measured(self.largest_supported_ratio),
            beyond_support=as_measured(self.beyond_support),
            n_reference=self.n_reference,
        )

    @classmethod
    def stored(cls, document: SupportDocument) -> Self:
        """Make the diagnostic again."""
        return cls(
            {name: from_measured(fraction) for name, fraction in document.outside_range.items()},
            from_measured(document.largest_supported_ratio),
            from_measured(document.beyond_support),
            document.n_reference,
        )


def diagnose_support(names: Sequence[str], reference: EventArrays, target: EventArrays) -> SupportDiagnostic:
    """Compare a target sample with the reference events that would have to be reweighted to it.

    Example:
        >>> flat = np.linspace(0, 1, 101, dtype=np.float32)[:, None]
        >>> ones = np.ones(101)
        >>> diagnose_support(["x"], (flat, ones, ones), (flat + 0.2, ones, ones)).outside_range
        {'x': 0.19801980198019803}
    """
    reference_features, reference_ratio, reference_weights = reference
    target_features, target_ratio, target_weights = target
    abs_weights = np.abs(target_weights)
    total = float(abs_weights.sum())
    lower, upper = reference_features.min(axis=0), reference_features.max(axis=0)
    outside = (target_features < lower) | (target_features > upper)
    fractions = (abs_weights @ outside) / total
    sizes = np.abs(reference_ratio)
    rank = len(sizes) - min(_MIN_REFERENCE_EVENTS, len(sizes))
    top = np.argpartition(sizes, rank)[rank:]
    largest = float(sizes[top].min())
    beyond = float(abs_weights[np.abs(target_ratio) > largest].sum()) / total
    reweighted = np.abs(reference_weights * reference_ratio)
    reweighted_total = float(reweighted.sum())
    # Where all ratios vanish, or some are infinite (a risk that ran away), the largest stand for everything.
    is_usual = 0.0 < reweighted_total < np.inf
    stood_for = float(reweighted[top].sum()) / reweighted_total if is_usual else 1.0
    return SupportDiagnostic(
        {name: float(f) for name, f in zip(names, fractions, strict=True)},
        largest,
        max(0.0, beyond - 2.0 * stood_for),
        round(effective_size(np.abs(reference_weights))),
    )
