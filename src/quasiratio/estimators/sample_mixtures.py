"""Samples that are known mixtures of the terms: the linear system, what to minimise, and the rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quasiratio.basis import PolynomialBasis
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.mined_problems import MinedEvents, MinedProblem
from quasiratio.estimators.points_problems import PointsClasses, PointsLsif
from quasiratio.ratios.coefficient_model import AffineTerms
from quasiratio.sample import WeightedSample

__all__ = ["points_problem", "rates_of_samples", "solved_mixing"]

FloatArray = npt.NDArray[np.float64]
_RANK_TOLERANCE = 1e-9


def solved_mixing(
    basis: PolynomialBasis, mixing: npt.ArrayLike, n_samples: int, reference_mixing: npt.ArrayLike | None
) -> AffineTerms:
    """Solve for the terms: rho = A f + b, with the relation of the reference imposed."""
    rows = np.asarray(mixing, dtype=np.float64)
    if rows.shape != (n_samples, basis.n_terms) or not np.all(np.isfinite(rows)):
        msg = (
            f"Got a mixing of the shape {rows.shape} for {n_samples} samples; expected one row per sample and one finite number for each "
            f"of the {basis.n_terms} terms."
        )
        raise InvalidInputError(msg)
    particular, null = np.zeros(basis.n_terms), np.eye(basis.n_terms)
    if reference_mixing is not None:
        row = np.asarray(reference_mixing, dtype=np.float64)
        if row.shape != (basis.n_terms,) or not row.any():
            msg = f"Got a reference_mixing of the shape {row.shape}; expected {basis.n_terms} numbers, not all zero."
            raise InvalidInputError(msg)
        particular = row / (row @ row)
        null = np.linalg.svd(row[None])[2][1:].T
    system = rows @ null
    scale = np.abs(system).max(axis=0)
    singular = np.linalg.svd(system / np.where(scale > 0, scale, 1.0), compute_uv=False)
    rank = int(np.sum(singular > _RANK_TOLERANCE * max(float(singular.max(initial=0.0)), 1e-300)))
    if rank < null.shape[1]:
        unknown = np.linalg.svd(system)[2][-1] @ null.T
        shown = " + ".join(f"{v:.3g}*{t}" for v, t in zip(unknown, basis.terms, strict=True) if abs(v) > 1e-6)
        advice = (
            ""
            if reference_mixing is not None
            else ", or give reference_mixing where the reference is itself a mixture"
        )
        msg = (
            f"Got {n_samples} samples, which determine {rank} of the {null.shape[1]} unknown combinations of terms; expected all. Nothing is "
            f"known of the direction {shown.replace('+ -', '- ')}. Add samples where it contributes{advice}."
        )
        raise InvalidInputError(msg)
    inverse = null @ np.linalg.pinv(system)
    return AffineTerms(inverse, particular - inverse @ (rows @ particular))


def points_problem(
    method: str,
    training: MinedEvents,
    samples: Sequence[WeightedSample],
    terms: AffineTerms,
    *,
    is_positive: bool,
) -> MinedProblem:
    """Return what to minimise; `is_positive` where the density of the reference is."""
    reference = training.weights[training.targets[:, 0] == 0]
    totals = np.array([sample.sum_of_weights for sample in samples])
    absolute = np.array([float(np.abs(sample.weights).sum()) for sample in samples])
    if np.any(absolute == 0):
        msg = f"Got no weight in sample {int(np.argmin(absolute))}; expected events with weights. Leave it out of the samples."
        raise InvalidInputError(msg)
    if method == "regression":
        return PointsLsif(reference, is_positive, totals[1:] / totals[0], absolute[1:] / totals[0], terms)
    negative = 0.5 * (1.0 - totals / absolute)
    return PointsClasses(
        reference, is_positive, absolute[1:] / absolute[0], np.clip(negative[1:], 0.0, 1.0), terms
    )


def rates_of_samples(samples: Sequence[WeightedSample], terms: AffineTerms) -> tuple[FloatArray, FloatArray]:
    """Return the rates of the terms from the sums of weights, and their covariance."""
    total = samples[0].sum_of_weights
    rates = np.array([sample.sum_of_weights for sample in samples[1:]]) / total
    variances = np.array([float(np.square(sample.weights).sum()) for sample in samples]) / total**2
    covariance = np.diag(variances[1:]) + variances[0] * np.outer(rates, rates)
    return terms.matrix @ rates + terms.offset, terms.matrix @ covariance @ terms.matrix.T
