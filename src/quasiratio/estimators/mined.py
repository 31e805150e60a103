"""What the estimators of mined events share: checks of the input, splits, training, calibration and the check of the fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators.fingerprint import DataFingerprint, data_fingerprint
from quasiratio.estimators.fitting import available_device
from quasiratio.estimators.hyperparameters import FittedNetworkDocument, NetworkEstimator, NetworkParameters
from quasiratio.estimators.mined_check import MinedCheck, MinedCheckDocument, check_mined
from quasiratio.estimators.mined_problems import (
    MinedEvents,
    MinedProblem,
    RegressionProblem,
    SignClassesProblem,
    free_terms,
    train_mined,
)
from quasiratio.estimators.persistent import Arrays, FittedDocument, StoredParts
from quasiratio.estimators.single_model import training_stages
from quasiratio.estimators.square_problem import square_problem
from quasiratio.estimators.training_data import checked_features, event_weights
from quasiratio.estimators.trials import (
    TrialReport,
    TrialReportDocument,
    best_of_trials,
)
from quasiratio.estimators.weight_warnings import warn_about_sample
from quasiratio.model_files.document import Document, TensorSpec, refuse_if
from quasiratio.ratios.coefficient_model import AffineTerms, CoefficientModel
from quasiratio.ratios.polynomial import AnyCoefficientDocument, stored_coefficient_model
from quasiratio.sample import WeightedSample
from quasiratio.training import TrainingHistory
from quasiratio.training.history import HistoryDocument
from quasiratio.training.standard import mined_settings
from quasiratio.wording import first_of

__all__ = ["CHECK_SHARE", "MinedDocument", "MinedEstimator", "MinedParameters", "Rate", "split_groups"]

FloatArray = npt.NDArray[np.float64]
CHECK_SHARE = 0.5
"""Events that check a fit, over those that validate it."""
_SHOWN = 5


class Rate(NamedTuple):
    """A ratio of cross-sections and its statistical error."""

    value: float
    error: float


class MinedParameters(NetworkParameters):
    """Parameters of `MinedEstimator`."""

    reference_density: Literal["positive", "any"]


class MinedDocument(FittedNetworkDocument):
    """A fitted `MinedEstimator`."""

    model: AnyCoefficientDocument
    history: HistoryDocument
    trials: TrialReportDocument
    check: MinedCheckDocument

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.model.scaling.n_features != self.features.count, "the model has another number of features"
        )
        return self

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from self.model.tensors(prefix)
        yield from self.history.tensors(f"{prefix}history.")
        n_terms, n_members = self.model.n_terms, self.model.n_members
        yield f"{prefix}means", TensorSpec("float64", (n_terms,))
        yield f"{prefix}means_covariance", TensorSpec("float64", (n_terms, n_terms))
        yield f"{prefix}learned_means", TensorSpec("float64", (n_terms,))
        if n_members > 1:
            yield f"{prefix}member_means", TensorSpec("float64", (n_members, n_terms))


@dataclass(eq=False, repr=False, kw_only=True)
class MinedEstimator(NetworkEstimator):
    r"""Base of the estimators that learn from what is known of each reference event.

    Takes the hyperparameters of `NetworkEstimator`; by default trainings on values that events bring along are three times as long as
    others, with a third of the decay, and classifiers of one function of fewer than 17,000 events longer still
    (`single_function_length`).

    Args:
        reference_density: `"positive"`, so that with weights of both signs the learned sign asymmetry is kept above a quarter of
            its mean and no ratio has a pole; or `"any"` sign.

    Attributes:
        model_: The trained `CoefficientModel`.
        history_: `TrainingHistory`.
        trials_: `TrialReport`: how long and how strongly it was trained, and what else was tried.
        fit_check_: `MinedCheck`: what the functions explain, from events that took no part in the fit.
        means_: Weighted means of the coefficients over the reference: the rates of the terms.
        means_covariance_: Their statistical covariance.
        learned_means_: Weighted means of the learned functions over the same events.
        member_means_: The same of each member.
        seed_: The seed in use.
        fingerprint_: `DataFingerprint` of the reference events.
    """

    reference_density: Literal["positive", "any"] = "positive"

    parameters_type: ClassVar[type[Document]] = MinedParameters
    fitted_type: ClassVar[type[FittedDocument]] = MinedDocument
    has_noisy_labels: ClassVar[bool] = False

    def checked_method(self, method: str, choices: Sequence[str]) -> str:
        """Return the method, if it and the stated sign of the reference are known."""
        for name, value, allowed in (
            ("method", method, choices),
            ("reference_density", self.reference_density, ("positive", "any")),
        ):
            if value not in allowed:
                msg = f"Got {name} = {value!r}; expected one of {', '.join(allowed)}."
                raise InvalidInputError(msg)
        return method

    def learn(
        self,
        X: Any,  # noqa: ANN401
        mined: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        *,
        method: str,
        terms: Sequence[str],
    ) -> None:
        """Learn the functions of all terms from the coefficients of reference events."""
        features = checked_features(self, X, reset=True)
        weights = event_weights(X, sample_weight, len(features))
        coefficients = _checked_coefficients(mined, len(features), terms)
        WeightedSample(np.zeros(len(features)), weights).require_positive_sum("reference")
        self.checked_settings(len(features))
        warn_about_sample(weights, features.shape[1], "reference", look_at="fit_check_")
        self.seed_: int = self.new_seed()
        self.fingerprint_: DataFingerprint = data_fingerprint(self.feature_list(), features, None, weights)
        events = MinedEvents(features, np.zeros(len(features), dtype=bool), weights, coefficients)
        fraction = self.held_out_fraction(len(events))
        groups = (weights < 0).astype(np.int64)
        parts = split_groups(groups, (fraction, CHECK_SHARE * fraction), np.random.default_rng(self.seed_))
        training, held_out, aside = (events.select(part) for part in parts)
        WeightedSample(np.zeros(len(training)), training.weights).require_positive_sum("training reference")
        self.means_, self.means_covariance_ = _weighted_means(coefficients, weights)
        self.require_means(self.means_)
        problem = self._problem(method, training)
        if problem is None:
            msg = (
                f"Got coefficients that are all constant on the reference ({first_of(terms, 6)}), so that there is nothing to learn; expected "
                "some that vary. Check whether they are those of this sample, and whether they were filled in."
            )
            raise InvalidInputError(msg)
        self.train_problem(problem, training, held_out)
        self.calibrate(features, coefficients, weights)
        peak = self.history_.peak_fraction
        learned = self.model_.predict(aside.features).coefficients
        self.fit_check_: MinedCheck = check_mined(
            learned, aside.targets, aside.weights, terms, peak_fraction=peak
        )
        if self.fit_check_.status == "failed":
            warnings.warn(str(self.fit_check_), UntrustworthyFitWarning, stacklevel=3)

    def require_means(self, means: FloatArray) -> None:
        """Raise where a fit would be of no use with these means of the coefficients; before anything is trained."""

    def square_terms(self, coefficients: FloatArray) -> AffineTerms:
        """Return how all terms follow from those of a sum of squares; for method `"positive"`."""
        n_terms = coefficients.shape[1]
        return AffineTerms(np.eye(n_terms), np.zeros(n_terms))

    def _problem(self, method: str, training: MinedEvents) -> MinedProblem | None:
        free = free_terms(training.targets, training.weights)
        if not len(free.learned):
            return None
        is_positive = self.reference_density == "positive"
        if method == "regression":
            return RegressionProblem(training.weights, is_positive, free)
        if method == "sign-resolved":
            return SignClassesProblem(training.weights, is_positive, free, training.targets)
        return square_problem(training, self.square_terms(training.targets), is_positive=is_positive)

    def train_problem(self, problem: MinedProblem, training: MinedEvents, held_out: MinedEvents) -> None:
        """Train the networks of a problem, with the standard settings and with what is tried beside them."""
        fit = self.prepared_fit(training, held_out, self.seed_)
        if problem.knows_values:
            fit.settings, *fit.trials = mined_settings(
                fit.settings,
                len(training),
                fixed_decay=self.weight_decay is not None,
                length=problem.length(len(training)),
                is_classifier=problem.is_classifier,
            )
        best, trials = best_of_trials(fit, partial(train_mined, problem=problem))
        self.trials_: TrialReport = trials
        self.model_: CoefficientModel = cast(Any, best.model)
        self.history_: TrainingHistory = best.history

    def calibrate(
        self, features: FeatureMatrix, coefficients: FloatArray | None, weights: FloatArray
    ) -> None:
        """Shift the functions so that their means over the reference are those of the coefficients.

        A sum of squares cannot be shifted and stay one; its own means are kept, and ratios are normalised by them.
        """
        predicted = self.model_.predict(features, members=self.model_.n_members > 1)
        normalised = weights / weights.sum()
        means = normalised @ predicted.coefficients
        if coefficients is not None and self.model_.can_shift:
            varies = self.model_.matrix.any(dim=1).cpu().numpy()
            shift = np.where(varies, self.means_ - means, 0.0)
            self.model_.shift(shift)
            means = means + shift
            predicted = predicted._replace(members=predicted.members + shift)
        self.learned_means_: FloatArray = means
        self.member_means_: FloatArray = np.einsum("n,mnk->mk", normalised, predicted.members)

    def fitted_fields(self) -> dict[str, Any]:
        """Add the model, its history and the reports."""
        return {
            **super().fitted_fields(),
            "model": self.model_.document(),
            "history": self.history_.document(),
            "trials": self.trials_.document(),
            "check": self.fit_check_.document(),
        }

    def fitted_tensors(self, prefix: str = "") -> Arrays:
        """Return weights, training curves and means."""
        tensors = {
            **self.model_.tensors(prefix),
            **self.history_.tensors(f"{prefix}history."),
            f"{prefix}means": self.means_,
            f"{prefix}means_covariance": self.means_covariance_,
            f"{prefix}learned_means": self.learned_means_,
        }
        return tensors | ({f"{prefix}member_means": self.member_means_} if self.model_.n_members > 1 else {})

    def fitted_times(self, prefix: str = "") -> dict[str, list[float]]:
        """Return the wall-clock of the training."""
        return {f"{prefix}history.": self.history_.seconds}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the model and what belongs to it, as a fit does."""
        super().restore(document, stored)
        bundle, _, prefix = stored
        device = available_device(document.parameters.device)
        self.model_ = stored_coefficient_model(document.model, bundle.tensors, prefix, device=device)
        self.history_ = TrainingHistory.stored(document.history, bundle, f"{prefix}history.")
        self.trials_ = cast(TrialReport, TrialReport.stored(document.trials))
        self.fit_check_ = MinedCheck.stored(document.check)
        self.means_ = np.array(bundle.tensors[f"{prefix}means"])
        self.means_covariance_ = np.array(bundle.tensors[f"{prefix}means_covariance"])
        self.learned_means_ = np.array(bundle.tensors[f"{prefix}learned_means"])
        empty = np.empty((0, document.model.n_terms))
        self.member_means_ = np.array(bundle.tensors.get(f"{prefix}member_means", empty))

    def training_summary(self) -> dict[str, Any]:
        """Return stages, members and seed."""
        return {
            "stages": training_stages(self.history_),
            "members": self.model_.n_members,
            "seed": self.seed_,
        }


