"""The figures of the toys, drawn from stored histograms and closed forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from quasiratio.distributions import SignedGaussianCase, signed_gaussian_case
from quasiratio.metrics import ObservableClosure
from quasiratio.plots import (
    DensityGrid,
    LossTransform,
    closure_figure,
    closure_grid_figure,
    density_figure,
    distribution_figure,
    transform_figure,
)
from quasiratio.report import Picture
from quasiratio.studies.engine.study import Row
from quasiratio.studies.output.stored_closure import histogram_from_numbers, stored_closure
from quasiratio.studies.ratio_methods import FIGURE_LABELS, OUR_METHODS, PUBLISHED_METHODS

__all__ = ["toy_figures"]

_LABELS = {"r": "Radius $r$", "x": "$x$", "y": "$y$"}
_GRID = np.linspace(-8.0, 8.0, 81)
_PAIRS = ("++", "+-", "-+", "--")
_REACH = 8.0


def toy_figures(rows: Sequence[Row]) -> dict[str, Picture]:
    """Return the figures by name; those of a case only where its rows are there."""
    pictures = {"transforms": _transforms(), **_densities()}
    first = min((row.values["seed"] for row in rows), default=0)
    for case in ("nonnegative", "signed"):
        stored = {
            row.values["method"]: row.values["closure"]
            for row in rows
            if row.values["case"] == case and row.values["seed"] == first
        }
        if "samples" in stored:
            pictures |= _case_figures(case, stored)
    return pictures


def _transforms() -> Picture:
    from quasiratio.losses import Mse  # noqa: PLC0415 - torch

    figure = transform_figure(
        [
            replace(LossTransform.from_loss(Mse(), name="MSE"), output_label="Score $s$"),
            LossTransform.published_pare(2, 1),
        ],
        data_range=_ratio_range(signed_gaussian_case("signed")),
        ratio_range=(-6.0, 4.0),
        data_label="ratios of the Signed case",
    )
    caption = (
        "What a network must output for each ratio. The pole of MSE lies among the ratios of the Signed case; that "
        "of PARE(2, 1) lies below them, and its place can be chosen."
    )
    return Picture(figure, caption, "Ratio-to-score transforms")


def _ratio_range(case: SignedGaussianCase) -> tuple[float, float]:
    radii = np.linspace(0.0, _REACH, 2001)
    ratio = case.exact_ratio(np.stack([radii, np.zeros_like(radii)], axis=1))
    return float(ratio.min()), float(ratio.max())


def _densities() -> dict[str, Picture]:
    nonnegative, signed = signed_gaussian_case("nonnegative"), signed_gaussian_case("signed")
    densities = {
        "reference": ("Reference of both cases", nonnegative.reference),
        "nonnegative-target": ("Nonnegative target", nonnegative.target),
        "signed-target": ("Signed target", signed.target),
    }
    pictures = {}
    for name, (title, mixture) in densities.items():
        grid = DensityGrid.from_function(mixture.density, edges_x=_GRID, edges_y=_GRID)
        figure = density_figure(grid, label_x="$x$", label_y="$y$", title=title)
        caption = f"{title}: closed form of the density, and its marginals."
        pictures[f"density-{name}"] = Picture(figure, caption, f"Density: {title}")
    return pictures


def _case_figures(case: str, stored: Mapping[str, Any]) -> dict[str, Picture]:
    name = case.capitalize()
    pictures = {f"radial-distributions-{case}": _radial_distributions(case, stored["samples"])}
    groups = {"published": PUBLISHED_METHODS, "ours": OUR_METHODS}
    for group, methods in groups.items():
        shown = [method for method in (*methods, "exact") if method in stored]
        if not set(shown) - {"exact"}:
            continue
        closures = {observable: _closure(observable, stored, shown) for observable in _LABELS}
        whose = "the paper's methods" if group == "published" else "our methods"
        title = f"{name} case, {whose}"
        pulls = closure_figure(closures["r"], label=_LABELS["r"], title=title)
        pictures[f"radial-closure-{case}-{group}"] = Picture(
            pulls,
            f"Radial closure of {whose} on the {name} case, with pulls; the exact ratio shows what statistics leave.",
            f"Radial closure, {name}, {whose}: pulls",
        )
        quotients = closure_figure(closures["r"], label=_LABELS["r"], title=title, lower="quotient")
        pictures[f"radial-ratio-{case}-{group}"] = Picture(
            quotients,
            f"The same as quotients to the target, where that is at least three errors from zero ({name} case).",
            f"Radial closure, {name}, {whose}: quotients",
        )
        plane = closure_grid_figure([closures["x"], closures["y"]], labels=_LABELS, titles=[title] * 2)
        pictures[f"x-y-closure-{case}-{group}"] = Picture(
            plane,
            f"Closure of {whose} in x and y on the {name} case.",
            f"Closure in x and y, {name}, {whose}",
        )
    if "sub-ratios" in stored:
        pictures[f"sub-density-closure-{case}"] = _sub_densities(case, stored["sub-ratios"])
    return pictures


def _radial_distributions(case: str, samples: Mapping[str, Any]) -> Picture:
    mixtures = signed_gaussian_case(case)
    histograms = {sample: histogram_from_numbers(samples[sample]["r"]) for sample in ("reference", "target")}
    radii = np.linspace(histograms["target"].edges[0], histograms["target"].edges[-1], 400)
    exact = {
        "reference": (radii, mixtures.reference.radial_density(radii)),
        "target": (radii, mixtures.target.radial_density(radii)),
    }
    name = case.capitalize()
    figure = distribution_figure(histograms, label=_LABELS["r"], exact=exact, title=f"{name} case")
    return Picture(
        figure,
        f"Radial distributions of the test samples of the {name} case, and the closed forms.",
        f"Radial distributions, {name}",
    )


def _closure(observable: str, stored: Mapping[str, Any], methods: Sequence[str]) -> ObservableClosure:
    return stored_closure(
        observable,
        stored["samples"]["target"][observable],
        stored["samples"]["reference"][observable],
        {FIGURE_LABELS[method]: stored[method][observable] for method in methods},
    )


def _sub_densities(case: str, stored: Mapping[str, Any]) -> Picture:
    closures, titles = [], []
    for pair in (pair for pair in _PAIRS if pair in stored):
        for observable in ("x", "y", "r"):
            parts = stored[pair]
            methods = {label: parts[method][observable] for method, label in _SUB_LABELS.items()}
            closures.append(
                stored_closure(
                    observable, parts["target"][observable], parts["reference"][observable], methods
                )
            )
            titles.append(f"$r_{{{pair[0]}{pair[1]}}}$")
    figure = closure_grid_figure(closures, labels=_LABELS, titles=titles, n_columns=3)
    name = case.capitalize()
    caption = (
        f"Sub-ratios of RoSMM on the {name} case: events of the reference of the first sign, reweighted to those of "
        "the target of the second sign, with absolute weights."
    )
    return Picture(figure, caption, f"Sub-density closure, {name}")


_SUB_LABELS = {"sub-ratio": "learned sub-ratio", "exact": "exact sub-ratio"}
