r"""Tsallis entropy, and the Tsallis relative entropy of two histograms.

For $\alpha = 2$ both are polynomials of the bin contents, so they exist for negative bins too. The
discrete form printed in arXiv:2410.10216, $1 - \sum b^{\alpha-1} t$, does not vanish for $b = t$; the
values of its tables are those of the form used here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.metrics.binning import uniform_edges
from quasiratio.metrics.histogram import WeightedHistogram, as_histograms, weighted_histogram

__all__ = ["TsallisEntropy", "tsallis_entropy", "tsallis_relative_entropy"]


@dataclass(frozen=True)
class TsallisEntropy:
    """An entropy, and what was left out of it.

    Args:
        value: The entropy; for a relative entropy its absolute value, as the paper's tables report it.
        signed_value: The same with its sign, which negative bins can turn.
        alpha: The order.
        n_bins_left_out: Bins that could not enter because the target has nothing in them.

    Example:
        >>> float(TsallisEntropy(value=0.25, signed_value=-0.25, alpha=2.0, n_bins_left_out=0))
        0.25
    """

    value: float
    signed_value: float
    alpha: float
    n_bins_left_out: int

    def __float__(self) -> float:
        return self.value


def tsallis_relative_entropy(
    reweighted: npt.ArrayLike | WeightedHistogram,
    target: npt.ArrayLike | WeightedHistogram,
    *,
    alpha: float = 2.0,
    reweighted_weights: npt.ArrayLike | None = None,
    target_weights: npt.ArrayLike | None = None,
    edges: npt.ArrayLike | None = None,
) -> TsallisEntropy:
    r"""Return the relative entropy of two histograms.

    $$D_\alpha = \frac{1}{\alpha - 1} \left[\sum_i b_i^\alpha t_i^{1-\alpha} - 1\right], \qquad
    D_2 = \sum_i \frac{b_i^2}{t_i} - 1,$$

    with $b$ and $t$ normalised to one over the binned range; $\alpha \to 1$ is the Kullback-Leibler
    divergence $\sum b \log(b/t)$. Bins with $t_i = 0$ are left out and counted.

    Args:
        reweighted: One value per event of the sample $b$, or its histogram.
        target: The same of the sample $t$.
        alpha: Order; where it is not an integer above one, negative bins are refused.
        reweighted_weights: Signed weights of the values of $b$; all one when left out.
        target_weights: Signed weights of the values of $t$.
        edges: Edges of the bins; `uniform_edges` of the two samples when left out.

    Example:
        >>> tsallis_relative_entropy([0.5, 1.5], [0.5, 0.5, 0.5, 1.5], edges=[0, 1, 2]).value
        0.33333333333333326
    """
    histograms = as_histograms(reweighted, target, reweighted_weights, target_weights, edges)
    b, t = (_binned_fractions(h, alpha) for h in histograms)
    kept = t != 0
    b_kept, t_kept = b[kept], t[kept]
    if alpha == 1:
        filled = b_kept > 0
        value = float(np.sum(b_kept[filled] * np.log(b_kept[filled] / t_kept[filled])))
    else:
        value = (float(np.sum(t_kept * (b_kept / t_kept) ** alpha)) - 1) / (alpha - 1)
    return TsallisEntropy(abs(value), value, float(alpha), int(np.count_nonzero(~kept)))


def tsallis_entropy(
    values: npt.ArrayLike | WeightedHistogram,
    *,
    alpha: float = 2.0,
    weights: npt.ArrayLike | None = None,
    edges: npt.ArrayLike | None = None,
) -> TsallisEntropy:
    r"""Return the entropy $S_\alpha = (1 - \sum_i q_i^\alpha)/(\alpha - 1)$ of a histogram.

    $q$ is normalised to one over the binned range; $\alpha \to 1$ is Shannon's entropy. Empty bins add
    nothing, so none is left out. With negative bins the entropy can be negative.

    Args:
        values: One value per event, or a histogram.
        alpha: Order; where it is not an integer above one, negative bins are refused.
        weights: Signed weights of the values; all one when left out.
        edges: Edges of the bins; `uniform_edges` of the sample when left out.

    Example:
        >>> tsallis_entropy([0.5, 1.5], edges=[0, 1, 2]).value
        0.5
    """
    if not isinstance(values, WeightedHistogram):
        bounds = uniform_edges(values, values) if edges is None else edges
        values = weighted_histogram(values, weights, edges=bounds)
    elif weights is not None or edges is not None:
        msg = "Got a histogram together with weights or edges; expected a histogram alone, or values."
        raise InvalidInputError(msg)
    q = _binned_fractions(values, alpha)
    if alpha == 1:
        filled = q[q > 0]
        value = -float(np.sum(filled * np.log(filled)))
    else:
        value = (1 - float(np.sum(q**alpha))) / (alpha - 1)
    return TsallisEntropy(value, value, float(alpha), 0)


def _binned_fractions(histogram: WeightedHistogram, alpha: float) -> FloatArray:
    """Return the contents normalised to one over the bins, checked against the order."""
    if not (np.isfinite(alpha) and alpha > 0):
        msg = f"Got alpha = {alpha!r}; expected a positive number, such as 2."
        raise InvalidInputError(msg)
    total = float(histogram.values.sum())
    if total == 0:
        msg = "The bins sum to zero; expected a sum that can be normalised. Widen the range."
        raise InvalidInputError(msg)
    fractions = np.asarray(histogram.values / total)
    n_negative = int(np.count_nonzero(fractions < 0))
    if n_negative and (alpha == 1 or not float(alpha).is_integer()):
        msg = (
            f"Got {n_negative} negative bins with alpha = {alpha:g}, whose powers or logarithms they do not "
            "have; expected nonnegative bins, or an integer alpha of at least 2. Use alpha=2 or wider bins."
        )
        raise InvalidInputError(msg)
    return fractions
