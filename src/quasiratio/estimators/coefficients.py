"""Tuning the two mixture coefficients alone (RoSMM_c)."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch
from torch import Tensor

from quasiratio.estimators.fitting import Fit
from quasiratio.losses import RatioLoss
from quasiratio.ratios import SignedMixtureModel, SignFloors
from quasiratio.ratios.signed_mixture import SignPair, recombine
from quasiratio.training import Pool, TrainingHistory

__all__ = ["coefficient_risk", "tune_coefficients"]

_CHUNK = 2**15
_MAX_ITERATIONS = 50
_IMPROVEMENT_ERRORS = 1.0


def coefficient_risk(
    log_ratios: dict[SignPair, Tensor], pool: Pool, coefficients: Tensor, loss: RatioLoss
) -> Tensor:
    r"""Risk of a member as a function of $(c_0, c_1)$ with its sub-ratios fixed, `(n_members,)`."""
    return _losses(log_ratios, pool, coefficients, loss, SignFloors()).mean(dim=1)


def _losses(
    log_ratios: dict[SignPair, Tensor],
    pool: Pool,
    coefficients: Tensor,
    loss: RatioLoss,
    floors: SignFloors,
) -> Tensor:
    ratio = recombine(log_ratios, coefficients[:, :1], coefficients[:, 1:], floors).ratio
    return loss.per_event(loss.link.raw(ratio), pool.classes) * pool.weights


def tune_coefficients(model: SignedMixtureModel, fit: Fit, loss: RatioLoss) -> TrainingHistory:
    """Minimise the risk over the coefficients by L-BFGS on all training events, sub-ratios frozen.

    Coefficients of a class without negative weights stay at one. A member keeps its coefficients unless the new ones are
    better on validation data by more than a standard error of the paired difference (with the published schedule: unless
    they are better at all).
    """
    start = time.perf_counter()
    training, validation = fit.signed_pools()
    train_ratios = _log_ratios(model, fit.train_inputs)
    held_out_ratios = _log_ratios(model, fit.validation_inputs)
    losses = partial(_losses, loss=loss, floors=model.floors)  # of the ratio that the model predicts
    initial = model.coefficients.detach().double()
    tuned = initial.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([tuned], max_iter=_MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        risk = losses(train_ratios, training, model.fixed_where_certain(tuned)).mean(dim=1).sum()
        risk.backward()  # type: ignore[no-untyped-call]
        return risk

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        proposal = model.fixed_where_certain(tuned)
        before = losses(held_out_ratios, validation, initial)
        difference = losses(held_out_ratios, validation, proposal) - before
        n_errors = 0.0 if fit.settings.schedule == "constant" else _IMPROVEMENT_ERRORS
        error = difference.std(dim=1) / difference.shape[1] ** 0.5
        better = difference.mean(dim=1) < -n_errors * error
        model.coefficients.copy_(torch.where(better[:, None], proposal, initial).float())
        train_risk = losses(train_ratios, training, model.coefficients.double()).mean(dim=1)
    model.tuned_with = loss
    history = TrainingHistory(stage=f"tune-coefficients:{loss.name}")
    risk = before.mean(dim=1) + torch.where(better, difference.mean(dim=1), 0.0)
    history.append(1, _numpy(train_risk), _numpy(risk), 0.0, time.perf_counter() - start)
    history.best_epoch = np.where(_numpy(better) > 0, 0, -1)
    history.diverged = np.zeros(fit.n_members, dtype=bool)
    return history


@torch.inference_mode()
def _log_ratios(model: SignedMixtureModel, inputs: Tensor) -> dict[SignPair, Tensor]:
    chunks = [
        model.outputs(inputs[start : start + _CHUNK]).double() for start in range(0, len(inputs), _CHUNK)
    ]
    return {pair: values.clone() for pair, values in model.log_ratios(torch.cat(chunks, dim=1)).items()}


def _numpy(tensor: Tensor) -> np.typing.NDArray[np.float64]:
    return tensor.detach().cpu().numpy().astype(np.float64)
