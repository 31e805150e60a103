"""What the number of validation events does to the weight-variance study: some of its points, with the paper's 1,200,000 per class.

The study validates with 131,072 events per class (65,536 for RoSMM_r), which is what makes a thousand points affordable. Weighted
losses are the noisier the wider the weights are, and the area under a curve inherits that, as does the choice of the state that is
kept. `python -m benchmarks.validation_size` trains forty points of the published grid again, on the same training events with the same
signs and starts, and appends a row for each to `benchmarks/results/validation_size.json`; rows that are there are not computed
again (one point takes a core-minute or two, nearly all of it validation). `paper_page` sets them beside the study's own.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.results import DIRECTORY, append_row, read_rows
from benchmarks.study_rows import rows_of_file
from quasiratio.studies.weight_variance import STUDY
from quasiratio.studies.weight_variance.grid import GridPoint, grid_points
from quasiratio.studies.weight_variance.training import compute

NAME = "validation_size"
N_VALIDATION = 1_200_000
_POINTS_TOGETHER = 10
_KEPT = ("sigma_w", "eta", "model", "best_epoch", "epochs", "area", "area_to_last_epoch", "entropy")


def chosen_points(n_eta: int = 4) -> list[GridPoint]:
    """Ten standard deviations of the published grid, from its first to its last, with some fractions of each."""
    grid = grid_points(50, 20)
    sigmas = [0, 5, 11, 16, 22, 27, 33, 38, 44, 49]
    return [grid[20 * sigma + (2 + 5 * eta) % 20] for eta in range(n_eta) for sigma in sigmas]


def same_points() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the study's own rows at the points that were trained again, and those of the paper's validation."""
    again = read_rows(NAME)
    _, lines = rows_of_file(DIRECTORY / "weight-variance-full.jsonl.gz")
    own = {_place(values): values for *_, values in lines}
    return [own[_place(row)] for row in again], again


def _place(row: dict[str, Any]) -> tuple[str, float, float]:
    return row["model"], round(row["sigma_w"], 9), round(row["eta"], 9)


def arguments_of(model: str) -> dict[str, Any]:
    """What the study at full size passes on to a training, with the paper's validation."""
    settings = STUDY.presets["full"]
    task = next(task for task in STUDY.tasks(settings) if task.arguments["model"] == model)
    return {**task.arguments, "n_validation": N_VALIDATION, "n_validation_used": N_VALIDATION}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="mlp,rosmm_r")
    parser.add_argument("--fractions", type=int, default=4, help="points at each standard deviation")
    arguments = parser.parse_args()
    for model in arguments.models.split(","):
        points = chosen_points(arguments.fractions)
        for first in range(0, len(points), _POINTS_TOGETHER):
            done = {(row["model"], row["sigma_w"], row["eta"]) for row in read_rows(NAME)}
            group = [
                point
                for point in points[first : first + _POINTS_TOGETHER]
                if (model, point.sigma_w, point.eta) not in done
            ]
            task = arguments_of(model) | {"points": [[point.sigma_w, point.eta] for point in group]}
            for row in compute(task):
                append_row(NAME, {name: row.values[name] for name in _KEPT})
                print(f"{row.key} epochs {row.values['epochs']} area {row.values['area']}", flush=True)


if __name__ == "__main__":
    main()
