"""Estimators that hold one ratio model: training, normalisation, support and prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import NegativeDensityWarning, SupportWarning
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.support import SupportDiagnostic, diagnose_support
from quasiratio.estimators.training_data import LabelledEvents, checked_features
from quasiratio.ratios import RatioModel
from quasiratio.ratios.ratio_model import RatioPredictions
from quasiratio.training import TrainingHistory
from quasiratio.wording import percent

__all__ = ["SingleModelRatio", "TrainedModel"]

FloatArray = npt.NDArray[np.float64]
_NOISE_EVENTS = 2048


class TrainedModel(NamedTuple):
    """What an estimator's training returns: the model and one history per stage."""

    model: RatioModel
    histories: tuple[TrainingHistory, ...]


@dataclass(eq=False, repr=False, kw_only=True)
class SingleModelRatio(RatioEstimator):
    """A ratio estimator with one trained model (of one or more members).

    Attributes:
        model_: The trained `RatioModel`.
        history_: `TrainingHistory` of the first stage.
        tuning_history_: `TrainingHistory` of the tuning stage, or `None`.
        diverged_: Whether the risk ran away in any stage.
        support_: `SupportDiagnostic`: how much target weight the reference cannot reach.
        log_features_: Names of the features that the model takes in logarithm.
    """

    @abstractmethod
    def _train(self, fit: Fit) -> TrainedModel:
        """Train a model on a prepared fit."""

    def _fit_events(self, training: LabelledEvents, held_out: LabelledEvents) -> None:
        fit = self._prepared(training, held_out, self.seed_)
        model, histories = self._train(fit)
        self.model_ = model.eval()
        self.history_ = histories[0]
        self.tuning_history_ = histories[1] if len(histories) > 1 else None
        self.diverged_ = any(bool(history.diverged.any()) for history in histories)
        uses_log = fit.scaling.uses_log.cpu().numpy()
        self.log_features_ = [name for name, is_log in zip(self._names(), uses_log, strict=True) if is_log]
        reference = training.select(~training.labels)
        self.model_.measure_noise(reference.features[:: max(1, len(reference) // _NOISE_EVENTS)])
        predictions = self.model_.predict(reference.features, members=self.n_members > 1)
        self._set_normalization(predictions, reference.weights)
        target = held_out.select(held_out.labels)
        self.support_ = self._diagnose_support(reference, predictions.ratio, target)

    def _predict(self, X: Any, *, members: bool) -> tuple[FloatArray, FloatArray]:  # noqa: ANN401
        check_is_fitted(self)
        features = checked_features(self, X, reset=False)
        self._warn_below_floor(features)
        predictions = self.model_.predict(features, members=members)
        _warn_nonpositive(predictions.n_nonpositive_reference, len(features))
        ratio = predictions.ratio * self.normalization_
        return ratio, predictions.members * self.member_normalizations_[: len(predictions.members), None]

    def _set_normalization(self, predictions: RatioPredictions, reference_weights: FloatArray) -> None:
        """Store the factors that make the weighted mean over the training reference one."""
        self.normalization_, self.member_normalizations_ = 1.0, np.ones(self.n_members)
        if not self.normalize:
            return
        rows = np.vstack([predictions.ratio[None], predictions.members])
        means = rows @ reference_weights / reference_weights.sum()
        if not np.all(np.isfinite(means) & (means > 0)):
            msg = (
                f"The mean ratio over the training reference is {means.min():.6g}, so it cannot be normalised "
                "to one; the ratio is left as it is. The fit has probably failed."
            )
            warnings.warn(msg, NegativeDensityWarning, stacklevel=3)
            return
        self.normalization_ = float(1.0 / means[0])
        self.member_normalizations_ = 1.0 / (means[1:] if self.n_members > 1 else means[:1])

    def _diagnose_support(
        self, reference: LabelledEvents, reference_ratio: FloatArray, target: LabelledEvents
    ) -> SupportDiagnostic:
        support = diagnose_support(
            self._names(),
            (reference.features, self.normalization_ * reference_ratio, reference.weights),
            (
                target.features,
                self.normalization_ * self.model_.predict(target.features).ratio,
                target.weights,
            ),
        )
        if support.warning:
            warnings.warn(support.warning, SupportWarning, stacklevel=3)
        return support

    def _warn_below_floor(self, features: npt.NDArray[np.float32]) -> None:
        if not self.log_features_:
            return
        device = self.model_.scaling.mean.device
        fractions = self.model_.scaling.below_floor(torch.from_numpy(features).to(device)).cpu().numpy()
        below = [f"{n!r} ({percent(f)})" for n, f in zip(self._names(), fractions, strict=True) if f > 0]
        if below:
            msg = (
                f"Some values of {', '.join(below)} lie below the smallest value of the training data, where "
                "the feature is taken in logarithm; the ratio at that smallest value is used."
            )
            warnings.warn(msg, SupportWarning, stacklevel=4)


def _warn_nonpositive(n_nonpositive: int, n_events: int) -> None:
    if n_nonpositive:
        msg = (
            f"The estimated reference density is zero or negative for {n_nonpositive} of {n_events} events "
            f"({100 * n_nonpositive / n_events:.2g}%); their ratio is returned as it comes out, and may be large."
        )
        warning = NegativeDensityWarning(msg)
        warning.n_events = n_nonpositive
        warnings.warn(warning, stacklevel=4)
