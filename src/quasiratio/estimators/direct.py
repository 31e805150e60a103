"""One network, one loss."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

from quasiratio.errors import NegativeWeightWarning
from quasiratio.estimators.base import RatioParameters
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.sign_resolved import train_sign_resolved
from quasiratio.estimators.single_model import SingleModelRatio, TrainedModel
from quasiratio.estimators.trials import Trained, best_of_trials
from quasiratio.losses import RatioLoss, loss_by_name
from quasiratio.losses.loss_document import LossDocument
from quasiratio.model_files.document import Document, Name
from quasiratio.ratios import DirectModel, RatioModel, SignFloors
from quasiratio.registry import ESTIMATORS
from quasiratio.training import RatioObjective
from quasiratio.training.standard import direct_decay, starts_from_one

__all__ = ["DirectRatio"]


class DirectParameters(RatioParameters):
    """Parameters of `DirectRatio`."""

    loss: Name | LossDocument


@dataclass(eq=False, repr=False)
class DirectRatio(SingleModelRatio):
    r"""The ratio from one network and one loss, $r(x) = \mathrm{link}(z(x))$.

    Takes the common hyperparameters of `RatioEstimator` as well.

    Args:
        loss: `"bce"`, `"mse"`, `"mlc"`, `"sqr"`, `"pare"`, `"revert"`, `"lsif"`, or a `RatioLoss`.
            `revert` and `lsif` learn negative ratios wherever the reference density is positive.

    Attributes:
        loss_: The loss in use, with its parameters chosen (`Pare(eps="auto")`).

    Example:
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 1)) + np.repeat([[0.0], [0.5]], 1000, axis=0)
        >>> y = np.repeat([0, 1], 1000)
        >>> model = qr.DirectRatio(loss="lsif", max_steps=200, random_state=0).fit(X, y)
        >>> bool(model.predict_ratio([[2.0]])[0] > model.predict_ratio([[-2.0]])[0])
        True
    """

    loss: str | RatioLoss = "bce"

    parameters_type: ClassVar[type[Document]] = DirectParameters
    model_type: ClassVar[type[RatioModel]] = DirectModel
    trains_from_store: ClassVar[bool] = True

    @property
    def accepts_any_reference(self) -> bool:
        """Whether the loss can learn where the reference density is negative."""
        return loss_by_name(self.loss).is_bounded(q_reference=-1.0, q_target=0.0)

    def take_from_model(self, model: Any) -> None:  # noqa: ANN401
        """Set the loss in use."""
        self.loss_ = model.loss

    def default_decay(self, n_events: int, effective_share: float) -> float:
        """Return the standard decay, and less of it for large samples, whose signed gradients it would outweigh."""
        return direct_decay(n_events) * super().default_decay(n_events, effective_share)

    def train_model(self, fit: Fit, floors: SignFloors) -> TrainedModel:
        """Train the networks with the loss."""
        loss = loss_by_name(self.loss)
        if loss.needs_first_estimate:
            loss = loss.resolved(_first_estimate(fit, floors))
        if not loss.expresses_negative_ratios and fit.part_sums()[1::2].any():
            _warn_positive_only(loss)
        (model, history, _), trials = best_of_trials(fit, partial(_train_direct, loss=loss))
        return TrainedModel(model, (history,), trials)


def _train_direct(fit: Fit, loss: RatioLoss) -> Trained:
    start = loss.link.raw(torch.ones(1)) if starts_from_one(fit.n_training) else torch.zeros(1)
    model = DirectModel(fit.scaling, fit.network(1, start=start.to(fit.device)), fit.n_members, loss)
    training, validation = fit.signed_pools()
    return Trained(model, *fit.train(model.network, RatioObjective(loss), [training], [validation]))


def _first_estimate(fit: Fit, floors: SignFloors) -> np.typing.NDArray[np.float64]:
    """Return ratios of the training events from a sign-resolved fit, which cannot diverge."""
    model = train_sign_resolved(fit.alone().with_settings(fit.settings), floors).model
    return model.predict(fit.train_events.features).ratio


def _warn_positive_only(loss: RatioLoss) -> None:
    msg = (
        f"The loss '{loss.name}' can only express positive ratios, and some weights are negative: where a "
        "density is negative its risk has no lower bound. Use loss='revert' or 'lsif', or "
        f"{ESTIMATORS.any_reference_classes()}."
    )
    warnings.warn(msg, NegativeWeightWarning, stacklevel=4)
