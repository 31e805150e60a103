"""Several samples, each a known mixture of the terms, over one reference: the linear system, what to minimise, the rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.basis import PolynomialBasis, polynomial_text
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.mined_problems import MinedEvents, MinedProblem, with_signs
from quasiratio.ratios.coefficient_model import AffineTerms, CoefficientModel, TargetClass
from quasiratio.ratios.polynomial import RegressionModel, SignClassesModel
from quasiratio.sample import WeightedSample
from quasiratio.training.mined_objectives import MinedCrossEntropy, PointsRegression
from quasiratio.wording import first_of

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.estimators.fitting import Fit
    from quasiratio.training.objectives import Objective

__all__ = [
    "PointsClasses",
    "PointsLsif",
    "checked_samples",
    "points_problem",
    "rates_of_samples",
    "solved_mixing",
]

FloatArray = npt.NDArray[np.float64]
_RANK_TOLERANCE = 1e-9


def checked_samples(
    reference: Any,  # noqa: ANN401 - what `sample_of` takes
    samples: Sequence[Any],
    sample_of: Callable[[Any], WeightedSample],
) -> list[WeightedSample]:
    """Return the reference and the samples, if all have the same features and weights to learn from."""
    if isinstance(samples, WeightedSample | Mapping | str) or hasattr(samples, "columns"):
        msg = f"Got samples of the type {type(samples).__name__}; expected a list of samples, [sample, ...], also of a single one."
        raise InvalidInputError(msg)
    found = [sample_of(sample) for sample in (reference, *samples)]
    first = found[0]
    for number, sample in enumerate(found):
        role = f"sample {number}" if number else "the reference"
        if sample.fill != first.fill:
            msg = f"Got the fills {dict(sample.fill)} in {role} and {dict(first.fill)} in the reference; expected the same."
            raise InvalidInputError(msg)
        if sample.names != first.names:
            msg = (
                f"Got the features {list(sample.names)} in {role} and {list(first.names)} in the reference; "
                "expected the same names in the same order."
            )
            raise InvalidInputError(msg)
        if number and not sample.weights.any():
            msg = f"Got no weight in {role}; expected events with weights. Leave it out of the samples, or check its weights."
            raise InvalidInputError(msg)
    first.require_positive_sum("reference")
    return found


def _rows(values: npt.ArrayLike, what: str, basis: PolynomialBasis) -> FloatArray:
    """Return rows of a mixing, if they are numbers."""
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.full(1, np.nan)
    if not np.all(np.isfinite(rows)):
        msg = (
            f"Got a {what} that is no array of finite numbers; expected one for each of the terms {first_of(basis.terms, 6)}, as "
            "`basis(theta)` gives them."
        )
        raise InvalidInputError(msg)
    return rows


def solved_mixing(
    basis: PolynomialBasis, mixing: npt.ArrayLike, n_samples: int, reference_mixing: npt.ArrayLike | None
) -> AffineTerms:
    """Solve for the terms: rho = A f + b, with the relation of the reference imposed."""
    rows = _rows(mixing, "mixing", basis)
    if rows.shape != (n_samples, basis.n_terms) or not n_samples:
        msg = (
            f"Got a mixing of the shape {rows.shape} for {n_samples} samples; expected one row per sample and one finite number for each "
            f"of the {basis.n_terms} terms."
        )
        raise InvalidInputError(msg)
    particular, null = np.zeros(basis.n_terms), np.eye(basis.n_terms)
    if reference_mixing is not None:
        row = _rows(reference_mixing, "reference_mixing", basis)
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
        direction = np.where(np.abs(unknown) > 1e-6 * np.abs(unknown).max(), unknown, 0.0)
        advice = (
            ""
            if reference_mixing is not None
            else ", or give reference_mixing where the reference is itself a mixture"
        )
        msg = (
            f"Got {n_samples} samples, which determine {rank} of the {null.shape[1]} unknown combinations of terms; expected all. Nothing is "
            f"known of the direction {polynomial_text(direction, basis.terms)}. Add samples where it contributes{advice}."
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


@dataclass(frozen=True)
class PointsLsif(MinedProblem):
    r"""LSIF of several samples over one reference.

    Weights are in units of the sum of the reference's; functions are in units of $\sum |w_s| / \sum w_\mathrm{ref}$.
    """

    totals: FloatArray
    """Sum of weights of each sample over that of the reference."""
    scales: FloatArray
    """Sum of absolute weights of each sample over the sum of the reference's weights."""
    terms: AffineTerms
    knows_values = False

    @property
    def objective(self) -> Objective:
        """LSIF of all samples."""
        return PointsRegression(len(self.totals), self.has_signs)

    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return the number of the sample, and the sign of the weight."""
        return with_signs(events.targets[:, :1], events, has_signs=self.has_signs)

    def pool_weights(self, events: MinedEvents, weights: Tensor) -> Tensor:
        """Normalise the reference to one and each sample to its total in its own units."""
        numbers = torch.from_numpy(events.targets[:, 0].astype(np.int64)).to(weights.device)
        own = torch.from_numpy(events.weights).to(weights.device)
        result = torch.zeros_like(weights)
        for number in range(len(self.totals) + 1):
            is_here = numbers == number
            absolute = own[is_here].abs().sum()
            if number == 0:  # |w| with the learned sign has the sum of the signed weights
                result[:, is_here] = weights[:, is_here].abs() * (1.0 / (absolute * self.mean_asymmetry))
            else:
                result[:, is_here] = weights[:, is_here] * (1.0 / absolute)
        return (result * len(events)).float()

    def model(self, fit: Fit) -> CoefficientModel:
        """Make a network that says the totals."""
        start = (self.totals / self.scales).tolist() + ([self.start_log_odds] if self.has_signs else [])
        network = fit.network(len(start), start=torch.tensor(start))
        return RegressionModel(
            fit.scaling,
            network,
            fit.n_members,
            self.terms,
            self.floor,
            center=np.zeros(len(self.scales)),
            spread=self.scales,
            has_signs=self.has_signs,
        ).to(fit.device)


@dataclass(frozen=True)
class PointsClasses(MinedProblem):
    """One softmax over (sample, sign), all with absolute weights."""

    scales: FloatArray
    """Sum of absolute weights of each sample over the sum of the reference's absolute weights."""
    shares: FloatArray
    """Share of negative weights of each sample, by |w|."""
    terms: AffineTerms
    knows_values = False

    @cached_property
    def classes(self) -> tuple[TargetClass, ...]:
        """The classes that carry weight, the reference first."""
        reference = [TargetClass(-1, 1)] + ([TargetClass(-1, -1)] if self.has_signs else [])
        others = [
            TargetClass(function, sign)
            for function, negative in enumerate(self.shares)
            for sign, share in ((1, 1.0 - negative), (-1, negative))
            if share > 0
        ]
        return (*reference, *others)

    @property
    def objective(self) -> Objective:
        """Cross-entropy."""
        return MinedCrossEntropy()

    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return one for the class of the event, zero for the others."""
        number = {part: index for index, part in enumerate(self.classes)}
        result = np.zeros((len(events), len(self.classes)), dtype=np.float32)
        functions = events.targets[:, 0].astype(np.int64) - 1
        for part, index in number.items():
            is_negative = events.weights < 0
            has_other = part._replace(sign=-part.sign) in number
            right_sign = (is_negative == (part.sign < 0)) if has_other else np.ones(len(events), dtype=bool)
            result[(functions == part.function) & right_sign, index] = 1.0
        return result

    def pool_weights(self, events: MinedEvents, weights: Tensor) -> Tensor:
        """Give the reference and each sample the same sum of absolute weights."""
        numbers = torch.from_numpy(events.targets[:, 0].astype(np.int64)).to(weights.device)
        own = torch.from_numpy(np.abs(events.weights)).to(weights.device)
        result = torch.zeros_like(weights)
        n_parts = len(self.scales) + 1
        for number in range(n_parts):
            is_here = numbers == number
            result[:, is_here] = weights[:, is_here].abs() * (len(events) / n_parts / own[is_here].sum())
        return result.float()

    def model(self, fit: Fit) -> CoefficientModel:
        """Make a network that says the shares."""
        negative = 0.5 * (1.0 - self.mean_asymmetry)
        start = [
            (share if sign < 0 else 1.0 - share)
            for (function, sign) in self.classes
            for share in [negative if function < 0 else float(self.shares[function])]
        ]
        network = fit.network(len(start), start=torch.tensor(start).log())
        return SignClassesModel(
            fit.scaling,
            network,
            fit.n_members,
            self.terms,
            self.floor,
            classes=self.classes,
            scales=1.0 / self.scales,
        ).to(fit.device)
