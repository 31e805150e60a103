"""The figures of the SMEFT application, drawn from stored histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quasiratio.metrics import ObservableClosure
from quasiratio.plots import closure_figure, closure_grid_figure, distribution_figure, weight_figure
from quasiratio.report import Picture
from quasiratio.studies.engine.study import Row
from quasiratio.studies.output.stored_closure import histogram_from_numbers, stored_closure
from quasiratio.studies.ratio_methods import OUR_METHODS, PUBLISHED_METHODS
from quasiratio.studies.smeft_hh.hh_methods import HH_FIGURE_LABELS, WITH_OBJECTS

__all__ = ["hh_figures"]

_SAMPLES = {"sm": "Standard Model", "linear": "linear SMEFT"}
_LABELS = {
    "m_hh": "$m_{hh}$",
    "hh_pt": "$p_T^{hh}$",
    "hh_eta": r"$\eta^{hh}$",
    "hh_phi": r"$\phi^{hh}$",
    "jet_pt": r"$p_T^{\mathrm{jet}}$",
    "jet_eta": r"$\eta^{\mathrm{jet}}$",
    "jet_phi": r"$\phi^{\mathrm{jet}}$",
    "jet_m": r"$m^{\mathrm{jet}}$",
} | {
    f"mu{i}_{short}": rf"${symbol}^{{\mu_{i}}}$"
    for i in range(1, 5)
    for short, symbol in (("pt", "p_T"), ("eta", r"\eta"), ("phi", r"\phi"))
}
_UNITS = {name: "GeV" for name in _LABELS if name.endswith(("_pt", "_m")) or name == "m_hh"}
_GRIDS = {
    "hh": (("hh_pt", "hh_eta", "hh_phi"), 3, "the pair of Higgs bosons"),
    "jet": (("jet_pt", "jet_eta", "jet_phi", "jet_m"), 2, "the hardest jet"),
    "muons": (tuple(f"mu{i}_{x}" for i in range(1, 5) for x in ("pt", "eta", "phi")), 3, "the four muons"),
}


def hh_figures(rows: Sequence[Row]) -> dict[str, Picture]:
    """Return the figures by name; those that need rows which are missing are left out."""
    stored = {row.values["method"]: row.values for row in rows if row.values["seed"] == 0}
    samples = stored.pop("samples", None)
    if samples is None:
        return {}
    pictures = {"weights": _weights(samples["weights"])}
    if "hard_m_hh" in samples:
        pictures["m_hh-hard-scattering"] = _hard_scattering(samples["hard_m_hh"])
    for group, methods in {"published": PUBLISHED_METHODS, "ours": (*OUR_METHODS, *WITH_OBJECTS)}.items():
        shown = [method for method in methods if method in stored]
        if shown:
            pictures |= _closures(group, shown, samples["closure"], stored)
    return pictures


def _hard_scattering(stored: Mapping[str, Any]) -> Picture:
    histograms = {label: histogram_from_numbers(stored[name]) for name, label in _SAMPLES.items()}
    figure = distribution_figure(histograms, label=_LABELS["m_hh"], unit="GeV")
    caption = (
        "Invariant mass of the pair in the hard scattering, of the selected events, with signed weights."
    )
    return Picture(figure, caption, "m_hh of the hard scattering")


def _weights(stored: Mapping[str, Any]) -> Picture:
    weights = {
        label: np.repeat(stored[name]["values"], stored[name]["counts"]) for name, label in _SAMPLES.items()
    }
    caption = (
        "Weights scaled to mean one, and W^2 - W, whose mean is what they add to the variance of a gradient."
    )
    return Picture(weight_figure(weights), caption, "Weights")


def _closures(
    group: str, methods: Sequence[str], samples: Mapping[str, Any], stored: Mapping[str, Mapping[str, Any]]
) -> dict[str, Picture]:
    whose = "the paper's methods" if group == "published" else "our methods"

    def closure(name: str) -> ObservableClosure:
        of_methods = {HH_FIGURE_LABELS[method]: stored[method]["closure"][name] for method in methods}
        return stored_closure(name, samples[name]["target"], samples[name]["reference"], of_methods)

    figure = closure_figure(closure("m_hh"), label=_LABELS["m_hh"], unit="GeV", title=f"SMEFT, {whose}")
    pictures = {
        f"closure-m_hh-{group}": Picture(
            figure, f"Closure of the invariant mass of the pair: {whose}.", f"m_hh, {whose}"
        )
    }
    for name, (observables, n_columns, what) in _GRIDS.items():
        grid = closure_grid_figure(
            [closure(observable) for observable in observables],
            labels=_LABELS,
            units=_UNITS,
            n_columns=n_columns,
        )
        pictures[f"closure-{name}-{group}"] = Picture(
            grid, f"Closure in the observables of {what}: {whose}.", f"{what.capitalize()}, {whose}"
        )
    return pictures
