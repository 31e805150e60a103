"""Measured against learned ratios, with pulls below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.plots.calibration_curve import CalibrationCurve
from quasiratio.plots.drawable import positive_limit
from quasiratio.plots.legends import draw_title, height_beside_legend, legend_beside
from quasiratio.plots.limits import mark_beyond, robust_limits
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    REFERENCE_COLOR,
    TARGET_COLOR,
    figure_style,
    method_styles,
    new_figure,
)

__all__ = ["calibration_figure"]

_MARKERS = ("o", "s", "^", "D", "v", "P")


def calibration_figure(
    curves: Sequence[CalibrationCurve], *, title: str | None = None, pull_limit: float = 5.0
) -> Figure:
    """Draw the ratio that data show in bins of the learned ratio, against the diagonal.

    Points on the diagonal are calibrated; the pulls below are in units of the statistical error. The
    negative side is shaded.

    Args:
        curves: One per method; `CalibrationCurve.from_events` measures them.
        title: Line above the figure.
        pull_limit: The lower panel reaches from minus to plus this value.

    Example:
        >>> figure = calibration_figure([CalibrationCurve("mlp", [0.5, 1.5], [0.6, 1.5], [0.1, 0.1])])
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['Measured ratio', 'Pull']
    """
    if len(curves) == 0:
        msg = "Got no calibration curves to draw; expected at least one."
        raise InvalidInputError(msg)
    limit = positive_limit(pull_limit, "pull_limit")
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        figure = new_figure(1.5 * height_beside_legend(2 + len(curves), at_least=3.4))
        main, below = figure.subplots(2, 1, sharex=True, height_ratios=(3.0, 1.0))
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        across = robust_limits([curve.predicted for curve in curves])
        up = robust_limits(
            [*(curve.predicted for curve in curves), [0.0]], [c.measured for c in curves], stretch=0.3
        )
        main.set(xlim=across, ylim=up)
        below.set_ylim(-limit, limit)
        if up[0] < 0:
            main.axhspan(up[0], 0.0, color=NEGATIVE_COLOR, linewidth=0, zorder=0, label="negative ratio")
        ends = np.array([min(across[0], up[0]), max(across[1], up[1])])
        main.plot(ends, ends, color=TARGET_COLOR, linewidth=1.0, linestyle="--", label="calibrated")
        below.axhspan(-1.0, 1.0, color=REFERENCE_COLOR, alpha=0.25, linewidth=0)
        below.axhline(0.0, color=TARGET_COLOR, linewidth=0.8)
        for i, curve in enumerate(curves):
            color = styles[curve.name].color
            options = {"fmt": _MARKERS[i % len(_MARKERS)], "color": color, "markersize": 4, "elinewidth": 1.0}
            name = curve.name + (f" ({curve.n_left_out} bins left out)" if curve.n_left_out else "")
            main.errorbar(curve.predicted, curve.measured, yerr=curve.error, label=name, **options)
            below.errorbar(curve.predicted, curve.pulls, yerr=np.ones(len(curve.pulls)), **options)
            mark_beyond(main, curve.predicted, curve.measured, color)
            mark_beyond(below, curve.predicted, curve.pulls, color)
        main.set_ylabel("Measured ratio")
        below.set_ylabel("Pull", loc="center")
        below.set_xlabel("Learned ratio")
        below.set_yticks([-0.6 * limit, 0.0, 0.6 * limit])
        main.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        legend_beside(main, first="calibrated")
        draw_title(main, title)
    return figure
