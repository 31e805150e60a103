"""Landscapes of the stored risks, and where their minima are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quasiratio.plots import RiskCurve, RiskLandscape, landscape_figure, risk_curve_figure
from quasiratio.report import Picture, Table
from quasiratio.report.content import Cell
from quasiratio.studies.engine.study import Presentation, Result, Row, Settings, over_seeds

__all__ = ["present"]

_TITLES = {"nonnegative": "Nonnegative case", "signed": "Signed case", "smeft": "SMEFT"}
Values = Mapping[str, Any]


def present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    """Return the figures of the first seed, and the minima over all seeds."""
    stored: dict[str, dict[int, dict[str, Values]]] = {}
    for row in rows:
        by_seed = stored.setdefault(row.values["case"], {})
        by_seed.setdefault(row.values["seed"], {})[row.values["loss"]] = row.values
    pictures, body, results = {}, [], []
    for case in (case for case in _TITLES if case in stored):
        seeds = stored[case]
        complete = [seed for seed in sorted(seeds) if {"MSE", "PARE"} <= set(seeds[seed])]
        if complete:
            name = "c1-landscapes-smeft" if case == "smeft" else f"landscapes-{case}"
            pictures[name] = _picture(case, seeds[complete[0]])
        for loss in ("MSE", "PARE"):
            surfaces = [seeds[seed][loss] for seed in sorted(seeds) if loss in seeds[seed]]
            if surfaces:
                body.append(_line(case, loss, surfaces))
                results += _results(case, loss, surfaces)
    table = Table(
        [
            "case",
            "loss",
            "seeds",
            "runs away",
            "lowest inside the grid",
            "c0 lowest",
            "c1 lowest",
            "c0 of the weights",
            "c1 of the weights",
        ],
        body,
        "Where the risk is lowest on the grid, medians over seeds, beside the coefficients of the training weights.",
    )
    return Presentation(_verdict(stored), {"minima": table}, pictures, _notes(settings, stored), results)


def _surface(values: Values) -> RiskLandscape | RiskCurve:
    risks = np.asarray(values["risks"], dtype=np.float64)
    if len(values["c0"]) == 1:
        return RiskCurve(values["loss"], np.asarray(values["c1"]), risks[0])
    return RiskLandscape(values["loss"], np.asarray(values["c0"]), np.asarray(values["c1"]), risks)


def _is_inside(values: Values) -> bool:
    """Whether the lowest risk is not at the edge of the grid."""
    pairs = zip(_lowest(values), (values["c0"], values["c1"]), strict=True)
    return all(len(axis) == 1 or axis[0] < lowest < axis[-1] for lowest, axis in pairs)


def _n_runaways(surfaces: Sequence[Values]) -> int:
    """Return for how many the lowest risk stands apart from all others, as beside a pole."""
    return sum(_surface(values).runs_away for values in surfaces)


def _lowest(values: Values) -> tuple[float, float]:
    minimum = _surface(values).minimum
    return minimum if isinstance(minimum, tuple) else (float(values["c0"][0]), minimum)


def _line(case: str, loss: str, surfaces: Sequence[Values]) -> list[Cell]:
    lowest = np.median([_lowest(values) for values in surfaces], axis=0)
    nominal = np.median([values["nominal"] for values in surfaces], axis=0)
    return [
        case,
        loss,
        len(surfaces),
        _n_runaways(surfaces),
        sum(_is_inside(values) for values in surfaces),
        *(float(value) for value in (*lowest, *nominal)),
    ]


def _results(case: str, loss: str, surfaces: Sequence[Values]) -> list[Result]:
    """Return the coefficients of the lowest risk, unless it runs away."""
    found = [_lowest(values) for values in surfaces if not _surface(values).runs_away]
    results = [over_seeds(f"{case} / {loss} / c1 of the lowest risk", [c1 for _, c1 in found])]
    if case != "smeft":
        results.append(over_seeds(f"{case} / {loss} / c0 of the lowest risk", [c0 for c0, _ in found]))
    return [result for result in results if result is not None]


def _picture(case: str, by_loss: Mapping[str, Values]) -> Picture:
    title = _TITLES[case]
    nominal = by_loss["PARE"]["nominal"]
    if case == "smeft":
        curves = [_surface(by_loss[loss]) for loss in ("PARE", "MSE")]
        figure = risk_curve_figure(curves, nominal=nominal[1], title=title)  # type: ignore[arg-type]
    else:
        surfaces = [_surface(by_loss[loss]) for loss in ("MSE", "PARE")]
        figure = landscape_figure(surfaces, nominal=tuple(nominal), title=title)  # type: ignore[arg-type]
    caption = (
        f"{title}: the risks of MSE and of PARE (published parameters) over the mixture coefficients, with the "
        "sub-ratios of a fitted RoSMM held fixed, on test events."
    )
    return Picture(figure, caption, f"Loss landscapes, {title}")


def _verdict(stored: Mapping[str, Mapping[int, Mapping[str, Values]]]) -> str:
    sentences = []
    for case in (case for case in _TITLES if case in stored):
        said = []
        for loss in ("MSE", "PARE"):
            surfaces = [by_loss[loss] for by_loss in stored[case].values() if loss in by_loss]
            if surfaces:
                said.append(f"that of {loss} for {_n_runaways(surfaces)} of {len(surfaces)} seeds")
        sentences.append(f"{_TITLES[case]}: the risk runs away, {', '.join(said)}.")
    return " ".join(sentences) or "Nothing is computed yet."


def _notes(settings: Settings, stored: Mapping[str, object]) -> list[str]:
    notes = [
        f"{settings['sizes'][2]:,} test events of each class for the toys.",
        (
            "PARE has the published parameters t0 = 25619 and t1 = 58, in the form that keeps its precision; MSE is "
            "its special case t0 = t1. Figures show the first seed."
        ),
        (
            "SMEFT is drawn from the hard scattering (leading order, six features of the parton level); the paper has "
            "showered events. c1 of the published sample is 1.267."
        ),
    ]
    if "smeft" not in stored:
        notes.append(
            "SMEFT is missing: its parton densities come with pythia8mc. Install it with "
            "pip install 'quasiratio[gghh]' and resume the study."
        )
    return notes
