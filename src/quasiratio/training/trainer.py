"""The training loop: many networks of one shape, one step at a time, on tensors in memory.

The first axis of every output runs over networks that share nothing but the step. Each has its own best
validated state, its own patience and its own verdict on divergence; a network that is done no longer changes
its best state while the others go on.

Several ranks train one set of networks: each takes its share of every batch from its own events, and the gradients are added
up, in one message a step, before all of them take the same step (see `ranks`).
"""

from __future__ import annotations

import itertools
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from quasiratio.errors import DivergenceError, DivergenceWarning
from quasiratio.registry import ESTIMATORS
from quasiratio.training.averaging import WeightAverage
from quasiratio.training.checkpoints import Resumable, next_stage
from quasiratio.training.history import TrainingHistory
from quasiratio.training.ranks import Ranks
from quasiratio.training.validation import IMPROVEMENT_ERRORS, BestStates, Verdict

if TYPE_CHECKING:
    from quasiratio.progress import ShowTraining
    from quasiratio.training.batches import Batch, Batches
    from quasiratio.training.objectives import Objective
    from quasiratio.training.settings import TrainingSettings

__all__ = ["TrainedNetworks", "train"]


class TrainedNetworks(NamedTuple):
    """What happened in a training, and the weighted validation losses of the kept states, `(n_networks, n)`."""

    history: TrainingHistory
    losses: Tensor


_FINITE_CHECK_INTERVAL = 25
_CACHED_ROWS, _MIN_PART = 2**13, 512
"""Rows of all networks together whose activations fit the processor's cache; gradients add up over parts."""


