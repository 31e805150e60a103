"""How long a run will take, from a few measured epochs of one group of each model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from quasiratio.studies.study import Settings, Task
from quasiratio.studies.weight_variance.training import compute

__all__ = ["EXPECTED_EPOCHS", "projected_seconds"]

EXPECTED_EPOCHS = {"mlp": 110, "rosmm_r": 110}
"""Epochs of a stage until its patience runs out, on average over the grid; RoSMM_r has two stages."""
_MEASURED_EPOCHS = 2
_SMALL = 100_000


def projected_seconds(settings: Settings, tasks: Sequence[Task]) -> float:
    """Return the seconds of one worker for all tasks.

    Two epochs of the first group of each model are timed on a small sample, which has as many steps as those of
    the study; validation has its full size. The number of epochs is what early stopping took in the past.

    Args:
        settings: Settings of the run.
        tasks: All its tasks.
    """
    total = 0.0
    for model in settings["methods"]:
        of_model = [task for task in tasks if task.arguments["model"] == model]
        n_points = sum(len(task.rows) for task in of_model)
        arguments = dict(of_model[0].arguments)
        arguments |= {"n_training": min(_SMALL, arguments["n_training"]), "n_test": 1000}
        one, more = (_seconds(arguments | {"max_epochs": n}) for n in (1, 1 + _MEASURED_EPOCHS))
        per_epoch = max(0.0, more - one) / _MEASURED_EPOCHS / len(of_model[0].rows)
        expected = min(EXPECTED_EPOCHS[model], of_model[0].arguments["max_epochs"])
        total += per_epoch * expected * n_points
    return total


def _seconds(arguments: dict[str, object]) -> float:
    start = time.perf_counter()
    for _ in compute(dict(arguments)):
        pass
    return time.perf_counter() - start
