r"""Densities that are polynomials of parameters: monomials, and the coefficients of each event from its weights.

A differential cross-section that depends on parameters $\theta$ (Wilson coefficients, say) through amplitudes is

$$d\sigma(x \mid \theta) = \sum_k P_k(\theta)\, d\sigma_k(x),$$

with the monomials $P_k$ up to an order: two for squared amplitudes that are linear in $\theta$. Monomials stand, everywhere,
by degree and then by the order of the parameters: $1;\ a;\ b;\ a^2;\ ab;\ b^2$ for two parameters at second order.

Generators store the weight $w_p$ of an event at several points $\theta_p$. Since
$w_p = w_\mathrm{ref} \sum_k P_k(\theta_p)\, c_k$, the joint coefficients $c_k$ of the event follow from a linear system, the
same one for all events.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.solved_weights import SolvedWeights, require_finite_weights, require_reference
from quasiratio.wording import shortened

__all__ = ["PolynomialBasis", "polynomial_text"]

FloatArray = npt.NDArray[np.float64]
Theta = npt.ArrayLike | Mapping[str, float]

_RANK_TOLERANCE = 1e-10
_SHOWN_DIRECTIONS = 4
_CHUNK = 2**16
_LARGEST_ORDER, _MOST_TERMS = 64, 100_000


@dataclass(frozen=True)
class PolynomialBasis:
    r"""The monomials $P_k(\theta)$ of named parameters up to an order.

    Args:
        parameters: Names of the parameters.
        order: Highest degree: 2 for squared amplitudes with one insertion, 1 for a linear truncation.

    Example:
        >>> basis = PolynomialBasis(["C_H", "C_uH"], order=2)
        >>> basis.terms
        ('1', 'C_H', 'C_uH', 'C_H^2', 'C_H*C_uH', 'C_uH^2')
        >>> basis([2.0, 3.0]).tolist()
        [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
        >>> basis({"C_H": 2.0})[:3].tolist()  # parameters that are not named are zero
        [1.0, 2.0, 0.0]
    """

    parameters: tuple[str, ...]
    order: int = 2

    def __init__(self, parameters: Sequence[str], order: int = 2) -> None:
        names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
        if not names or not all(names) or len(set(names)) < len(names):
            msg = f"Got the parameters {list(names)}; expected one or more different names, such as ['C_H', 'C_uH']."
            raise InvalidInputError(msg)
        if int(order) != order or order < 1:
            msg = f"Got order = {order!r}; expected a positive whole number: 1 for a linear truncation, 2 with squares."
            raise InvalidInputError(msg)
        if order > _LARGEST_ORDER or math.comb(len(names) + int(order), int(order)) > _MOST_TERMS:
            msg = (
                f"Got order = {shortened(str(order))} for {len(names)} parameters; expected at most {_LARGEST_ORDER} and at most "
                f"{_MOST_TERMS:,} terms. Weights that are squares of amplitudes have the order 2."
            )
            raise InvalidInputError(msg)
        object.__setattr__(self, "parameters", names)
        object.__setattr__(self, "order", int(order))

    @cached_property
    def exponents(self) -> npt.NDArray[np.int64]:
        """Power of each parameter in each term, `(n_terms, n_parameters)`."""
        rows = []
        for degree in range(self.order + 1):
            for factors in itertools.combinations_with_replacement(range(self.n_parameters), degree):
                rows.append(np.bincount(factors, minlength=self.n_parameters) if factors else self._no_power)
        return np.array(rows, dtype=np.int64)

    @property
    def _no_power(self) -> npt.NDArray[np.int64]:
        return np.zeros(self.n_parameters, dtype=np.int64)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Names of the monomials, in their order."""
        return tuple(self._term(row) for row in self.exponents)

    def _term(self, powers: npt.NDArray[np.int64]) -> str:
        factors = [
            name if power == 1 else f"{name}^{power}"
            for name, power in zip(self.parameters, powers, strict=True)
            if power
        ]
        return "*".join(factors) or "1"

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def n_terms(self) -> int:
        """Number of monomials, binomial(n_parameters + order, order)."""
        return math.comb(self.n_parameters + self.order, self.order)

    def points(self, theta: Any) -> FloatArray:  # noqa: ANN401 - numbers, names with numbers, or a sequence of either
        """Return one point, `(n_parameters,)`, or several, `(n, n_parameters)`, of numbers or of named values."""
        if isinstance(theta, Mapping):
            return self._named_point(theta)
        is_sequence = isinstance(theta, Sequence) and not isinstance(theta, str)
        if is_sequence and len(theta) and all(isinstance(point, Mapping) for point in theta):
            return np.stack([self._named_point(point) for point in theta])
        try:
            values = np.asarray(theta, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim == 0 and self.n_parameters == 1:
            values = values[None]
        if (
            values.ndim not in (1, 2)
            or values.shape[-1] != self.n_parameters
            or not np.all(np.isfinite(values))
        ):
            msg = (
                f"Got the parameter values {_shown(theta)}; expected finite numbers for {', '.join(self.parameters)}, in this "
                "order, or a mapping of names to numbers."
            )
            raise InvalidInputError(msg)
        return values

    def _named_point(self, values: Mapping[str, float]) -> FloatArray:
        unknown = [str(name) for name in values if name not in self.parameters]
        if unknown:
            msg = f"Got a value of {', '.join(unknown)}; expected names out of {', '.join(self.parameters)}."
            raise InvalidInputError(msg)
        return self.points([values.get(name, 0.0) for name in self.parameters])

    def __call__(self, theta: Any) -> FloatArray:  # noqa: ANN401
        """Return the monomials at one point, `(n_terms,)`, or at several, `(n, n_terms)`."""
        points = self.points(theta)
        values = np.ones((*points.shape[:-1], self.n_terms))
        for column in range(self.n_parameters):
            powers = points[..., column, None] ** np.arange(self.order + 1)
            values *= powers[..., self.exponents[:, column]]
        return values

    def gradient(self, theta: Any) -> FloatArray:  # noqa: ANN401
        r"""Return $\partial P_k / \partial \theta_a$ at one point, `(n_terms, n_parameters)`.

        Example:
            >>> PolynomialBasis(["a", "b"]).gradient([2.0, 3.0])[:, 0].tolist()
            [0.0, 1.0, 0.0, 4.0, 3.0, 0.0]
        """
        point = self.points(theta)
        if point.ndim != 1:
            msg = f"Got {len(point)} points; expected one. Ask for the gradient point by point."
            raise InvalidInputError(msg)
        columns = []
        for a in range(self.n_parameters):
            lowered = self.exponents.copy()
            lowered[:, a] = np.maximum(lowered[:, a] - 1, 0)
            columns.append(self.exponents[:, a] * np.prod(point**lowered, axis=1))
        return np.stack(columns, axis=1)

    def recentred(self, theta: Any) -> FloatArray:  # noqa: ANN401
        r"""Return the matrix that turns coefficients of $\theta$ into those of $\theta - \theta_0$, the same polynomial.

        Example:
            >>> PolynomialBasis(["a"]).recentred([2.0]).tolist()  # (a - 2)^2 has the coefficients 4, -4, 1
            [[1.0, 2.0, 4.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]
        """
        point, powers = self.points(theta), self.exponents
        matrix = np.ones((self.n_terms, self.n_terms))
        for a in range(self.n_parameters):
            counts = [
                [math.comb(k, j) * point[a] ** max(k - j, 0) for k in powers[:, a]] for j in powers[:, a]
            ]
            matrix *= np.array(counts)
        return matrix

    def solve(
        self,
        points: Any,  # noqa: ANN401
        weights: npt.ArrayLike,
        reference: Any = None,  # noqa: ANN401
        *,
        reference_weights: npt.ArrayLike | None = None,
    ) -> SolvedWeights:
        r"""Return the coefficients of every event from its weights at several points.

        The least-squares solution of $w_p = w_\mathrm{ref} \sum_k P_k(\theta_p)\, c_k$, exact with as many points as terms.

        Args:
            points: `(p, n_parameters)` values, or a sequence of mappings of names to values.
            weights: `(n, p)` weights of the events at these points.
            reference: The point of the reference, whose weight is $w_\mathrm{ref} = \sum_k P_k(\theta_\mathrm{ref})\, w_k$;
                by default all parameters zero, the Standard Model.
            reference_weights: `(n,)` weights of a reference that is no point of this polynomial, instead.

        Raises:
            InvalidInputError: The points do not determine all terms (the message names what is missing), a weight is not a
                finite number, or the reference weight of an event vanishes beside its others.

        Example:
            >>> basis = PolynomialBasis(["C"], order=2)
            >>> solved = basis.solve([[0.0], [1.0], [-1.0]], [[2.0, 8.0, 0.0]])
            >>> solved.coefficients.round(12).tolist(), solved.reference_weights.round(12).tolist()
            ([[1.0, 2.0, 1.0]], [2.0])
        """
        values = self.points(points)
        values = values[None] if values.ndim == 1 else values
        design = self(values)
        rank, condition = self._require_full_rank(design)
        matrix = np.asarray(weights)
        if matrix.ndim != 2 or matrix.shape[1] != len(design):
            msg = (
                f"Got weights of the shape {matrix.shape} for {len(design)} points; expected one row per event and one "
                "column per point, in the order of the points."
            )
            raise InvalidInputError(msg)
        require_finite_weights(matrix)
        scale = np.abs(design).max(axis=0)
        inverse = np.linalg.pinv(design / scale) / scale[:, None]
        n_events = len(matrix)
        coefficients, residual = np.empty((n_events, self.n_terms)), np.empty(n_events)
        largest = np.empty(n_events)
        for start in range(0, n_events, _CHUNK):
            rows = slice(start, start + _CHUNK)
            given = matrix[rows].astype(np.float64)
            coefficients[rows] = given @ inverse.T
            largest[rows] = np.abs(given).max(axis=1)
            misfit = np.abs(coefficients[rows] @ design.T - given).max(axis=1)
            residual[rows] = np.divide(
                misfit, largest[rows], out=np.zeros_like(misfit), where=largest[rows] > 0
            )
        if reference_weights is None:
            at_reference = self(np.zeros(self.n_parameters) if reference is None else reference)
            if at_reference.ndim != 1:
                msg = f"Got {len(at_reference)} reference points; expected one."
                raise InvalidInputError(msg)
            divisor, reference_row = coefficients @ at_reference, at_reference @ inverse
            name = f"at {self._point_text(reference)}"
        else:
            divisor, name = np.array(reference_weights, dtype=np.float64), "that was given"
            reference_row = np.zeros(len(design))
            if divisor.shape != (n_events,):
                msg = f"Got reference weights of the shape {divisor.shape} for {n_events} events; expected one per event."
                raise InvalidInputError(msg)
        require_reference(divisor, largest, name=name)
        coefficients /= divisor[:, None]
        return SolvedWeights(coefficients, divisor, residual, condition, rank, inverse, reference_row, values)

    def _point_text(self, theta: Any) -> str:  # noqa: ANN401
        point = np.zeros(self.n_parameters) if theta is None else self.points(theta)
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.parameters, point, strict=True))

    def missing_directions(self, points: Any) -> list[str]:  # noqa: ANN401
        """Return the polynomials that vanish at all points, which weights there say nothing about.

        Example:
            >>> PolynomialBasis(["a", "b"]).missing_directions([[0, 0], [1, 0], [2, 0], [0, 1], [0, 2]])
            ['a*b']
        """
        values = self.points(points)
        return self._null_polynomials(self(values[None] if values.ndim == 1 else values))

    def _require_full_rank(self, design: FloatArray) -> tuple[int, float]:
        scale = np.abs(design).max(axis=0)
        singular = np.linalg.svd(design / np.where(scale > 0, scale, 1.0), compute_uv=False)
        rank = int(np.sum(singular > _RANK_TOLERANCE * max(1.0, singular[0])))
        if rank < self.n_terms:
            missing = self._null_polynomials(design)
            shown = "; ".join(missing[:_SHOWN_DIRECTIONS]) + (
                " and others" if len(missing) > _SHOWN_DIRECTIONS else ""
            )
            msg = (
                f"Got {len(design)} points, which determine {rank} of the {self.n_terms} terms of order {self.order} in "
                f"{', '.join(self.parameters)}; expected points that determine all. At every point this vanishes, so that "
                f"nothing is known of it: {shown}. Add points where it does not, or take a lower order."
            )
            raise InvalidInputError(msg)
        return rank, float(singular[0] / singular[-1])

    def _null_polynomials(self, design: FloatArray) -> list[str]:
        """Return the polynomials of the null space, in reduced form, so that each has few terms."""
        scale = np.abs(design).max(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        _, singular, rows = np.linalg.svd(design / scale)
        rank = int(np.sum(singular > _RANK_TOLERANCE * max(1.0, singular[0])))
        null = _reduced_rows(rows[rank:, ::-1])[:, ::-1] / scale
        return [polynomial_text(row, self.terms) for row in null]

    def _topcoffea_order(self) -> npt.NDArray[np.int64]:
        """Return, for each place in the lower triangle over (1, c1, c2, ...), the number of our term."""
        if self.order != 2:
            msg = f"Got a basis of order {self.order}; topcoffea's lower triangle has order 2."
            raise InvalidInputError(msg)
        number = {tuple(row): index for index, row in enumerate(self.exponents)}
        units = [self._no_power, *np.eye(self.n_parameters, dtype=np.int64)]
        return np.array(
            [number[tuple(units[i] + units[j])] for i in range(len(units)) for j in range(i + 1)],
            dtype=np.int64,
        )

    def from_topcoffea(self, coefficients: npt.ArrayLike) -> FloatArray:
        """Reorder coefficients from the lower triangle over (1, c1, c2, ...): SM, c1, c1^2, c2, c1 c2, c2^2, ...

        Example:
            >>> PolynomialBasis(["a", "b"]).from_topcoffea([0, 1, 3, 2, 4, 5]).tolist()
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        """
        given = self._checked_coefficients(coefficients)
        result = np.empty_like(given)
        result[..., self._topcoffea_order()] = given
        return result

    def to_topcoffea(self, coefficients: npt.ArrayLike) -> FloatArray:
        """Reorder coefficients to the lower triangle over (1, c1, c2, ...)."""
        return self._checked_coefficients(coefficients)[..., self._topcoffea_order()]

    @cached_property
    def _factorials(self) -> FloatArray:
        return np.array(
            [math.prod(math.factorial(int(p)) for p in row) for row in self.exponents], dtype=np.float64
        )

    def from_derivatives(self, derivatives: npt.ArrayLike) -> FloatArray:
        r"""Turn derivatives at the origin, in our order of terms, into coefficients: divide by $\prod_a e_a!$.

        At second order that is the factor 1/2 of the diagonal.

        Example:
            >>> PolynomialBasis(["a", "b"]).from_derivatives([1, 1, 1, 2, 1, 2]).tolist()
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        return self._checked_coefficients(derivatives) / self._factorials

    def to_derivatives(self, coefficients: npt.ArrayLike) -> FloatArray:
        """Return the derivatives at the origin of polynomials with these coefficients."""
        return self._checked_coefficients(coefficients) * self._factorials

    def _checked_coefficients(self, coefficients: npt.ArrayLike) -> FloatArray:
        given = np.asarray(coefficients, dtype=np.float64)
        if given.ndim == 0 or given.shape[-1] != self.n_terms:
            msg = (
                f"Got coefficients of the shape {given.shape}; expected {self.n_terms} in the last axis, one for each of "
                f"{', '.join(self.terms[:6])}{', ...' if self.n_terms > 6 else ''}."
            )
            raise InvalidInputError(msg)
        return given


def _reduced_rows(rows: FloatArray) -> FloatArray:
    """Bring rows to reduced echelon form, pivots by size, so that each has many zeros."""
    reduced = rows.copy()
    pivot_row = 0
    for column in range(reduced.shape[1]):
        if pivot_row == len(reduced):
            break
        best = pivot_row + int(np.argmax(np.abs(reduced[pivot_row:, column])))
        if abs(reduced[best, column]) < 1e-8:
            continue
        reduced[[pivot_row, best]] = reduced[[best, pivot_row]]
        reduced[pivot_row] /= reduced[pivot_row, column]
        for other in range(len(reduced)):
            if other != pivot_row:
                reduced[other] -= reduced[other, column] * reduced[pivot_row]
        pivot_row += 1
    reduced[np.abs(reduced) < 1e-8] = 0.0
    return reduced


def polynomial_text(row: FloatArray, terms: Sequence[str]) -> str:
    """Return a polynomial for people, the highest term first and with the factor one."""
    row = row / row[np.flatnonzero(row)[-1]]
    parts: list[str] = []
    for index in np.flatnonzero(np.abs(row) > 1e-9)[::-1]:
        size = "" if abs(abs(row[index]) - 1.0) < 1e-9 and terms[index] != "1" else f"{abs(row[index]):.4g}"
        sign = "-" if row[index] < 0 else "+"
        body = size if terms[index] == "1" else f"{size}{'*' if size else ''}{terms[index]}"
        parts.append(f"{sign} {body}" if parts else (f"-{body}" if sign == "-" else body))
    return " ".join(parts)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
