"""One observable of several samples, beside exact densities where they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import WeightedHistogram
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.closure_panels import sign_changes
from quasiratio.plots.drawable import drawable_values, require_choice, robust_limits
from quasiratio.plots.style import (
    TARGET_COLOR,
    axis_label,
    density_label,
    draw_title,
    figure_style,
    height_beside_legend,
    legend_beside,
    method_styles,
    new_figure,
)

__all__ = ["distribution_figure"]


def distribution_figure(
    histograms: Mapping[str, WeightedHistogram],
    *,
    label: str,
    unit: str | None = None,
    title: str | None = None,
    exact: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    scale: Literal["linear", "log"] = "linear",
) -> Figure:
    """Draw the densities of samples with their statistical bands.

    Dotted vertical lines, in the colour of the sample, mark where its density changes sign.

    Args:
        histograms: Histograms by the names of their samples; each is normalised to one over its whole sample.
        label: What to call the observable on its axis.
        unit: Unit of the observable, without brackets.
        title: Line above the figure.
        exact: Exact densities by name, as pairs (positions, values). One with the name of a sample is
            drawn over it in black, without an entry of its own.
        scale: `"log"` only for densities without negative bins.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> h = weighted_histogram([0.5, 1.5, 1.5], [1.0, 2.0, -1.0], edges=[0, 1, 2])
        >>> distribution_figure({"sample": h}, label="$m$", unit="GeV").axes[0].get_ylabel()
        'Density [1/GeV]'
    """
    require_choice(scale, "scale", ("linear", "log"))
    if not histograms:
        msg = "Got no histograms to draw; expected at least one, by the name of its sample."
        raise InvalidInputError(msg)
    lines = {name: _checked_line(name, pair) for name, pair in (exact or {}).items()}
    lowest = min(float(h.density.min()) for h in histograms.values())
    if scale == "log" and lowest < 0:
        msg = "Got a logarithmic scale for densities with negative bins; expected scale='linear'."
        raise InvalidInputError(msg)
    styles = method_styles([*histograms, *(name for name in lines if name not in histograms)])
    with figure_style():
        n_lines = 2 + len(histograms) + len(lines)
        figure = new_figure(height_beside_legend(n_lines, at_least=3.2) + 0.6)
        axes = figure.subplots()
        reached: list[FloatArray] = []
        for name, histogram in histograms.items():
            color = styles[name].color
            error = np.sqrt(histogram.variances) / np.diff(histogram.edges) / histogram.require_nonzero_sum()
            density = histogram.density
            reached += [density - error, density + error]
            axes.stairs(density, histogram.edges, baseline=None, color=color, linewidth=1.4, label=name)
            axes.stairs(
                density + error,
                histogram.edges,
                baseline=density - error,
                fill=True,
                color=color,
                alpha=0.3,
                linewidth=0,
            )
            for position in sign_changes(histogram):
                axes.axvline(float(position), color=color, linestyle=":", linewidth=1.0, label="_sign change")
        for i, (name, (x, values)) in enumerate(lines.items()):
            own = name not in histograms
            caption = name if own else ("exact" if i == 0 else "_exact")
            color = styles[name].color if own else TARGET_COLOR
            axes.plot(x, values, color=color, linewidth=1.0, linestyle="--", label=caption)
        if scale == "linear":
            limits = robust_limits([*reached, [0.0]], [values for _, values in lines.values()])
            axes.set_ylim(limits[0] if lowest < 0 else 0.0, limits[1])
        axes.set_xlim(
            min(h.edges[0] for h in histograms.values()), max(h.edges[-1] for h in histograms.values())
        )
        if any(len(sign_changes(h)) for h in histograms.values()):
            axes.plot([], [], color=TARGET_COLOR, linestyle=":", linewidth=1.0, label="change of sign")
        if scale == "log":
            axes.set_yscale("log")
        else:
            axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        if lowest < 0:
            axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
        axes.set_xlabel(axis_label(label, unit))
        axes.set_ylabel(density_label(unit))
        bands = tuple(Patch(facecolor=styles[name].color, alpha=0.3, linewidth=0) for name in histograms)
        legend_beside(axes, extra={"±1σ (stat.)": bands})
        draw_title(axes, title)
    return figure


def _checked_line(name: str, pair: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[FloatArray, FloatArray]:
    x = drawable_values(pair[0], f"positions of the exact density {name!r}")
    return x, drawable_values(pair[1], f"values of the exact density {name!r}", n_expected=len(x))