def train(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    validation: Batch,
    settings: TrainingSettings,
    *,
    keep_initial: bool = False,
    progress: ShowTraining | None = None,
    ranks: Ranks | None = None,
) -> TrainedNetworks:
    """Minimise the weighted mean of the objective and leave the model in its best validated state.

    Args:
        model: Parameters with a leading axis over networks; maps features to outputs.
        objective: Per-event loss.
        batches: Endless training batches, or the shares that this rank has in them.
        validation: All validation events, one row per network (or one row for all); the same on all ranks.
        settings: Schedule and stopping rule.
        keep_initial: Whether the state before training counts as a state to fall back on, as it does
            when a trained model is tuned: the validation loss then never gets worse, and with a decaying schedule
            the trained model is given up only for one that is better by more than two standard errors.
        progress: Called after each epoch.
        ranks: Processes that train together, from the same initial model; this one alone when left out.

    Raises:
        DivergenceError: No finite state exists, or the risk ran away with `on_divergence="raise"`.
    """
    ranks = ranks or Ranks()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(
        _decay_groups(model, settings.weight_decay), lr=settings.learning_rate, fused=True
    )
    n_steps = settings.n_steps(batches.largest_pool)
    epoch_steps = settings.steps_per_epoch(batches.largest_pool)
    history = TrainingHistory(stage=objective.name)
    best = BestStates(
        parameters,
        Verdict.of(model, objective, validation, ranks),
        keep_initial=keep_initial,
        prefer_latest=not keep_initial and settings.schedule != "constant",
        improvement_errors=0.0 if settings.schedule == "constant" else IMPROVEMENT_ERRORS,
    )
    average = WeightAverage(parameters, first_step=settings.first_averaged_step(n_steps))
    n_diverged_epochs = torch.zeros_like(best.risk, dtype=torch.long)
    n_cached = max(_MIN_PART, _CACHED_ROWS // len(best.risk))
    first_step, running, n_running = 0, torch.zeros_like(best.risk), 0

    checkpoint = next_stage()
    parts: dict[str, Resumable] = {
        "model": model,
        "optimiser": optimiser,
        "best": best,
        "average": average,
        "batches": batches,
        "history": history,
    }
    saved = ranks.once(lambda: None if checkpoint is None else checkpoint.load())
    if checkpoint is not None and saved is not None:
        with ranks.agreed(), checkpoint.restoring():
            saved["batches"] = saved["batches"][ranks.rank]
            for name, part in parts.items():
                part.load_state_dict(saved[name])
            first_step = range(n_steps + 1)[saved["next_step"]]
            n_diverged_epochs = n_diverged_epochs.copy_(saved["n_diverged_epochs"])
    start = time.perf_counter() - history.wall_clock

    sizes = itertools.islice(settings.batch_sizes(n_steps), first_step, None)
    for step, batch in enumerate(batches.stream(sizes), start=first_step):
        rate = settings.rate(step, n_steps)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        for piece in batch.parts(n_cached):
            losses = objective.per_event(model(piece.features), piece.classes) * piece.weights
            risks = losses.sum(dim=1) / batch.n_of_all
            risks.sum().backward()  # type: ignore[no-untyped-call]
            running += risks.detach()
        ranks.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])
        optimiser.step()
        average.update(step)
        n_running += 1

        is_last = step == n_steps - 1
        is_checked = step % _FINITE_CHECK_INTERVAL == 0
        blown_up = is_checked and not bool(torch.isfinite(ranks.sum(running)).all())
        if not (is_last or blown_up or (step + 1) % epoch_steps == 0):
            continue
        running = ranks.sum(running)
        ranks.take_first([*parameters, *average.means])  # other processors round differently
        with average.swapped_in():
            verdict = Verdict.of(model, objective, validation, ranks)
            best.update(verdict, epoch=len(history), patience=settings.epochs_of_patience())
        # A risk without a minimum improves for ever; patience counts from where that was noticed.
        n_diverged_epochs += (n_diverged_epochs > 0) | verdict.ran_away | ~torch.isfinite(running)
        if settings.on_divergence != "ignore":
            best.done |= n_diverged_epochs > settings.epochs_of_patience()
        history.append(
            step + 1,
            (running / n_running).cpu().numpy().astype(np.float64),
            verdict.risk.cpu().numpy().astype(np.float64),
            rate,
            time.perf_counter() - start,
        )
        if progress is not None:
            progress(step + 1, n_steps, float(verdict.risk.mean()))
        if bool(n_diverged_epochs.any()) and settings.on_divergence == "raise":
            raise DivergenceError(_divergence_message(objective.name, step + 1))
        is_over = is_last or bool(best.done.all()) or not bool(torch.isfinite(running).any())
        is_over = ranks.same(is_over)
        if checkpoint is not None:
            state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
            next_step = n_steps if is_over else step + 1
            state |= {"next_step": next_step, "n_diverged_epochs": n_diverged_epochs}
            state["batches"] = ranks.gathered(state["batches"])
            ranks.once(partial(checkpoint.save, state))
        if is_over:
            break
        running, n_running = torch.zeros_like(best.risk), 0

    best.restore()
    diverged = n_diverged_epochs > 0
    history.best_epoch = best.epoch.cpu().numpy()
    history.diverged = diverged.cpu().numpy()
    if not bool(torch.isfinite(best.risk).all()):
        raise DivergenceError(
            _divergence_message(objective.name, history.n_steps) + " No finite state exists."
        )
    if bool(diverged.any()) and settings.on_divergence != "ignore":
        warnings.warn(_divergence_message(objective.name, history.n_steps), DivergenceWarning, stacklevel=2)
    return TrainedNetworks(history, best.kept_losses)


def _decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Divide the parameters: decay of a bias would pull a density's overall share to one half."""
    weights: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (weights if "weights" in name.split(".") else others).append(parameter)
    groups = ({"params": weights, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0})
    return [group for group in groups if group["params"]]


def _divergence_message(name: str, step: int) -> str:
    return (
        f"The risk of the loss '{name}' has no lower bound on these data (noticed by step {step}): negative "
        f"weights outweigh positive ones where the network's output is extreme. The best validated state was "
        f"kept; for signed densities use loss='revert' or 'lsif' (positive reference density), "
        f"{ESTIMATORS.any_reference_classes()} (any)."
    )
