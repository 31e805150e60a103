"""A study's result against what was varied: points, straight lines and their correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import LinearFit, linear_fit
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_values, mark_beyond, robust_limits
from quasiratio.plots.style import (
    SEQUENTIAL_MAP,
    TARGET_COLOR,
    MethodStyle,
    axis_label,
    draw_title,
    figure_style,
    legend_over,
    method_styles,
    new_figure,
    short_number,
)

__all__ = ["ScatterSeries", "scatter_figure"]


@dataclass(frozen=True, eq=False)
class ScatterSeries:
    """The points of one method, each perhaps with a third number that colours it.

    Args:
        name: Name of the method.
        x: Positions.
        y: Values.
        color: A number per point, or `None`.

    Example:
        >>> ScatterSeries("mlp", [1.0, 1.0, 2.0], [0.1, 0.3, 0.5]).medians().y.tolist()
        [0.2, 0.5]
    """

    name: str
    x: FloatArray
    y: FloatArray
    color: FloatArray | None = None

    def __post_init__(self) -> None:
        positions = drawable_values(self.x, f"values of x of {self.name!r}")
        object.__setattr__(self, "x", positions)
        for field in ("y", "color"):
            given = getattr(self, field)
            if given is not None or field == "y":
                role = f"values of {field} of {self.name!r}"
                object.__setattr__(self, field, drawable_values(given, role, n_expected=len(positions)))

    def fit(self) -> LinearFit:
        """Fit a straight line through all points."""
        return linear_fit(self.x, self.y)

    def medians(self) -> ScatterSeries:
        """Return one point per distinct x: the median of its values."""
        positions = np.unique(self.x)
        return ScatterSeries(
            self.name, positions, np.array([np.median(self.y[self.x == x]) for x in positions])
        )


_MARKERS = ("o", "s", "^", "D", "v", "P")


def scatter_figure(
    series: Sequence[ScatterSeries],
    *,
    label_x: str,
    label_y: str,
    unit_x: str | None = None,
    unit_y: str | None = None,
    color_label: str | None = None,
    fit: bool = True,
    title: str | None = None,
) -> Figure:
    """Draw points with least-squares lines, whose slope and correlation R are in the legend.

    Series without colours share one panel. Coloured ones have a panel each, and one colour bar. Triangles at
    the edge mark the few points that lie far beyond the others; lines are fitted to all points.

    Args:
        series: One per method; either all coloured or none.
        label_x: What to call x on its axis.
        label_y: What to call y on its axis.
        unit_x: Unit of x, without brackets.
        unit_y: Unit of y, without brackets.
        color_label: What to call the number that colours the points.
        fit: Whether to draw the lines.
        title: Line above the figure.

    Example:
        >>> points = ScatterSeries("mlp", [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], color=[0.2, 0.5, 0.8])
        >>> figure = scatter_figure([points], label_x="x", label_y="y", color_label="eta")
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['mlp', 'slope 0.1, $R$ = 1.000']
    """
    if len(series) == 0:
        msg = "Got no points to draw; expected at least one series."
        raise InvalidInputError(msg)
    colored = series[0].color is not None
    if any((one.color is not None) != colored for one in series):
        msg = "Got some series with colours and some without; expected all or none."
        raise InvalidInputError(msg)
    n_panels = len(series) if colored else 1
    styles = method_styles([one.name for one in series])
    with figure_style():
        figure = new_figure(4.3, width=max(5.4, 4.2 * n_panels + 0.6))
        panels = list(figure.subplots(1, n_panels, sharex=True, sharey=True, squeeze=False)[0])
        everything = np.concatenate([one.y for one in series])
        limits = robust_limits([np.quantile(everything, [0.1, 0.9])], [everything], stretch=1.0)
        lowest_color = min((float(one.color.min()) for one in series if one.color is not None), default=0.0)
        highest_color = max((float(one.color.max()) for one in series if one.color is not None), default=1.0)
        for i, one in enumerate(series):
            axes = panels[i if colored else 0]
            axes.set_ylim(*limits)
            marker = _MARKERS[i % len(_MARKERS)]
            color = {"c": one.color} if colored else {"color": styles[one.name].color}
            points = axes.scatter(
                one.x,
                one.y,
                s=14,
                marker=marker,
                cmap=SEQUENTIAL_MAP if colored else None,
                vmin=lowest_color if colored else None,
                vmax=highest_color if colored else None,
                linewidths=0,
                alpha=0.85,
                label=one.name,
                **color,
            )
            mark_beyond(axes, one.x, one.y, TARGET_COLOR if colored else styles[one.name].color)
            if fit:
                _draw_line(axes, one, MethodStyle(TARGET_COLOR, "-") if colored else styles[one.name])
        if colored:
            figure.colorbar(points, ax=panels, aspect=30, pad=0.02).set_label(axis_label(color_label or ""))
        for axes in panels:
            axes.set_xlabel(axis_label(label_x, unit_x))
            n_columns = 1 if colored else min(3, len(series))
            legend_over(axes, n_columns=n_columns, gap=0.05)  # for the power of ten of the axis
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        panels[0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        panels[0].ticklabel_format(axis="y", scilimits=(-2, 4), useMathText=True)
        panels[0].set_ylabel(axis_label(label_y, unit_y))
        draw_title(figure, title)
    return figure


def _draw_line(axes: Axes, series: ScatterSeries, style: MethodStyle) -> None:
    line = series.fit()
    ends = np.array([series.x.min(), series.x.max()])
    axes.plot(
        ends,
        [line.at(x) for x in ends],
        color=style.color,
        linestyle=style.linestyle,
        linewidth=1.6,
        label=f"slope {short_number(line.slope)}, $R$ = {line.correlation:.3f}",
    )
