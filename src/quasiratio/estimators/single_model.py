"""Estimators that hold one ratio model: training, normalisation, support and prediction."""

from __future__ import annotations

import functools
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import model_validator
from sklearn.utils.validation import check_is_fitted

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import NegativeDensityWarning, SupportWarning
from quasiratio.estimators.base import FittedRatioDocument, RatioEstimator, RatioPrediction
from quasiratio.estimators.densities import EarlierFit, FitData, checked_ratio
from quasiratio.estimators.fit_check import instability
from quasiratio.estimators.fitting import Fit, available_device
from quasiratio.estimators.persistent import Arrays, FittedDocument, StoredParts
from quasiratio.estimators.stored_fit import reference_means, stored_means
from quasiratio.estimators.support import SupportDiagnostic, SupportDocument, diagnose_support
from quasiratio.estimators.training_data import LabelledEvents, checked_features
from quasiratio.estimators.trials import TrialReport, TrialReportDocument
from quasiratio.model_files.document import PositiveFloat, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames
from quasiratio.ratios import RatioModel, SignFloors
from quasiratio.training import Ranks, TrainingHistory, TrainingSettings
from quasiratio.training.history import HistoryDocument
from quasiratio.wording import percent

__all__ = ["SingleModelDocument", "SingleModelRatio", "TrainedModel", "training_stages"]

FloatArray = npt.NDArray[np.float64]
_NOISE_EVENTS = 2048
_STRONGER = ((3.0, 10.0), (6.0, 100.0))
"""Factors by which a training that failed is shortened, and its decay strengthened."""
_SMALL_NETWORK = (8,)
_NEAR_CAP, _NOTABLE_CAP_SHARE = 1.2, 0.01
_FEW_BEYOND, _NOTABLE_BEYOND = 2, 0.01
"""Events that lie beyond an edge by chance, and not far, in a chunk and in a sample."""


class TrainedModel(NamedTuple):
    """What an estimator's training returns: the model, one history per stage, and what was tried."""

    model: RatioModel
    histories: tuple[TrainingHistory, ...]
    trials: TrialReport | None = None


class SingleModelDocument(FittedRatioDocument):
    """What every estimator with one trained model has; `model` is narrowed to the document of its model."""

    normalization: PositiveFloat
    member_normalizations: list[PositiveFloat]
    history: HistoryDocument
    tuning_history: HistoryDocument | None
    support: SupportDocument
    trials: TrialReportDocument | None = None
    model: Any

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.model.scaling.n_features != self.features.count, "the model has another number of features"
        )
        refuse_if(
            len(self.member_normalizations) != self.model.n_members,
            "the number of normalisations does not fit the number of members",
        )
        return self

    @property
    def n_members(self) -> int:
        """Number of members of the model."""
        return int(self.model.n_members)

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from self.model.tensors(prefix)
        yield from self.history.tensors(f"{prefix}history.")
        if self.tuning_history is not None:
            yield from self.tuning_history.tensors(f"{prefix}tuning_history.")


