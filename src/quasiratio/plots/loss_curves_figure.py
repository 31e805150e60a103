"""Validation losses of several trainings, against the lowest that any network could reach."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.plots.drawable import drawable_values
from quasiratio.plots.legends import draw_title, height_beside_legend, legend_beside
from quasiratio.plots.limits import mark_beyond, robust_limits
from quasiratio.plots.style import TARGET_COLOR, figure_style, method_styles, new_figure

__all__ = ["loss_curves_figure"]


def loss_curves_figure(
    curves: Mapping[str, npt.ArrayLike],
    *,
    optimum: float | None = None,
    optimum_label: str = "analytic optimum",
    label: str = "Validation loss",
    title: str | None = None,
) -> Figure:
    """Draw losses epoch by epoch; a point marks where each training stopped.

    The limits follow the second half of every curve, and the first as far as it is near; triangles at the edge mark what lies beyond.

    Args:
        curves: The loss at each epoch, by what was trained. Lengths may differ.
        optimum: The lowest loss that is possible, drawn in black.
        optimum_label: What to call it in the legend.
        label: What to call the loss on its axis.
        title: Line above the figure.

    Example:
        >>> figure = loss_curves_figure({"unweighted": [0.69, 0.62, 0.60]}, optimum=0.59)
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['unweighted', 'analytic optimum', 'stopped']
    """
    if not curves:
        msg = "Got no loss curves to draw; expected at least one."
        raise InvalidInputError(msg)
    if optimum is not None and not math.isfinite(optimum):
        msg = f"Got optimum = {optimum}; expected a finite loss, or None."
        raise InvalidInputError(msg)
    losses = {name: drawable_values(curve, f"losses of {name!r}") for name, curve in curves.items()}
    styles = method_styles(list(losses))
    with figure_style():
        figure = new_figure(height_beside_legend(2 + len(losses), at_least=3.2) + 0.6)
        axes = figure.subplots()
        trusted = [curve[len(curve) // 2 :] for curve in losses.values()]
        axes.set_ylim(
            *robust_limits([*trusted, [] if optimum is None else [optimum]], losses.values(), stretch=4.0)
        )
        for name, curve in losses.items():
            epochs = np.arange(1.0, len(curve) + 1)
            color, linestyle = styles[name]
            axes.plot(epochs, curve, color=color, linestyle=linestyle, label=name)
            axes.plot(epochs[-1:], curve[-1:], "o", color=color, markersize=4, label="_stop", clip_on=False)
            mark_beyond(axes, epochs, curve, color)
        if optimum is not None:
            axes.axhline(optimum, color=TARGET_COLOR, linewidth=1.2, label=optimum_label)
        axes.plot([], [], "o", color=TARGET_COLOR, markersize=4, label="stopped")
        longest = max(len(curve) for curve in losses.values())
        axes.set_xlim(1 if longest > 1 else 0, longest + 0.02 * longest + 0.2)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_xlabel("Epoch")
        axes.set_ylabel(label)
        legend_beside(axes)
        draw_title(axes, title)
    return figure
