"""What the study says: lines through its points, beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quasiratio.metrics import LinearFit, PartialCorrelation, linear_fit, partial_correlation
from quasiratio.report import Picture, Table
from quasiratio.studies.engine.study import Presentation, Result, Row, Settings
from quasiratio.studies.weight_variance.figures import study_pictures

__all__ = ["MODEL_NAMES", "present"]

MODEL_NAMES = {"mlp": "MLP", "rosmm_r": "RoSMM_r"}
PUBLISHED_CORRELATION, PUBLISHED_SLOPE_RATIO = 0.976, 3.6
_MIN_POINTS = 3

Points = Mapping[str, list[Mapping[str, Any]]]


def present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    """Fit lines to the stored points, and draw them."""
    points: dict[str, list[Mapping[str, Any]]] = {model: [] for model in MODEL_NAMES}
    unweighted: list[Mapping[str, Any]] = []
    n_bad = 0
    for row in rows:
        values = row.values
        if values["sigma_w"] == 0:
            unweighted.append(values)
        elif _is_judged(values):
            points[values["model"]].append(values)
        else:
            n_bad += 1
    results: list[Result] = []
    verdict: list[str] = []
    if _can_fit(points["mlp"]):
        results += _area_results(points["mlp"], verdict)
    lines = {model: _median_line(found) for model, found in points.items() if _can_fit(found)}
    results += _entropy_results(points, lines, verdict)
    n_expected = settings["n_sigma"] * settings["n_eta"] * settings["seeds"]
    notes = _notes(settings, points, n_bad)
    tables = {"points": _point_table(points)} if any(points.values()) else {}
    pictures: dict[str, Picture] = study_pictures(points, unweighted) if _can_fit(points["mlp"]) else {}
    if settings.get("preset") == "smoke":
        verdict.insert(0, "This preset is too small to judge by.")
    n_points = max(len(found) for found in points.values())
    return Presentation(
        f"{n_points} of {n_expected} points. " + " ".join(verdict), tables, pictures, notes, results
    )


def _is_judged(values: Mapping[str, Any]) -> bool:
    """Whether a point has what its figures need: the entropy, and for the MLP the area under its curve."""
    of_curve = [values["area"], values["area_to_last_epoch"]] if values["model"] == "mlp" else []
    needed = [values["entropy"], *of_curve]
    return all(value is not None and np.isfinite(value) for value in needed)


def _can_fit(points: Sequence[Mapping[str, Any]]) -> bool:
    return len({point["sigma_w"] for point in points}) >= _MIN_POINTS


def _column(points: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(point[name]) for point in points]


def _area_results(points: Sequence[Mapping[str, Any]], verdict: list[str]) -> list[Result]:
    sigma, area = _column(points, "sigma_w"), _column(points, "area")
    line = linear_fit(sigma, area)
    flat = partial_correlation(_column(points, "eta"), area, given=sigma)
    whole = linear_fit(sigma, _column(points, "area_to_last_epoch"))
    verdict.append(
        f"VLRC AUC of the MLP against sigma_w: R = {line.correlation:.3f} (published {PUBLISHED_CORRELATION}), slope "
        f"{line.slope:.3g} +- {line.slope_error:.1g}; at fixed sigma_w its correlation with eta is {_sentence(flat)}."
    )
    return [
        # The standard error of a correlation coefficient.
        Result(
            "VLRC AUC against sigma_w / R",
            line.correlation,
            line.correlation_error,
            1,
            PUBLISHED_CORRELATION,
        ),
        Result("VLRC AUC against sigma_w / slope", line.slope, line.slope_error),
        Result("VLRC AUC / partial correlation with eta", flat.value, flat.error, 1, 0.0),
        Result("VLRC AUC to the last epoch against sigma_w / R", whole.correlation, whole.correlation_error),
    ]


def _entropy_results(points: Points, lines: Mapping[str, LinearFit], verdict: list[str]) -> list[Result]:
    results = []
    for model, line in lines.items():
        name = MODEL_NAMES[model]
        found = points[model]
        flat = partial_correlation(
            _column(found, "eta"), _column(found, "entropy"), given=_column(found, "sigma_w")
        )
        results += [
            Result(f"median D_S2 against sigma_w / {name} / slope", line.slope, line.slope_error),
            Result(f"median D_S2 against sigma_w / {name} / R", line.correlation, line.correlation_error),
            Result(f"D_S2 / {name} / partial correlation with eta", flat.value, flat.error, 1, 0.0),
        ]
        verdict.append(f"D_S2 of {name} at fixed sigma_w: correlation with eta {_sentence(flat)}.")
    if len(lines) == len(MODEL_NAMES) and lines["rosmm_r"].slope != 0:
        ratio, error = lines["mlp"].ratio_to(lines["rosmm_r"])
        results.append(Result("slope ratio MLP / RoSMM_r", ratio, error, 1, PUBLISHED_SLOPE_RATIO))
        lower, upper = lines["mlp"].ratio_interval(lines["rosmm_r"])
        verdict.append(
            f"The MLP's median D_S2 rises {ratio:.2f} times as fast as RoSMM_r's, with a Fieller interval (68%) of "
            f"[{lower:.2f}, {upper:.2f}] (published {PUBLISHED_SLOPE_RATIO})."
        )
    return results


def _median_line(points: Sequence[Mapping[str, Any]]) -> LinearFit:
    sigma, entropy = np.array(_column(points, "sigma_w")), np.array(_column(points, "entropy"))
    positions = np.unique(sigma)
    return linear_fit(positions, [float(np.median(entropy[sigma == one])) for one in positions])


def _sentence(flat: PartialCorrelation) -> str:
    return f"{flat.value:+.2f} (p = {flat.p_value:.2g}; the paper says none)"


def _point_table(points: Points) -> Table:
    columns = [
        "model", "seed", "sigma_w", "eta", "epochs", "VLRC AUC", "D_S2", "D_S2 before tuning",
    ]  # fmt: skip
    rows = [
        [
            MODEL_NAMES[model], one["seed"], one["sigma_w"], one["eta"], one["epochs"], one["area"], one["entropy"],
            one.get("entropy_before_tuning"),
        ]
        for model, found in points.items()
        for one in found
    ]  # fmt: skip
    return Table(columns, rows, caption="Every point")


def _notes(settings: Settings, points: Points, n_bad: int) -> list[str]:
    limit = [one for found in points.values() for one in found if one["hit_limit"]]
    notes = [
        (
            f"Events per class: {settings['n_training']:,} for training, {settings['n_test']:,} for the test. Early "
            f"stopping uses {settings['n_validation']:,} validation events per class for the MLP and the first "
            f"{settings['rosmm_n_validation']:,} of them for RoSMM_r, the same at every point and epoch, with the "
            "point's weights (the paper: 1,200,000; all of them would take more time than the training)."
        ),
        (
            "Networks as published: an MLP 2-64-64-1 and sub-ratios 2-32-32-1, ReLU, batches of "
            f"{settings['batch_size']}, epochs of {settings['epoch_events']:,} events, patience {settings['patience']} "
            f"epochs. Adam at {settings['learning_rate']:g} for the MLP and {settings['rosmm_learning_rate']:g} for "
            f"RoSMM_r (published 1e-4), at most {settings['max_epochs']} and {settings['rosmm_max_epochs']} epochs (the "
            f"paper has no limit); {len(limit)} of {sum(map(len, points.values()))} trainings reached the limit."
        ),
        (
            "All points share the events, and the MLPs their start, so that these differ by the signs alone; points "
            "that train together see the same events in the same step. Inputs are divided by one standard deviation. A batch of a sub-ratio has as many events "
            "of one part as of the other, cyclically from all events of both parts."
        ),
        (
            "VLRC AUC runs from the end of the first epoch to the one whose state early stopping keeps, in epochs and "
            "above the loss there. Patience, or the limit, comes up to twenty epochs later, at a loss that jitters from "
            "epoch to epoch; the area above that last loss is given as well, as the paper's words can mean either."
        ),
        (
            "D_S2 is that of the radius in 149 bins on [0, 8]. The line of D_S2 goes through the medians at each sigma_w. Errors are standard errors "
            "from the scatter about the line; the partial correlation takes out the means at each sigma_w."
        ),
    ]
    if settings.get("preset") == "smoke":
        notes.insert(
            0,
            "The preset smoke shows that everything runs; its trainings are too short to answer the question.",
        )
    if n_bad:
        notes.append(f"{n_bad} points have ratios that are not finite, and are left out of all fits.")
    return notes
