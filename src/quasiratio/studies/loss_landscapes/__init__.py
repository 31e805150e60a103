"""Has the risk of a loss a minimum in the mixture coefficients, when the sub-ratios are fixed?

For each case a RoSMM is fitted, its sub-ratios are held fixed, and the risks of MSE and PARE are evaluated on
test events over a grid of $(c_0, c_1)$; for SMEFT, whose reference has no negative weights, over $c_1$ alone. The
SMEFT events are those of the hard scattering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

from quasiratio.studies.engine.study import Presentation, Row, Settings, Study, Task

__all__ = ["STUDY"]

_GRIDS = {
    "nonnegative": {"c0": [1.0, 1.8], "c1": [1.2, 2.8]},
    "signed": {"c0": [1.0, 1.8], "c1": [1.2, 2.8]},
    "smeft": {"c0": [1.0, 1.0], "c1": [1.0, 1.6]},
}


def _tasks(settings: Settings) -> Sequence[Task]:
    tasks = []
    for seed in range(int(settings["seeds"])):
        for case, grid in _GRIDS.items():
            if case == "smeft" and find_spec("pythia8mc") is None:
                continue  # its parton densities are missing; the presentation says so
            sizes = settings["smeft_sizes" if case == "smeft" else "sizes"]
            arguments = {
                "case": case,
                "seed": seed,
                "sizes": list(sizes),
                "n_points": int(settings["n_points"]),
                "training": dict(settings["training"]),
                **grid,
            }
            keys = [f"{case}/seed-{seed}/{loss}" for loss in ("MSE", "PARE")]
            tasks.append(Task(f"{case}/seed-{seed}", arguments, keys))
    return tasks


def _compute(arguments: dict[str, Any]) -> Iterable[Row]:
    from quasiratio.studies.loss_landscapes.risk_grid import risk_grids  # noqa: PLC0415 - torch

    for loss, values in risk_grids(arguments):
        key = f"{arguments['case']}/seed-{arguments['seed']}/{loss}"
        yield Row(key, {"case": arguments["case"], "seed": arguments["seed"], "loss": loss} | values)


def _present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    from quasiratio.studies.loss_landscapes.presentation import present  # noqa: PLC0415 - loads Matplotlib

    return present(settings, rows)


STUDY = Study(
    name="loss-landscapes",
    question="Has the risk a minimum in the mixture coefficients, with MSE and with PARE?",
    presets={
        "smoke": {
            "seeds": 2,
            "sizes": [4000, 2000, 4000],
            "smeft_sizes": [4000, 2000, 4000],
            "n_points": 13,
            "training": {"max_steps": 100, "batch_size": 1000},
        },
        "quick": {
            "seeds": 2,
            "sizes": [200_000, 60_000, 50_000],
            "smeft_sizes": [100_000, 30_000, 100_000],
            "n_points": 41,
            "training": {"max_steps": 1000},
        },
        "full": {
            "seeds": 5,
            "sizes": [2_000_000, 600_000, 200_000],
            "smeft_sizes": [776_369, 179_162, 238_883],
            "n_points": 61,
            "training": {},
        },
    },
    tasks=_tasks,
    compute=_compute,
    present=_present,
)
