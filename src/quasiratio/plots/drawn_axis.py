"""The axis of an observable as it can be drawn: without far bins, and in numbers that fit under it.

Time stamps of 1.7e9 are drawn from an offset, which the label names, and values of 1e-300 in units of it: matplotlib's own
offset would stand in the label's place, and it takes such small ranges for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import MethodClosure, ObservableClosure, WeightedHistogram
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.style import readable_text, short_number

__all__ = ["DrawnAxis", "drawn_axis", "name_hidden_bins", "range_without_far_bins"]

_FAR = 0.5
_LONG_OFFSET = 1e5
_LARGEST, _SMALLEST = 1e30, 1e-30
Range = tuple[float, float]


@dataclass(frozen=True)
class DrawnAxis:
    """What is drawn of an observable.

    Attributes:
        closure: The closure, whose edges are in the numbers of the axis.
        label: What stands under the axis, without the unit.
        x_range: What is drawn of it.
    """

    closure: ObservableClosure
    label: str
    x_range: Range


def range_without_far_bins(edges: FloatArray) -> Range:
    """Return where to draw bins whose first or last holds numbers that stand for missing values, far from all others.

    Args:
        edges: Edges as `metrics.natural_edges` makes them.

    Example:
        >>> range_without_far_bins(np.array([-999.0, 0.0, 1.0, 2.0]))
        (0.0, 2.0)
        >>> range_without_far_bins(np.array([0.0, 20.0, 50.0, 80.0]))
        (0.0, 80.0)
    """
    widths = np.diff(edges)
    if len(widths) < 3:
        return float(edges[0]), float(edges[-1])
    usual = float(np.median(widths[1:-1]))
    room = _FAR * float(widths[widths < 2.0 * usual].sum())
    first, last = (1 if widths[0] > room else 0), (-2 if widths[-1] > room else -1)
    return float(edges[first]), float(edges[last])


def drawn_axis(closure: ObservableClosure, label: str, x_range: Range | None) -> DrawnAxis:
    """Return the closure in numbers that can be drawn, and a label that says which they are.

    Args:
        closure: The closure of one observable.
        label: What to call the observable.
        x_range: What to draw of it; everything when left out.
    """
    low, high = (closure.edges[0], closure.edges[-1]) if x_range is None else x_range
    if not low < high:
        msg = f"Got the range {x_range} to draw; expected two increasing numbers."
        raise InvalidInputError(msg)
    size, span = max(abs(low), abs(high)), high - low
    if size > _LARGEST or size < _SMALLEST:
        power = math.floor(math.log10(size))
        unit = float(f"1e{power}")
        moved = _with_edges(closure, lambda edges: edges / unit)
        return DrawnAxis(moved, f"{label} / $10^{{{power}}}$", (float(low / unit), float(high / unit)))
    if size > _LONG_OFFSET * span:
        step = 10.0 ** math.ceil(math.log10(span))
        offset = step * round(0.5 * (low + high) / step)
        sign, shift = ("−" if offset > 0 else "+"), f"{abs(offset):.15g}"
        moved = _with_edges(closure, lambda edges: edges - offset)
        return DrawnAxis(moved, f"{label} {sign} {shift}", (float(low - offset), float(high - offset)))
    return DrawnAxis(closure, label, (float(low), float(high)))


def name_hidden_bins(
    axes: Axes, closure: ObservableClosure, entries: Sequence[MethodClosure], x_range: Range | None
) -> None:
    """Say above the panel which shares of the samples are in bins beyond the range that is drawn."""
    if x_range is None:
        return
    edges = closure.edges
    parts = {
        f"below {short_number(x_range[0])}": edges[1:] <= x_range[0],
        f"from {short_number(x_range[1])} on": edges[:-1] >= x_range[1],
    }
    histograms = {"target": closure.target, "reference": closure.reference.histogram}
    histograms |= {readable_text(entry.method, longest=24): entry.histogram for entry in entries}
    texts = [
        f"{where}: {', '.join(f'{name} {one.values[hidden].sum():.1%}' for name, one in histograms.items())}"
        for where, hidden in parts.items()
        if hidden.any()
    ]
    if texts:
        axes.annotate(
            "not drawn: " + "; ".join(texts),
            (0.0, 1.0),
            xytext=(0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            fontsize="x-small",
            annotation_clip=False,
        )


def _with_edges(closure: ObservableClosure, moved: Callable[[FloatArray], FloatArray]) -> ObservableClosure:
    def histogram(one: WeightedHistogram) -> WeightedHistogram:
        return replace(one, edges=moved(one.edges))

    def entry(one: MethodClosure) -> MethodClosure:
        return replace(one, histogram=histogram(one.histogram))

    return replace(
        closure,
        target=histogram(closure.target),
        reference=entry(closure.reference),
        methods=tuple(entry(one) for one in closure.methods),
    )
