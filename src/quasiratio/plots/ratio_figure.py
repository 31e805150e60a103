"""Learned ratios along a feature, against the exact one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, require_finite
from quasiratio.metrics.binning import checked_edges
from quasiratio.plots.drawable import drawable_values, mark_beyond, positive_limit, robust_limits
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    REFERENCE_COLOR,
    TARGET_COLOR,
    MethodStyle,
    axis_label,
    draw_title,
    figure_style,
    height_beside_legend,
    legend_beside,
    method_styles,
    new_figure,
)

__all__ = ["RatioCurve", "ratio_figure"]

_QUANTILES = (0.16, 0.84)


@dataclass(frozen=True, eq=False)
class RatioCurve:
    """Values of a ratio at increasing positions.

    Args:
        name: Name of the method.
        x: Positions along the axis.
        values: The ratio at each of them.
        lower: Lower edge of a band, or `None`.
        upper: Upper edge of the band, or `None`.

    Example:
        >>> RatioCurve("exact", [0.0, 1.0], [-1.0, 1.0]).lower is None
        True
    """

    name: str
    x: FloatArray
    values: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None

    def __post_init__(self) -> None:
        positions = drawable_values(self.x, f"positions of {self.name!r}")
        if np.any(np.diff(positions) <= 0):
            msg = f"Got positions of {self.name!r} that do not increase; expected them in increasing order."
            raise InvalidInputError(msg)
        object.__setattr__(self, "x", positions)
        for name in ("values", "lower", "upper"):
            given = getattr(self, name)
            if given is None and name != "values":
                continue
            array = np.asarray(given, dtype=np.float64)
            if array.shape != positions.shape:
                msg = (
                    f"Got {name} of shape {array.shape} for the curve {self.name!r} with {len(positions)} "
                    "positions; expected one number per position."
                )
                raise InvalidInputError(msg)
            require_finite(array, f"{name} of {self.name!r}")
            object.__setattr__(self, name, array)
        if (self.lower is None) != (self.upper is None):
            msg = f"Got one edge of a band for the curve {self.name!r}; expected both, or none."
            raise InvalidInputError(msg)

    @classmethod
    def from_draws(cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike) -> RatioCurve:
        """Make a curve from several values per position: mean, and a band with 68% of them.

        Args:
            name: Name of the method.
            x: Positions.
            ratios: `(n_positions, n_draws)`: points of equal `x`, or the members of an ensemble.

        Example:
            >>> RatioCurve.from_draws("ring", [0.0, 1.0], [[1.0, 3.0], [4.0, 4.0]]).values.tolist()
            [2.0, 4.0]
        """
        array = np.asarray(ratios, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] == 0:
            msg = f"Got ratios of shape {array.shape}; expected (n_positions, n_draws), with draws."
            raise InvalidInputError(msg)
        require_finite(array, f"ratios of {name!r}")
        lower, upper = np.quantile(array, _QUANTILES, axis=1)
        return cls(name, np.asarray(x), array.mean(axis=1), lower, upper)

    @classmethod
    def from_events(
        cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike, *, edges: npt.ArrayLike
    ) -> RatioCurve:
        """Make a curve from events: in each bin the mean, and a band with 68% of the events.

        Bins without events are left out. Events count once each, whatever their weights.

        Args:
            name: Name of the method.
            x: The feature of each event.
            ratios: The ratio at each event.
            edges: Increasing edges of the bins.

        Example:
            >>> RatioCurve.from_events("mlp", [0.2, 0.4, 1.5], [1.0, 3.0, 5.0], edges=[0, 1, 2]).values.tolist()
            [2.0, 5.0]
        """
        values = checked_values(x, "values of the feature")
        given = checked_values(ratios, f"ratios of {name!r}", n_expected=len(values))
        centers, by_bin = _in_bins(name, values, edges)
        rows = np.array([[given[i].mean(), *np.quantile(given[i], _QUANTILES)] for i in by_bin])
        return cls(name, centers, rows[:, 0], rows[:, 1], rows[:, 2])

    @classmethod
    def from_members(
        cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike, *, edges: npt.ArrayLike
    ) -> RatioCurve:
        """Make a curve from an ensemble: in each bin the mean, and one standard deviation across the members.

        Each member's ratios are averaged over the events of a bin first, so that the band is the uncertainty
        of the average and not the spread of the ratio within the bin. Bins without events are left out.

        Args:
            name: Name of the method.
            x: The feature of each event.
            ratios: `(n_members, n_events)`, with at least two members.
            edges: Increasing edges of the bins.

        Example:
            >>> curve = RatioCurve.from_members("mlp", [0.2, 0.4], [[1.0, 3.0], [3.0, 5.0]], edges=[0, 1])
            >>> curve.values.tolist(), curve.upper.round(3).tolist()
            ([3.0], [4.414])
        """
        values = checked_values(x, "values of the feature")
        given = np.asarray(ratios, dtype=np.float64)
        if given.ndim != 2 or len(given) < 2 or given.shape[1] != len(values):
            msg = (
                f"Got ratios of shape {given.shape} for {len(values)} events; expected (n_members, n_events), "
                "with at least two members."
            )
            raise InvalidInputError(msg)
        require_finite(given, f"ratios of {name!r}")
        centers, by_bin = _in_bins(name, values, edges)
        averages = np.array([given[:, i].mean(axis=1) for i in by_bin])
        mean, std = averages.mean(axis=1), averages.std(axis=1, ddof=1)
        return cls(name, centers, mean, mean - std, mean + std)


def _in_bins(
    name: str, values: FloatArray, edges: npt.ArrayLike
) -> tuple[FloatArray, list[npt.NDArray[np.int64]]]:
    """Return the centres of the bins with events, and the events in each of them."""
    bounds = checked_edges(edges)
    index = np.searchsorted(bounds, values, side="right") - 1
    by_bin = [np.flatnonzero(index == i) for i in range(len(bounds) - 1)]
    filled = [i for i, events in enumerate(by_bin) if len(events)]
    if not filled:
        msg = f"Got no event of {name!r} between {bounds[0]:.6g} and {bounds[-1]:.6g}; expected some."
        raise InvalidInputError(msg)
    return ((bounds[1:] + bounds[:-1]) / 2)[filled], [by_bin[i] for i in filled]


def ratio_figure(
    curves: Sequence[RatioCurve],
    exact: RatioCurve | None = None,
    *,
    label: str,
    unit: str | None = None,
    title: str | None = None,
    band: str | None = None,
    difference_limit: float | None = None,
) -> Figure:
    r"""Draw learned ratios, and below them their differences to the exact one where it is known.

    The negative side is shaded. Limits follow the exact ratio; triangles at the edge mark what lies beyond.

    Args:
        curves: One per method, with its band.
        exact: The exact ratio, drawn in black.
        label: What to call the feature on its axis.
        unit: Unit of the feature, without brackets.
        title: Line above the figure.
        band: What the bands of the curves contain, for the legend.
        difference_limit: The lower panel reaches from minus to plus this value; a tenth of the exact
            ratio's range when left out.

    Example:
        >>> exact = RatioCurve("exact", [0.0, 1.0, 2.0], [-1.0, 0.5, 1.0])
        >>> figure = ratio_figure([RatioCurve("mlp", [0.0, 2.0], [0.1, 1.1])], exact, label="r", unit="cm")
        >>> figure.axes[-1].get_xlabel()
        'r [cm]'
    """
    if not curves and exact is None:
        msg = "Got no curve to draw; expected at least one, or the exact ratio."
        raise InvalidInputError(msg)
    if difference_limit is not None:
        positive_limit(difference_limit, "difference_limit")
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        n_lines = 3 + len(curves)
        figure = new_figure(
            height_beside_legend(n_lines, at_least=3.2) * (1.45 if exact is not None else 1.12)
        )
        if exact is None:
            panels = [figure.subplots()]
        else:
            panels = list(figure.subplots(2, 1, sharex=True, height_ratios=(2.6, 1.0)))
            figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        main = panels[0]
        _draw_ratios(main, curves, exact, styles)
        main.set_ylabel("Ratio  target / reference")
        if exact is not None:
            _draw_differences(panels[1], curves, exact, styles, difference_limit)
        drawn = [*curves, *([exact] if exact is not None else [])]
        main.set_xlim(min(float(c.x.min()) for c in drawn), max(float(c.x.max()) for c in drawn))
        if band:
            main.fill_between(
                [], [], [], color=REFERENCE_COLOR, alpha=0.4, linewidth=0, label=f"bands: {band}"
            )
        legend_beside(main)
        panels[-1].set_xlabel(axis_label(label, unit))
        draw_title(main, title)
    return figure


def _draw_ratios(
    axes: Axes, curves: Sequence[RatioCurve], exact: RatioCurve | None, styles: dict[str, MethodStyle]
) -> None:
    trusted = [exact.values] if exact is not None else [curve.values for curve in curves]
    lower, upper = robust_limits([*trusted, [0.0]], [curve.values for curve in curves], stretch=0.15)
    axes.set_ylim(lower, upper)
    axes.axhspan(min(lower, 0.0), 0.0, color=NEGATIVE_COLOR, linewidth=0, zorder=0, label="negative ratio")
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=0.8, label="_zero")
    if exact is not None:
        axes.plot(exact.x, exact.values, color=TARGET_COLOR, linewidth=2.2, label=exact.name)
    for curve in curves:
        _draw_curve(axes, curve, styles[curve.name])


def _draw_differences(
    axes: Axes,
    curves: Sequence[RatioCurve],
    exact: RatioCurve,
    styles: dict[str, MethodStyle],
    limit: float | None,
) -> None:
    reach = limit if limit is not None else 0.1 * float(np.ptp(exact.values)) or 0.1
    axes.set_ylim(-reach, reach)
    axes.axhline(0.0, color=TARGET_COLOR, linewidth=1.2, label="_zero")
    for curve in curves:
        at_curve = np.interp(curve.x, exact.x, exact.values)
        shifted = RatioCurve(
            curve.name,
            curve.x,
            curve.values - at_curve,
            None if curve.lower is None else curve.lower - at_curve,
            None if curve.upper is None else curve.upper - at_curve,
        )
        _draw_curve(axes, shifted, styles[curve.name])
    axes.set_ylabel("Learned $-$ exact", loc="center")


def _draw_curve(axes: Axes, curve: RatioCurve, style: MethodStyle) -> None:
    axes.plot(curve.x, curve.values, color=style.color, linestyle=style.linestyle, label=curve.name)
    if curve.lower is not None and curve.upper is not None:
        axes.fill_between(curve.x, curve.lower, curve.upper, color=style.color, alpha=0.25, linewidth=0)
    mark_beyond(axes, curve.x, curve.values, style.color)
