r"""The error that a ratio inherits from its training sample, and a chi-squared that counts it.

A ratio learned from $n$ events repeats their fluctuations. A test with many events sees them, and calls a model wrong
that is as right as its training sample allows. With $D$ the diagonal matrix of the statistical variances of the
compared histograms and $M$ the covariance of the bins' contents between training samples,

$$\chi^2 = d^\mathsf{T} (D + M)^{-1} d, \qquad d_i = t_i / W_T - b_i / W_B .$$

`chi_squared`, the published distance, has $D$ alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.metrics.chi_squared import ChiSquared
from quasiratio.metrics.histogram import WeightedHistogram, as_histograms

__all__ = ["TrainingError", "total_chi_squared"]

_N_MODES = 10
_SMALLEST_MODE = 1e-3
"""Relative to the largest; directions that the bins tell apart worse are made of rounding."""


@dataclass(frozen=True, eq=False)
class TrainingError:
    r"""Covariance of the bins of a reweighted histogram between training samples, $M = F^\mathsf{T} F + \mathrm{diag}(v)$.

    Args:
        deviations: $F$, of shape `(n_modes, n_bins)`: what moves together.
        variances: $v$, of shape `(n_bins,)`: what moves on its own.
        source: `"members"` of an ensemble, or `"sample sizes"`.

    Example:
        >>> error = TrainingError.of_members([[0.4, 0.6], [0.6, 0.4]])
        >>> error.covariance.round(3).tolist()
        [[0.04, -0.02], [-0.02, 0.04]]
    """

    deviations: FloatArray
    variances: FloatArray
    source: Literal["members", "sample sizes"]

    @property
    def covariance(self) -> FloatArray:
        """The matrix $M$."""
        return np.asarray(self.deviations.T @ self.deviations + np.diag(self.variances))

    @classmethod
    def of_members(cls, contents: FloatArray | list[list[float]]) -> Self:
        r"""Take the spread of the members of an ensemble, not divided by their number.

        Each member has its own bootstrap of the training sample, so that they differ as training samples do; all share
        the one sample, so that their mean keeps its error. The covariance $S$ of $K$ members knows $K - 1$ directions
        only; $\mathrm{diag}(S)/(K - 1)$ is added for the others. (In a trial with 50 bins and a tenth of the test events in
        the training, a model as right as that allows had $p < 0.01$ in 4 to 5% of the cases with eight members; with
        $S$ alone in 8 to 9%, with $D$ alone in 28 to 51%. With as many events in both it was 1%.)

        Args:
            contents: `(n_members, n_bins)` contents of the bins, each member scaled to unit sum.
        """
        rows = np.asarray(contents, dtype=np.float64)
        if rows.ndim != 2 or len(rows) < 2:
            msg = (
                f"Got contents of shape {rows.shape}; expected (n_members, n_bins) with at least two members."
            )
            raise InvalidInputError(msg)
        deviations = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
        return cls(deviations, np.square(deviations).sum(axis=0) / (len(rows) - 1), "members")

    @classmethod
    def of_sample_sizes(
        cls, reweighted: WeightedHistogram, target: WeightedHistogram, shares: tuple[float, float]
    ) -> Self:
        r"""Estimate what one network inherits, from the sizes of its training samples.

        A training sample has in a bin the variance $\tau^2_i$ of the test sample times `share`. A network follows the
        smooth part of these fluctuations and averages the rest away; as smooth count ten cosines,
        $M = \tau\,U U^\mathsf{T} \tau$ with the orthonormal columns of $U$ spanning
        $\cos(\pi j u_i)$, $j = 0, \dots, 9$, and $u_i$ the share of the squared errors to the left of the middle of bin
        $i$; fewer where nearly all of the squared errors are in a few bins. (All of $\tau^2$ as independent errors would hide anything: a model as wrong as its training sample allows
        would have p-values near one. In the trial of `of_members` this estimate had $p < 0.01$ in 4 to 5% and 0.3 to 0.7% of
        the cases.)

        Args:
            reweighted: The reweighted reference.
            target: The target.
            shares: Effective size of the test sample over that of the training sample, of the reference and of the
                target.

        Example:
            >>> from quasiratio.metrics import weighted_histogram
            >>> h = weighted_histogram([0.5] * 50 + [1.5] * 50, edges=[0, 1, 2]).normalized()
            >>> np.sqrt(np.diag(TrainingError.of_sample_sizes(h, h, (1.0, 1.0)).covariance)).round(3).tolist()
            [0.1, 0.1]
        """
        b, t = reweighted.normalized().variances, target.normalized().variances
        tau = np.sqrt(shares[0] * b + shares[1] * t)
        squares = b + t
        filled = np.flatnonzero(squares > 0)
        deviations = np.zeros((0, len(tau)))
        if len(filled):
            share = squares[filled] / squares[filled].sum()
            middle = np.cumsum(share) - 0.5 * share
            cosines = np.cos(np.pi * middle[:, None] * np.arange(min(_N_MODES, len(filled))))
            basis, sizes, _ = np.linalg.svd(np.sqrt(share)[:, None] * cosines, full_matrices=False)
            basis = basis[:, sizes > _SMALLEST_MODE * sizes[0]]
            deviations = np.zeros((basis.shape[1], len(tau)))
            deviations[:, filled] = basis.T * tau[filled]
        return cls(deviations, np.zeros_like(tau), "sample sizes")


def total_chi_squared(
    reweighted: WeightedHistogram, target: WeightedHistogram, error: TrainingError
) -> ChiSquared:
    r"""Compare two histograms with statistical errors and that of the training sample, $d^\mathsf{T} (D + M)^{-1} d$.

    Never larger than `chi_squared`, over the same bins. Solved by Woodbury's identity, in the number of modes, so that
    many bins cost nothing.

    Args:
        reweighted: The reweighted reference.
        target: The target, in the same bins.
        error: Error of the training sample, of the contents scaled to unit sum.

    Example:
        >>> from quasiratio.metrics import chi_squared, weighted_histogram
        >>> b = weighted_histogram([0.5] * 60 + [1.5] * 40, edges=[0, 1, 2])
        >>> t = weighted_histogram([0.5] * 50 + [1.5] * 50, edges=[0, 1, 2])
        >>> error = TrainingError.of_members([[0.4, 0.6], [0.6, 0.4]])
        >>> round(chi_squared(b, t).value, 3), round(total_chi_squared(b, t, error).value, 3)
        (2.02, 0.286)
    """
    b, t = (histogram.normalized() for histogram in as_histograms(reweighted, target, None, None, None))
    if error.deviations.shape[-1] != b.n_bins or error.variances.shape != (b.n_bins,):
        msg = f"Got the training error of {error.deviations.shape[-1]} bins; expected one for the {b.n_bins} of the histograms."
        raise InvalidInputError(msg)
    statistical = t.variances + b.variances
    used = statistical > 0
    n_bins = int(np.count_nonzero(used))
    if n_bins < 2:
        msg = f"Got {n_bins} bins with events; expected at least two. Widen the range or use more bins."
        raise InvalidInputError(msg)
    difference = (t.values - b.values)[used]
    variance = (statistical + error.variances)[used]
    modes = error.deviations[:, used]
    along = modes @ (difference / variance)
    inner = np.eye(len(modes)) + (modes / variance) @ modes.T
    explained = float(along @ np.linalg.solve(inner, along))
    return ChiSquared(max(0.0, float(np.sum(difference**2 / variance)) - explained), n_bins - 1, n_bins)
