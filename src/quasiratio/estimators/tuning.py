"""Tuning a trained model as a whole, with a loss that accepts signed ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fitting import Fit
from quasiratio.losses import RatioLoss, loss_by_name
from quasiratio.ratios import RatioModel, RatioView
from quasiratio.registry import LOSSES
from quasiratio.training import TrainingHistory, TunedRatioObjective

__all__ = ["checked_tune", "resolved_loss", "tune_all"]

_RATE_FACTOR, _PUBLISHED_RATE_FACTOR = 0.01, 0.1
_STEP_FRACTION = 3
_OWN = ("learning_rate", "batch_size", "patience")


def checked_tune(tune: str, choices: Sequence[str], tune_loss: str | RatioLoss) -> tuple[str, RatioLoss]:
    """Check the options `tune` and `tune_loss`."""
    if tune not in choices:
        msg = f"Got tune = {tune!r}; expected one of {', '.join(choices)}."
        raise InvalidInputError(msg)
    loss = loss_by_name(tune_loss)
    if not _can_tune(loss):
        able = [repr(name) for name, make in LOSSES.items() if _can_tune(make())]
        msg = f"Got tune_loss = {loss.name!r}, which has no negative ratios; expected {' or '.join(able)}."
        raise InvalidInputError(msg)
    return tune, loss


def _can_tune(loss: RatioLoss) -> bool:
    return loss.needs_first_estimate or loss.expresses_negative_ratios


def resolved_loss(loss: RatioLoss, model: RatioModel, fit: Fit) -> RatioLoss:
    """Let a loss with automatic parameters choose them from the trained model's ratios."""
    if loss.needs_first_estimate:
        return loss.resolved(model.predict(fit.train_events.features).ratio)
    return loss


def tune_all(
    model: RatioModel, fit: Fit, loss: RatioLoss, own: Mapping[str, Any] | None = None
) -> TrainingHistory:
    """Continue training every parameter with `loss` on signed weights, at a hundredth of the rate and without decay.

    The networks are good already, and gradients with signed weights have several times the noise of those that trained
    them; a tenth of the rate (which stays with the published schedule) carried them away, and weight decay pulled them to
    no reweighting. The state before tuning is kept unless a later one is better on validation data by more than two
    standard errors of the paired difference.

    Args:
        model: The trained model, which is changed.
        fit: Its events and settings.
        loss: Of the tuning.
        own: `learning_rate`, `batch_size` and `patience` that are not to follow from those of the fit.
    """
    unknown = set(own or {}) - set(_OWN)
    if unknown:
        msg = f"Got {', '.join(sorted(unknown))} for the training of the tuning; expected some of {', '.join(_OWN)}."
        raise InvalidInputError(msg)
    loss = resolved_loss(loss, model, fit)
    training, validation = fit.signed_pools()
    n_steps = fit.settings.n_steps(fit.n_training)
    is_published = fit.settings.schedule == "constant"
    settings = replace(
        fit.settings,
        learning_rate=(_PUBLISHED_RATE_FACTOR if is_published else _RATE_FACTOR) * fit.settings.learning_rate,
        max_steps=n_steps if is_published else max(1, n_steps // _STEP_FRACTION),
        weight_decay=0.0,
    )
    settings = replace(settings, **(own or {}))
    history, _ = fit.train(
        RatioView(model),
        TunedRatioObjective(loss),
        [training],
        [validation],
        settings=settings,
        keep_initial=True,
    )
    model.tuned_with = loss
    return history
