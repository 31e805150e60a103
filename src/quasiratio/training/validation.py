"""Validating networks, and keeping the state of each that validation likes best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from quasiratio.training.ranks import Ranks

if TYPE_CHECKING:
    from quasiratio.training.batches import Batch
    from quasiratio.training.objectives import Objective

__all__ = ["IMPROVEMENT_ERRORS", "BestStates", "Verdict", "standard_error"]

_CHUNK_ROWS = 2**14
IMPROVEMENT_ERRORS = 2.0
"""Standard errors by which a tuned state has to be better than the one it began from."""
_TIE_ERRORS = 2.0
_TIE_FRACTION, _TIE_EVENTS = 5e-4, 1e4
_KEPT = ("states", "lowest_losses", "kept_losses", "risk", "epoch", "lowest_epoch", "done")


def standard_error(values: Tensor) -> Tensor:
    """Return the standard error of the mean along the last axis; of one event there is none, and NaN is below nothing.

    Example:
        >>> standard_error(torch.tensor([[1.0, 3.0], [2.0, 2.0]])), standard_error(torch.ones(1))
        (tensor([1., 0.]), tensor(nan))
    """
    n_events = values.shape[-1]
    return values.std(dim=-1) / n_events**0.5 if n_events > 1 else math.nan * values[..., 0]


@dataclass(frozen=True)
class Verdict:
    """Validation of every network: weighted losses `(n_networks, n)`, their mean, and who ran away."""

    losses: Tensor
    risk: Tensor
    ran_away: Tensor

    @classmethod
    def of(
        cls, model: nn.Module, objective: Objective, validation: Batch, ranks: Ranks | None = None
    ) -> Verdict:
        """Evaluate all networks on the validation events, in chunks that fit the processor's cache.

        Ranks have the same events; each evaluates a stretch of them.
        """
        ranks = ranks or Ranks()
        n_events = validation.classes.shape[1]
        n_networks = max(len(parameter) for parameter in model.parameters())
        chunk = max(1024, _CHUNK_ROWS // n_networks)
        with torch.no_grad():
            first, last = (n_events * number // ranks.size for number in (ranks.rank, ranks.rank + 1))
            own = [
                model(validation.features[..., start : min(start + chunk, last), :])
                for start in range(first, max(last, first + 1), chunk)
            ]
            outputs = _of_all(torch.cat(own, dim=1), first, n_events, ranks)
            classes = validation.classes.expand(len(outputs), *validation.classes.shape[1:])
            weights = validation.weights.expand(len(outputs), n_events)
            losses = objective.per_event(outputs, classes) * weights
            return cls(losses, losses.double().mean(dim=1), objective.runs_away(outputs, classes, weights))


def _of_all(own: Tensor, first: int, n_events: int, ranks: Ranks) -> Tensor:
    """Return the outputs at all events, of which each rank has a stretch."""
    if ranks.size == 1:
        return own
    outputs = own.new_zeros(own.shape[0], n_events, *own.shape[2:])
    outputs[:, first : first + own.shape[1]] = own
    return ranks.sum(outputs)


class BestStates:
    """The state of each network to go back to.

    That is the state with the lowest validation risk or, with `prefer_latest`, the latest one that validation
    cannot tell from it: the difference of their risks is below two standard errors (of the paired
    difference) and below 5e-4 of the risk (less with fewer than ten thousand validation events, where over-training
    costs the ratio more than the risk shows). Later states of a decaying schedule have less noise, and at large sizes
    the lowest of many nearly equal risks is the lowest by chance.

    With `improvement_errors` the state before the training is given up only for one whose risk is lower by more than so
    many standard errors of the paired difference.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        initial: Verdict,
        *,
        keep_initial: bool,
        prefer_latest: bool,
        improvement_errors: float = 0.0,
    ) -> None:
        self.parameters = parameters
        self.prefer_latest = prefer_latest
        self.improvement_errors = improvement_errors
        self.initial = initial
        self.initial_states = [parameter.detach().clone() for parameter in parameters] if keep_initial else []
        self.states = [parameter.detach().clone() for parameter in parameters]
        self.lowest_losses = self.kept_losses = initial.losses
        self.risk = initial.risk if keep_initial else torch.full_like(initial.risk, math.inf)
        self.epoch = torch.full_like(initial.risk, -1, dtype=torch.long)
        self.lowest_epoch = self.epoch.clone()
        self.done = torch.zeros_like(initial.risk, dtype=torch.bool)

    def update(self, verdict: Verdict, *, epoch: int, patience: float) -> None:
        """Take in the present state of the parameters, judged by `verdict`."""
        risk = torch.where(torch.isfinite(verdict.risk), verdict.risk, math.inf)
        lower = (risk < self.risk) & ~self.done
        kept = lower
        if self.prefer_latest:
            difference = (verdict.losses - self.lowest_losses).double()
            error = standard_error(difference)
            fraction = _TIE_FRACTION * min(1.0, difference.shape[1] / _TIE_EVENTS)
            tie = torch.minimum(_TIE_ERRORS * error, fraction * self.risk.abs().clamp(min=1.0))
            kept = lower | ((risk - self.risk < tie) & ~self.done)
        self.lowest_losses = torch.where(lower[:, None], verdict.losses, self.lowest_losses)
        self.kept_losses = torch.where(kept[:, None], verdict.losses, self.kept_losses)
        self.risk = torch.where(lower, risk, self.risk)
        self.lowest_epoch = torch.where(lower, epoch, self.lowest_epoch)
        self.epoch = torch.where(kept, epoch, self.epoch)
        self.done |= (epoch - self.lowest_epoch) >= patience
        for state, parameter in zip(self.states, self.parameters, strict=True):
            rows = kept.repeat_interleave(len(parameter) // len(kept))
            state[rows] = parameter.detach()[rows]

    def restore(self) -> None:
        """Put the kept states back in place."""
        if self.improvement_errors and self.initial_states:
            self._give_up_chance_improvements()
        with torch.no_grad():
            for state, parameter in zip(self.states, self.parameters, strict=True):
                parameter.copy_(state)

    def _give_up_chance_improvements(self) -> None:
        """Go back to the state before the training where validation cannot tell the kept one from it."""
        difference = (self.kept_losses - self.initial.losses).double()
        error = standard_error(difference)
        by_chance = ~(difference.mean(dim=1) < -self.improvement_errors * error)
        self.risk = torch.where(by_chance, self.initial.risk, self.risk)
        self.epoch = torch.where(by_chance, -1, self.epoch)
        self.kept_losses = torch.where(by_chance[:, None], self.initial.losses, self.kept_losses)
        for state, before in zip(self.states, self.initial_states, strict=True):
            rows = by_chance.repeat_interleave(len(state) // len(by_chance))
            state[rows] = before[rows]

    def state_dict(self) -> dict[str, Any]:
        """Return the kept states and what is known of them."""
        return {name: getattr(self, name) for name in _KEPT}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from earlier ones."""
        for name in _KEPT:
            setattr(self, name, state[name])
