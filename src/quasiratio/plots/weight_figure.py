r"""Weights, and $W^2 - W$, whose mean is what they add to the variance of every gradient."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, require_positive_sum
from quasiratio.plots.drawable import drawable_values, positive_limit, robust_limits
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    TARGET_COLOR,
    MethodStyle,
    draw_title,
    figure_style,
    legend_over,
    method_styles,
    new_figure,
    readable_text,
    short_number,
)

__all__ = ["weight_figure"]

_COVERED = (0.0005, 0.9995)


def weight_figure(
    weights: Mapping[str, npt.ArrayLike], *, n_bins: int = 80, title: str | None = None
) -> Figure:
    r"""Draw the distributions of $W$ and of $W^2 - W$ side by side, with their means as vertical lines.

    Weights are scaled to mean one per sample, as in the paper's identity for the variance of a gradient; then
    the mean of $W^2 - W$ is the variance of $W$. The negative side of the weights is shaded. A few events with
    extreme values may be off the axis; their fraction is in the legend, and the means include them.

    Args:
        weights: Signed weights of positive sum, by the names of their samples.
        n_bins: Number of bins.
        title: Line above the figure.

    Example:
        >>> figure = weight_figure({"target": [1.0, 1.0, 1.0, -1.0]})
        >>> [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
        ['target, mean 3', 'mean']
    """
    if not weights:
        msg = "Got no weights to draw; expected those of at least one sample, by its name."
        raise InvalidInputError(msg)
    positive_limit(n_bins, "n_bins")
    scaled = {}
    for name, given in weights.items():
        w = drawable_values(given, f"weights of {name!r}")
        scaled[name] = w * (len(w) / require_positive_sum(w, f"weights of {name!r}"))
    squares = {name: w**2 - w for name, w in scaled.items()}
    styles = method_styles(list(scaled))
    with figure_style():
        figure = new_figure(3.6, width=9.0)
        left, right = figure.subplots(1, 2)
        captions = {
            name: f"{readable_text(name, longest=24)}, {_percent(float(np.mean(w < 0)))} negative"
            for name, w in scaled.items()
        }
        _draw(left, scaled, styles, captions, int(n_bins))
        captions = {
            name: f"{readable_text(name, longest=24)}, mean {short_number(float(w.mean()))}"
            for name, w in squares.items()
        }
        _draw(right, squares, styles, captions, int(n_bins))
        lower = left.get_xlim()[0]
        if lower < 0:
            left.axvspan(lower, 0.0, color=NEGATIVE_COLOR, linewidth=0, zorder=0, label="_negative")
        left.set_xlabel("Weight $W$ (mean 1)")
        right.set_xlabel("$W^2 - W$")
        left.set_ylabel("Fraction of events")
        draw_title(figure, title)
    return figure


def _draw(
    axes: Axes,
    samples: Mapping[str, FloatArray],
    styles: Mapping[str, MethodStyle],
    captions: Mapping[str, str],
    n_bins: int,
) -> None:
    everything = np.concatenate(list(samples.values()))
    limits = robust_limits([np.quantile(everything, _COVERED)], [everything], stretch=0.2)
    edges = np.linspace(*limits, n_bins + 1)
    for name, values in samples.items():
        fractions = np.histogram(values, bins=edges)[0] / len(values)
        beyond = float(np.mean((values < limits[0]) | (values > limits[1])))
        caption = captions[name] + (f", {_percent(beyond)} off the axis" if beyond else "")
        style = styles[name]
        axes.stairs(
            fractions,
            edges,
            baseline=None,
            color=style.color,
            linestyle=style.linestyle,
            linewidth=1.4,
            label=caption,
        )
        axes.axvline(float(values.mean()), color=style.color, linestyle=":", linewidth=1.2, label="_mean")
    axes.plot([], [], color=TARGET_COLOR, linestyle=":", linewidth=1.2, label="mean")
    axes.set_yscale("log")
    lowest = min(1 / len(values) for values in samples.values())
    axes.set_ylim(0.5 * lowest, 2.0)
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    legend_over(axes)


def _percent(fraction: float) -> str:
    return f"{short_number(100 * fraction, digits=2)}%"
