"""The sign-resolved classifier as an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from quasiratio.estimators.base import RatioParameters
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.single_model import SingleModelRatio, TrainedModel
from quasiratio.estimators.trials import Trained, best_of_trials
from quasiratio.estimators.tuning import checked_tune, tune_all
from quasiratio.losses import RatioLoss
from quasiratio.losses.loss_document import LossDocument
from quasiratio.model_files.document import Document, Name
from quasiratio.ratios import (
    OutputView,
    RatioModel,
    SignFloors,
    SignResolvedModel,
    carried_classes,
    sign_classes,
)
from quasiratio.training import CrossEntropyObjective, Pool, normalized_per_group

__all__ = ["SignResolvedRatio", "train_sign_resolved"]


class ResolvedParameters(RatioParameters):
    """Parameters of `SignResolvedRatio`."""

    tune: Literal["none", "all"]
    tune_loss: Name | LossDocument


@dataclass(eq=False, repr=False)
class SignResolvedRatio(SingleModelRatio):
    r"""One softmax over (label, sign), $r = (\pi_{1+} - \pi_{1-}) / (\pi_{0+} - \pi_{0-})$. The default choice.

    Trained with absolute weights on all events, its risk is bounded below whatever the signs of the weights
    and densities, and the mixture coefficients come for free. Takes the common hyperparameters of
    `RatioEstimator` as well.

    Args:
        tune: `"none"`, or `"all"` to continue with `tune_loss` from the trained classifier; the validation
            risk never gets worse.
        tune_loss: `"pare"`, `"lsif"`, or a `RatioLoss` that expresses negative ratios.

    Attributes:
        classes_: The (label, sign) classes that carry weight.

    Example:
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 1)) + np.repeat([[0.0], [0.5]], 1000, axis=0)
        >>> y, w = np.repeat([0, 1], 1000), rng.choice([1.0, -0.5], size=2000, p=[0.8, 0.2])
        >>> model = qr.SignResolvedRatio(max_steps=200, random_state=0).fit(X, y, sample_weight=w)
        >>> model.predict_ratio(X).shape
        (2000,)
    """

    tune: Literal["none", "all"] = "none"
    tune_loss: str | RatioLoss = "pare"

    parameters_type: ClassVar[type[Document]] = ResolvedParameters
    model_type: ClassVar[type[RatioModel]] = SignResolvedModel
    trains_from_store: ClassVar[bool] = True

    def take_from_model(self, model: Any) -> None:  # noqa: ANN401
        """Set the classes that carry weight."""
        self.classes_ = model.classes

    def activation_name(self) -> str:
        """Return SiLU, and for half of an ensemble hard swish: where the target vanishes, one errs low, one high."""
        mixes = self.activation is None and self.n_members > 1
        return "silu+hardswish" if mixes else super().activation_name()

    def train_model(self, fit: Fit, floors: SignFloors) -> TrainedModel:
        """Train the networks, and tune them if asked to."""
        tune, loss = checked_tune(self.tune, ("none", "all"), self.tune_loss)
        (model, history, _), trials = best_of_trials(
            fit, partial(train_sign_resolved, floors=floors), SignResolvedModel.mean_with
        )
        if tune == "none":
            return TrainedModel(model, (history,), trials)
        return TrainedModel(model, (history, tune_all(model, fit, loss)), trials)


def train_sign_resolved(fit: Fit, floors: SignFloors = SignFloors()) -> Trained:  # noqa: B008 - a tuple never changes
    """Train one softmax network per member over the classes that carry weight."""
    numbers, present = carried_classes(fit.part_sums())
    training = fit.training_pool(numbers, absolute=True)
    # A sign that the training data lack cannot be learned; such validation events join the other sign.
    number = {part: index for index, part in enumerate(present)}
    held_out, held_out_present = sign_classes(fit.validation_events.labels, fit.validation_events.weights)
    translation = np.array([number.get(part, number[part._replace(sign=1)]) for part in held_out_present])
    held_out_labels = fit.tensor(fit.validation_events.labels)
    weights = normalized_per_group(fit.tensor(fit.validation_events.weights)[None], held_out_labels)
    validation = Pool(None, fit.tensor(translation[held_out]), weights.abs())
    shares = training.class_sums(len(present))
    network = fit.network(len(present), start=(shares / shares.sum()).log().to(fit.device))
    model = SignResolvedModel(fit.scaling, network, fit.n_members, present, floors).to(fit.device)
    return Trained(model, *fit.train(OutputView(model), CrossEntropyObjective(), [training], [validation]))
