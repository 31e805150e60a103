"""Training many points side by side, each to its own early stop.

All points advance in one step. A point stops where its validation loss has not improved for a number of epochs;
its best state is then handed on at once. When enough have stopped, the stack is rebuilt from those that go on,
with their parameters and moments, so that no time is spent on the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["StackProblem", "StackSchedule", "Stopped", "train_stack"]

_REBUILD_BELOW = 0.9
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class StackSchedule:
    """A constant rate until patience runs out.

    Args:
        steps_per_epoch: Steps between two validations.
        patience: Epochs without a lower validation loss.
        max_epochs: Epochs at most.
        learning_rate: Adam's.

    Example:
        >>> StackSchedule(steps_per_epoch=390, patience=20, max_epochs=1000, learning_rate=1e-4).patience
        20
    """

    steps_per_epoch: int
    patience: int
    max_epochs: int
    learning_rate: float


class StackProblem(Protocol):
    """What is trained. Parameters have a first axis of one or more rows per member."""

    def begin_epoch(self, epoch: int) -> None:
        """Lay out the events of an epoch."""
        ...

    def gradients(self, parameters: list[Tensor], step: int) -> list[Tensor]:
        """Return the gradients at a step of the epoch."""
        ...

    def validation_losses(self, parameters: list[Tensor]) -> Tensor:
        """Return the validation loss of each member."""
        ...

    def keep(self, members: Tensor) -> None:
        """Go on with some of the present members only."""
        ...


@dataclass(frozen=True, eq=False)
class Stopped:
    """A member at its end.

    Args:
        member: Its number, as it was at the start.
        validation_loss: After every epoch.
        best_epoch: Counted from zero; -1 is the state before training.
        parameters: Its best state.
        hit_limit: Whether it was cut at the largest number of epochs.
    """

    member: int
    validation_loss: list[float]
    best_epoch: int
    parameters: list[Tensor]
    hit_limit: bool


def train_stack(
    parameters: list[Tensor],
    n_members: int,
    problem: StackProblem,
    schedule: StackSchedule,
    *,
    keep_initial: bool = False,
) -> Iterator[Stopped]:
    """Train, and yield every member as it stops.

    Args:
        parameters: The start; changed in place.
        n_members: Number of members.
        problem: What to train.
        schedule: How fast and how long.
        keep_initial: Whether the start counts as a state to fall back on.
    """
    members = torch.arange(n_members)
    optimiser: torch.optim.Optimizer = torch.optim.Adam(parameters, lr=schedule.learning_rate, fused=True)
    best = [parameter.clone() for parameter in parameters]
    lowest = torch.full((n_members,), math.inf, dtype=torch.float64)
    if keep_initial:
        lowest = _finite(problem.validation_losses(parameters))
    best_epoch = torch.full((n_members,), -1)
    active = torch.ones(n_members, dtype=torch.bool)
    curves: list[list[float]] = [[] for _ in range(n_members)]
    for epoch in range(schedule.max_epochs):
        problem.begin_epoch(epoch)
        for step in range(schedule.steps_per_epoch):
            gradients = problem.gradients(parameters, step)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            optimiser.step()
        losses = _finite(problem.validation_losses(parameters))
        lower = (losses < lowest) & active
        lowest = torch.where(lower, losses, lowest)
        best_epoch = torch.where(lower, epoch, best_epoch)
        for state, parameter in zip(best, parameters, strict=True):
            rows = lower.repeat_interleave(len(parameter) // len(members))
            state[rows] = parameter[rows]
        is_last = epoch == schedule.max_epochs - 1
        stops = active & ((epoch - best_epoch >= schedule.patience) | is_last)
        for place in torch.nonzero(active)[:, 0].tolist():
            curves[int(members[place])].append(float(losses[place]))
        for place in torch.nonzero(stops)[:, 0].tolist():
            member = int(members[place])
            own = [_rows(one, len(members), torch.tensor([place])) for one in best]
            cut = bool(is_last and epoch - int(best_epoch[place]) < schedule.patience)
            yield Stopped(member, curves[member], int(best_epoch[place]), own, cut)
        active &= ~stops
        if not bool(active.any()):
            return
        if int(active.sum()) <= _REBUILD_BELOW * len(members):
            chosen = torch.nonzero(active)[:, 0]
            parameters, optimiser = _rebuilt(parameters, optimiser, len(members), chosen, schedule)
            best = [_rows(one, len(members), chosen) for one in best]
            problem.keep(chosen)
            members, lowest, best_epoch = members[chosen], lowest[chosen], best_epoch[chosen]
            active = active[chosen]


def _finite(losses: Tensor) -> Tensor:
    return torch.where(torch.isfinite(losses), losses, math.inf).double()


def _rows(parameter: Tensor, n_members: int, chosen: Tensor) -> Tensor:
    """Return the rows of some members."""
    return parameter.view(n_members, -1, *parameter.shape[1:])[chosen].flatten(0, 1).contiguous()


def _rebuilt(
    parameters: list[Tensor],
    optimiser: torch.optim.Optimizer,
    n_members: int,
    chosen: Tensor,
    schedule: StackSchedule,
) -> tuple[list[Tensor], torch.optim.Optimizer]:
    """Return parameters and optimiser of some members, with their moments."""
    smaller = [_rows(parameter, n_members, chosen) for parameter in parameters]
    rebuilt = torch.optim.Adam(smaller, lr=schedule.learning_rate, fused=True)
    for old, new in zip(parameters, smaller, strict=True):
        state = optimiser.state[old]
        rebuilt.state[new] = {name: _rows(state[name], n_members, chosen) for name in _MOMENTS}
        rebuilt.state[new]["step"] = state["step"].clone()
    return smaller, rebuilt
