"""A density of two variables with its marginals, which may be negative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.metrics import uniform_edges, weighted_histogram
from quasiratio.metrics.arrays import FloatArray, checked_weights, require_positive_sum
from quasiratio.metrics.binning import checked_edges
from quasiratio.plots.drawable import drawable_grid, drawable_values, positive_limit
from quasiratio.plots.style import (
    DIVERGING_MAP,
    REFERENCE_COLOR,
    SEQUENTIAL_MAP,
    TARGET_COLOR,
    axis_label,
    density_label,
    draw_title,
    figure_style,
    new_figure,
)

__all__ = ["DensityGrid", "density_figure"]


@dataclass(frozen=True, eq=False)
class DensityGrid:
    """Densities in the cells of a grid, which may be negative.

    Args:
        edges_x: Increasing edges of the first variable.
        edges_y: Increasing edges of the second variable.
        values: Density in each cell, `(n_x, n_y)`.
        marginal_x: Density of the first variable alone.
        marginal_y: Density of the second variable alone.
        error_x: Statistical error of `marginal_x`; zero when left out.
        error_y: Statistical error of `marginal_y`; zero when left out.

    Example:
        >>> grid = DensityGrid([0, 1, 2], [0, 1], [[1.5], [-0.5]], [1.5, -0.5], [1.0])
        >>> grid.is_signed
        True
    """

    edges_x: FloatArray
    edges_y: FloatArray
    values: FloatArray
    marginal_x: FloatArray
    marginal_y: FloatArray
    error_x: FloatArray | None = None
    error_y: FloatArray | None = None

    def __post_init__(self) -> None:
        for axis in ("x", "y"):
            edges = checked_edges(getattr(self, f"edges_{axis}"))
            object.__setattr__(self, f"edges_{axis}", edges)
            for kind in ("marginal", "error"):
                given = getattr(self, f"{kind}_{axis}")
                given = np.zeros(len(edges) - 1) if given is None else given
                checked = drawable_values(
                    given, f"values of {kind}_{axis} in its bins", n_expected=len(edges) - 1
                )
                object.__setattr__(self, f"{kind}_{axis}", checked)
        shape = len(self.edges_x) - 1, len(self.edges_y) - 1
        object.__setattr__(self, "values", drawable_grid(self.values, "densities", shape=shape))

    @property
    def is_signed(self) -> bool:
        """Whether any cell is negative."""
        return bool((self.values < 0).any())

    @classmethod
    def from_events(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        edges_x: npt.ArrayLike | None = None,
        edges_y: npt.ArrayLike | None = None,
        n_bins: int = 50,
    ) -> DensityGrid:
        """Fill a grid with events of signed weights; the marginals are those of all events.

        Args:
            x: First variable of each event.
            y: Second variable of each event.
            weights: Signed weights of positive sum; all one when left out.
            edges_x: Edges of the first variable; `n_bins` from the 0.1 to the 99.9 percentile by default.
            edges_y: Edges of the second variable; likewise.
            n_bins: Number of bins where no edges are given.

        Example:
            >>> grid = DensityGrid.from_events([0.5, 1.5], [0.5, 0.5], edges_x=[0, 1, 2], edges_y=[0, 1])
            >>> grid.values.tolist(), grid.marginal_y.tolist()
            ([[0.5], [0.5]], [1.0])
        """
        first = drawable_values(x, "values of the first variable")
        second = drawable_values(y, "values of the second variable", n_expected=len(first))
        w = checked_weights(weights, len(first), "weights")
        total = require_positive_sum(w, "weights")
        bounds_x = uniform_edges(first, first, n_bins=n_bins) if edges_x is None else checked_edges(edges_x)
        bounds_y = uniform_edges(second, second, n_bins=n_bins) if edges_y is None else checked_edges(edges_y)
        cells, _, _ = np.histogram2d(first, second, bins=(bounds_x, bounds_y), weights=w)
        area = np.diff(bounds_x)[:, None] * np.diff(bounds_y)
        marginals = [
            weighted_histogram(v, w / total, edges=b) for v, b in ((first, bounds_x), (second, bounds_y))
        ]
        return cls(
            bounds_x,
            bounds_y,
            cells / area / total,
            *(m.values / np.diff(m.edges) for m in marginals),
            *(np.sqrt(m.variances) / np.diff(m.edges) for m in marginals),
        )

    @classmethod
    def from_function(
        cls,
        density: Callable[[FloatArray], npt.ArrayLike],
        *,
        edges_x: npt.ArrayLike,
        edges_y: npt.ArrayLike,
    ) -> DensityGrid:
        """Evaluate a density at the centres of the cells; the marginals are sums over the grid.

        Args:
            density: Function of `(n, 2)` points.
            edges_x: Edges of the first variable.
            edges_y: Edges of the second variable.

        Example:
            >>> flat = DensityGrid.from_function(lambda X: X[:, 0] * 0 + 0.5, edges_x=[0, 1], edges_y=[0, 1, 2])
            >>> flat.marginal_x.tolist(), flat.marginal_y.tolist()
            ([1.0], [0.5, 0.5])
        """
        bounds_x, bounds_y = checked_edges(edges_x), checked_edges(edges_y)
        centers = [(bounds[1:] + bounds[:-1]) / 2 for bounds in (bounds_x, bounds_y)]
        points = np.stack(np.meshgrid(*centers, indexing="ij"), axis=-1).reshape(-1, 2)
        at_points = drawable_values(density(points), "densities", n_expected=len(points))
        values = at_points.reshape(len(centers[0]), len(centers[1]))
        return cls(bounds_x, bounds_y, values, values @ np.diff(bounds_y), np.diff(bounds_x) @ values)


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
