"""The figures of the study: loss curves, VLRC AUC and D_S2 against what was varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quasiratio.plots import ScatterSeries, loss_curves_figure, scatter_figure
from quasiratio.report import Picture
from quasiratio.studies.weight_variance.shared_events import optimal_cross_entropy

__all__ = ["study_pictures"]

_SIGMA, _ETA, _AREA, _ENTROPY = r"$\sigma_w$", r"$\eta$", "VLRC AUC", r"$D_{S_2}$"
_NAMES = {"mlp": "MLP", "rosmm_r": r"RoSMM$_r$"}
_N_CURVES = 4

Points = Mapping[str, Sequence[Mapping[str, Any]]]


def study_pictures(points: Points, unweighted: Sequence[Mapping[str, Any]]) -> dict[str, Picture]:
    """Draw everything that the points allow, by the stem of the file."""
    mlp = points["mlp"]
    pictures = {
        "validation_loss": Picture(
            _curves(mlp, unweighted),
            "Validation loss of the MLP at some points of the grid, without weights, and the lowest loss that is possible.",
            "Validation loss",
        ),
        "area_sigma": Picture(
            scatter_figure(
                [_series("mlp", mlp, "sigma_w", "area", "eta")], label_x=_SIGMA, label_y=_AREA, color_label=_ETA
            ),
            "VLRC AUC of the MLP against the standard deviation of the weights, coloured by the fraction of negative "
            "ones. Published: R = 0.976.",
            "VLRC AUC against sigma_w",
        ),
        "area_variance": Picture(
            scatter_figure(
                [_series("mlp", mlp, "sigma_w", "area", "eta", square=True)],
                label_x=r"$\sigma_w^2$", label_y=_AREA, color_label=_ETA,
            ),
            "The same points against the variance of the weights.",
            "VLRC AUC against the variance",
        ),
        "area_eta": Picture(
            scatter_figure(
                [_series("mlp", mlp, "eta", "area", "sigma_w")], label_x=_ETA, label_y=_AREA, color_label=_SIGMA,
                fit=False,
            ),
            "The same points against the fraction of negative weights, coloured by the standard deviation.",
            "VLRC AUC against eta",
        ),
    }  # fmt: skip
    there = [model for model in _NAMES if len({point["sigma_w"] for point in points[model]}) > 1]
    for x, color, label, color_label in (("sigma_w", "eta", _SIGMA, _ETA), ("eta", "sigma_w", _ETA, _SIGMA)):
        pictures[f"entropy_{x.removesuffix('_w')}"] = Picture(
            scatter_figure(
                [_series(model, points[model], x, "entropy", color) for model in there],
                label_x=label, label_y=_ENTROPY, color_label=color_label, fit=False,
            ),
            f"Tsallis relative entropy of every model against {x}, coloured by {color}.",
            f"D_S2 against {x}",
        )  # fmt: skip
    pictures["entropy_median"] = Picture(
        scatter_figure(
            [_series(model, points[model], "sigma_w", "entropy").medians() for model in there],
            label_x=_SIGMA,
            label_y=f"Median {_ENTROPY}",
        ),
        "Median relative entropy at each standard deviation of the weights. Published: the slope of the MLP is 3.6 "
        "times that of RoSMM_r.",
        "Median D_S2 against sigma_w",
    )
    return pictures


def _series(
    model: str,
    points: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    color: str | None = None,
    *,
    square: bool = False,
) -> ScatterSeries:
    columns = {name: np.array([float(point[name]) for point in points]) for name in (x, y, color or x)}
    return ScatterSeries(
        _NAMES[model],
        columns[x] ** 2 if square else columns[x],
        columns[y],
        color=None if color is None else columns[color],
    )


def _curves(points: Sequence[Mapping[str, Any]], unweighted: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - a Figure
    """Draw the unweighted training and points along the grid, at the middle eta of their sigma_w."""
    curves = {"unweighted": unweighted[0]["validation_loss"]} if unweighted else {}
    sigmas = sorted({point["sigma_w"] for point in points})
    for index in np.unique(np.linspace(0, len(sigmas) - 1, _N_CURVES).round().astype(int)):
        at_sigma = sorted(
            (point for point in points if point["sigma_w"] == sigmas[index]), key=lambda point: point["eta"]
        )
        point = at_sigma[len(at_sigma) // 2]
        name = rf"$\sigma_w$ = {point['sigma_w']:.2f}, $\eta$ = {point['eta']:.2f}"
        curves[name] = point["validation_loss"]
    return loss_curves_figure(curves, optimum=optimal_cross_entropy())
