"""How long a training will take, from a few of its steps."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from quasiratio.progress import duration_text
from quasiratio.training.batches import Batch, Batches, TrainingPool
from quasiratio.training.validation import Verdict

if TYPE_CHECKING:
    from torch import nn

    from quasiratio.training.objectives import Objective
    from quasiratio.training.ranks import Ranks
    from quasiratio.training.settings import TrainingSettings

__all__ = ["projected_line"]

_N_STEPS = 7
_PART_ROWS = 2**13


def projected_line(
    model: nn.Module,
    objective: Objective,
    training: Sequence[TrainingPool],
    validation: Batch,
    settings: TrainingSettings,
    device: torch.device,
    ranks: Ranks,
) -> str:
    """Measure a few steps and a validation with a copy of the model, and say how long all of them will take.

    Args:
        model: The networks.
        objective: What they will lower.
        training: Events of all problems.
        validation: Events that validate after every epoch.
        settings: How long they will train.
        device: Where.
        ranks: Processes that train together; all of them measure, and each takes its share.
    """
    tried = copy.deepcopy(model)
    optimiser = torch.optim.AdamW(tried.parameters(), lr=settings.learning_rate, fused=True)
    generator = torch.Generator(device).manual_seed(0)
    batches = Batches(torch.empty(0, device=device), training, settings.batch_size, generator, ranks)
    stream, parameters = iter(batches), [*tried.parameters()]
    seconds = []
    for _ in range(_N_STEPS):
        start = time.perf_counter()
        batch = next(stream)
        optimiser.zero_grad(set_to_none=True)
        for piece in batch.parts(max(1, _PART_ROWS // len(batch.classes))):
            losses = objective.per_event(tried(piece.features), piece.classes) * piece.weights
            (losses.sum() / batch.n_of_all).backward()  # type: ignore[no-untyped-call]
        ranks.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])
        optimiser.step()
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    Verdict.of(tried, objective, validation, ranks)
    per_validation = time.perf_counter() - start
    n_events = batches.largest_pool
    n_steps = settings.n_steps(n_events)
    shares = sum(min(1.0, size / batch.n_of_all) for size in settings.batch_sizes(n_steps))
    n_validations = n_steps / settings.steps_per_epoch(n_events)
    total = statistics.median(seconds) * shares + per_validation * n_validations
    return f"Training on {n_events} events: at most {n_steps} steps, about {duration_text(total)}"