@dataclass(eq=False, repr=False, kw_only=True)
class SingleModelRatio(RatioEstimator):
    """A ratio estimator with one trained model (of one or more members).

    A subclass states `model_type`, trains in `train_model`, and sets in `take_from_model` what else it learned.

    Attributes:
        model_: The trained `RatioModel`.
        history_: `TrainingHistory` of the first stage.
        tuning_history_: `TrainingHistory` of the tuning stage, or `None`.
        diverged_: Whether the risk ran away in any stage.
        support_: `SupportDiagnostic`: how much target weight the reference cannot reach.
        log_features_: Names of the features that the model takes in logarithm.
        periodic_features_: Names of the features that the model takes as angles.
        dropped_features_: Names of the features that the networks do not get, being constant or copies of others.
        sentinels_: Numbers that were taken for missing values, by feature, as they are far from all others (`networks.sentinels`).
        trials_: `TrialReport`: how long and how strongly it was trained, and what else was tried.
        helped_: What was done because a first fit had failed; empty if nothing was.
        near_cap_: Share of the reference's |w| at the floor of its sign asymmetry, and a sentence where it matters.
        model_type: The class of the model, which brings its document and its ONNX graph.
    """

    model_type: ClassVar[type[RatioModel]]
    fitted_type: ClassVar[type[FittedDocument]] = SingleModelDocument

    @abstractmethod
    def train_model(self, fit: Fit, floors: SignFloors) -> TrainedModel:
        """Train a model on a prepared fit; `floors` bound the sign asymmetries of positive densities."""

    def train_further(self, fit: Fit, floors: SignFloors, earlier: EarlierFit) -> TrainedModel:  # noqa: ARG002
        """Go on from the model of an earlier fit; estimators without a second stage train anew."""
        return self.train_model(fit, floors)

    def take_from_model(self, model: Any) -> None:  # noqa: ANN401 - of the type `model_type`
        """Set learned attributes that follow from the model; after a fit, and when a model is loaded."""

    def fit_events(self, data: FitData) -> None:
        """Train, help a fit that fails, and normalise."""
        # The published schedule validates as published, with signed weights where any sign is allowed.
        is_published = self.schedule == "constant" and data.densities.reference.sign == "any"
        judge_weights = None if is_published else data.densities.judge_weights(data.held_out)
        fit = self.prepared_fit(
            data.training, data.held_out, self.seed_, judge_weights, stored=data.stored, say=data.say
        )
        if not data.tries:
            fit = fit.with_settings(fit.settings)
        trained = self._trained(fit, data)
        self.helped_, ranks = "", Ranks.present()
        # Where the reference changes its sign the poles are real, and to train them away is to learn something else.
        may_help = self._decides_strength and not data.densities.has_poles
        for other, difference in self._helping_fits(fit) if may_help else ():
            if not ranks.once(functools.partial(_has_failed, trained.model, data)):
                break
            # What was kept is useless on events it has not seen; a stronger pull to no reweighting cannot be worse.
            trained = self._trained(other, data)
            self.helped_ = f"A first fit had failed on validation events, and was repeated with {difference}."
        model, histories, self.trials_ = trained
        self._set_model(model.eval(), histories[0], histories[1] if len(histories) > 1 else None)
        reference = data.training.select(~data.training.labels)
        self.model_.measure_noise(reference.features[:: max(1, len(reference) // _NOISE_EVENTS)])
        self.near_cap_ = self._measured_near_cap(reference)
        predictions = self.model_.predict(reference.features, members=self.n_members > 1)
        if not self.normalize or data.densities.has_poles:
            # With poles the mean has an infinite variance, and one event would scale all others; the network's own scale
            # is kept.
            self._set_normalization(None)
        elif data.stored is None:
            self._set_normalization(reference_means(predictions, reference.weights))
        else:
            self._set_normalization(stored_means(self.model_, data.stored, members=self.n_members > 1))
        target = data.held_out.select(data.held_out.labels)
        self.support_ = self._diagnose_support(reference, predictions.ratio, target)

    def _trained(self, fit: Fit, data: FitData) -> TrainedModel:
        if data.earlier is None:
            return self.train_model(fit, data.densities.floors)
        return self.train_further(fit, data.densities.floors, data.earlier)

    def _set_model(
        self, model: RatioModel, history: TrainingHistory, tuning_history: TrainingHistory | None
    ) -> None:
        self.model_, self.history_, self.tuning_history_ = model, history, tuning_history
        histories = [history] if tuning_history is None else [history, tuning_history]
        self.diverged_ = any(bool(one.diverged.any()) for one in histories)
        self._name_features()
        self.take_from_model(model)

    @classmethod
    def document_annotations(cls) -> dict[str, Any]:
        """Return the document of the model."""
        return {**super().document_annotations(), "model": (cls.model_type.document_type, ...)}

    def fitted_fields(self) -> dict[str, Any]:
        """Add the model, its normalisation, how it was trained and where it can be trusted."""
        tuning = self.tuning_history_
        return {
            **super().fitted_fields(),
            "model": self.model_.document(),
            "normalization": self.normalization_,
            "member_normalizations": self.member_normalizations_.tolist(),
            "history": self.history_.document(),
            "tuning_history": None if tuning is None else tuning.document(),
            "support": self.support_.document(),
            "trials": None if self.trials_ is None else self.trials_.document(),
        }

    def fitted_tensors(self, prefix: str = "") -> Arrays:
        """Return the weights and the training curves."""
        tensors = {
            **super().fitted_tensors(prefix),
            **self.model_.tensors(prefix),
            **self.history_.tensors(f"{prefix}history."),
        }
        if self.tuning_history_ is not None:
            tensors |= self.tuning_history_.tensors(f"{prefix}tuning_history.")
        return tensors

    def fitted_times(self, prefix: str = "") -> dict[str, list[float]]:
        """Return the wall-clock of both stages."""
        named = {"history.": self.history_, "tuning_history.": self.tuning_history_}
        return {f"{prefix}{name}": one.seconds for name, one in named.items() if one is not None}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the model and what belongs to it, as a fit does."""
        super().restore(document, stored)
        bundle, losses, prefix = stored
        device = available_device(document.parameters.device)
        model = self.model_type.stored(document.model, bundle.tensors, prefix, losses=losses, device=device)
        tuning = document.tuning_history
        self._set_model(
            model,
            TrainingHistory.stored(document.history, bundle, f"{prefix}history."),
            None if tuning is None else TrainingHistory.stored(tuning, bundle, f"{prefix}tuning_history."),
        )
        self.normalization_ = document.normalization
        self.member_normalizations_ = np.array(document.member_normalizations)
        self.support_ = SupportDiagnostic.stored(document.support)
        self.trials_ = TrialReport.stored(document.trials)
        self.helped_ = self.fit_check_.helped
        self.near_cap_ = (self.fit_check_.near_cap, "")

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the normalised model to a graph."""
        ratio, members = self.model_.add_onnx(graph, features)
        if members is not None:
            members = graph.add("Mul", members, self.member_normalizations_[:, None])
        return RatioNames(graph.add("Mul", ratio, self.normalization_), members)

    def network_names(self) -> list[str]:
        """Return names of the networks of each member, as figures write them; none where a member has one only."""
        return []

    def training_summary(self) -> dict[str, Any]:
        """Return stages, members and seed."""
        stages = training_stages(self.history_, self.tuning_history_)
        return {"stages": stages, "members": self.n_members, "seed": self.seed_}

    @property
    def _decides_strength(self) -> bool:
        """Whether length and strength of the training are ours to choose."""
        return self.max_steps is None and self.weight_decay is None and self.schedule == "cosine"

    def _helping_fits(self, fit: Fit) -> Iterator[tuple[Fit, str]]:
        """Yield what a failed fit tries, one after the other, and how to say it: stronger fits, then a small network."""
        stronger = _stronger(fit.settings)
        texts = [
            f"{one.n_passes:.2g} passes and a weight decay of {one.weight_decay:.2g}" for one in stronger
        ]
        for settings, how in zip(stronger, texts, strict=True):
            yield fit.with_settings(settings), how
        if self.hidden_layers is None:  # a small one needs no pull that leaves nothing of the ratio
            small = fit.with_settings(stronger[0])
            small.hidden_layers = _SMALL_NETWORK
            yield small, f"{texts[0]} in a network of {_SMALL_NETWORK[0]} hidden units"

    def _name_features(self) -> None:
        """Set the names of the features, or of the coordinates made of them, that are taken in a special way."""
        scaling = self.model_.scaling
        names = scaling.coordinate_names(self.feature_list())

        def where(is_chosen: torch.Tensor) -> list[str]:
            return [name for name, chosen in zip(names, is_chosen.tolist(), strict=True) if chosen]

        self.log_features_ = where(scaling.uses_log & scaling.is_kept)
        self.periodic_features_ = where(scaling.is_periodic & scaling.is_kept)
        self.dropped_features_ = where(~scaling.is_kept)
        fills = [(self.feature_list()[column], value) for column, value in scaling.fills.items()]
        self.sentinels_ = {name: value for name, value in fills if name not in self.fill_}

    def facts_for_check(self) -> dict[str, Any]:
        """Return what `check_ratio` should know of the fit."""
        near_cap, remark = self.near_cap_
        return {
            "near_cap": near_cap,
            "peak_fraction": self.history_.peak_fraction,
            "helped": self.helped_,
            "remarks": (remark,) if remark else (),
        }

    def _measured_near_cap(self, reference: LabelledEvents) -> tuple[float, str]:
        """Return the share of the reference at the floor of its sign asymmetry, and what to say of it."""
        floor = self.reference_density_.floor
        asymmetry = None if floor is None else self.model_.reference_asymmetry(reference.features)
        if floor is None or asymmetry is None:
            return 0.0, ""
        return _cap_remark(reference.weights, asymmetry < _NEAR_CAP * floor, floor)

    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:  # noqa: ANN401
        """Return the ratio of each event and, if asked for, the ratios of each member."""
        check_is_fitted(self)
        features = checked_features(self, X, reset=False)
        self._warn_beyond_edges(features)
        predictions = self.model_.predict(features, members=members)
        return RatioPrediction(
            predictions.ratio * self.normalization_,
            predictions.members * self.member_normalizations_[: len(predictions.members), None],
            ((predictions.n_nonpositive_reference, len(features)),),
        )

    def _set_normalization(self, means: FloatArray | None) -> None:
        """Store the factors that make the weighted means over the training reference one, where there are any."""
        self.normalization_, self.member_normalizations_ = 1.0, np.ones(self.n_members)
        if means is None:
            return
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
            self.feature_list(),
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

    def _warn_beyond_edges(self, features: FeatureMatrix) -> None:
        scaling = self.model_.scaling
        counts = scaling.beyond_edges(scaling.taken(features, scaling.mean.device))
        named = zip(
            scaling.coordinate_names(self.feature_list()), *(one.tolist() for one in counts), strict=True
        )
        notable = max(_FEW_BEYOND, _NOTABLE_BEYOND * len(features))
        beyond = [
            f"{name!r} ({percent(n / len(features))})" for name, n, n_far in named if n > notable or n_far
        ]
        if beyond:
            msg = f"Some values of {', '.join(beyond)} lie beyond the training data; the ratio at their edge is used."
            warnings.warn(msg, SupportWarning, stacklevel=4)


def training_stages(*histories: TrainingHistory | None) -> list[dict[str, Any]]:
    """Return name and length of each stage of a training."""
    return [
        {"stage": history.stage, "steps": history.n_steps} for history in histories if history is not None
    ]


def _stronger(settings: TrainingSettings) -> list[TrainingSettings]:
    """Return settings that pull ever more strongly to no reweighting."""
    return [
        replace(settings, n_passes=settings.n_passes / factor, weight_decay=decay * settings.weight_decay)
        for factor, decay in _STRONGER
    ]


def _has_failed(model: RatioModel, data: FitData) -> bool:
    """Whether validation events say that fluctuations made the ratio of a trained model."""
    ratio = model.predict(data.held_out.features).ratio
    reference = ~data.held_out.labels
    weights = data.held_out.weights[reference]
    mean = float(ratio[reference] @ weights / weights.sum())
    if not (np.isfinite(mean) and mean > 0):
        return True
    checked = checked_ratio(ratio / mean, data.held_out, data.densities)
    return bool(instability(checked))


def _cap_remark(weights: FloatArray, is_near: npt.NDArray[np.bool_], floor: float) -> tuple[float, str]:
    """Return the share of |w| at the floor of the sign asymmetry, and a sentence where it matters."""
    inside = weights[is_near]
    share = float(np.abs(inside).sum() / np.abs(weights).sum())
    if share < _NOTABLE_CAP_SHARE:
        return share, ""
    scale = float(np.abs(inside).sum())
    measured, error = float(inside.sum()) / scale, float(np.sqrt(np.square(inside).sum())) / scale
    text = (
        f"In {share:.1%} of the reference, by |w|, the sign asymmetry is at its floor of {floor:.3g}; the weights there have "
        f"{measured:.3f} ± {error:.3f}"
    )
    if measured + 2.0 * error < floor:
        return share, (
            f"{text}: ratios there are too small, by a factor of about {max(measured, 0.0) / floor:.2g}. Only "
            "reference_density='any' can follow them, with poles where its noise passes through zero."
        )
    return share, f"{text}."
