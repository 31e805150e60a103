"""Measured against learned ratios, with pulls below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import weighted_histogram
from quasiratio.metrics.arrays import FloatArray, checked_weights, require_positive_sum
from quasiratio.plots.drawable import drawable_values, mark_beyond, positive_limit, robust_limits
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    REFERENCE_COLOR,
    TARGET_COLOR,
    draw_title,
    figure_style,
    height_beside_legend,
    legend_beside,
    method_styles,
    new_figure,
)

__all__ = ["CalibrationCurve", "calibration_figure"]

_SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """Measured against predicted ratios in bins of the predicted one.

    Args:
        name: Name of the method.
        predicted: The learned ratio, averaged over the reference weights of each bin.
        measured: Share of the target's weight over share of the reference's weight in each bin.
        error: Statistical error of `measured - predicted`.
        n_left_out: Bins whose reference weight is within three errors of zero.

    Example:
        >>> curve = CalibrationCurve("mlp", [0.5, 1.5], [0.6, 1.5], [0.1, 0.1])
        >>> curve.pulls.round(3).tolist()
        [1.0, 0.0]
    """

    name: str
    predicted: FloatArray
    measured: FloatArray
    error: FloatArray
    n_left_out: int = 0

    def __post_init__(self) -> None:
        first = drawable_values(self.predicted, f"predicted ratios of {self.name!r}")
        object.__setattr__(self, "predicted", first)
        for field in ("measured", "error"):
            array = drawable_values(
                getattr(self, field), f"values of {field!r} of {self.name!r}", n_expected=len(first)
            )
            object.__setattr__(self, field, array)
        if np.any(self.error <= 0):
            msg = f"Got errors of {self.name!r} that are zero or negative; expected positive ones."
            raise InvalidInputError(msg)

    @property
    def pulls(self) -> FloatArray:
        """Measured minus predicted, in units of the statistical error."""
        return np.asarray((self.measured - self.predicted) / self.error)

    @classmethod
    def from_events(
        cls,
        name: str,
        ratio_reference: npt.ArrayLike,
        ratio_target: npt.ArrayLike,
        *,
        weights_reference: npt.ArrayLike | None = None,
        weights_target: npt.ArrayLike | None = None,
        n_bins: int = 20,
    ) -> CalibrationCurve:
        """Measure the ratio in bins of the learned ratio, with equally many reference events in each.

        Use events that the model was not fitted to.

        Args:
            name: Name of the method.
            ratio_reference: The learned ratio at the reference events.
            ratio_target: The learned ratio at the target events.
            weights_reference: Signed weights of the reference events; all one when left out.
            weights_target: Signed weights of the target events; all one when left out.
            n_bins: Number of bins; fewer where ratios repeat.

        Example:
            >>> at_reference, at_target = np.repeat([0.5, 1.5], [100, 100]), np.repeat([0.5, 1.5], [50, 150])
            >>> curve = CalibrationCurve.from_events("exact", at_reference, at_target, n_bins=2)
            >>> curve.predicted.round(6).tolist(), curve.measured.round(6).tolist()
            ([0.5, 1.5], [0.5, 1.5])
        """
        at_reference = drawable_values(ratio_reference, "ratios at the reference")
        at_target = drawable_values(ratio_target, "ratios at the target")
        w0 = checked_weights(weights_reference, len(at_reference), "weights of the reference")
        w1 = checked_weights(weights_target, len(at_target), "weights of the target")
        w0 = w0 / require_positive_sum(w0, "weights of the reference")
        w1 = w1 / require_positive_sum(w1, "weights of the target")
        positive_limit(n_bins, "n_bins")
        inner = np.unique(np.quantile(at_reference, np.linspace(0, 1, int(n_bins) + 1)[1:-1]))
        lowest = min(at_reference.min(), at_target.min())
        highest = max(at_reference.max(), at_target.max())
        edges = np.unique([lowest, *inner, np.nextafter(highest, np.inf)])
        edges[-1] += 1e-9 * (abs(edges[-1]) or 1.0)
        reference = weighted_histogram(at_reference, w0, edges=edges)
        reweighted = weighted_histogram(at_reference, w0 * at_reference, edges=edges)
        target = weighted_histogram(at_target, w1, edges=edges)
        variance = reweighted.variances + target.variances
        usable = (np.abs(reference.values) > _SIGNIFICANT * np.sqrt(reference.variances)) & (variance > 0)
        if not usable.any():
            msg = (
                f"Got no bin of {name!r} whose reference weight differs from zero by three errors; expected "
                "more events, or fewer bins."
            )
            raise InvalidInputError(msg)
        below = np.where(usable, reference.values, np.nan)[usable]
        return cls(
            name,
            reweighted.values[usable] / below,
            target.values[usable] / below,
            np.sqrt(variance[usable]) / np.abs(below),
            int(np.count_nonzero(~usable)),
        )


_MARKERS = ("o", "s", "^", "D", "v", "P")


def calibration_figure(
    curves: Sequence[CalibrationCurve], *, title: str | None = None, pull_limit: float = 5.0
) -> Figure:
    """Draw the ratio that data show in bins of the learned ratio, against the diagonal.

    Points on the diagonal are calibrated; the pulls below are in units of the statistical error. The
    negative side is shaded.

    Args:
        curves: One per method; `CalibrationCurve.from_events` measures them.
        title: Line above the figure.
        pull_limit: The lower panel reaches from minus to plus this value.

    Example:
        >>> figure = calibration_figure([CalibrationCurve("mlp", [0.5, 1.5], [0.6, 1.5], [0.1, 0.1])])
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['Measured ratio', 'Pull']
    """
    if len(curves) == 0:
        msg = "Got no calibration curves to draw; expected at least one."
        raise InvalidInputError(msg)
    limit = positive_limit(pull_limit, "pull_limit")
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        figure = new_figure(1.5 * height_beside_legend(2 + len(curves), at_least=3.4))
        main, below = figure.subplots(2, 1, sharex=True, height_ratios=(3.0, 1.0))
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        across = robust_limits([curve.predicted for curve in curves])
        up = robust_limits(
            [*(curve.predicted for curve in curves), [0.0]], [c.measured for c in curves], stretch=0.3
        )
        main.set(xlim=across, ylim=up)
        below.set_ylim(-limit, limit)
        if up[0] < 0:
            main.axhspan(up[0], 0.0, color=NEGATIVE_COLOR, linewidth=0, zorder=0, label="negative ratio")
        ends = np.array([min(across[0], up[0]), max(across[1], up[1])])
        main.plot(ends, ends, color=TARGET_COLOR, linewidth=1.0, linestyle="--", label="calibrated")
        below.axhspan(-1.0, 1.0, color=REFERENCE_COLOR, alpha=0.25, linewidth=0)
        below.axhline(0.0, color=TARGET_COLOR, linewidth=0.8)
        for i, curve in enumerate(curves):
            color = styles[curve.name].color
            options = {"fmt": _MARKERS[i % len(_MARKERS)], "color": color, "markersize": 4, "elinewidth": 1.0}
            name = curve.name + (f" ({curve.n_left_out} bins left out)" if curve.n_left_out else "")
            main.errorbar(curve.predicted, curve.measured, yerr=curve.error, label=name, **options)
            below.errorbar(curve.predicted, curve.pulls, yerr=np.ones(len(curve.pulls)), **options)
            mark_beyond(main, curve.predicted, curve.measured, color)
            mark_beyond(below, curve.predicted, curve.pulls, color)
        main.set_ylabel("Measured ratio")
        below.set_ylabel("Pull", loc="center")
        below.set_xlabel("Learned ratio")
        below.set_yticks([-0.6 * limit, 0.0, 0.6 * limit])
        main.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        legend_beside(main, first="calibrated")
        draw_title(main, title)
    return figure
