"""One observable: target, reference, and the reference as each method reweights it.

Below the distributions stands one strip of pulls per method, (reweighted - target) / error: a quotient of
the two would be unreadable where the target passes through zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quasiratio.metrics import MethodClosure, ObservableClosure, WeightedHistogram
from quasiratio.plots.labels import axis_label, density_label
from quasiratio.plots.limits import mark_beyond, robust_limits
from quasiratio.plots.sign_changes import sign_changes
from quasiratio.plots.style import (
    REFERENCE_COLOR,
    TARGET_COLOR,
    MethodStyle,
    figure_style,
    method_styles,
    new_figure,
)

__all__ = ["closure_figure"]

FloatArray = npt.NDArray[np.float64]

_MAIN_HEIGHT, _STRIP_HEIGHT = 3.4, 0.75


def closure_figure(
    closure: ObservableClosure,
    *,
    label: str | None = None,
    unit: str | None = None,
    title: str | None = None,
    methods: Sequence[str] | None = None,
    pull_limit: float = 5.0,
) -> Figure:
    """Draw densities above and pulls below.

    Triangles at the edge of a panel mark bins beyond its limits, which follow the target and the reference.
    Dotted vertical lines mark where the target changes sign.

    Args:
        closure: The entry of one observable in the result of `metrics.closure`.
        label: What to call the observable on its axis; its name when left out.
        unit: Unit of the observable, without brackets.
        title: Line above the figure.
        methods: Which methods to draw, in this order; all when left out.
        pull_limit: The strips reach from minus to plus this value.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
        >>> [axes.get_ylabel() for axes in closure_figure(result["x"], unit="GeV").axes]
        ['Density [1/GeV]', 'Pull']
    """
    entries = closure.methods if methods is None else tuple(closure[method] for method in methods)
    styles = method_styles([entry.method for entry in entries])
    with figure_style():
        figure = new_figure(_MAIN_HEIGHT + 0.5 + _STRIP_HEIGHT * len(entries))
        ratios = [_MAIN_HEIGHT, *(_STRIP_HEIGHT for _ in entries)]
        panels: list[Axes] = list(
            figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
        )
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        _draw_densities(panels[0], closure, entries, styles)
        panels[0].set_ylabel(density_label(unit))
        for axes, entry in zip(panels[1:], entries, strict=True):
            _draw_pulls(axes, closure, entry, styles[entry.method], pull_limit)
        _mark_sign_changes(panels, closure.target)
        handles, names = panels[0].get_legend_handles_labels()
        order = sorted(range(len(names)), key=lambda i: names[i] != "target")  # Matplotlib puts it last
        panels[0].legend(
            [handles[i] for i in order],
            [names[i] for i in order],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.02),
            borderaxespad=0.3,
        )
        panels[0].set_xlim(closure.edges[0], closure.edges[-1])
        panels[-1].set_xlabel(axis_label(label or closure.name, unit))
        if title:
            panels[0].set_title(title, loc="left", fontsize="medium")
    return figure


def _draw_densities(
    axes: Axes,
    closure: ObservableClosure,
    entries: Sequence[MethodClosure],
    styles: dict[str, MethodStyle],
) -> None:
    edges, widths = closure.edges, np.diff(closure.edges)
    centers, half_widths = (edges[1:] + edges[:-1]) / 2, widths / 2
    target, error = _density(closure.target), np.sqrt(closure.target.variances) / widths
    before = _density(closure.reference.histogram)
    axes.errorbar(
        centers,
        target,
        yerr=error,
        xerr=half_widths if len(widths) <= 40 else None,
        fmt="o",
        color=TARGET_COLOR,
        markersize=2.5,
        elinewidth=0.8,
        label="target",
        zorder=5,
    )
    axes.stairs(before, edges, color=REFERENCE_COLOR, fill=True, alpha=0.35, label="reference")
    lines = {entry.method: _density(entry.histogram) for entry in entries}
    for entry in entries:
        color, linestyle = styles[entry.method]
        line = lines[entry.method]
        axes.stairs(
            line, edges, baseline=None, color=color, linestyle=linestyle, linewidth=1.4, label=entry.method
        )
        if entry.member_band is not None:
            band = entry.member_band / widths
            axes.stairs(line + band, edges, baseline=line - band, fill=True, color=color, alpha=0.25)
    limits = robust_limits([target - error, target + error, before, [0.0]], lines.values(), stretch=0.25)
    lowest = min(0.0, *(float(np.min(values)) for values in (target, before, *lines.values())))
    axes.set_ylim(limits[0] if lowest < 0 else 0.0, limits[1])
    if lowest < 0:
        axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    for method, line in lines.items():
        mark_beyond(axes, centers, line, styles[method].color)


def _draw_pulls(
    axes: Axes, closure: ObservableClosure, entry: MethodClosure, style: MethodStyle, limit: float
) -> None:
    edges, pulls = closure.edges, closure.pulls(entry.method)
    axes.axhspan(-1.0, 1.0, color=REFERENCE_COLOR, alpha=0.25, linewidth=0)
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    axes.stairs(pulls, edges, fill=True, color=style.color, alpha=0.8, label=entry.method)
    axes.set_ylim(-limit, limit)
    axes.set_yticks([-0.6 * limit, 0.0, 0.6 * limit])
    axes.set_ylabel("Pull", loc="center")
    mark_beyond(axes, (edges[1:] + edges[:-1]) / 2, pulls, TARGET_COLOR)
    quality = rf"$\chi^2$/ndof = {entry.chi_squared.value:.3g}"
    axes.annotate(
        f"{entry.method}\n{quality}",
        (1.0, 0.5),
        xytext=(8, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        va="center",
        color=style.color,
        fontsize="small",
        annotation_clip=False,
    )


def _mark_sign_changes(panels: Sequence[Axes], target: WeightedHistogram) -> None:
    for i, position in enumerate(sign_changes(target)):
        for axes in panels:
            name = "target changes sign" if i == 0 and axes is panels[0] else "_sign change"
            axes.axvline(float(position), color=TARGET_COLOR, linestyle=":", linewidth=1.0, label=name)


def _density(histogram: WeightedHistogram) -> FloatArray:
    return np.asarray(histogram.values / np.diff(histogram.edges))
