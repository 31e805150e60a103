"""A density of two variables with its marginals, which may be negative."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.density_grid import DensityGrid
from quasiratio.plots.drawable import positive_limit
from quasiratio.plots.labels import axis_label, density_label
from quasiratio.plots.legends import draw_title
from quasiratio.plots.style import (
    DIVERGING_MAP,
    REFERENCE_COLOR,
    SEQUENTIAL_MAP,
    TARGET_COLOR,
    figure_style,
    new_figure,
)

__all__ = ["density_figure"]

_POSITIVE, _NEGATIVE = "#B2182B", "#2166AC"
"""The two sides of the diverging map."""


def density_figure(
    grid: DensityGrid,
    *,
    label_x: str,
    label_y: str,
    unit_x: str | None = None,
    unit_y: str | None = None,
    title: str | None = None,
    color_limit: float | None = None,
) -> Figure:
    """Draw a density as colours, and its marginals as steps above and to the right.

    A signed density has a diverging map with white at zero: red is positive, blue is negative, in the
    marginals too. A nonnegative one has a sequential map, and cells without events are left white.

    Args:
        grid: The density; `DensityGrid.from_events` fills one.
        label_x: What to call the first variable on its axis.
        label_y: What to call the second variable on its axis.
        unit_x: Unit of the first variable, without brackets.
        unit_y: Unit of the second variable, without brackets.
        title: Line above the figure.
        color_limit: The density with the most intense colour, to compare figures; from the data when left out.

    Example:
        >>> grid = DensityGrid([0, 1, 2], [0, 1], [[1.5], [-0.5]], [1.5, -0.5], [1.0])
        >>> figure = density_figure(grid, label_x="$x$", label_y="$y$", unit_x="cm", unit_y="cm")
        >>> figure.axes[1].get_xlabel(), figure.axes[-1].get_ylabel()
        ('$x$ [cm]', 'Density [1/cm$^2$]')
    """
    reach = (
        float(np.abs(grid.values).max()) or 1.0
        if color_limit is None
        else positive_limit(color_limit, "color_limit")
    )
    norm = CenteredNorm(0.0, reach) if grid.is_signed else Normalize(0.0, reach)
    with figure_style():
        figure = new_figure(6.2)
        panels = figure.subplot_mosaic(
            [["top", "."], ["main", "side"]], width_ratios=(4.0, 1.2), height_ratios=(1.2, 4.0)
        )
        figure.get_layout_engine().set(h_pad=0.03, w_pad=0.03, hspace=0.0, wspace=0.0)  # type: ignore[union-attr, call-arg]
        main, top, side = panels["main"], panels["top"], panels["side"]
        mesh = main.pcolormesh(
            grid.edges_x,
            grid.edges_y,
            np.ma.masked_where((grid.values == 0) & (not grid.is_signed), grid.values).T,
            cmap=DIVERGING_MAP if grid.is_signed else SEQUENTIAL_MAP,
            norm=norm,
            rasterized=True,
        )
        main.set_xlabel(axis_label(label_x, unit_x))
        main.set_ylabel(axis_label(label_y, unit_y))
        _draw_marginal(
            top, grid.edges_x, grid.marginal_x, grid.error_x, vertical=True, diverging=grid.is_signed
        )
        _draw_marginal(
            side, grid.edges_y, grid.marginal_y, grid.error_y, vertical=False, diverging=grid.is_signed
        )
        top.set_xlim(main.get_xlim())
        side.set_ylim(main.get_ylim())
        top.tick_params(labelbottom=False)
        side.tick_params(labelleft=False)
        top.set_ylabel(density_label(unit_x), fontsize="small")
        side.set_xlabel(density_label(unit_y), fontsize="small")
        bar = figure.colorbar(mesh, ax=[main, side], location="right", aspect=30, pad=0.02)
        bar.set_label(density_label(unit_x, unit_y))
        draw_title(top, title)
    return figure


def _draw_marginal(
    axes: Axes,
    edges: FloatArray,
    values: FloatArray,
    error: FloatArray | None,
    *,
    vertical: bool,
    diverging: bool,
) -> None:
    orientation: Literal["vertical", "horizontal"] = "vertical" if vertical else "horizontal"
    signed = bool((values < 0).any())
    above = _POSITIVE if diverging else REFERENCE_COLOR
    for part, color in ((np.maximum(values, 0.0), above), (np.minimum(values, 0.0), _NEGATIVE)):
        if np.any(part):
            axes.stairs(
                part, edges, fill=True, orientation=orientation, color=to_rgba(color, 0.35), label="_sign"
            )
    axes.stairs(values, edges, baseline=None, orientation=orientation, color=TARGET_COLOR, linewidth=1.0)
    if error is not None and np.any(error):
        axes.stairs(
            values + error,
            edges,
            baseline=values - error,
            fill=True,
            orientation=orientation,
            color=TARGET_COLOR,
            alpha=0.25,
            linewidth=0,
        )
    upper = float(np.max(values + (0 if error is None else error)))
    lower = float(np.min(values - (0 if error is None else error)))
    span = max(upper, 0.0) - min(lower, 0.0) or 1.0
    limits = (lower - 0.08 * span if signed else 0.0, max(upper, 0.0) + 0.08 * span)
    draw_zero = axes.axhline if vertical else axes.axvline
    (axes.set_ylim if vertical else axes.set_xlim)(*limits)
    if signed:
        draw_zero(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    (axes.yaxis if vertical else axes.xaxis).set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(labelsize="small")
