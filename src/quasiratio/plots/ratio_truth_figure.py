"""Learned ratios against the exact one, event by event: where on the axis a method is wrong, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_values, mark_beyond, positive_limit, robust_limits
from quasiratio.plots.ratio_figure import RatioCurve
from quasiratio.plots.style import (
    PALETTE,
    SEQUENTIAL_MAP,
    TARGET_COLOR,
    draw_title,
    figure_style,
    legend_above,
    new_figure,
    readable_text,
    short_number,
)

__all__ = ["ratio_truth_figure"]

_N_CELLS, _N_PROFILE = 80, 16


def ratio_truth_figure(
    exact: npt.ArrayLike,
    learned: Mapping[str, npt.ArrayLike],
    *,
    title: str | None = None,
    difference_limit: float | None = None,
) -> Figure:
    """Draw the events of each method over (exact, learned) ratio, and the profile of their difference below.

    Colours count events, whatever their weights. Points are means in bins of the exact ratio, their bars
    contain 68% of the events. The fraction of events outside a panel is written into its title.

    Args:
        exact: The exact ratio at each event.
        learned: The ratio of each method at the same events.
        title: Line above the figure.
        difference_limit: The lower panels reach from minus to plus this value; a fifth of the exact ratio's
            range when left out.

    Example:
        >>> exact = np.linspace(-1, 2, 50)
        >>> figure = ratio_truth_figure(exact, {"mlp": exact + 0.1})
        >>> figure.axes[0].get_title("left"), figure.axes[1].get_xlabel()
        ('mlp', 'Exact ratio')
    """
    truth = drawable_values(exact, "exact ratios")
    if not learned:
        msg = "Got no learned ratios; expected at least one method with a ratio per event."
        raise InvalidInputError(msg)
    ratios = {
        name: drawable_values(values, f"ratios of {name!r}", n_expected=len(truth))
        for name, values in learned.items()
    }
    limits = robust_limits([np.quantile(truth, [0.0005, 0.9995])])
    reach = (
        0.17 * (limits[1] - limits[0])
        if difference_limit is None
        else positive_limit(difference_limit, "difference_limit")
    )
    edges = np.linspace(*limits, _N_CELLS + 1)
    counts = {name: np.histogram2d(truth, values, bins=(edges, edges))[0] for name, values in ratios.items()}
    most = max(2.0, *(float(count.max()) for count in counts.values()))
    with figure_style():
        figure = new_figure(4.9, width=max(4.6, 1.0 + 3.0 * len(ratios)))
        panels = figure.subplots(
            2, len(ratios), sharex=True, sharey="row", squeeze=False, height_ratios=(2.6, 1.0)
        )
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        for (main, below), (name, values) in zip(panels.T, ratios.items(), strict=True):
            mesh = _draw_events(main, edges, counts[name], LogNorm(1.0, most))
            n_outside = len(truth) - int(counts[name].sum())
            outside = (
                f", {short_number(100 * n_outside / len(truth), digits=2)}% outside" if n_outside else ""
            )
            draw_title(main, f"{readable_text(name, longest=20)}{outside}")
            profile_edges = np.linspace(
                truth.min(), truth.max() + 1e-9 * (np.ptp(truth) or 1.0), _N_PROFILE + 1
            )
            _draw_profile(main, RatioCurve.from_events(name, truth, values, edges=profile_edges))
            below.axhline(0.0, color=TARGET_COLOR, linewidth=1.0)
            below.set_ylim(-reach, reach)
            difference = RatioCurve.from_events(name, truth, values - truth, edges=profile_edges)
            _draw_profile(below, difference)
            mark_beyond(below, difference.x, difference.values, PALETTE[0])
            below.set_xlabel("Exact ratio")
        main, below = panels[0, 0], panels[1, 0]
        main.set(xlim=limits, ylim=limits, ylabel="Learned ratio")
        below.set_ylabel("Learned $-$ exact", loc="center", fontsize="small")
        for axis in (main.xaxis, main.yaxis):
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        bar = figure.colorbar(mesh, ax=list(panels[0]), aspect=25, pad=0.02)
        bar.set_label("Events")
        draw_title(figure, title)
        legend_above(figure, [main], n_columns=3)
    return figure


def _draw_events(axes: Axes, edges: FloatArray, counts: FloatArray, norm: LogNorm) -> QuadMesh:
    mesh = axes.pcolormesh(
        edges, edges, np.ma.masked_equal(counts, 0).T, cmap=SEQUENTIAL_MAP, norm=norm, rasterized=True
    )
    axes.plot(
        edges[[0, -1]],
        edges[[0, -1]],
        color=TARGET_COLOR,
        linewidth=1.0,
        linestyle="--",
        label="learned = exact",
    )
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.6, linestyle=":")
    axes.axvline(0.0, color=TARGET_COLOR, linewidth=0.6, linestyle=":")
    return mesh


def _draw_profile(axes: Axes, curve: RatioCurve) -> None:
    errors = np.abs(np.stack([curve.values - curve.lower, curve.upper - curve.values]))  # type: ignore[operator]
    axes.errorbar(
        curve.x,
        curve.values,
        yerr=errors,
        fmt="o",
        color=PALETTE[0],
        markersize=3,
        elinewidth=1.0,
        markeredgecolor="white",
        markeredgewidth=0.4,
        label="mean, 68% of events",
    )
