"""The panels of a closure: densities above, and below them what stays readable where the target is zero.

- A strip of pulls per method: (reweighted - target) / error of the difference.
- One panel of differences for all methods: (reweighted - target) / error of the target.
- One panel of quotients, reweighted / target, only where the target is significantly different from zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from quasiratio.metrics import MethodClosure, ObservableClosure, WeightedHistogram
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import mark_beyond, robust_limits
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    REFERENCE_COLOR,
    TARGET_COLOR,
    MethodStyle,
    readable_text,
    short_number,
)

__all__ = [
    "draw_densities",
    "draw_differences",
    "draw_pulls",
    "draw_quotients",
    "mark_sign_changes",
    "member_entry",
    "quality_text",
    "scale_logarithmically",
    "sign_changes",
]


def sign_changes(histogram: WeightedHistogram, *, significance: float = 3.0) -> npt.NDArray[np.float64]:
    """Return the positions between significant bins of opposite sign, interpolated linearly.

    Args:
        histogram: Sums of signed weights.
        significance: Bins closer to zero than this many standard errors have no sign of their own.

    Example:
        >>> from quasiratio.metrics import weighted_histogram
        >>> h = weighted_histogram([0.5] * 20 + [1.5] * 20, [-1.0] * 20 + [1.0] * 20, edges=[0, 1, 2])
        >>> sign_changes(h).tolist()
        [1.0]
    """
    centers = (histogram.edges[1:] + histogram.edges[:-1]) / 2
    heights = histogram.values / np.diff(histogram.edges)
    certain = np.flatnonzero(
        (histogram.values != 0) & (np.abs(histogram.values) >= significance * np.sqrt(histogram.variances))
    )
    before, after = certain[:-1], certain[1:]
    changed = heights[before] * heights[after] < 0
    before, after = before[changed], after[changed]
    share = np.abs(heights[before]) / (np.abs(heights[before]) + np.abs(heights[after]))
    return np.asarray(centers[before] + share * (centers[after] - centers[before]))


_SIGNIFICANT = 3.0
_MOST_BARS = 40
_MEMBERS = "spread of members, ±1σ"
_STATISTICAL = "target ±1σ (stat.)"
_HATCHED: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": REFERENCE_COLOR,
    "hatch": "//////",
    "linewidth": 0,
}


def draw_densities(
    axes: Axes,
    closure: ObservableClosure,
    entries: Sequence[MethodClosure],
    styles: Mapping[str, MethodStyle],
) -> None:
    """Draw target, reference and methods; the limits follow the first two."""
    edges, widths = closure.edges, np.diff(closure.edges)
    centers = _centers(closure)
    target, error = closure.target.values / widths, np.sqrt(closure.target.variances) / widths
    before = closure.reference.histogram.values / widths
    axes.errorbar(
        centers,
        target,
        yerr=error,
        xerr=widths / 2 if len(widths) <= _MOST_BARS else None,
        fmt="o",
        color=TARGET_COLOR,
        markersize=2.5,
        elinewidth=0.8,
        label="target",
        zorder=5,
    )
    axes.stairs(before, edges, color=REFERENCE_COLOR, fill=True, alpha=0.35, label="reference")
    lines = {entry.method: entry.histogram.values / widths for entry in entries}
    for entry in entries:
        band = None if entry.member_band is None else entry.member_band / widths
        _draw_steps(axes, edges, lines[entry.method], band, entry.method, styles[entry.method])
    limits = robust_limits([target - error, target + error, before, [0.0]], lines.values(), stretch=0.25)
    lowest = min(0.0, *(float(np.min(values)) for values in (target, before, *lines.values())))
    axes.set_ylim(limits[0] if lowest < 0 else 0.0, limits[1])
    if lowest < 0:
        axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    for method, line in lines.items():
        mark_beyond(axes, centers, line, styles[method].color)


def scale_logarithmically(axes: Axes, closure: ObservableClosure) -> None:
    """Draw the densities on a logarithmic scale, from below the smallest bin that is positive; leave it if there is none."""
    widths = np.diff(closure.edges)
    values = np.concatenate([closure.target.values / widths, closure.reference.histogram.values / widths])
    positive = values[values > 0]
    if len(positive):
        axes.set_yscale("log")
        axes.set_ylim(0.5 * positive.min(), 3.0 * positive.max())


def draw_pulls(
    axes: Axes, closure: ObservableClosure, entry: MethodClosure, style: MethodStyle, limit: float
) -> None:
    """Draw the pulls of one method as bars, with the spread of its members in units of the same error."""
    pulls = closure.pulls(entry.method)
    axes.axhspan(-1.0, 1.0, color=REFERENCE_COLOR, alpha=0.25, linewidth=0)
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    axes.stairs(pulls, closure.edges, fill=True, color=style.color, alpha=0.8, label=entry.method)
    if entry.member_band is not None:
        spread = entry.member_band * _inverse(entry.histogram.variances + closure.target.variances)
        axes.errorbar(
            _centers(closure), pulls, yerr=spread, fmt="none", color=TARGET_COLOR, alpha=0.6, elinewidth=0.8
        )
    axes.set_ylim(-limit, limit)
    axes.set_yticks([-0.6 * limit, 0.0, 0.6 * limit])
    axes.minorticks_off()  # too fine for a strip; panels share x, so that the densities lose those of x, too
    axes.set_ylabel("Pull", loc="center")
    mark_beyond(axes, _centers(closure), pulls, TARGET_COLOR)
    axes.annotate(
        quality_text(entry),
        (1.0, 0.5),
        xytext=(8, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        va="center",
        color=style.color,
        fontsize="small",
        annotation_clip=False,
    )


def draw_differences(
    axes: Axes,
    closure: ObservableClosure,
    entries: Sequence[MethodClosure],
    styles: Mapping[str, MethodStyle],
    limit: float,
) -> None:
    """Draw the differences of all methods in units of the target's statistical error."""
    unit = _inverse(closure.target.variances)
    axes.axhspan(-1.0, 1.0, **_HATCHED, label=_STATISTICAL)
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    axes.set_ylim(-limit, limit)
    for entry in entries:
        difference = (entry.histogram.values - closure.target.values) * unit
        band = None if entry.member_band is None else entry.member_band * unit
        _draw_steps(axes, closure.edges, difference, band, entry.method, styles[entry.method])
        mark_beyond(axes, _centers(closure), difference, styles[entry.method].color)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_ylabel("Difference / σ", loc="center", fontsize="small")


