r"""What do weights do to a training: their variance, or their signs?

The 1000 points of the published grid share one dataset and differ in weights that do not depend on the features.
Many points advance in one batched model, each to its own early stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quasiratio.studies.engine.study import Presentation, Row, Settings, Study, Task
from quasiratio.studies.weight_variance.grid import UNWEIGHTED, grid_points

__all__ = ["STUDY"]

_PASSED_ON = (
    "n_training", "n_validation", "n_test", "epoch_events", "batch_size", "patience", "max_epochs", "learning_rate",
)  # fmt: skip
_PUBLISHED = {
    "epoch_events": 100_000, "batch_size": 256, "patience": 20, "learning_rate": 1e-4, "max_epochs": 1000,
    "rosmm_learning_rate": 1e-4, "rosmm_max_epochs": 1000,
}  # fmt: skip
_PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "n_sigma": 3, "n_eta": 2, "n_training": 100_000, "n_validation": 4_096, "rosmm_n_validation": 4_096, "n_test": 50_000, "group": 4,
        "epoch_events": 12_800, "batch_size": 256, "patience": 8, "learning_rate": 3e-3, "max_epochs": 20,
        "rosmm_learning_rate": 3e-3, "rosmm_max_epochs": 20,
    },
    "quick": {
        "n_sigma": 10, "n_eta": 5, "n_training": 2_000_000, "n_validation": 131_072, "rosmm_n_validation": 32_768,
        "n_test": 500_000, "group": 13,
        **_PUBLISHED, "max_epochs": 100, "rosmm_learning_rate": 3e-4, "rosmm_max_epochs": 40,
    },
    "full": {
        "n_sigma": 50, "n_eta": 20, "n_training": 4_400_000, "n_validation": 131_072, "rosmm_n_validation": 65_536,
        "n_test": 2_400_000, "group": 20, **_PUBLISHED,
    },
}  # fmt: skip


def effective_settings(settings: Settings) -> Settings:
    """Return the settings with the published schedule where that was asked for."""
    return {**settings, **_PUBLISHED} if settings["published_settings"] else settings


def tasks(settings: Settings) -> list[Task]:
    """Make groups of points that train together; the MLP comes first, so that a run in parts soon has all its areas."""
    from quasiratio.studies.weight_variance.training import row_key  # noqa: PLC0415 - loads torch

    settings = effective_settings(settings)
    grid = grid_points(settings["n_sigma"], settings["n_eta"])
    found = []
    for model in sorted(settings["methods"]):
        points = ([UNWEIGHTED] if model == "mlp" else []) + grid
        for seed in range(settings["seeds"]):
            # Neighbours in the list stop at different times; points far apart share a group.
            n_groups = -(-len(points) // settings["group"])
            for group in range(n_groups):
                chosen = points[group::n_groups]
                arguments = {name: settings[name] for name in _PASSED_ON}
                arguments |= {"seed": seed, "model": model}
                # The curves of the MLP are judged: they need the published rate, and more validation events.
                prefix = "" if model == "mlp" else "rosmm_"
                arguments |= {name: settings[prefix + name] for name in ("learning_rate", "max_epochs")}
                arguments["n_validation_used"] = settings[prefix + "n_validation"]
                arguments["points"] = [[point.sigma_w, point.eta] for point in chosen]
                keys = [row_key(seed, point, model) for point in chosen]
                found.append(Task(f"{model}/seed={seed}/group={group}", arguments, keys))
    return found


def compute(arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - an iterator of rows
    """Train one model at a group of points."""
    from quasiratio.studies.weight_variance.training import compute as train  # noqa: PLC0415 - loads torch

    return train(arguments)


def present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    """Fit lines and draw figures."""
    from quasiratio.studies.weight_variance.presentation import present as written  # noqa: PLC0415 - loads Matplotlib

    return written(effective_settings(settings), rows)


def projected_seconds(settings: Settings) -> float:
    """Measure a few steps of one group."""
    from quasiratio.studies.weight_variance.training import projected_seconds as measured  # noqa: PLC0415

    return measured(effective_settings(settings), tasks(settings))


STUDY = Study(
    name="weight-variance",
    question="Is it the variance of the weights that slows a training, or their signs?",
    presets={
        name: {"seeds": 1, "methods": ["mlp", "rosmm_r"], "published_settings": False} | preset
        for name, preset in _PRESETS.items()
    },
    tasks=tasks,
    compute=compute,
    present=present,
    methods=("mlp", "rosmm_r"),
    projected_seconds=projected_seconds,
)
