"""One observable: target, reference, and the reference as each method reweights it.

Below the distributions stands what remains readable where the target passes through zero: pulls, or
differences in units of the target's error. A quotient, which is not, is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quasiratio.errors import InvalidInputError
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
from quasiratio.plots.drawn_axis import drawn_axis, name_hidden_bins
from quasiratio.plots.style import (
    axis_label,
    density_label,
    draw_title,
    figure_style,
    height_beside_legend,
    legend_above,
    legend_beside,
    method_styles,
    new_figure,
)

__all__ = ["closure_figure", "closure_grid_figure"]

_CELL_WIDTH, _CELL_HEIGHT = 4.4, 3.9


def closure_grid_figure(
    closures: Sequence[ObservableClosure],
    *,
    labels: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    titles: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_columns: int = 2,
    lower: Literal["difference", "quotient"] = "difference",
    pull_limit: float = 5.0,
    quotient_limit: float = 0.25,
) -> Figure:
    """Draw the closures of several observables in a grid.

    Args:
        closures: Entries of `metrics.closure`, all with the methods that are drawn.
        labels: What to call an observable on its axis, by its name; the name when left out.
        units: Units of the observables by name, without brackets.
        titles: One line above each cell.
        methods: Which methods to draw, in this order; all of the first observable when left out.
        n_columns: Cells in a row.
        lower: The panel under each closure, as for `closure_figure`.
        pull_limit: Differences are drawn from minus to plus this value, in units of the target's error.
        quotient_limit: Quotients are drawn this far on either side of one.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5, 1.5], [0.5, 0.5], [1.5, 0.5]], names=["x", "y"])
        >>> edges = {"x": [0, 1, 2], "y": [0, 1, 2]}
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges=edges)
        >>> figure = closure_grid_figure(result.observables, units={"x": "cm"})
        >>> [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]
        ['x [cm]', 'y']
    """
    if len(closures) == 0:
        msg = "Got no closures to draw; expected at least one entry of the result of `closure`."
        raise InvalidInputError(msg)
    if titles is not None and len(titles) != len(closures):
        msg = f"Got {len(titles)} titles for {len(closures)} closures; expected one for each."
        raise InvalidInputError(msg)
    require_choice(lower, "lower", ("difference", "quotient"))
    positive_limit(n_columns, "n_columns")
    draw = draw_differences if lower == "difference" else draw_quotients
    limit = (
        positive_limit(pull_limit, "pull_limit")
        if lower == "difference"
        else positive_limit(quotient_limit, "quotient_limit")
    )
    chosen = [entry.method for entry in closures[0].methods] if methods is None else list(methods)
    styles = method_styles(chosen)
    by_cell = [[closure[method] for method in chosen] for closure in closures]
    columns = min(int(n_columns), len(closures))
    rows = -(-len(closures) // columns)
    with figure_style():
        figure = new_figure(_CELL_HEIGHT * rows + 0.5, width=_CELL_WIDTH * columns)
        figure.get_layout_engine().set(h_pad=0.03, hspace=0.0)  # type: ignore[union-attr, call-arg]
        cells = figure.add_gridspec(2 * rows, columns, height_ratios=[2.4, 1.0] * rows)
        mains = []
        for i, closure in enumerate(closures):
            row, column = divmod(i, columns)
            main = figure.add_subplot(cells[2 * row, column])
            below = figure.add_subplot(cells[2 * row + 1, column], sharex=main)
            main.tick_params(labelbottom=False)
            unit = (units or {}).get(closure.name)
            shown = drawn_axis(closure, (labels or {}).get(closure.name, closure.name), None)
            entries = [shown.closure[method] for method in chosen]
            draw_densities(main, shown.closure, entries, styles)
            draw(below, shown.closure, entries, styles, limit)
            mark_sign_changes([main, below], shown.closure.target)
            main.set_ylabel(density_label(unit))
            main.set_xlim(*shown.x_range)
            below.set_xlabel(axis_label(shown.label, unit))
            if titles is not None:
                draw_title(main, titles[i])
            for axes in (main, below):
                axes.minorticks_off()  # too fine for panels of this size
            mains.extend([main, below])
        legend_above(
            figure,
            mains,
            n_columns=3 if columns == 2 else 2 * columns,
            first="target",
            extra=member_entry(by_cell[0], styles),
        )
    return figure


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
    x_range: tuple[float, float] | None = None,
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
        x_range: What to draw of the observable; a line above the figure then says what is in the bins beyond. Everything
            when left out.

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
    shown = drawn_axis(closure, label or closure.name, x_range)
    hidden, closure = closure, shown.closure
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
        name_hidden_bins(main, hidden, entries, x_range)
        main.set_xlim(*shown.x_range)
        panels[-1].set_xlabel(axis_label(shown.label, unit))
        draw_title(main, title)
    return figure
