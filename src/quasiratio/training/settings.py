"""How long and how fast to train."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["TrainingSettings"]

_N_CHECKS = 20
_WARM_UP = 0.05
_EARLY_FRACTION = 1 / 6
_EARLY_BATCH_DIVISOR = 4
_MIN_EARLY_BATCH = 2048
_PUBLISHED_STEP_LIMIT = 1_000_000


@dataclass(frozen=True)
class TrainingSettings:
    r"""Optimiser, schedule and stopping rule of one fit.

    `schedule="cosine"` warms up over the first 5% of the steps and decays to zero,
    $\eta(t) = \frac{\eta_0}{2}(1 + \cos \pi t)$, while the weights are averaged over its second half; it runs
    to its end unless `patience` is given.
    `schedule="constant"` is the published one: a fixed rate until the validation loss has not improved for
    `patience` epochs.

    Attributes:
        batch_size: Events per step and network; a quarter of it (not below 2048) in the first sixth of a cosine
            schedule.
        learning_rate: Peak rate.
        max_steps: Optimiser steps; by default as many as `n_passes` take.
        n_passes: Passes over the events of the largest problem.
        patience: Epochs without improvement before a network stops.
        schedule: `"cosine"` or `"constant"`.
        epoch_size: Training events between two validations; by default a twentieth of the fit.
        weight_decay: Decoupled weight decay (AdamW) of everything but the biases; zero is Adam.
        member_decay: Factor of the decay for the members of an ensemble.
        max_validation_events: With the cosine schedule, validation uses at most this many events per problem,
            always the same ones; with the constant schedule, which stops by it, all.
        on_divergence: `"warn"` keeps the best validated state, `"raise"` stops, `"ignore"` leaves it to the patience.
        averaged_part: Part of the steps, the last ones, over which the cosine schedule averages the weights.

    Example:
        >>> TrainingSettings(n_passes=6).n_steps(n_events=4_000_000)
        2930
        >>> TrainingSettings(schedule="constant", epoch_size=100_000, batch_size=256).steps_per_epoch(10**6)
        390
    """

    batch_size: int = 8192
    learning_rate: float = 1e-2
    max_steps: int | None = None
    n_passes: float = 6.0
    patience: int | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    epoch_size: int | None = None
    weight_decay: float = 0.0
    member_decay: float = 1.0
    max_validation_events: int = 2**17
    on_divergence: Literal["warn", "raise", "ignore"] = "warn"
    averaged_part: float = 0.5

    def n_validation_events(self, n_events: int) -> int:
        """Return how many of `n_events` validation events are used."""
        return n_events if self.schedule == "constant" else min(n_events, self.max_validation_events)

    def n_steps(self, n_events: int) -> int:
        """Return the number of optimiser steps at most, for a problem of `n_events` training events."""
        if self.max_steps is not None:
            return self.max_steps
        if self.schedule == "constant":
            return _PUBLISHED_STEP_LIMIT
        return math.ceil(self.n_passes * n_events / min(self.batch_size, n_events))

    def steps_per_epoch(self, n_events: int) -> int:
        """Return the number of steps between two validations."""
        if self.epoch_size is None and self.schedule == "cosine":
            return max(1, math.ceil(self.n_steps(n_events) / _N_CHECKS))
        epoch_events = min(n_events, self.epoch_size or n_events)
        return max(1, epoch_events // min(self.batch_size, epoch_events))

    def epochs_of_patience(self) -> float:
        """Return the epochs to wait for an improvement; infinite for a cosine schedule by default."""
        if self.patience is not None:
            return self.patience
        return 20 if self.schedule == "constant" else math.inf

    def batch_sizes(self, n_steps: int) -> Iterator[int]:
        """Yield the batch size of every step.

        The noise of the first steps is forgotten long before the weights are averaged, so that a quarter of
        the batch does as well there; batches of 2048 and less stay as they are.
        """
        n_small = int(_EARLY_FRACTION * n_steps) if self.schedule == "cosine" else 0
        small = max(min(self.batch_size, _MIN_EARLY_BATCH), self.batch_size // _EARLY_BATCH_DIVISOR)
        yield from itertools.repeat(small, n_small)
        yield from itertools.repeat(self.batch_size, n_steps - n_small)

    def first_averaged_step(self, n_steps: int) -> int | None:
        """Return the step from which weights are averaged, or never for the constant schedule."""
        return None if self.schedule == "constant" else int((1.0 - self.averaged_part) * n_steps)

    def rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step counted from zero."""
        if self.schedule == "constant":
            return self.learning_rate
        n_warm_up = max(1, int(_WARM_UP * n_steps))
        if step < n_warm_up:
            return self.learning_rate * (step + 1) / n_warm_up
        progress = (step - n_warm_up) / max(1, n_steps - n_warm_up)
        return 0.5 * self.learning_rate * (1.0 + math.cos(math.pi * progress))
