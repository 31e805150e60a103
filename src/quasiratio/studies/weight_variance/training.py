"""Both models at a group of points, from shared events to a row for each point as soon as it is known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from quasiratio.metrics import validation_loss_area
from quasiratio.studies.engine.study import Row, Settings, Task
from quasiratio.studies.weight_variance.fast_passes.classifier_problem import (
    ClassifierProblem,
    validation_chunks,
)
from quasiratio.studies.weight_variance.fast_passes.mixture_problem import (
    MixtureProblem,
    mixture_ratio,
    signs_to_coefficients,
)
from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import (
    StackedPass,
    initial_parameters,
    with_ones,
)
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents, point_generator
from quasiratio.studies.weight_variance.fast_passes.stack_training import StackSchedule, Stopped, train_stack
from quasiratio.studies.weight_variance.fast_passes.sub_ratio_problem import PAIRS, SubRatioProblem
from quasiratio.studies.weight_variance.grid import UNWEIGHTED, GridPoint
from quasiratio.studies.weight_variance.shared_events import EventSizes, SharedEvents, shared_events

__all__ = ["EXPECTED_EPOCHS", "compute", "projected_seconds", "row_key"]

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
        # The first run draws the events and loads what is loaded once.
        _, one, more = (_seconds(arguments | {"max_epochs": n}) for n in (1, 1, 1 + _MEASURED_EPOCHS))
        per_epoch = max(0.0, more - one) / _MEASURED_EPOCHS / len(of_model[0].rows)
        expected = min(EXPECTED_EPOCHS[model], of_model[0].arguments["max_epochs"])
        total += per_epoch * expected * n_points
    return total


def _seconds(arguments: dict[str, object]) -> float:
    start = time.perf_counter()
    for _ in compute(dict(arguments)):
        pass
    return time.perf_counter() - start


_TRAINING, _VALIDATION, _START = 0, 1, 2
_CLASSIFIER_WIDTHS, _SUB_RATIO_WIDTHS = (2, 64, 64, 1), (2, 32, 32, 1)
_DIGITS = 7


def row_key(seed: int, point: GridPoint, model: str) -> str:
    """Return the key of a row.

    Example:
        >>> row_key(0, GridPoint(1.0, 0.02), "mlp")
        'seed=0/sigma=1.0000/eta=0.02000/mlp'
    """
    return f"seed={seed}/{point.name}/{model}"


def compute(arguments: dict[str, Any]) -> Iterator[Row]:
    """Train one model at every point of a group that is not known yet."""
    seed, model, known = arguments["seed"], arguments["model"], set(arguments.get("known", ()))
    points = [GridPoint(*pair) for pair in arguments["points"]]
    points = [point for point in points if row_key(seed, point, model) not in known]
    if not points:
        return
    sizes = EventSizes(*(arguments[name] for name in ("n_training", "n_validation", "n_test")))
    events = shared_events(seed, sizes).with_validation(2 * arguments["n_validation_used"])
    n_steps = arguments["epoch_events"] // arguments["batch_size"]
    schedule = StackSchedule(
        n_steps, arguments["patience"], arguments["max_epochs"], arguments["learning_rate"]
    )
    train = {"mlp": _classifiers, "rosmm_r": _mixtures}[model]
    start = time.perf_counter()
    # With several threads OpenBLAS adds in another order, and the same seed would be another run with fewer jobs.
    with threadpool_limits(1, user_api="blas"):
        for point, facts in train(events, points, seed, schedule, arguments["batch_size"]):
            facts |= {"sigma_w": point.sigma_w, "eta": point.eta, "seed": seed, "model": model}
            facts |= {"seconds_since_start": time.perf_counter() - start}
            yield Row(row_key(seed, point, model), facts)


def _classifiers(
    events: SharedEvents, points: Sequence[GridPoint], seed: int, schedule: StackSchedule, batch_size: int
) -> Iterator[tuple[GridPoint, dict[str, Any]]]:
    training, validation = _signed(events, points, seed)
    problem = ClassifierProblem(
        training, validation, batch_size=batch_size, steps_per_epoch=schedule.steps_per_epoch
    )
    # All points start from one network, so that their curves differ by the weights alone.
    start = initial_parameters(_CLASSIFIER_WIDTHS, point_generator(UNWEIGHTED, seed, _START))
    parameters = [one.repeat(len(points), 1, 1) for one in start]
    for stopped in train_stack(parameters, len(points), problem, schedule):
        yield (
            points[stopped.member],
            _curve_facts(stopped) | {"entropy": _classifier_entropy(events, stopped)},
        )


def _mixtures(
    events: SharedEvents, points: Sequence[GridPoint], seed: int, schedule: StackSchedule, batch_size: int
) -> Iterator[tuple[GridPoint, dict[str, Any]]]:
    training, validation = _signed(events, points, seed)
    options = {"batch_size": batch_size, "steps_per_epoch": schedule.steps_per_epoch}
    generators = [point_generator(point, seed, _START) for point in points]
    starts = [initial_parameters(_SUB_RATIO_WIDTHS, generator) for generator in generators for _ in PAIRS]
    parameters = [torch.cat(one) for one in zip(*starts, strict=True)]
    n_networks = len(starts)
    trained: dict[int, Stopped] = {}
    for stopped in train_stack(
        parameters, n_networks, SubRatioProblem(training, validation, **options), schedule
    ):
        trained[stopped.member] = stopped
    best = [
        torch.cat(one)
        for one in zip(*(trained[network].parameters for network in range(n_networks)), strict=True)
    ]
    coefficients = signs_to_coefficients(training)
    before = [
        _mixture_entropy(events, [one[4 * row : 4 * row + 4] for one in best], coefficients[row : row + 1])
        for row in range(len(points))
    ]
    problem = MixtureProblem(training, validation, **options)
    for stopped in train_stack(
        [*best, coefficients.clone()], len(points), problem, schedule, keep_initial=True
    ):
        row = stopped.member
        facts = _curve_facts(stopped)
        facts |= {
            "entropy": _mixture_entropy(events, stopped.parameters[:-1], stopped.parameters[-1]),
            "entropy_before_tuning": before[row],
            "coefficients": [round(c, _DIGITS) for c in stopped.parameters[-1][0].tolist()],
            "sub_ratio_epochs": [len(trained[4 * row + pair].validation_loss) for pair in range(4)],
        }
        yield points[row], facts


def _signed(
    events: SharedEvents, points: Sequence[GridPoint], seed: int
) -> tuple[SignedEvents, SignedEvents]:
    return (
        SignedEvents.draw(events.training, events.training_labels, points, seed=seed, stream=_TRAINING),
        SignedEvents.draw(events.validation, events.validation_labels, points, seed=seed, stream=_VALIDATION),
    )


def _curve_facts(stopped: Stopped) -> dict[str, Any]:
    curve = stopped.validation_loss
    return {
        "epochs": len(curve),
        "best_epoch": stopped.best_epoch,
        "hit_limit": stopped.hit_limit,
        "area": _area(curve[: stopped.best_epoch + 1]),
        "area_to_last_epoch": _area(curve),
        "validation_loss": [round(loss, _DIGITS) for loss in curve],
    }


def _area(curve: Sequence[float]) -> float | None:
    """Return the area of a curve, or None if training never helped or the loss ran away on the way."""
    return validation_loss_area(curve) if len(curve) > 0 and np.isfinite(curve).all() else None


def _classifier_entropy(events: SharedEvents, stopped: Stopped) -> float:
    passes = StackedPass()
    outputs = [
        passes.outputs(stopped.parameters, with_ones(events.test_reference[chunk]))[0].double()
        for chunk in validation_chunks(len(events.test_reference), 1)
    ]
    return events.relative_entropy(torch.cat(outputs).exp().numpy())


def _mixture_entropy(
    events: SharedEvents, networks: Sequence[torch.Tensor], coefficients: torch.Tensor
) -> float:
    passes = StackedPass()
    ratios = [
        mixture_ratio(
            passes.outputs(networks, with_ones(events.test_reference[chunk])).double(), coefficients.double()
        )[0]
        for chunk in validation_chunks(len(events.test_reference), len(PAIRS))
    ]
    return events.relative_entropy(torch.cat(ratios).numpy())
