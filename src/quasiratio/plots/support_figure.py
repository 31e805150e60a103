"""Where the reference has no events to reweight: features out of range, and ratios too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_weights
from quasiratio.plots.drawable import drawable_values
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    PALETTE,
    TARGET_COLOR,
    draw_title,
    figure_style,
    legend_above,
    new_figure,
    readable_text,
    short_number,
)

if TYPE_CHECKING:
    from quasiratio.estimators.support import SupportDiagnostic

__all__ = ["support_figure"]

_N_POINTS = 300
_MOST_FEATURES = 15


def support_figure(
    support: SupportDiagnostic,
    ratio_reference: npt.ArrayLike,
    ratio_target: npt.ArrayLike,
    *,
    weights_reference: npt.ArrayLike | None = None,
    weights_target: npt.ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw what of the target the reference cannot be reweighted to.

    On the left, per feature, the share of the target's $|w|$ outside the range of the reference. On the
    right, the share of $|w|$ at ratios above $|r|$, of the target and of the reweighted reference. With weights
    of one sign the two agree where reference events stand for the target; weights that cancel move them apart,
    but a tail of the target beyond the end of the reference means the same: nothing there to reweight. Beyond
    the dashed line only ten reference events lie.

    Args:
        support: `support_` of a fitted estimator.
        ratio_reference: The learned ratio at the reference events.
        ratio_target: The learned ratio at the target events.
        weights_reference: Signed weights of the reference events; all one when left out.
        weights_target: Signed weights of the target events; all one when left out.
        title: Line above the figure.

    Example:
        >>> from quasiratio.estimators.support import SupportDiagnostic
        >>> support = SupportDiagnostic({"pt": 0.02}, 3.0, 0.001, 1000)
        >>> figure = support_figure(support, np.linspace(0.1, 4, 50), np.linspace(0.1, 5, 50))
        >>> [axes.get_xlabel() for axes in figure.axes]
        ['Outside the reference [% of $|w|$]', 'Absolute ratio $|r|$']
    """
    sizes_reference = np.abs(drawable_values(ratio_reference, "ratios at the reference"))
    sizes_target = np.abs(drawable_values(ratio_target, "ratios at the target"))
    reference = np.abs(checked_weights(weights_reference, len(sizes_reference), "weights of the reference"))
    target = np.abs(checked_weights(weights_target, len(sizes_target), "weights of the target"))
    if not sizes_reference.any() or not sizes_target.any() or not target.any():
        msg = "Got ratios or weights that are all zero; expected some that are not."
        raise InvalidInputError(msg)
    shown = sorted(support.outside_range.items(), key=lambda item: -item[1])[:_MOST_FEATURES]
    with figure_style():
        figure = new_figure(max(3.4, 1.2 + 0.26 * len(shown)), width=9.0)
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.3))
        _draw_features(left, dict(shown), n_features=len(support.outside_range))
        points = _points(np.concatenate([sizes_reference, sizes_target]))
        right.axvspan(
            support.largest_supported_ratio, 2 * points[-1], color=NEGATIVE_COLOR, linewidth=0, zorder=0
        )
        right.axvline(
            support.largest_supported_ratio,
            color=TARGET_COLOR,
            linestyle="--",
            linewidth=1.0,
            label=f"ten reference events beyond, $|r|$ > {short_number(support.largest_supported_ratio)}",
        )
        right.plot(points, _share_above(sizes_target, target, points), color=TARGET_COLOR, label="target")
        right.plot(
            points,
            _share_above(sizes_reference, reference * sizes_reference, points),
            color=PALETTE[0],
            linestyle="--",
            label="reference, reweighted",
        )
        right.set(xscale="log", yscale="log", xlim=(points[0], 1.15 * points[-1]))
        right.set_ylim(0.5 / max(len(sizes_target), len(sizes_reference)), 2.0)
        right.set_xlabel("Absolute ratio $|r|$")
        right.set_ylabel("Share of $|w|$ above")
        unsupported = short_number(100 * support.beyond_support, digits=2)
        draw_title(right, f"{unsupported}% of the target without support")
        legend_above(figure, [right], n_columns=3)
        draw_title(figure, title)
    return figure


def _draw_features(axes: Axes, fractions: dict[str, float], *, n_features: int) -> None:
    percents = np.array([100 * value for value in fractions.values()])
    places = np.arange(len(percents))[::-1]
    axes.barh(places, percents, height=0.6, color=PALETTE[1])
    for place, percent in zip(places, percents, strict=True):
        axes.annotate(
            f"{short_number(float(percent), digits=2)}%",
            (percent, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    axes.set_yticks(places, [readable_text(name, longest=30) for name in fractions])
    axes.tick_params(axis="y", which="both", length=0)
    axes.yaxis.minorticks_off()
    axes.set_xlim(0.0, max(1.3 * float(percents.max(initial=0.0)), 1.0))
    axes.set_ylim(-0.7, len(percents) - 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_xlabel("Outside the reference [% of $|w|$]")
    if n_features > len(fractions):
        draw_title(axes, f"worst {len(fractions)} of {n_features} features")


def _points(sizes: FloatArray) -> FloatArray:
    positive = sizes[sizes > 0]
    lowest = max(float(np.quantile(positive, 0.01)), 1e-4 * float(positive.max()))
    return np.geomspace(min(lowest, 0.5 * float(positive.max())), float(positive.max()), _N_POINTS)


def _share_above(sizes: FloatArray, abs_weights: FloatArray, points: FloatArray) -> FloatArray:
    """Return the share of the weight at or above each point."""
    order = np.argsort(sizes)
    below = np.concatenate([[0.0], np.cumsum(abs_weights[order])])
    first = np.searchsorted(sizes[order], points, side="left")
    return np.asarray((below[-1] - below[first]) / below[-1])
