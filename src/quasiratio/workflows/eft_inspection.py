"""What the weights of a sample at several parameter points determine, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.basis import PolynomialBasis
from quasiratio.errors import InvalidInputError
from quasiratio.sample import effective_size
from quasiratio.workflows.eft_samples import EftSample

__all__ = ["EftAxis", "EftPoint", "InspectedEft", "chosen_points", "inspected", "point_label"]

FloatArray = npt.NDArray[np.float64]
_N_LARGEST = 5
_N_DRAWN = 4
_TOUCHES = 1e-6
"""Relative discriminant below which a parabola touches zero, as a perfect square does, and does not cross it."""
_ROUNDING_ERRORS = 3.0
"""What is below zero by less than so many errors of weights with 14 bits is not negative."""
_NEAR = 1e-4
_VANISHES = 1e-9
_UNCOVERED = 1000.0
"""Weight over that of the reference above which the reference hardly has the event."""
_CHUNK = 2**16


@dataclass(frozen=True)
class EftPoint:
    """What the weights at one point are like.

    Attributes:
        theta: The point, by name.
        rate: Cross-section relative to the reference.
        effective_size: Effective size of the weights there.
        negative_fraction: Share of the events with a negative weight, beyond what rounding explains.
        largest_share: Largest share of one event in the sum of absolute weights.
        largest_ratio: Largest absolute weight over that of the same event at the reference.
        n_uncovered: Events that have nearly no weight at the reference beside that here: `largest_ratio` above a thousand.
    """

    theta: dict[str, float]
    rate: float
    effective_size: float
    negative_fraction: float
    largest_share: float
    largest_ratio: float
    n_uncovered: int


@dataclass(frozen=True)
class EftAxis:
    """Where, along one parameter and with the others at the reference, the density of some event turns negative.

    Attributes:
        parameter: Its name.
        lowest: Lower end of the interval around the reference in which no event has a negative density.
        highest: Its upper end.
    """

    parameter: str
    lowest: float
    highest: float


@dataclass(frozen=True)
class InspectedEft:
    """A sample with weights at points, before anything is trained.

    Attributes:
        n_events: Events.
        n_weights: Points at which the file has weights; zero where it has coefficients.
        terms: Terms of the polynomial.
        rank: Terms that the points determine.
        condition_number: By how much relative errors of weights may grow.
        largest_residual: Of the least-squares solution, relative to the largest weight of the event.
        rounding_errors: Error of each coefficient, relative to its spread, if weights have 14 bits.
        points: Per point, the rate relative to the reference, effective size, and shares.
        axes: Per parameter, the interval in which no event has a negative density.
        means: Rate of each term.
        largest: Per term, the largest absolute coefficient.
        largest_events: Numbers of the events with the largest coefficients.
        vanishing: Terms that are zero in every event.
        n_same: Events whose weights are the same at all points, as those that were filled in are.
    """

    n_events: int
    n_weights: int
    terms: tuple[str, ...]
    rank: int
    condition_number: float
    largest_residual: float
    rounding_errors: tuple[float, ...]
    points: tuple[EftPoint, ...]
    axes: tuple[EftAxis, ...]
    means: tuple[float, ...]
    largest: tuple[float, ...]
    largest_events: tuple[int, ...]
    vanishing: tuple[str, ...]
    n_same: int

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        result = {name: getattr(self, name) for name in self.__dataclass_fields__}
        result["points"] = [vars(point) for point in self.points]
        result["axes"] = [vars(axis) for axis in self.axes]
        return result


def chosen_points(
    sample: EftSample, at: Sequence[Mapping[str, float]] | None, n_drawn: int | None = None, seed: int = 0
) -> FloatArray:
    """Return the points to look at: those that were asked for, else those of the file, else some that are drawn.

    Points are drawn uniformly from the box of the points of the file; where it has none, from the box in which each term of a
    parameter alone has the mean size of the reference.

    Args:
        sample: The sample.
        at: Points that were asked for.
        n_drawn: Draw so many, instead of the points of the file.
        seed: Of the drawn points.
    """
    basis = sample.basis
    if at:
        return basis.points(list(at)).reshape(-1, basis.n_parameters)
    if n_drawn is not None and n_drawn < 1:
        msg = f"Got {n_drawn} points to draw; expected at least one."
        raise InvalidInputError(msg)
    if n_drawn is None and len(sample.points):
        return sample.points
    if len(sample.points):
        low, high = sample.points.min(axis=0), sample.points.max(axis=0)
    else:
        size = np.average(np.abs(sample.coefficients), axis=0, weights=np.abs(sample.reference_weights))
        high = np.ones(basis.n_parameters)
        for number in range(basis.n_parameters):
            own = [
                size[k] ** (1.0 / row[number])
                for k, row in enumerate(basis.exponents)
                if row[number] == row.sum() > 0
            ]
            high[number] = 1.0 / max(own) if max(own) > 0 else 1.0
        low = -high
    return np.random.default_rng(seed).uniform(low, high, size=(n_drawn or _N_DRAWN, basis.n_parameters))


def point_label(basis: PolynomialBasis, theta: npt.ArrayLike) -> str:
    """Return names and values of a point, for people."""
    values = basis.points(theta)
    return ", ".join(f"{name} = {value:g}" for name, value in zip(basis.parameters, values, strict=True))


def inspected(sample: EftSample, points: FloatArray) -> InspectedEft:
    """Describe a sample that was read, with what it is like at these points."""
    basis, c, w = sample.basis, sample.coefficients, sample.reference_weights
    total = float(w.sum())
    means = w @ c / total
    spread = np.sqrt(np.abs(w @ np.square(c - means)) / total)
    rounding, n_same = np.zeros(basis.n_terms), 0
    if sample.solved is not None and sample.weights is not None:
        errors = np.sqrt(np.mean(np.square(sample.solved.rounding_error(sample.weights)), axis=0))
        rounding = np.divide(errors, spread, out=np.zeros_like(errors), where=spread > 1e-9 * np.abs(means))
        n_same = int(np.sum(np.ptp(sample.weights, axis=1) == 0)) if sample.weights.shape[1] > 1 else 0
    largest = np.abs(c).max(axis=0)
    order = np.argsort(np.max(np.abs(c) / np.maximum(np.abs(means), 1e-300), axis=1))[::-1]
    reference = basis.points(sample.reference)
    return InspectedEft(
        len(sample),
        len(sample.points),
        basis.terms,
        basis.n_terms if sample.solved is None else sample.solved.rank,
        float("nan") if sample.solved is None else sample.solved.condition_number,
        0.0 if sample.solved is None else float(sample.solved.residual.max()),
        tuple(rounding.tolist()),
        tuple(_points(sample, points)),
        tuple(_axis(sample, number, reference) for number in range(basis.n_parameters)),
        tuple(means.tolist()),
        tuple(largest.tolist()),
        tuple(int(number) for number in order[:_N_LARGEST]),
        tuple(t for t, size in zip(basis.terms, largest, strict=True) if size <= _VANISHES * largest.max()),
        n_same,
    )


def _errors(sample: EftSample, rows: FloatArray) -> FloatArray:
    """Return by how much rounding may have moved combinations of the coefficients of each event, `(n, n_rows)`."""
    if sample.solved is not None and sample.weights is not None:
        return sample.solved.intensity_error(sample.weights, rows)
    return np.asarray(_VANISHES * np.abs(sample.coefficients) @ np.abs(rows).T)


def _points(sample: EftSample, points: FloatArray) -> Iterator[EftPoint]:
    basis, w = sample.basis, sample.reference_weights
    for theta in points:
        monomials = basis(theta)
        intensities = sample.coefficients @ monomials
        weights = w * intensities
        absolute, ratios = np.abs(weights), np.abs(intensities)
        is_negative = weights < -_ROUNDING_ERRORS * np.abs(w) * _errors(sample, monomials[None])[:, 0]
        yield EftPoint(
            dict(zip(basis.parameters, theta.tolist(), strict=True)),
            float(weights.sum() / w.sum()),
            effective_size(weights),
            float(np.mean(is_negative)),
            float(absolute.max() / max(float(absolute.sum()), 1e-300)),
            float(ratios.max()),
            int(np.sum(ratios > _UNCOVERED)),
        )


def _axis(sample: EftSample, number: int, reference: FloatArray) -> EftAxis:
    """Return the largest interval around the reference in which every event has a nonnegative density."""
    basis, c = sample.basis, sample.coefficients
    steps = _powers_along(basis, number, reference)
    errors = _errors(sample, steps)
    lowest, highest = -np.inf, np.inf
    for start in range(0, len(c), _CHUNK):
        rows = slice(start, start + _CHUNK)
        roots = _crossings(c[rows] @ steps.T, errors[rows])
        lowest = max(lowest, float(roots[roots < 0].max(initial=-np.inf)))
        highest = min(highest, float(roots[roots > 0].min(initial=np.inf)))
    here = float(reference[number])
    return EftAxis(basis.parameters[number], here + lowest, here + highest)


def _powers_along(basis: PolynomialBasis, number: int, reference: FloatArray) -> FloatArray:
    """Return the matrix from coefficients to those of the powers of a step t along one parameter, `(order + 1, n_terms)`."""
    steps = np.cos(np.pi * (np.arange(basis.order + 1) + 0.5) / (basis.order + 1))
    along = np.tile(reference, (len(steps), 1))
    along[:, number] += steps
    matrix = np.linalg.solve(np.vander(steps, increasing=True), basis(along))
    return np.where(np.abs(matrix) < 1e-12 * np.abs(matrix).max(), 0.0, matrix)


def _crossings(powers: FloatArray, errors: FloatArray) -> FloatArray:
    """Return all steps at which the polynomial of some event, which is one at zero, changes its sign beyond its errors."""
    n_powers = powers.shape[1]
    if n_powers <= 3:
        constant, slope = powers[:, 0], powers[:, 1]
        square = powers[:, 2] if n_powers == 3 else np.zeros_like(slope)
        discriminant = slope**2 - 4.0 * square * constant
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(np.maximum(discriminant, 0.0))
            sign = np.where(slope < 0, -1.0, 1.0)
            first = -2.0 * constant / (slope + sign * root)  # stable form; also where there is no square
            second = np.where(square != 0, -(slope + sign * root) / (2.0 * square), np.inf)
        real = discriminant > _TOUCHES * (slope**2 + np.abs(4.0 * square * constant))
        if n_powers == 3:
            error = 4.0 * np.abs(constant) * errors[:, 2] + 4.0 * np.abs(square) * errors[:, 0]
            error += 2.0 * np.abs(slope) * errors[:, 1]
            real &= discriminant > _ROUNDING_ERRORS * error
        found = np.concatenate([first[real], second[real]])
        return np.asarray(found[np.isfinite(found)])
    # eigenvalues of the companion matrix of the reversed polynomial, whose leading coefficient is one: one over the roots
    companion = np.zeros((len(powers), n_powers - 1, n_powers - 1))
    companion[:, 0] = -powers[:, 1:] / powers[:, :1]
    companion[:, np.arange(1, n_powers - 1), np.arange(n_powers - 2)] = 1.0
    inverse = np.linalg.eigvals(companion)
    size = np.abs(companion[:, 0]).max(axis=1, keepdims=True)
    is_real = (np.abs(inverse.imag) <= _TOUCHES * np.abs(inverse)) & (np.abs(inverse) > 1e-12 * size)
    roots = 1.0 / np.where(is_real, inverse.real, np.nan)
    sides = [
        np.zeros_like(roots),
        np.zeros_like(roots),
    ]  # a root that is touched and not crossed has one sign around it
    for side, factor in zip(sides, (1.0 - _NEAR, 1.0 + _NEAR), strict=True):
        for power in reversed(range(n_powers)):
            side[...] = side * (factor * roots) + powers[:, power, None]
    return np.asarray(roots[(sides[0] * sides[1] < 0) & np.isfinite(roots)])
