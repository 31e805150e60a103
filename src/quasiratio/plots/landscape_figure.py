"""Loss landscapes over both mixture coefficients, one panel per loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterMathtext, LogLocator

from quasiratio.errors import InvalidInputError
from quasiratio.plots.drawable import drawable_values
from quasiratio.plots.labels import readable_text, short_number
from quasiratio.plots.legends import draw_title, legend_above
from quasiratio.plots.limits import symmetric_powers
from quasiratio.plots.risk_landscape import RiskLandscape, spread
from quasiratio.plots.style import (
    DIVERGING_MAP,
    NEGATIVE_COLOR,
    PALETTE,
    SEQUENTIAL_MAP,
    figure_style,
    new_figure,
)

__all__ = ["landscape_figure"]

_DECADES = 4
_PER_DECADE = 4


def landscape_figure(
    landscapes: Sequence[RiskLandscape],
    *,
    nominal: tuple[float, float] | None = None,
    nominal_label: str = "from the sums of weights",
    title: str | None = None,
) -> Figure:
    """Draw each risk above its own minimum, in logarithmic contours.

    A risk that runs away, so that its lowest value stands apart from all others, has no contours: its values
    are drawn as they are, about their median, blue below and red above. Coefficients without a finite risk
    are left grey.

    Args:
        landscapes: One per loss; each gets a panel.
        nominal: The coefficients $(c_0, c_1)$ of the data, to compare the minimum with.
        nominal_label: What to call them in the legend.
        title: Line above the figure.

    Example:
        >>> c = np.linspace(1, 2, 5)
        >>> bowl = RiskLandscape("pare", c, c, (c[:, None] - 1.5) ** 2 + (c - 1.25) ** 2)
        >>> landscape_figure([bowl], nominal=(1.4, 1.3)).axes[0].get_title("left")
        'pare: minimum at (1.5, 1.25)'
    """
    if len(landscapes) == 0:
        msg = "Got no landscapes to draw; expected at least one."
        raise InvalidInputError(msg)
    if nominal is not None:
        drawable_values(nominal, "nominal coefficients", n_expected=2)
    with figure_style():
        figure = new_figure(4.2, width=4.2 * len(landscapes))
        panels = figure.subplots(1, len(landscapes), squeeze=False)[0]
        for axes, landscape in zip(panels, landscapes, strict=True):
            axes.set_facecolor(NEGATIVE_COLOR)
            (_draw_runaway if landscape.runs_away else _draw_bowl)(figure, axes, landscape)
            axes.set_xlim(landscape.c1[0], landscape.c1[-1])
            axes.set_ylim(landscape.c0[0], landscape.c0[-1])
            axes.plot(
                *landscape.minimum[::-1],
                "*",
                color="white",
                markeredgecolor="black",
                markersize=13,
                linestyle="none",
                label="lowest risk",
                clip_on=False,
            )
            if nominal is not None:
                axes.plot(
                    *nominal[::-1],
                    "o",
                    color=PALETTE[0],
                    markeredgecolor="black",
                    markersize=7,
                    linestyle="none",
                    label=nominal_label,
                )
            at = ", ".join(short_number(c) for c in landscape.minimum)
            kind = "no minimum, lowest" if landscape.runs_away else "minimum"
            draw_title(axes, f"{readable_text(landscape.name, longest=20)}: {kind} at ({at})")
            axes.set_xlabel("Target coefficient $c_1$")
            axes.set_ylabel("Reference coefficient $c_0$")
        draw_title(figure, title)
        legend_above(figure, list(panels), n_columns=3)
    return figure


def _draw_bowl(figure: Figure, axes: Axes, landscape: RiskLandscape) -> None:
    excess = np.ma.masked_invalid(landscape.risks)
    excess = excess - excess.min()
    positive = excess.compressed()[excess.compressed() > 0]
    top = float(positive.max()) if len(positive) else 1.0
    bottom = top * 10.0**-_DECADES
    levels = np.geomspace(bottom, top, _DECADES * _PER_DECADE + 1)
    above = np.ma.maximum(excess, 1e-3 * bottom)  # the minimum itself has no logarithm
    contours = axes.contourf(
        landscape.c1,
        landscape.c0,
        above,
        levels=levels,
        cmap=SEQUENTIAL_MAP,
        norm=LogNorm(bottom, top),
        extend="min",
    )
    axes.contour(landscape.c1, landscape.c0, above, levels=levels, colors="white", linewidths=0.4, alpha=0.7)
    bar = figure.colorbar(contours, ax=axes, aspect=30, pad=0.02)
    bar.ax.yaxis.set_major_locator(LogLocator())
    bar.ax.yaxis.set_major_formatter(LogFormatterMathtext())
    bar.set_label("Risk above the minimum")


def _draw_runaway(figure: Figure, axes: Axes, landscape: RiskLandscape) -> None:
    middle, deviation = spread(landscape.risks)
    around = np.ma.masked_invalid(landscape.risks) - middle
    linear, ticks = symmetric_powers(deviation, float(np.abs(around).max()))
    reach = max(float(np.abs(around).max()), 10 * linear)
    mesh = axes.pcolormesh(
        landscape.c1,
        landscape.c0,
        around,
        shading="nearest",
        cmap=DIVERGING_MAP,
        norm=SymLogNorm(linear, vmin=-reach, vmax=reach),
        rasterized=True,
    )
    bar = figure.colorbar(mesh, ax=axes, aspect=30, pad=0.02)
    bar.set_ticks(ticks)
    bar.ax.yaxis.set_major_formatter(LogFormatterMathtext())
    bar.ax.minorticks_off()
    bar.set_label("Risk above the median")
