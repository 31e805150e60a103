r"""A risk that judges every ratio model alike, whatever it was trained with.

$$J(r) = \tfrac12\,\mathbb{E}_\mathrm{reference}[r^2] - \mathbb{E}_\mathrm{target}[r]
       = \tfrac12 \int q_\mathrm{reference}\,(r - r^*)^2\,dx + \text{const}$$

holds for weights of any sign, if `r` was not fitted to the events it is judged on. It is a distance only
where the reference density is nonnegative: elsewhere the integrand is negative, and a lower `J` is no
proof of a better model. Expectations are self-normalised, $\sum w f / \sum w$ per class, and their
standard errors those of the delta method, $\sum w^2 (f - \bar f)^2 / (\sum w)^2$.

With signed weights a ratio that is huge on one reference event of negative weight has a very low $J$. Where the
reference density is positive, weights $|w|\,a_0(x)$ with its sign asymmetry $a_0$ have the same expectations and no
such hole: give them as `judge_weights` (see `estimators.learned_signs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.metrics.arrays import FloatArray, checked_values, checked_weights, require_positive_sum

__all__ = ["RatioRisk", "ratio_risk", "ratio_risk_difference"]


@dataclass(frozen=True)
class RatioRisk:
    """A risk, or a difference of two, with its standard error.

    Args:
        value: The estimate.
        error: Its standard error.

    Example:
        >>> print(RatioRisk(value=-0.5123, error=0.0021))
        -0.51230 +- 0.00210
    """

    value: float
    error: float

    @property
    def significance(self) -> float:
        """The value in units of its error; zero where both vanish."""
        return 0.0 if self.value == 0 else float(np.divide(self.value, self.error))

    def __str__(self) -> str:
        return f"{self.value:.5f} +- {self.error:.5f}"


def ratio_risk(
    ratio_reference: npt.ArrayLike,
    weights_reference: npt.ArrayLike | None,
    ratio_target: npt.ArrayLike,
    weights_target: npt.ArrayLike | None,
    *,
    judge_weights: npt.ArrayLike | None = None,
) -> RatioRisk:
    r"""Return $J(r) = \mathbb{E}_\mathrm{reference}[r^2]/2 - \mathbb{E}_\mathrm{target}[r]$; lower is better.

    Args:
        ratio_reference: The model's ratio at the reference events.
        weights_reference: Signed weights of the reference events; `None` for all one.
        ratio_target: The model's ratio at the target events.
        weights_target: Signed weights of the target events.
        judge_weights: Weights of the reference events in $E[r^2]$, where others than `weights_reference`.

    Example:
        >>> ratio_risk([1.0, 1.0], None, [1.0, 1.0, 1.0], None).value  # r = 1 everywhere
        -0.5
    """
    at_reference = checked_values(ratio_reference, "ratios at the reference")
    at_target = checked_values(ratio_target, "ratios at the target")
    quadratic = weights_reference if judge_weights is None else judge_weights
    return _difference_of_means(at_reference**2 / 2, quadratic, at_target, weights_target)


def ratio_risk_difference(
    first: tuple[npt.ArrayLike, npt.ArrayLike],
    second: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    weights_reference: npt.ArrayLike | None = None,
    weights_target: npt.ArrayLike | None = None,
    judge_weights: npt.ArrayLike | None = None,
) -> RatioRisk:
    r"""Return $J(r_1) - J(r_2)$ of two models on the same events; negative where the first is better.

    The error is that of the paired difference: what the two models share does not enter it, so it can
    be far below the error of either risk.

    Args:
        first: The first model's ratios at the reference and at the target events.
        second: The second model's ratios at the same events.
        weights_reference: Signed weights of the reference events; all one when left out.
        weights_target: Signed weights of the target events.
        judge_weights: Weights of the reference events in $E[r^2]$, where others than `weights_reference`.

    Example:
        >>> ratio_risk_difference(([1.0, 1.0], [1.0, 1.0]), ([2.0, 2.0], [2.0, 2.0])).value
        -0.5
    """
    one, two = (
        (checked_values(pair[0], "ratios at the reference"), checked_values(pair[1], "ratios at the target"))
        for pair in (first, second)
    )
    for a, b, role in ((one[0], two[0], "reference"), (one[1], two[1], "target")):
        checked_values(b, f"ratios of the second model at the {role}", n_expected=len(a))
    quadratic = weights_reference if judge_weights is None else judge_weights
    return _difference_of_means((one[0] ** 2 - two[0] ** 2) / 2, quadratic, one[1] - two[1], weights_target)


def _difference_of_means(
    f_reference: FloatArray,
    weights_reference: npt.ArrayLike | None,
    f_target: FloatArray,
    weights_target: npt.ArrayLike | None,
) -> RatioRisk:
    mean_reference, variance_reference = _weighted_mean(f_reference, weights_reference, "reference")
    mean_target, variance_target = _weighted_mean(f_target, weights_target, "target")
    return RatioRisk(mean_reference - mean_target, float(np.sqrt(variance_reference + variance_target)))


def _weighted_mean(f: FloatArray, weights: npt.ArrayLike | None, role: str) -> tuple[float, float]:
    """Return the self-normalised mean and the square of its standard error."""
    w = checked_weights(weights, len(f), f"weights of the {role}")
    w = w / require_positive_sum(w, f"weights of the {role}")
    mean = float(w @ f)
    return mean, float(np.sum(np.square(w * (f - mean))))