def split_groups(
    groups: npt.NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    """Split off random fractions, alike in every group; the first part is what is left for training.

    Example:
        >>> parts = split_groups(np.zeros(100, dtype=np.int64), (0.1, 0.05), np.random.default_rng(0))
        >>> [len(part) for part in parts]
        [85, 10, 5]
    """
    if not 0 < fractions[0] < 1:
        msg = f"Got validation_fraction = {fractions[0]}; expected a number between 0 and 1."
        raise InvalidInputError(msg)
    part_of = np.zeros(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        members = rng.permutation(np.flatnonzero(groups == group))
        start = 0
        for number, fraction in enumerate(fractions, start=1):
            left = len(members) - start - 1
            n_taken = max(0, min(max(number == 1, round(fraction * len(members))), left))
            part_of[members[start : start + n_taken]] = number
            start += n_taken
    return [np.flatnonzero(part_of == number) for number in range(len(fractions) + 1)]


def _checked_coefficients(mined: npt.ArrayLike, n_events: int, terms: Sequence[str]) -> FloatArray:
    values = np.array(mined, dtype=np.float64)
    if len(terms) == 1 and values.shape == (n_events,):
        values = values[:, None]
    if values.shape != (n_events, len(terms)):
        expected = f"({n_events}, {len(terms)})" if len(terms) > 1 else f"({n_events},)"
        msg = (
            f"Got coefficients of the shape {values.shape} for {n_events} events; expected {expected}, for the terms "
            f"{', '.join(terms[:6])}{', ...' if len(terms) > 6 else ''}."
        )
        raise InvalidInputError(msg)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        shown = ", ".join(str(number) for number in bad[:_SHOWN])
        msg = (
            f"Got {len(bad)} of {n_events} events with a coefficient that is not a finite number, such as number {shown}; "
            "expected finite numbers. Leave these events out knowing what is lost; nothing is filled in."
        )
        raise InvalidInputError(msg)
    return values


def _weighted_means(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weighted means and their statistical covariance."""
    normalised = weights / weights.sum()
    means: FloatArray = normalised @ values
    covariance = np.zeros((values.shape[1], values.shape[1]))
    for start in range(0, len(values), 2**16):
        rows = slice(start, start + 2**16)
        scaled = normalised[rows, None] * (values[rows] - means)
        covariance += scaled.T @ scaled
    return means, covariance
