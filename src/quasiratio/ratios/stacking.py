r"""Linear stacking of ratios, in closed form.

The risk $J(r) = \frac12 E_0[r^2] - E_1[r]$ is quadratic in $r$, so for a stack $r = \sum_i a_i r_i$

$$J(a) = \tfrac12\, a^\top A\, a - b^\top a, \qquad A_{ij} = E_0[r_i r_j], \quad b_i = E_1[r_i].$$

Candidates are nearly alike, so $A$ is nearly singular; a small ridge pulls the weights towards their plain
mean, which is the safest stack of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["StackingProblem"]

FloatArray = npt.NDArray[np.float64]
_RIDGE = 1e-3


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
        [0.5, 0.5]
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

        The ridge is measured against the spread between the candidates, not against the ratios themselves:
        $\frac{\lambda}{2} |a - \bar a|^2$ with $\lambda = 10^{-3}\,\overline{E_0[(r_i - \bar r)^2]}$.
        """
        matrix, vector = self.quadratic()
        n_candidates = len(vector)
        centring = np.eye(n_candidates) - 1.0 / n_candidates
        spread = float(np.trace(centring @ matrix @ centring)) / n_candidates
        ridge = max(_RIDGE * spread, 1e-12 * float(np.trace(matrix)))
        mean = np.full(n_candidates, 1.0 / n_candidates)
        # Minimise on the hyperplane of unit sum, where every stack of normalised ratios is normalised.
        gradient = vector - matrix @ mean
        system = centring @ matrix @ centring + ridge * np.eye(n_candidates)
        step: FloatArray = centring @ np.linalg.solve(system, centring @ gradient)
        return mean + step

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
            identity = np.eye(len(self.reference))
            best = int(np.argmin([chosen_on.risk(candidate) for candidate in identity]))
            single.append(judged_on.risk(identity[best]))
        return float(np.mean(stacked)), float(np.mean(single))
