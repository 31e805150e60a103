r"""Negative weights made positive: one signed sample, the same expectations.

A network learns $g(x) = P(w > 0 \mid x)$ in the measure $|w|$. Since
$E[w \mid x] = E[|w| \mid x]\,(2 g(x) - 1)$, the weights $|w|\,(2g - 1)$ have the same expectation for every
observable that is a function of the features, and are positive wherever the density is.

The network shares the fluctuations of the events that it was trained on. An ensemble whose members saw bootstraps
of these events knows by how much: `PositiveReweighter.band` has the error of every bin, and
`quasiratio.metrics.HistogramBand` says why.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError, NegativeDensityWarning
from quasiratio.estimators.array_kinds import as_kind_of
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.persistent import PersistentEstimator
from quasiratio.estimators.positive_report import PositiveReport, training_variance
from quasiratio.estimators.training_data import (
    LabelledEvents,
    checked_features,
    event_weights,
    split_validation,
)
from quasiratio.estimators.trials import Trained, TrialReport, best_of_trials
from quasiratio.losses import Bce
from quasiratio.metrics.member_band import HistogramBand, histogram_band
from quasiratio.ratios import DirectModel
from quasiratio.sample import WeightedSample
from quasiratio.training import Pool, RatioObjective, TrainingHistory
from quasiratio.wording import percent

__all__ = ["PositiveReport", "PositiveReweighter", "Resampled"]

FloatArray = npt.NDArray[np.float64]
_SIGNIFICANCE = 3.0


class Resampled(NamedTuple):
    """Events that were kept, and their new weights."""

    kept: npt.NDArray[np.int64]
    weights: FloatArray


@dataclass(eq=False, repr=False)
class PositiveReweighter(PersistentEstimator, NetworkEstimator):
    r"""Signed weights to nonnegative ones, $w \to |w|\,(2 g(x) - 1)$, with the same expectations.

    Takes the hyperparameters of `NetworkEstimator` as well. Expectations of observables that depend on more
    than the features given here are not protected: give all that matter.

    Args:
        on_negative_density: Where the density itself is (significantly) negative no weight can be positive:
            `"keep-sign"` leaves negative weights there and warns, `"refuse"` raises.
        n_members: Networks in the ensemble, each with its own bootstrap. Eight by default: their scatter is what
            knows the error of the new weights. Four cost half as much and know it less well; one network has no error
            to state.

    Attributes:
        report_: `PositiveReport` of the fitted sample.
        history_: `TrainingHistory`, or `None` where no weight was negative and nothing was trained.
        scale_: Factor that keeps the sum of weights of the fitted sample.
        fingerprint_: `DataFingerprint` of the fitted sample.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X, w = rng.normal(size=(4000, 1)), rng.choice([1.0, -1.0], size=4000, p=[0.8, 0.2])
        >>> positive = PositiveReweighter(max_steps=200, random_state=0).fit(X, w)
        >>> new = positive.predict_weights(X, w)
        >>> bool(new.min() >= 0), round(float(new.sum() / w.sum()), 6)
        (True, 1.0)
    """

    on_negative_density: Literal["keep-sign", "refuse"] = "keep-sign"
    n_members: int = field(default=8, kw_only=True)

    def fit(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> Self:  # noqa: ANN401
        """Learn where weights are positive, from one signed sample with a positive sum.

        Args:
            X: Events; a `WeightedSample` brings its weights.
            sample_weight: Signed weights, else those of the sample.
        """
        if self.on_negative_density not in ("keep-sign", "refuse"):
            msg = f"Got on_negative_density = {self.on_negative_density!r}; expected 'keep-sign' or 'refuse'."
            raise InvalidInputError(msg)
        features = checked_features(self, X, reset=True)
        weights = _signed_weights(X, sample_weight, len(features))
        total = WeightedSample(np.zeros(len(features)), weights).require_positive_sum("sample")
        self._checked_settings(len(features))
        self.seed_ = self._new_seed()
        self.fingerprint_ = data_fingerprint(self._names(), features, None, weights)
        self.history_: TrainingHistory | None = None
        self.model_: DirectModel | None = None
        self.trials_: TrialReport | None = None
        self.flattens_, self.scale_ = False, 1.0
        if np.any(weights < 0):
            self._train(LabelledEvents(features, weights >= 0, np.abs(weights)))
        asymmetry, members = self._estimates(features, members=True)
        self.flattens_ = not _is_negative(weights[asymmetry < 0])
        abs_weights = np.abs(weights)
        new_weights = abs_weights * self._flattened(asymmetry)
        new_total = float(new_weights.sum())
        if not new_total > 0:
            msg = (
                f"The new weights sum to {new_total:.6g}; expected a positive sum. The signed sum, {total:.6g}, is "
                "too small beside its statistical error: give more events."
            )
            raise InvalidInputError(msg)
        self.scale_ = total / new_total
        self.report_ = PositiveReport.of_weights(
            weights,
            self.scale_ * new_weights,
            estimated_negative=asymmetry < 0,
            flattens=self.flattens_,
            training_variance=self._training_variance(features, self.scale_ * abs_weights * members),
        )
        if self.report_.negative_density_fraction > 0:
            msg = (
                f"The density is negative over {percent(self.report_.negative_density_fraction)} of the absolute "
                "weight, where no weight can be positive; "
            )
            if self.on_negative_density == "refuse":
                msg += "use on_negative_density='keep-sign' to keep negative weights there."
                raise InvalidInputError(msg)
            warnings.warn(msg + "negative weights are kept there.", NegativeDensityWarning, stacklevel=2)
        return self

    def predict_weights(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> Any:  # noqa: ANN401
        r"""Return the new weights $s\,|w|\,(2 g(x) - 1)$; their sum over the fitted sample is unchanged.

        They come as the events did: a pandas series with the index of a frame, an awkward array for awkward
        records, else a NumPy array.
        """
        check_is_fitted(self, "scale_")
        features = checked_features(self, X, reset=False)
        weights = _signed_weights(X, sample_weight, len(features))
        return as_kind_of(X, self._new_weights(features, weights), name="weight")

    def predict_member_weights(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> FloatArray:  # noqa: ANN401
        r"""Return the weights of each member, $s\,|w|\,(2 g_m(x) - 1)$, of shape `(n_members, n)`.

        Each member was trained on its own bootstrap of the sample, so that whatever is computed with the weights
        of one member after the other scatters by the error of the training. They are as they come out of the
        networks: where `predict_weights` flattens to zero these may be negative, or the scatter would be cut in half.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X, w = rng.normal(size=(4000, 1)), rng.choice([1.0, -1.0], size=4000, p=[0.8, 0.2])
            >>> positive = PositiveReweighter(max_steps=200, random_state=0).fit(X, w)
            >>> means = positive.predict_member_weights(X, w) @ X[:, 0] / w.sum()
            >>> means.shape, bool(0.005 < means.std(ddof=1) < 0.05)  # 0.02 = sqrt(0.64 * 4000) / 2400
            ((8,), True)
        """
        check_is_fitted(self, "scale_")
        features = checked_features(self, X, reset=False)
        _, members = self._estimates(features, members=True)
        return np.asarray(self.scale_ * np.abs(_signed_weights(X, sample_weight, len(features))) * members)

    def band(
        self,
        X: Any,  # noqa: ANN401
        sample_weight: npt.ArrayLike | None,
        values: npt.ArrayLike,
        *,
        edges: npt.ArrayLike,
    ) -> HistogramBand:
        """Return the histogram of an observable with the new weights, its errors and that of the training.

        The same formula holds for the events of the fit and for others of their kind (see `HistogramBand`).

        Args:
            X: Features of the events.
            sample_weight: Their signed weights.
            values: The observable, one value per event.
            edges: Edges of its bins.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X, w = rng.normal(size=(4000, 1)), rng.choice([1.0, -1.0], size=4000, p=[0.8, 0.2])
            >>> positive = PositiveReweighter(max_steps=200, random_state=0).fit(X, w)
            >>> band = positive.band(X, w, X[:, 0], edges=[-1.0, 0.0, 1.0])
            >>> bool(np.all(band.total_error > band.statistical_error))
            True
        """
        check_is_fitted(self, "scale_")
        if self.n_members < 2:
            msg = "Got a single network, which does not know its error; fit with n_members=8 for a band."
            raise InvalidInputError(msg)
        features = checked_features(self, X, reset=False)
        asymmetry, members = self._estimates(features, members=True)
        scaled = self.scale_ * np.abs(_signed_weights(X, sample_weight, len(features)))
        return histogram_band(values, scaled * self._flattened(asymmetry), scaled * members, edges=edges)

    def _new_weights(self, features: FeatureMatrix, weights: FloatArray) -> FloatArray:
        return self.scale_ * np.abs(weights) * self._asymmetry(features)

    def resample(
        self,
        X: Any,  # noqa: ANN401
        sample_weight: npt.ArrayLike | None,
        rng: np.random.Generator,
    ) -> Resampled:
        r"""Keep events at random, so that sums of weights *and* of squared weights stay what they were.

        An event stays with probability $(2g-1)^2$ and gets the weight $|w|/(2g-1)$. In every region of the
        features the expected sum of weights and the expected sum of squared weights, the usual estimate of
        the statistical error, are then those of the signed sample, with fewer events and no negative ones
        (but where the estimate is flattened to zero no event is kept).
        """
        check_is_fitted(self, "scale_")
        features = checked_features(self, X, reset=False)
        abs_weights = np.abs(_signed_weights(X, sample_weight, len(features)))
        asymmetry = self._asymmetry(features)
        kept = np.flatnonzero(rng.random(len(features)) < asymmetry**2)
        return Resampled(kept, abs_weights[kept] / asymmetry[kept])

    def _train(self, events: LabelledEvents) -> None:
        training = held_out = events
        if min(np.sum(events.labels), np.sum(~events.labels)) > 1:  # a lone event cannot be on both sides
            rng = np.random.default_rng(self.seed_)
            training, held_out = split_validation(events, self._held_out_fraction(len(events)), rng)
        fit = self._prepared(training, held_out, self.seed_)
        best, self.trials_ = best_of_trials(fit, _train_once)
        self.model_, self.history_ = cast(DirectModel, best.model), best.history

    def _asymmetry(self, features: FeatureMatrix) -> FloatArray:
        """Return $2g - 1$; zero where it is flattened."""
        return self._flattened(self._estimates(features)[0])

    def _flattened(self, asymmetry: FloatArray) -> FloatArray:
        return np.maximum(asymmetry, 0.0) if self.flattens_ else asymmetry

    def _estimates(self, features: FeatureMatrix, *, members: bool = False) -> tuple[FloatArray, FloatArray]:
        r"""Return $2g - 1 = (o - 1)/(o + 1)$ from the odds $o = g/(1-g)$ of the ensemble, and of each member."""
        if self.model_ is None:
            return np.ones(len(features)), np.ones((self.n_members if members else 0, len(features)))
        odds = self.model_.predict(features, members=members)
        return (odds.ratio - 1.0) / (odds.ratio + 1.0), (odds.members - 1.0) / (odds.members + 1.0)

    def _training_variance(self, features: FeatureMatrix, member_weights: FloatArray) -> float:
        return 0.0 if self.model_ is None else training_variance(features, member_weights)


def _train_once(fit: Fit) -> Trained:
    """Train the classifier of the sign with the settings of the fit."""
    held_out_weights = fit.tensor(fit.validation_events.weights)[None]
    pools = [
        Pool(None, fit.tensor(events.labels).float(), (weights / weights.mean()).float())
        for events, weights in (
            (fit.train_events, fit.member_weights),
            (fit.validation_events, held_out_weights),
        )
    ]
    share = float(np.average(fit.train_events.labels, weights=fit.train_events.weights))
    network = fit.network(1, start=float(np.log(share / (1.0 - share))))
    model = DirectModel(fit.scaling, network, fit.n_members, Bce())
    return Trained(model, *fit.train(model.network, RatioObjective(Bce()), pools[:1], pools[1:]))


def _signed_weights(X: Any, sample_weight: npt.ArrayLike | None, n_events: int) -> FloatArray:  # noqa: ANN401
    """Return the weights, and refuse to take them for one: then nothing would be negative."""
    if sample_weight is None and not isinstance(X, WeightedSample):
        msg = "Got no weights; expected signed weights. Give them as sample_weight, or the events as a WeightedSample."
        raise InvalidInputError(msg)
    return event_weights(X, sample_weight, n_events)


def _is_negative(weights: FloatArray) -> bool:
    """Tell whether a sum of weights is negative beyond its statistical error."""
    return bool(weights.sum() < -_SIGNIFICANCE * np.sqrt(np.square(weights).sum()))
