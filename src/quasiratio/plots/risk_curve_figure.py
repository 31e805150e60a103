"""Risks over one mixture coefficient, one panel per loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.plots.labels import short_number
from quasiratio.plots.legends import draw_title, legend_beside
from quasiratio.plots.limits import symmetric_powers
from quasiratio.plots.risk_landscape import RiskCurve, spread
from quasiratio.plots.style import TARGET_COLOR, MethodStyle, figure_style, method_styles, new_figure

__all__ = ["risk_curve_figure"]


def risk_curve_figure(
    curves: Sequence[RiskCurve],
    *,
    nominal: float | None = None,
    nominal_label: str = "from the sums of weights",
    label: str = "Target coefficient $c_1$",
    title: str | None = None,
) -> Figure:
    """Draw each risk over the same coefficient, with its minimum marked.

    Losses have scales of their own, so each has its own panel; that of a risk that runs away is logarithmic
    on both sides of zero.

    Args:
        curves: One per loss.
        nominal: The coefficient of the data, drawn as a dashed line.
        nominal_label: What to call it in the legend.
        label: What to call the coefficient on its axis.
        title: Line above the figure.

    Example:
        >>> c = np.linspace(1, 2, 11)
        >>> figure = risk_curve_figure([RiskCurve("pare", c, (c - 1.3) ** 2)], nominal=1.25)
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['pare', 'minimum, 1.3', 'from the sums of weights, 1.25']
    """
    if len(curves) == 0:
        msg = "Got no curves to draw; expected at least one."
        raise InvalidInputError(msg)
    if nominal is not None and not math.isfinite(nominal):
        msg = f"Got nominal = {nominal}; expected a finite coefficient, or None."
        raise InvalidInputError(msg)
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        figure = new_figure(0.7 + 2.1 * len(curves))
        panels = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        for axes, curve in zip(panels, curves, strict=True):
            _draw(axes, curve, styles[curve.name])
            if nominal is not None:
                axes.axvline(
                    nominal,
                    color=TARGET_COLOR,
                    linestyle="--",
                    linewidth=1.0,
                    label=f"{nominal_label}, {short_number(nominal)}",
                )
            legend_beside(axes)
        panels[-1].set_xlim(min(c.c[0] for c in curves), max(c.c[-1] for c in curves))
        panels[-1].set_xlabel(label)
        draw_title(panels[0], title)
    return figure


def _draw(axes: Axes, curve: RiskCurve, style: MethodStyle) -> None:
    finite = np.isfinite(curve.risks)
    if curve.runs_away:
        middle, deviation = spread(curve.risks)
        reach = float(np.abs(curve.risks[finite]).max())
        linear, ticks = symmetric_powers(max(deviation, abs(middle)), reach)
        axes.set_yscale("symlog", linthresh=linear)
        axes.set_yticks(ticks)
        axes.yaxis.minorticks_off()
    line = np.where(finite, curve.risks, np.nan)
    axes.plot(curve.c, line, color=style.color, label=curve.name)
    lowest = curve.c == curve.minimum
    axes.plot(
        curve.c[lowest],
        curve.risks[lowest],
        "*",
        color=style.color,
        markeredgecolor="black",
        markersize=11,
        linestyle="none",
        label=f"{'lowest risk' if curve.runs_away else 'minimum'}, {short_number(curve.minimum)}",
        clip_on=False,
    )
    if not curve.runs_away:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_ylabel("Risk", loc="center")
