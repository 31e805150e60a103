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
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import model_validator
from sklearn.utils.validation import check_is_fitted

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError, NegativeDensityWarning
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.fitting import Fit, available_device, with_own_threads
from quasiratio.estimators.hyperparameters import (
    FittedNetworkDocument,
    NetworkEstimator,
    NetworkParameters,
)
from quasiratio.estimators.persistent import Arrays, FittedDocument, StoredParts
from quasiratio.estimators.positive_report import PositiveReport, PositiveReportDocument, training_variance
from quasiratio.estimators.single_model import training_stages
from quasiratio.estimators.training_data import (
    LabelledEvents,
    as_kind_of,
    checked_features,
    event_weights,
    split_validation,
)
from quasiratio.estimators.trials import Trained, TrialReport, TrialReportDocument, best_of_trials
from quasiratio.estimators.weight_warnings import warn_about_sample
from quasiratio.losses import Bce
from quasiratio.metrics.member_band import HistogramBand, histogram_band
from quasiratio.metrics.negative_density import is_negative
from quasiratio.model_files.document import Document, PositiveFloat, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames
from quasiratio.ratios import DirectModel
from quasiratio.ratios.direct import DirectModelDocument
from quasiratio.sample import WeightedSample
from quasiratio.training import Pool, RatioObjective, TrainingHistory
from quasiratio.training.history import HistoryDocument
from quasiratio.wording import percent

__all__ = ["PositiveReport", "PositiveReweighter", "Resampled"]

FloatArray = npt.NDArray[np.float64]
_SIGNIFICANCE = 3.0


class Resampled(NamedTuple):
    """Events that were kept, and their new weights."""

    kept: npt.NDArray[np.int64]
    weights: FloatArray


class PositiveParameters(NetworkParameters):
    """Parameters of `PositiveReweighter`."""

    on_negative_density: Literal["keep-sign", "refuse"]


class PositiveDocument(FittedNetworkDocument):
    """A fitted `PositiveReweighter`; without negative weights there is no model."""

    model: DirectModelDocument | None
    history: HistoryDocument | None
    flattens: bool
    scale: PositiveFloat
    report: PositiveReportDocument
    trials: TrialReportDocument | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if((self.model is None) != (self.history is None), "a model has a history")
        refuse_if(
            self.model is not None and self.model.scaling.n_features != self.features.count,
            "the model has another number of features",
        )
        return self

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        if self.model is not None and self.history is not None:
            yield from self.model.tensors(prefix)
            yield from self.history.tensors(f"{prefix}history.")


@dataclass(eq=False, repr=False)
class PositiveReweighter(NetworkEstimator):
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

    parameters_type: ClassVar[type[Document]] = PositiveParameters
    fitted_type: ClassVar[type[FittedDocument]] = PositiveDocument
    onnx_result: ClassVar[Literal["ratio", "weight_factor"]] = "weight_factor"

    @with_own_threads
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
        self.checked_settings(len(features))
        warn_about_sample(weights, features.shape[1], "sample", look_at="report_")
        self.seed_ = self.new_seed()
        self.fingerprint_ = data_fingerprint(self.feature_list(), features, None, weights)
        self.history_: TrainingHistory | None = None
        self.model_: DirectModel | None = None
        self.trials_: TrialReport | None = None
        self.flattens_, self.scale_ = False, 1.0
        if np.any(weights < 0):
            self._train(LabelledEvents(features, weights >= 0, np.abs(weights)))
        asymmetry, members = self._estimates(features, members=True)
        below = weights[asymmetry < 0]
        self.flattens_ = not is_negative(
            float(below.sum()), float(np.sqrt(np.square(below).sum())), _SIGNIFICANCE
        )
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
            training, held_out = split_validation(events, self.held_out_fraction(len(events)), rng)
        fit = self.prepared_fit(training, held_out, self.seed_)
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

    def fitted_fields(self) -> dict[str, Any]:
        """Add the model, its history, the scale and the reports."""
        return {
            **super().fitted_fields(),
            "model": None if self.model_ is None else self.model_.document(),
            "history": None if self.history_ is None else self.history_.document(),
            "flattens": self.flattens_,
            "scale": self.scale_,
            "report": self.report_.document(),
            "trials": None if self.trials_ is None else self.trials_.document(),
        }

    def fitted_tensors(self, prefix: str = "") -> Arrays:
        """Return the weights and the training curves."""
        if self.model_ is None or self.history_ is None:
            return {}
        return {**self.model_.tensors(prefix), **self.history_.tensors(f"{prefix}history.")}

    def fitted_times(self, prefix: str = "") -> dict[str, list[float]]:
        """Return the wall-clock of the training."""
        return {} if self.history_ is None else {f"{prefix}history.": self.history_.seconds}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the model and what belongs to it, as a fit does."""
        super().restore(document, stored)
        bundle, losses, prefix = stored
        self.model_, self.history_ = None, None
        if document.model is not None:
            device = available_device(document.parameters.device)
            self.model_ = DirectModel.stored(
                document.model, bundle.tensors, prefix, losses=losses, device=device
            )
            self.history_ = TrainingHistory.stored(document.history, bundle, f"{prefix}history.")
        self.flattens_, self.scale_ = document.flattens, document.scale
        self.trials_ = TrialReport.stored(document.trials)
        self.report_ = PositiveReport.stored(document.report)

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the factor of the absolute weight to a graph."""
        if self.model_ is None:  # no weight was negative: the factor is one everywhere
            first = graph.add("Gather", features, graph.constant(np.array(0)), axis=1)
            return RatioNames(graph.add("Add", graph.add("Mul", first, 0.0), self.scale_), None)
        odds = self.model_.add_onnx(graph, features).ratio
        asymmetry = graph.add("Div", graph.add("Sub", odds, 1.0), graph.add("Add", odds, 1.0))
        if self.flattens_:
            asymmetry = graph.add("Relu", asymmetry)
        return RatioNames(graph.add("Mul", asymmetry, self.scale_), None)

    def onnx_note(self) -> str:
        """Say what to do with the factor."""
        return "multiply the absolute value of the old weight by it"

    def training_summary(self) -> dict[str, Any]:
        """Return stages, members and seed."""
        return {"stages": training_stages(self.history_), "members": self.n_members, "seed": self.seed_}


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
