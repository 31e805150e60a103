r"""The error that a training leaves in a histogram, from the members of an ensemble.

A network that turns signed weights into positive ones, $v_i = |w_i|\,\hat a(x_i)$ with the sign asymmetry
$a(x) = E[\mathrm{sign}\,w \mid x]$, has learned $\hat a$ from a finite sample. Write the content of a bin as

$$B_b = \sum_{i \in b} |w_i|\,a(x_i) + \sum_{i \in b} |w_i|\,(\hat a - a)(x_i).$$

The first sum fluctuates with the places of the events; its variance is $\sum v_i^2$. To first order the second
is a sum over the *training* events $j$, $\sum_j h_b(x_j)\,|w_j|\,(\mathrm{sign}\,w_j - a(x_j))$, where $h_b$ is
the bin as the network sees it, smoothed. Given the places, signs scatter independently around $a$, so that the
two sums are uncorrelated, whether the events of the histogram were trained on or not:

$$C_{bc} = \delta_{bc} \sum_{i \in b} v_i^2 + T_{bc}, \qquad
  T_{bc} = \sum_j w_j^2\,(1 - a_j^2)\,h_b(x_j)\,h_c(x_j).$$

Members that were trained on bootstraps of the training events scatter by exactly this $T$. For a network
that resolves the bins, $h_b$ is one inside and zero outside, and $C$ that of the signed weights, $\sum w_i^2$: all that
is gained is gained by smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values
from quasiratio.metrics.chi_squared import ChiSquared
from quasiratio.metrics.histogram import WeightedHistogram, weighted_histogram

__all__ = ["HistogramBand", "histogram_band"]


@dataclass(frozen=True, eq=False)
class HistogramBand:
    r"""A histogram with the error of its events and that of the training behind its weights.

    Attributes:
        histogram: The histogram, with $\sum v^2$ as its variances.
        member_values: Contents of the bins with the weights of each member, `(n_members, n_bins)`.
        member_totals: Sum of the weights of each member, in and outside the bins.
    """

    histogram: WeightedHistogram
    member_values: FloatArray
    member_totals: FloatArray

    @property
    def n_members(self) -> int:
        """Members whose scatter is the error of the training."""
        return len(self.member_totals)

    @property
    def statistical_error(self) -> FloatArray:
        r"""Error of the events of the histogram, $\sqrt{\sum v^2}$ in each bin."""
        return np.sqrt(self.histogram.variances)

    @property
    def training_error(self) -> FloatArray:
        """Error of the training in each bin: the standard deviation of the members' contents."""
        return np.asarray(np.std(self.member_values, axis=0, ddof=1))

    @property
    def total_error(self) -> FloatArray:
        """Both errors in quadrature: what to draw, and to compare with other samples."""
        return np.hypot(self.statistical_error, self.training_error)

    @property
    def effective_events(self) -> FloatArray:
        r"""Events of weight one that know the content of each bin as well, $(B_b / \sigma_b)^2$; zero if empty."""
        error = self.total_error
        return np.square(np.divide(self.histogram.values, error, out=np.zeros_like(error), where=error > 0))

    @property
    def covariance(self) -> FloatArray:
        r"""The covariance $C$ of the contents, with $T$ as the members scatter; shrunk by nothing."""
        return np.diag(self.histogram.variances) + _member_covariance(self.member_values)

    def chi_squared(self, target: WeightedHistogram) -> ChiSquared:
        r"""Compare the shape with that of a sample that took no part in the training.

        $$\chi^2 = d^\top C^{-1} d, \qquad d_b = B_b / W_B - t_b / W_t,$$

        where $W$ are the sums over the whole samples and $C$ has the statistical variances of both and the
        covariance $T$ of the members' shapes $B_{mb} / W_m$. From $K$ members a correlation is known to about
        $1/\sqrt{K - 1}$, and $T$ has at most $K - 1$ directions while errors have more: correlations
        are therefore shrunk by this factor. Where members are not averaged linearly or an estimate is cut off at zero,
        $B$ is not the mean of the members; the square of the difference joins the variance.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> x, edges = rng.normal(size=10_000), np.linspace(-2, 2, 9)
            >>> tilts = np.exp(0.1 * rng.normal(size=(8, 1)) * x)  # what each member makes of the weights
            >>> band = histogram_band(x, np.exp(0.1 * x), tilts, edges=edges)
            >>> exact = weighted_histogram(rng.normal(size=40_000), edges=edges)
            >>> from quasiratio.metrics import chi_squared
            >>> chi_squared(band.histogram, exact).value > 3, band.chi_squared(exact).value < 2
            (True, True)
        """
        if not np.array_equal(target.edges, self.histogram.edges):
            msg = (
                f"Got a target of {target.n_bins} bins for a histogram of {self.histogram.n_bins}, or with other edges; "
                "expected the same edges."
            )
            raise InvalidInputError(msg)
        mine, other = self.histogram.normalized(), target.normalized()
        shapes = self.member_values / self.member_totals[:, None]
        training = _member_covariance(shapes)
        spread = np.diag(training)
        shrink = 1.0 / np.sqrt(self.n_members - 1)
        variances = (
            mine.variances + other.variances + shrink * spread + np.square(mine.values - shapes.mean(axis=0))
        )
        used = variances + spread > 0
        n_bins = int(np.count_nonzero(used))
        if n_bins < 2:
            msg = f"Got {n_bins} bins with events; expected at least two. Widen the range or use more bins."
            raise InvalidInputError(msg)
        difference = (mine.values - other.values)[used]
        covariance = np.diag(variances[used]) + (1.0 - shrink) * training[np.ix_(used, used)]
        return ChiSquared(float(difference @ np.linalg.solve(covariance, difference)), n_bins - 1, n_bins)


def histogram_band(
    values: npt.ArrayLike,
    weights: npt.ArrayLike,
    member_weights: npt.ArrayLike,
    *,
    edges: npt.ArrayLike,
) -> HistogramBand:
    """Fill a histogram, and the same with the weights of each member.

    Args:
        values: One value per event.
        weights: The weights in use.
        member_weights: The weights of each member, `(n_members, n)`, with two members or more.
        edges: Increasing edges of the bins.

    Example:
        >>> band = histogram_band([0.2, 0.7, 1.5], [1.0, 1.0, 2.0], [[1, 1, 1.5], [1, 1, 2.5]], edges=[0, 1, 2])
        >>> band.statistical_error.round(3).tolist(), band.training_error.round(3).tolist()
        ([1.414, 2.0], [0.0, 0.707])
    """
    members = np.asarray(member_weights, dtype=np.float64)
    n_values = len(checked_values(values, "values"))
    if members.ndim != 2 or members.shape[0] < 2 or members.shape[1] != n_values:
        msg = (
            f"Got weights of members of shape {members.shape} for {n_values} values; expected one row for each of at "
            "least two members, and one column per value."
        )
        raise InvalidInputError(msg)
    filled = [weighted_histogram(values, row, edges=edges) for row in members]
    return HistogramBand(
        weighted_histogram(values, weights, edges=edges),
        np.array([histogram.values for histogram in filled]),
        np.array([histogram.sum_of_weights for histogram in filled]),
    )


def _member_covariance(member_values: FloatArray) -> FloatArray:
    """Return the covariance across members, also for a single bin."""
    centred = member_values - member_values.mean(axis=0)
    return np.asarray(centred.T @ centred / (len(member_values) - 1))
