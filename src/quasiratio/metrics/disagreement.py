r"""How large a disagreement is, which its significance does not tell.

With enough events any model fails a test, and with few any passes. So the share of the weight that is in the wrong place
is estimated, the noise of the compared samples taken off, and graded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from quasiratio.metrics.histogram import WeightedHistogram, as_histograms

__all__ = ["GRADE_LIMITS", "Disagreement", "Grade", "disagreement", "grade"]

Grade = Literal["negligible", "small", "moderate", "large"]
"""What to call a disagreement."""

GRADE_LIMITS: dict[Grade, tuple[float, float]] = {
    "negligible": (0.003, 0.03),
    "small": (0.01, 0.1),
    "moderate": (0.05, 0.3),
}
"""Largest share of the weight of each grade, and the same relative to what it was before reweighting: either is enough."""

_QUANTILE_95 = 1.645


@dataclass(frozen=True)
class Disagreement:
    """Share of the weight that is in the wrong place.

    Args:
        size: The estimate, zero where the noise explains all.
        limit: What it is at most, with a confidence of 95%.

    Example:
        >>> Disagreement(size=0.01, limit=0.03).limit
        0.03
    """

    size: float
    limit: float


def disagreement(reweighted: WeightedHistogram, target: WeightedHistogram) -> Disagreement:
    r"""Estimate the share of the weight that is in the wrong place.

    Of the true contents that would be the total variation $\frac12 \sum_i |\delta_i|$, but absolute differences of
    measured ones add up noise. A sum of squares has a noise that is known and can be taken off; by Cauchy and Schwarz,
    for any positive $h_i$ of unit sum, $(\sum |\delta_i|)^2 \le \sum \delta_i^2 / h_i$. With $h_i = \sigma_i / \sum_j
    \sigma_j$ from the statistical errors, which is always positive and close to the best choice (7% above it for
    differences that are proportional to a Gaussian density),

    $$s = \tfrac12 \sqrt{\max(0, Q)}, \qquad Q = \Big(\sum_j \sigma_j\Big) \sum_i \frac{d_i^2 - \sigma_i^2}{\sigma_i},$$

    where $E[Q] = \sum \delta_i^2 / h_i$. The limit has $\max(0, Q) + 1.645\,\sigma_Q$ under the root, with
    $\sigma_Q^2 = (\sum_j \sigma_j)^2\,(2 \sum \sigma_i^2 + 4 \max(0, \sum d_i^2 - \sigma_i^2))$. Both samples are scaled to
    unit sum; underflow and overflow are bins like the others. The error of the training sample is not taken off: what it
    does is a disagreement too.

    Args:
        reweighted: The reweighted reference.
        target: The target, in the same bins.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> rng = np.random.default_rng(0)
        >>> edges = np.linspace(-3, 3, 21)
        >>> a, b = (weighted_histogram(rng.normal(mean, 1, 100_000), edges=edges) for mean in (0.0, 0.2))
        >>> round(disagreement(a, b).size, 2)  # the total variation is 0.08
        0.09
    """
    b, t = (histogram.normalized() for histogram in as_histograms(reweighted, target, None, None, None))
    difference = np.concatenate([t.values - b.values, [t.underflow - b.underflow, t.overflow - b.overflow]])
    variance = np.concatenate(
        [
            t.variances + b.variances,
            [t.underflow_variance + b.underflow_variance, t.overflow_variance + b.overflow_variance],
        ]
    )
    filled = variance > 0
    if not filled.any():
        return Disagreement(0.0, 0.0)
    d2, s2 = difference[filled] ** 2, variance[filled]
    error = np.sqrt(s2)
    q = max(0.0, float(error.sum() * np.sum((d2 - s2) / error)))
    spread = float(error.sum() * np.sqrt(2.0 * s2.sum() + 4.0 * max(0.0, float((d2 - s2).sum()))))
    return Disagreement(0.5 * float(np.sqrt(q)), 0.5 * float(np.sqrt(q + _QUANTILE_95 * spread)))


def grade(size: float, before: float = 0.0) -> Grade:
    """Grade a disagreement by `GRADE_LIMITS`.

    Args:
        size: Share of the weight that is in the wrong place.
        before: What it was before reweighting.

    Example:
        >>> grade(0.002), grade(0.02), grade(0.02, before=0.4), grade(0.2, before=0.4)
        ('negligible', 'moderate', 'small', 'large')
    """
    for name, (absolute, relative) in GRADE_LIMITS.items():
        if size <= max(absolute, relative * before):
            return name
    return "large"
