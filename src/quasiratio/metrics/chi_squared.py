r"""Chi-squared between two weighted histograms (Gagunashvili, arXiv:physics/0605123)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.histogram import WeightedHistogram, as_histograms

__all__ = ["ChiSquared", "chi_squared"]


@dataclass(frozen=True)
class ChiSquared:
    """A chi-squared and its degrees of freedom.

    Args:
        chi2: The sum over bins.
        n_dof: Degrees of freedom: the bins used, less one for the common normalisation.
        n_bins: Bins used, those with events in at least one of the histograms.

    Example:
        >>> result = ChiSquared(chi2=12.0, n_dof=10, n_bins=11)
        >>> result.value, round(result.p_value, 4)
        (1.2, 0.2851)
    """

    chi2: float
    n_dof: int
    n_bins: int

    @property
    def value(self) -> float:
        """Chi-squared per degree of freedom."""
        return self.chi2 / self.n_dof

    @property
    def p_value(self) -> float:
        """Probability of a larger chi-squared between two samples of one distribution."""
        from scipy.special import chdtrc  # noqa: PLC0415 - slow to import, and seldom needed

        return float(chdtrc(self.n_dof, self.chi2))

    def __float__(self) -> float:
        return self.value


def chi_squared(
    reweighted: npt.ArrayLike | WeightedHistogram,
    target: npt.ArrayLike | WeightedHistogram,
    *,
    reweighted_weights: npt.ArrayLike | None = None,
    target_weights: npt.ArrayLike | None = None,
    edges: npt.ArrayLike | None = None,
) -> ChiSquared:
    r"""Compare the shapes of two weighted samples.

    $$\chi^2 = \sum_i \frac{(W_B t_i - W_T b_i)^2}{W_B^2 s^2_{T,i} + W_T^2 s^2_{B,i}}$$

    with $b_i, t_i$ the sums of weights in bin $i$, $s^2$ the sums of squared weights, and $W_B, W_T$ the
    sums of weights of the whole samples, whether binned or not. Symmetric, and unchanged when either
    sample's weights are multiplied by a constant.

    Args:
        reweighted: One value per event of the first sample, or its histogram.
        target: The same of the second sample.
        reweighted_weights: Signed weights of the first sample's values; all one when left out.
        target_weights: Signed weights of the second sample's values.
        edges: Edges of the bins; `uniform_edges` of the two samples when left out.

    Example:
        >>> rng = np.random.default_rng(2)
        >>> bool(0.5 < chi_squared(rng.normal(size=10_000), rng.normal(size=20_000)).value < 1.5)
        True
    """
    b, t = as_histograms(reweighted, target, reweighted_weights, target_weights, edges)
    total_b, total_t = b.require_nonzero_sum(), t.require_nonzero_sum()
    difference = t.values / total_t - b.values / total_b
    variance = t.variances / total_t**2 + b.variances / total_b**2
    used = variance > 0
    n_bins = int(np.count_nonzero(used))
    if n_bins < 2:
        msg = f"Got {n_bins} bins with events; expected at least two. Widen the range or use more bins."
        raise InvalidInputError(msg)
    return ChiSquared(float(np.sum(difference[used] ** 2 / variance[used])), n_bins - 1, n_bins)
