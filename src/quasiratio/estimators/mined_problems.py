r"""What is trained from the joint coefficients of events, one class for each method.

A problem turns events into targets and weights of the training loop, and makes the model. On reference events
$E[c_k(x, z) \mid x] = \rho_k(x)$, whatever the signs, because marginalisation over the hidden $z$ is linear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.estimators.trials import Trained
from quasiratio.ratios.coefficient_model import AffineTerms, CoefficientModel, TargetClass, TrainingView
from quasiratio.ratios.polynomial import RegressionModel, SignClassesModel
from quasiratio.training import Pool
from quasiratio.training.mined_objectives import MinedCrossEntropy, MinedRegression
from quasiratio.training.standard import single_function_length

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.estimators.fitting import Fit
    from quasiratio.training.objectives import Objective

__all__ = [
    "FreeTerms",
    "MinedEvents",
    "MinedProblem",
    "RegressionProblem",
    "SignClassesProblem",
    "exact_means",
    "free_terms",
    "train_mined",
    "with_signs",
]

FloatArray = npt.NDArray[np.float64]
_CONSTANT = 1e-4
"""Spread over mean, or residual over spread, below which a term counts as constant, or as known from the others."""
_CHUNK = 2**16
_FLOOR_SHARE = 0.25
_LARGEST_FLOOR = 0.9
_LARGEST_SHARE = 2.0
"""No conditional mean exceeds the largest value there is, which is more than the largest of the training events: 1.7 times, at
parton level."""


@dataclass(frozen=True)
class MinedEvents(LabelledEvents):
    """Events that bring along what is to be learned, `(n, n_targets)`; labels say which are not of the reference."""

    targets: FloatArray

    def select(self, index: npt.NDArray[Any]) -> MinedEvents:
        """Return the events of a mask or of an index array."""
        return MinedEvents(self.features[index], self.labels[index], self.weights[index], self.targets[index])


@dataclass(frozen=True)
class FreeTerms:
    """Which coefficients are learned, and how the others follow from them.

    Attributes:
        learned: Numbers of the terms that are learned.
        terms: All terms from the learned ones.
        center: Weighted mean of the learned terms, with |w|.
        spread: Their weighted standard deviation.
    """

    learned: npt.NDArray[np.int64]
    terms: AffineTerms
    center: FloatArray
    spread: FloatArray


def free_terms(coefficients: FloatArray, weights: FloatArray) -> FreeTerms:
    """Find the terms that are constant on the reference, or linear functions of others, and impose what was found.

    Example:
        >>> c = np.random.default_rng(0).normal(size=(1000, 1))
        >>> found = free_terms(np.hstack([np.ones((1000, 1)), c, 2.0 + 3.0 * c]), np.ones(1000))
        >>> found.learned.tolist(), found.terms.matrix.round(6).tolist(), found.terms.offset.round(6).tolist()
        ([1], [[0.0], [1.0], [3.0]], [1.0, 0.0, 2.0])
    """
    absolute = np.abs(weights) / np.abs(weights).sum()
    mean = exact_means(coefficients, absolute)
    n_terms = len(mean)
    covariance = np.zeros((n_terms, n_terms))
    for start in range(0, len(coefficients), _CHUNK):
        rows = slice(start, start + _CHUNK)
        centred = coefficients[rows] - mean
        covariance += (centred * absolute[rows, None]).T @ centred
    spread = np.sqrt(np.diag(covariance))
    varies = spread > _CONSTANT * np.abs(mean)
    matrix, offset = np.zeros((n_terms, n_terms)), np.where(varies, 0.0, mean)
    correlation = covariance / np.outer(np.where(varies, spread, 1.0), np.where(varies, spread, 1.0))
    learned: list[int] = []
    left = correlation.copy()
    for _ in range(n_terms):
        rest = np.where(varies, np.diag(left), 0.0)
        rest[learned] = 0.0
        # of terms that vary alike the first is learned
        best = int(np.argmax(rest > 0.999 * rest.max())) if rest.max() > _CONSTANT**2 else -1
        if best < 0:
            break
        learned.append(best)
        left = left - np.outer(left[:, best], left[best]) / left[best, best]
    learned.sort()
    chosen = np.array(learned, dtype=np.int64)
    for term in np.flatnonzero(varies):
        if term in learned:
            matrix[term, term] = 1.0
            continue
        slopes = np.linalg.solve(correlation[np.ix_(chosen, chosen)], correlation[chosen, term])
        matrix[term, chosen] = slopes * spread[term] / spread[chosen]
        offset[term] = mean[term] - matrix[term, chosen] @ mean[chosen]
    return FreeTerms(chosen, AffineTerms(matrix[:, chosen], offset), mean[chosen], spread[chosen])


def exact_means(values: FloatArray, shares: FloatArray) -> FloatArray:
    """Return means that are exact where all values are the same, also in the last digit.

    Example:
        >>> float(exact_means(np.full((3, 1), 0.1), np.full(3, 1 / 3))[0])
        0.1
    """
    means: FloatArray = shares @ values
    is_same = values.min(axis=0) == values.max(axis=0)
    return np.where(is_same, values[0], means)


@dataclass(frozen=True)
class MinedProblem(ABC):
    """One way to learn from mined events.

    Args:
        weights: Signed weights of the training reference.
        is_positive: Whether its density is positive, so that the sign asymmetry is capped from below.
    """

    weights: FloatArray
    is_positive: bool
    knows_values: ClassVar[bool] = True
    """Whether an event brings the value to be learned, and not only the number of its sample."""
    is_classifier: ClassVar[bool] = False
    """Whether the risk grows but linearly with the values."""

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """What is minimised."""

    @abstractmethod
    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return what the objective compares with, `(n, n_targets)`."""

    @abstractmethod
    def model(self, fit: Fit) -> CoefficientModel:
        """Make the model, at a start that says the means."""

    def length(self, n_events: int) -> float:  # noqa: ARG002
        """Return how much longer than other mined events to train, and with how much more decay."""
        return 1.0

    def pool_weights(self, events: MinedEvents, weights: Tensor) -> Tensor:  # noqa: ARG002
        """Return positive weights with mean one, `(n_members, n)`."""
        absolute = weights.abs()
        return (absolute / absolute.mean(dim=1, keepdim=True)).float()

    @property
    def has_signs(self) -> bool:
        """Whether the reference has weights of both signs."""
        return bool(np.any(self.weights < 0))

    @property
    def mean_asymmetry(self) -> float:
        """Sum of weights over sum of absolute weights."""
        return float(self.weights.sum() / np.abs(self.weights).sum())

    @property
    def floor(self) -> float | None:
        """The smallest sign asymmetry of the reference: a quarter of the mean one."""
        is_capped = self.has_signs and self.is_positive
        return min(_LARGEST_FLOOR, _FLOOR_SHARE * self.mean_asymmetry) if is_capped else None

    @property
    def start_log_odds(self) -> float:
        """The logarithm of the odds of a negative weight, over all events."""
        return float(np.log((1.0 - self.mean_asymmetry) / (1.0 + self.mean_asymmetry)))