def draw_quotients(
    axes: Axes,
    closure: ObservableClosure,
    entries: Sequence[MethodClosure],
    styles: Mapping[str, MethodStyle],
    limit: float,
) -> None:
    """Draw the quotients of all methods by the target, leaving out bins whose target may be zero."""
    target = closure.target.values
    error = np.sqrt(closure.target.variances)
    usable = (target != 0) & (np.abs(target) >= _SIGNIFICANT * error)
    inverse = 1.0 / np.where(usable, target, np.nan)
    band = error * np.abs(inverse)
    axes.stairs(
        1 + band,
        closure.edges,
        baseline=1 - band,
        fill=True,
        **_HATCHED,
        label=_STATISTICAL,
    )
    for i in np.flatnonzero(~usable):
        label = f"target within {_SIGNIFICANT:g}σ of zero" if i == np.flatnonzero(~usable)[0] else "_unusable"
        axes.axvspan(
            closure.edges[i], closure.edges[i + 1], color=NEGATIVE_COLOR, linewidth=0, label=label, zorder=0
        )
    axes.axhline(1.0, color=TARGET_COLOR, linewidth=0.8, label="_one")
    axes.set_ylim(1 - limit, 1 + limit)
    for entry in entries:
        quotient = entry.histogram.values * inverse
        spread = None if entry.member_band is None else entry.member_band * np.abs(inverse)
        _draw_steps(axes, closure.edges, quotient, spread, entry.method, styles[entry.method])
        mark_beyond(axes, _centers(closure), quotient, styles[entry.method].color)
    axes.set_ylabel("Model / target", loc="center", fontsize="small")


def mark_sign_changes(panels: Sequence[Axes], target: WeightedHistogram) -> None:
    """Draw a dotted line through all panels wherever the target changes sign."""
    for i, position in enumerate(sign_changes(target)):
        for axes in panels:
            name = "target changes sign" if i == 0 and axes is panels[0] else "_sign change"
            axes.axvline(float(position), color=TARGET_COLOR, linestyle=":", linewidth=1.0, label=name)


def member_entry(entries: Sequence[MethodClosure], styles: Mapping[str, MethodStyle]) -> dict[str, Any]:
    """Return the legend's entry for the bands of all ensembles: one patch per ensemble, side by side."""
    patches = tuple(
        Patch(facecolor=styles[entry.method].color, alpha=0.25, linewidth=0)
        for entry in entries
        if entry.member_band is not None
    )
    return {_MEMBERS: patches} if patches else {}


def quality_text(entry: MethodClosure) -> str:
    """Return the method and its chi-squared on two lines."""
    return (
        f"{readable_text(entry.method, longest=24)}\n$\\chi^2$/ndof = {short_number(entry.chi_squared.value)}"
    )


def _draw_steps(
    axes: Axes, edges: FloatArray, line: FloatArray, band: FloatArray | None, name: str, style: MethodStyle
) -> None:
    axes.stairs(
        line,
        edges,
        baseline=None,
        color=style.color,
        linestyle=style.linestyle,
        linewidth=1.4,
        label=name,
    )
    if band is not None:
        axes.stairs(line + band, edges, baseline=line - band, fill=True, color=style.color, alpha=0.25)


def _inverse(variances: FloatArray) -> FloatArray:
    """Return one over the standard error; NaN where there is none."""
    return np.asarray(1.0 / np.sqrt(np.where(variances > 0, variances, np.nan)))


def _centers(closure: ObservableClosure) -> FloatArray:
    return np.asarray((closure.edges[1:] + closure.edges[:-1]) / 2)
