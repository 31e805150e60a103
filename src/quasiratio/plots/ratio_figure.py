"""Learned ratios along a feature, against the exact one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quasiratio.errors import InvalidInputError
from quasiratio.plots.drawable import positive_limit
from quasiratio.plots.labels import axis_label
from quasiratio.plots.legends import draw_title, height_beside_legend, legend_beside
from quasiratio.plots.limits import mark_beyond, robust_limits
from quasiratio.plots.ratio_curve import RatioCurve
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    REFERENCE_COLOR,
    TARGET_COLOR,
    MethodStyle,
    figure_style,
    method_styles,
    new_figure,
)

__all__ = ["ratio_figure"]


def ratio_figure(
    curves: Sequence[RatioCurve],
    exact: RatioCurve | None = None,
    *,
    label: str,
    unit: str | None = None,
    title: str | None = None,
    band: str | None = None,
    difference_limit: float | None = None,
) -> Figure:
    r"""Draw learned ratios, and below them their differences to the exact one where it is known.

    The negative side is shaded. Limits follow the exact ratio; triangles at the edge mark what lies beyond.

    Args:
        curves: One per method, with its band.
        exact: The exact ratio, drawn in black.
        label: What to call the feature on its axis.
        unit: Unit of the feature, without brackets.
        title: Line above the figure.
        band: What the bands of the curves contain, for the legend.
        difference_limit: The lower panel reaches from minus to plus this value; a tenth of the exact
            ratio's range when left out.

    Example:
        >>> exact = RatioCurve("exact", [0.0, 1.0, 2.0], [-1.0, 0.5, 1.0])
        >>> figure = ratio_figure([RatioCurve("mlp", [0.0, 2.0], [0.1, 1.1])], exact, label="r", unit="cm")
        >>> figure.axes[-1].get_xlabel()
        'r [cm]'
    """
    if not curves and exact is None:
        msg = "Got no curve to draw; expected at least one, or the exact ratio."
        raise InvalidInputError(msg)
    if difference_limit is not None:
        positive_limit(difference_limit, "difference_limit")
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        n_lines = 3 + len(curves)
        figure = new_figure(
            height_beside_legend(n_lines, at_least=3.2) * (1.45 if exact is not None else 1.12)
        )
        if exact is None:
            panels = [figure.subplots()]
        else:
            panels = list(figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1.0)))
            figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        main = panels[0]
        _draw_ratios(main, curves, exact, styles)
        main.set_ylabel("Ratio  target / reference")
        if exact is not None:
            _draw_differences(panels[1], curves, exact, styles, difference_limit)
        drawn = [*curves, *([exact] if exact is not None else [])]
        main.set_xlim(min(float(c.x.min()) for c in drawn), max(float(c.x.max()) for c in drawn))
        if band:
            main.fill_between(
                [], [], [], color=REFERENCE_COLOR, alpha=0.4, linewidth=0, label=f"bands: {band}"
            )
        legend_beside(main)
        panels[-1].set_xlabel(axis_label(label, unit))
        draw_title(main, title)
    return figure


def _draw_ratios(
    axes: Axes, curves: Sequence[RatioCurve], exact: RatioCurve | None, styles: dict[str, MethodStyle]
) -> None:
    trusted = [exact.values] if exact is not None else [curve.values for curve in curves]
    lower, upper = robust_limits([*trusted, [0.0]], [curve.values for curve in curves], stretch=0.15)
    axes.set_ylim(lower, upper)
    axes.axhspan(min(lower, 0.0), 0.0, color=NEGATIVE_COLOR, linewidth=0, zorder=0, label="negative ratio")
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    if exact is not None:
        axes.plot(exact.x, exact.values, color=TARGET_COLOR, linewidth=2.2, label=exact.name)
    for curve in curves:
        _draw_curve(axes, curve, styles[curve.name])


def _draw_differences(
    axes: Axes,
    curves: Sequence[RatioCurve],
    exact: RatioCurve,
    styles: dict[str, MethodStyle],
    limit: float | None,
) -> None:
    reach = limit if limit is not None else 0.1 * float(np.ptp(exact.values)) or 0.1
    axes.set_ylim(-reach, reach)
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=1.2, label="_zero")
    for curve in curves:
        at_curve = np.interp(curve.x, exact.x, exact.values)
        shifted = RatioCurve(
            curve.name,
            curve.x,
            curve.values - at_curve,
            None if curve.lower is None else curve.lower - at_curve,
            None if curve.upper is None else curve.upper - at_curve,
        )
        _draw_curve(axes, shifted, styles[curve.name])
    axes.set_ylabel("Learned $-$ exact", loc="center")


def _draw_curve(axes: Axes, curve: RatioCurve, style: MethodStyle) -> None:
    axes.plot(curve.x, curve.values, color=style.color, linestyle=style.linestyle, label=curve.name)
    if curve.lower is not None and curve.upper is not None:
        axes.fill_between(curve.x, curve.lower, curve.upper, color=style.color, alpha=0.25, linewidth=0)
    mark_beyond(axes, curve.x, curve.values, style.color)
