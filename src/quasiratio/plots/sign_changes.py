"""Where a signed histogram changes sign, apart from the noise around zero."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.metrics import WeightedHistogram

__all__ = ["sign_changes"]


def sign_changes(histogram: WeightedHistogram, *, significance: float = 3.0) -> npt.NDArray[np.float64]:
    """Return the positions between significant bins of opposite sign, interpolated linearly.

    Args:
        histogram: Sums of signed weights.
        significance: Bins closer to zero than this many standard errors have no sign of their own.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> h = weighted_histogram([0.5] * 20 + [1.5] * 20, [-1.0] * 20 + [1.0] * 20, edges=[0, 1, 2])
        >>> sign_changes(h).tolist()
        [1.0]
    """
    centers = (histogram.edges[1:] + histogram.edges[:-1]) / 2
    heights = histogram.values / np.diff(histogram.edges)
    certain = np.flatnonzero(
        (histogram.values != 0) & (np.abs(histogram.values) >= significance * np.sqrt(histogram.variances))
    )
    before, after = certain[:-1], certain[1:]
    changed = heights[before] * heights[after] < 0
    before, after = before[changed], after[changed]
    share = np.abs(heights[before]) / (np.abs(heights[before]) + np.abs(heights[after]))
    return np.asarray(centers[before] + share * (centers[after] - centers[before]))