@dataclass(frozen=True)
class RegressionProblem(MinedProblem):
    r"""Minimise $E_\mathrm{ref} \sum_k (f_k - c_k)^2/\sigma_k^2$ over the learned terms."""

    free: FreeTerms

    @property
    def objective(self) -> Objective:
        """Squares."""
        return MinedRegression(tuple((self.free.center / self.free.spread).tolist()), self.has_signs)

    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return standardised coefficients, and the sign of the weight behind them."""
        standardised = (events.targets[:, self.free.learned] - self.free.center) / self.free.spread
        return with_signs(standardised, events, has_signs=self.has_signs)

    def model(self, fit: Fit) -> CoefficientModel:
        """Make a network that says the means."""
        start = [0.0] * len(self.free.learned) + ([self.start_log_odds] if self.has_signs else [])
        network = fit.network(len(start), start=torch.tensor(start))
        return RegressionModel(
            fit.scaling,
            network,
            fit.n_members,
            self.free.terms,
            self.floor,
            center=self.free.center,
            spread=self.free.spread,
            has_signs=self.has_signs,
        ).to(fit.device)


@dataclass(frozen=True)
class SignClassesProblem(MinedProblem):
    r"""One softmax over $1 + 2K$ classes, $E_\mathrm{ref}[-\ln\pi_0 - \sum_k a_k (c_k^+ \ln\pi_{k+} + c_k^- \ln\pi_{k-})]$."""

    free: FreeTerms
    coefficients: FloatArray
    """Of the training events."""
    is_classifier: ClassVar[bool] = True

    @cached_property
    def _shares(self) -> FloatArray:
        """Mean positive and negative part of each learned coefficient times the weight, `(2, n_functions)`."""
        absolute = np.abs(self.weights) / np.abs(self.weights).sum()
        values = self.coefficients[:, self.free.learned] * np.where(self.weights < 0, -1.0, 1.0)[:, None]
        return np.stack([absolute @ np.maximum(values, 0.0), absolute @ np.maximum(-values, 0.0)])

    @cached_property
    def classes(self) -> tuple[TargetClass, ...]:
        """The classes that carry weight, the reference first."""
        reference = [TargetClass(-1, 1)] + ([TargetClass(-1, -1)] if self.has_signs else [])
        others = [
            TargetClass(function, sign)
            for function in range(len(self.free.learned))
            for sign, share in ((1, self._shares[0, function]), (-1, self._shares[1, function]))
            if share > 0
        ]
        return (*reference, *others)

    @cached_property
    def scales(self) -> FloatArray:
        """Return a_k, one over the mean absolute coefficient."""
        return np.asarray(1.0 / self._shares.sum(axis=0), dtype=np.float64)

    @property
    def _largest(self) -> FloatArray:
        """What the share of each class behind the reference never exceeds: twice the largest that an event brings."""
        values = self.coefficients[:, self.free.learned] * np.where(self.weights < 0, -1.0, 1.0)[:, None]
        sides = _LARGEST_SHARE * np.stack([values.max(axis=0), (-values).max(axis=0)]) * self.scales
        return np.array([sides[0 if sign > 0 else 1, k] for k, sign in self.classes if k >= 0])

    def length(self, n_events: int) -> float:
        """Return more for one function of few events."""
        return single_function_length(n_events) if len(self.free.learned) == 1 else 1.0

    @property
    def objective(self) -> Objective:
        """Cross-entropy with several classes per event."""
        return MinedCrossEntropy()

    def targets(self, events: MinedEvents) -> npt.NDArray[np.float32]:
        """Return the share of every class, divided by their number so that the risk is of order one."""
        sign = np.where(events.weights < 0, -1.0, 1.0)
        values = events.targets[:, self.free.learned] * sign[:, None] * self.scales
        columns = [
            (sign == part.sign).astype(np.float64)
            if part.function < 0
            else np.maximum(part.sign * values[:, part.function], 0.0)
            for part in self.classes
        ]
        if not self.has_signs:
            columns[0] = np.ones(len(events))
        return (np.column_stack(columns) / (1 + len(self.free.learned))).astype(np.float32)

    def model(self, fit: Fit) -> CoefficientModel:
        """Make a network that says the mean shares."""
        negative = 0.5 * (1.0 - self.mean_asymmetry)
        start = []
        for function, sign in self.classes:
            if function < 0:
                start.append(1.0 - negative if sign > 0 else negative)
            else:
                start.append(float(self.scales[function] * self._shares[0 if sign > 0 else 1, function]))
        network = fit.network(len(start), start=torch.tensor(start).log())
        return SignClassesModel(
            fit.scaling,
            network,
            fit.n_members,
            self.free.terms,
            self.floor,
            classes=self.classes,
            scales=self.scales,
            largest=self._largest,
        ).to(fit.device)


def train_mined(fit: Fit, problem: MinedProblem) -> Trained:
    """Train the networks of all members with the settings of the fit."""
    pools = []
    held_out_weights = fit.tensor(fit.validation_events.weights)[None]
    for events, weights in (
        (fit.train_events, fit.member_weights),
        (fit.validation_events, held_out_weights),
    ):
        mined = cast(MinedEvents, events)
        pools.append(Pool(None, fit.tensor(problem.targets(mined)), problem.pool_weights(mined, weights)))
    model = problem.model(fit)
    trained = fit.train(TrainingView(model), problem.objective, pools[:1], pools[1:])
    return Trained(cast(Any, model), *trained)


def with_signs(values: FloatArray, events: MinedEvents, *, has_signs: bool) -> npt.NDArray[np.float32]:
    """Put the sign of the weight behind the values, where the reference has both."""
    if has_signs:
        values = np.column_stack([values, np.where(events.weights < 0, -1.0, 1.0)])
    return np.ascontiguousarray(values, dtype=np.float32)
