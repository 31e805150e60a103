r"""Densities that are never negative: regression of the coefficients of $|L^T(1, \delta)|^2$, $\delta = \theta - \theta_\mathrm{ref}$.

At the reference $\delta = 0$ the density is $L_{00}^2$, and is one exactly where that entry is: so the parameters are counted from the
reference, wherever it lies, and turned back by an affine map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import least_squares

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.mined_problems import MinedEvents, MinedProblem, exact_means, with_signs
from quasiratio.ratios.coefficient_model import AffineTerms, CoefficientModel
from quasiratio.ratios.square_model import SquareModel, square_terms
from quasiratio.training.mined_objectives import MinedRegression

if TYPE_CHECKING:
    from quasiratio.basis import PolynomialBasis
    from quasiratio.estimators.fitting import Fit
    from quasiratio.training.objectives import Objective

__all__ = ["SquareProblem", "reference_point", "square_problem"]

FloatArray = npt.NDArray[np.float64]
_CONSTANT = 1e-4
"""Spread over mean below which a term counts as constant."""
_SAME = 1e-6
_JITTERS = (1e-3, 1e-2, 1e-1)
"""Of the diagonal, where the mean matrix is singular: it is but the start of the training."""
_NOT_POSITIVE = (
    "Got coefficients whose mean is that of a density which is negative at some parameter values; method='positive' has "
    "densities that are positive at all of them, and cannot represent this one. Use method='regression' or 'sign-resolved', "
    "or give the terms of second order."
)


def reference_point(basis: PolynomialBasis, coefficients: FloatArray) -> FloatArray:
    r"""Return the point at which the density of every event is one, $\sum_k P_k(\theta_\mathrm{ref})\, c_k = 1$; zero where none is found.

    Example:
        >>> from quasiratio.basis import PolynomialBasis
        >>> basis = PolynomialBasis(["a"])
        >>> c = np.random.default_rng(0).normal(size=(100, 3))
        >>> reference_point(basis, c / (c @ basis([0.5]))[:, None]).round(6).tolist()
        [0.5]
    """
    zero = np.zeros(basis.n_parameters)
    if np.ptp(coefficients[:, 0]) <= _SAME * np.abs(coefficients[:, 0]).max():
        return zero
    size = np.abs(coefficients).max(axis=1, keepdims=True)
    size = np.where(size > 0, size, 1.0)
    # relative to its largest coefficient every event counts alike; what they say together is a triangular system
    rows = np.hstack([coefficients, np.ones_like(size)]) / size
    system: FloatArray = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
    direct = np.linalg.lstsq(system[:, :-1], system[:, -1], rcond=None)[0][1 : 1 + basis.n_parameters]

    def misfit(theta: FloatArray) -> FloatArray:
        return np.asarray(system[:, :-1] @ basis(theta) - system[:, -1])

    def slopes(theta: FloatArray) -> FloatArray:
        return np.asarray(system[:, :-1] @ basis.gradient(theta))

    for start in (zero, direct):
        theta = least_squares(misfit, start, jac=slopes, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        found = basis(theta)
        if np.all(np.abs(coefficients @ found - 1.0) <= _SAME * (np.abs(coefficients) @ np.abs(found))):
            return np.asarray(theta, dtype=np.float64)
    return zero


def square_problem(training: MinedEvents, terms: AffineTerms, *, is_positive: bool) -> SquareProblem:
    """Return what to minimise, in the terms of the square.

    Args:
        training: The training events.
        terms: How their coefficients follow from those of the square.
        is_positive: Whether the density of the reference is positive.
    """
    inverse: FloatArray = np.asarray(np.linalg.inv(terms.matrix), dtype=np.float64)
    absolute = np.abs(training.weights) / np.abs(training.weights).sum()
    values = training.targets @ inverse.T
    center = exact_means(values, absolute)
    spread = np.sqrt(absolute @ np.square(values - center))
    varies = spread > _CONSTANT * np.abs(center)
    return SquareProblem(
        training.weights, is_positive, terms, inverse, center, np.where(varies, spread, 1.0), not varies[0]
    )


@dataclass(frozen=True)
class SquareProblem(MinedProblem):
    r"""Regression of the coefficients of $|L^T(1, \delta)|^2$, which are never those of a negative density."""

    terms: AffineTerms
    """All terms from those of the square."""
    inverse: FloatArray
    """And back."""
    center: FloatArray
    spread: FloatArray
    """Of the terms of the square; one for the spread of a constant one."""
    fixed_first: bool
    """Whether the first of them is constant."""

    @cached_property
    def units(self) -> FloatArray:
        """Square root of the mean of the diagonal terms."""
        places = square_terms(_rows_of_square(len(self.center)))
        diagonal = np.array([mean for mean, (i, j) in zip(self.center, places, strict=True) if i == j])
        if np.any(diagonal <= 0):
            raise InvalidInputError(_NOT_POSITIVE)
        return np.asarray(np.sqrt(diagonal), dtype=np.float64)

    @property
    def objective(self) -> Objective:
        """Squares."""
        return MinedRegression(tuple((self.center / self.spread).tolist()), self.has_signs)

    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return standardised coefficients, and the sign of the weight behind them."""
        values = events.targets @ self.inverse.T
        return with_signs((values - self.center) / self.spread, events, has_signs=self.has_signs)

    def _mean_root(self) -> FloatArray:
        """Return the triangular root of the mean matrix."""
        size = len(self.units)
        matrix = np.zeros((size, size))
        for mean, (i, j) in zip(self.center, square_terms(size), strict=True):
            matrix[i, j] = matrix[j, i] = (mean if i == j else 0.5 * mean) / (self.units[i] * self.units[j])
        if np.linalg.eigvalsh(matrix)[0] < -_JITTERS[0]:
            raise InvalidInputError(_NOT_POSITIVE)
        for jitter in _JITTERS:
            try:
                return np.asarray(np.linalg.cholesky(matrix + jitter * np.eye(size) * (np.arange(size) > 0)))
            except np.linalg.LinAlgError:
                continue
        raise InvalidInputError(_NOT_POSITIVE)

    def model(self, fit: Fit) -> CoefficientModel:
        """Make a network that says the triangular root of the mean matrix."""
        lower = self._mean_root()
        entries = lower[np.tril_indices(len(lower))][1 if self.fixed_first else 0 :].tolist()
        start = entries + ([self.start_log_odds] if self.has_signs else [])
        network = fit.network(len(start), start=torch.tensor(start, dtype=torch.float32))
        return SquareModel(
            fit.scaling,
            network,
            fit.n_members,
            self.terms,
            self.floor,
            units=self.units,
            center=self.center,
            spread=self.spread,
            fixed_first=self.fixed_first,
            has_signs=self.has_signs,
        ).to(fit.device)


def _rows_of_square(n_terms: int) -> int:
    return round((float(np.sqrt(8 * n_terms + 1)) - 1) / 2)
