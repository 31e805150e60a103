"""One observable: target, reference, and the reference as each method reweights it.

Below the distributions stands what remains readable where the target passes through zero: pulls, or
differences in units of the target's error. A quotient, which is not, is left out there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quasiratio.metrics import ObservableClosure
from quasiratio.plots.closure_panels import (
    draw_densities,
    draw_differences,
    draw_pulls,
    draw_quotients,
    mark_sign_changes,
    member_entry,
    quality_text,
    scale_logarithmically,
)
from quasiratio.plots.drawable import positive_limit, require_choice
from quasiratio.plots.labels import axis_label, density_label
from quasiratio.plots.legends import draw_title, height_beside_legend, legend_beside
from quasiratio.plots.style import figure_style, method_styles, new_figure

__all__ = ["closure_figure"]

_MAIN_HEIGHT, _STRIP_HEIGHT, _PANEL_HEIGHT = 3.4, 0.75, 1.3


def closure_figure(
    closure: ObservableClosure,
    *,
    label: str | None = None,
    unit: str | None = None,
    title: str | None = None,
    methods: Sequence[str] | None = None,
    lower: Literal["pull", "difference", "quotient"] = "pull",
    pull_limit: float = 5.0,
    quotient_limit: float = 0.25,
    log: bool = False,
) -> Figure:
    """Draw densities above and their deviations from the target below.

    Error bars are statistical; bands are the spread of an ensemble's members. Triangles at the edge of a
    panel mark bins beyond its limits, which follow the target and the reference. Dotted vertical lines mark
    where the target changes sign.

    Args:
        closure: The entry of one observable in the result of `metrics.closure`.
        label: What to call the observable on its axis; its name when left out.
        unit: Unit of the observable, without brackets.
        title: Line above the figure.
        methods: Which methods to draw, in this order; all when left out.
        lower: `"pull"`: one strip per method with (reweighted - target) / error of the difference.
            `"difference"`: one panel with (reweighted - target) / error of the target. `"quotient"`: one
            panel with reweighted / target, where the target is at least three errors from zero.
        pull_limit: Pulls and differences are drawn from minus to plus this value.
        quotient_limit: Quotients are drawn this far on either side of one.
        log: Draw the densities on a logarithmic scale; bins that are not positive have no place on it.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
        >>> [axes.get_ylabel() for axes in closure_figure(result["x"], unit="GeV").axes]
        ['Density [1/GeV]', 'Pull']
    """
    require_choice(lower, "lower", ("pull", "difference", "quotient"))
    limits = positive_limit(pull_limit, "pull_limit"), positive_limit(quotient_limit, "quotient_limit")
    entries = closure.methods if methods is None else tuple(closure[method] for method in methods)
    styles = method_styles([entry.method for entry in entries])
    below = [_STRIP_HEIGHT for _ in entries] if lower == "pull" else [_PANEL_HEIGHT]
    n_lines = 4 + len(entries) * (1 if lower == "pull" else 2)
    heights = [height_beside_legend(n_lines, at_least=_MAIN_HEIGHT), *(below if entries else [])]
    with figure_style():
        figure = new_figure(sum(heights) + 0.5)
        panels: list[Axes] = list(
            figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        )
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        main = panels[0]
        draw_densities(main, closure, entries, styles)
        if log:
            scale_logarithmically(main, closure)
        main.set_ylabel(density_label(unit))
        if lower == "pull":
            for axes, entry in zip(panels[1:], entries, strict=True):
                draw_pulls(axes, closure, entry, styles[entry.method], limits[0])
        elif entries and lower == "difference":
            draw_differences(panels[1], closure, entries, styles, limits[0])
        elif entries:
            draw_quotients(panels[1], closure, entries, styles, limits[1])
        mark_sign_changes(panels, closure.target)
        if lower != "pull" and entries:
            legend_beside(panels[1], without=styles)
        legend_beside(
            main,
            first="target",
            extra=member_entry(entries, styles),
            captions={} if lower == "pull" else {e.method: quality_text(e) for e in entries},
        )
        main.set_xlim(closure.edges[0], closure.edges[-1])
        panels[-1].set_xlabel(axis_label(label or closure.name, unit))
        draw_title(main, title)
    return figure
