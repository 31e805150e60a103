r"""Linear stacking of ratios, in closed form.

The risk $J(r) = \frac12 E_0[r^2] - E_1[r]$ is quadratic in $r$, so for a stack $r = \sum_i a_i r_i$

$$J(a) = \tfrac12\, a^\top A\, a - b^\top a, \qquad A_{ij} = E_0[r_i r_j], \quad b_i = E_1[r_i].$$

Candidates are nearly alike, so $A$ is nearly singular; a ridge, as strong as the events are few, pulls the
weights towards the first candidate alone. There is no way to learn a better centre from the candidates
themselves: their errors share the fluctuations of the training data and are correlated, so that those that agree
with each other are not for that reason right. Candidates stand in the order in which they are trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["StackingProblem"]

FloatArray = npt.NDArray[np.float64]
_RIDGE = 1e-3
_SPREAD = 0.2


@dataclass(frozen=True)
class StackingProblem:
    """Ratios of several candidates on validation events, with signed weights.

    Args:
        reference: `(n_candidates, n_reference)` ratios of the reference events.
        reference_weights: Their signed weights.
        target: `(n_candidates, n_target)` ratios of the target events.
        target_weights: Their signed weights.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.uniform(0.5, 1.5, 4000)
        >>> noisy = truth + 0.1 * rng.normal(size=(2, 4000))
        >>> problem = StackingProblem(noisy, np.ones(4000), noisy, truth)
        >>> np.round(problem.weights(), 1).tolist()
        [0.8, 0.2]
    """

    reference: FloatArray
    reference_weights: FloatArray
    target: FloatArray
    target_weights: FloatArray

    def quadratic(self) -> tuple[FloatArray, FloatArray]:
        """Return the matrix and the vector of the quadratic risk."""
        weights = self.reference_weights / self.reference_weights.sum()
        matrix = (self.reference * weights) @ self.reference.T
        return matrix, self.target @ (self.target_weights / self.target_weights.sum())

    def weights(self) -> FloatArray:
        r"""Return the ridge-regularised minimum of $J(a)$, scaled to sum to one.

        The ridge is $\frac{\lambda}{2} |a - e_1|^2$ on the hyperplane of unit sum, where $J$ has the curvature $H$
        and the slope $g$ at the first candidate $e_1$. As in a regression, where $\mathrm{Cov}[g]$ is the noise
        variance times $H$, $\lambda = 25 \operatorname{tr} \mathrm{Cov}[g] / \operatorname{tr} H$ stands for weights
        that differ from it by about one fifth; candidates that the events cannot tell apart get nothing.
        """
        matrix, vector = self.quadratic()
        n_candidates = len(vector)
        centring = np.eye(n_candidates) - 1.0 / n_candidates
        first: FloatArray = np.eye(n_candidates)[0]
        curvatures, directions = np.linalg.eigh(centring @ matrix @ centring)
        # With signed weights and few events a curvature may come out negative: no minimum lies that way.
        is_curved = curvatures > 1e-12 * np.trace(matrix)
        curvatures, directions = curvatures[is_curved], directions[:, is_curved]
        if not is_curved.any():
            return first
        noise = self._slope_variance() / float(curvatures.sum())
        ridge = max(_RIDGE * float(curvatures.mean()), noise / _SPREAD**2)
        slopes = directions.T @ centring @ (vector - matrix @ first)
        step: FloatArray = centring @ directions @ (slopes / (curvatures + ridge))
        return first + step

    def best_single(self) -> int:
        """Return the candidate with the lowest risk; of those within two paired errors, the first."""
        risks = np.array([self.risk(candidate) for candidate in np.eye(len(self.reference))])
        lowest = int(np.argmin(risks))
        errors = np.sqrt(
            [
                _variance_of_means(0.5 * (r**2 - self.reference[lowest] ** 2)[None], self.reference_weights)
                + _variance_of_means((t - self.target[lowest])[None], self.target_weights)
                for r, t in zip(self.reference, self.target, strict=True)
            ]
        )
        is_tied = risks - risks[lowest] <= 2.0 * errors
        return int(np.argmax(is_tied))

    def _slope_variance(self) -> float:
        """Return the statistical variance of the slope at the plain mean, summed over the candidates."""
        mean = self.reference.mean(axis=0)
        at_reference = _variance_of_means((self.reference - mean) * mean, self.reference_weights)
        return at_reference + _variance_of_means(self.target - self.target.mean(axis=0), self.target_weights)

    def risk(self, weights: FloatArray) -> float:
        """Return the risk of the stack with these weights."""
        matrix, vector = self.quadratic()
        return float(0.5 * weights @ matrix @ weights - vector @ weights)

    def part(self, reference: npt.NDArray[np.bool_], target: npt.NDArray[np.bool_]) -> StackingProblem:
        """Return the problem on some of the events."""
        return StackingProblem(
            self.reference[:, reference],
            self.reference_weights[reference],
            self.target[:, target],
            self.target_weights[target],
        )

    def cross_validated(self, n_folds: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the risks of the stack and of the best single candidate, both chosen on other events."""
        reference_fold = rng.integers(n_folds, size=len(self.reference_weights))
        target_fold = rng.integers(n_folds, size=len(self.target_weights))
        stacked, single = [], []
        for fold in range(n_folds):
            chosen_on = self.part(reference_fold != fold, target_fold != fold)
            judged_on = self.part(reference_fold == fold, target_fold == fold)
            stacked.append(judged_on.risk(chosen_on.weights()))
            single.append(judged_on.risk(np.eye(len(self.reference))[chosen_on.best_single()]))
        return float(np.mean(stacked)), float(np.mean(single))


def _variance_of_means(rows: FloatArray, weights: FloatArray) -> float:
    """Return the variances of the weighted mean of each row, summed."""
    weights = weights / weights.sum()
    return float(np.sum(np.square((rows - (rows @ weights)[:, None]) * weights)))
