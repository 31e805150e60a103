"""Loss landscapes over both mixture coefficients, one panel per loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterMathtext, LogLocator, MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_grid, drawable_values, symmetric_powers
from quasiratio.plots.style import (
    DIVERGING_MAP,
    NEGATIVE_COLOR,
    PALETTE,
    SEQUENTIAL_MAP,
    TARGET_COLOR,
    MethodStyle,
    draw_title,
    figure_style,
    legend_above,
    legend_beside,
    method_styles,
    new_figure,
    readable_text,
    short_number,
)

__all__ = ["RiskCurve", "RiskLandscape", "landscape_figure", "risk_curve_figure", "spread"]

_FAR = 50.0
"""In median absolute deviations; a parabola reaches two to three."""


@dataclass(frozen=True, eq=False)
class RiskLandscape:
    """A risk over $(c_0, c_1)$. Risks that are NaN or infinite are left out of figures.

    Args:
        name: Name of the loss.
        c0: Increasing coefficients of the reference.
        c1: Increasing coefficients of the target.
        risks: The risk at each pair, `(n_c0, n_c1)`.

    Example:
        >>> RiskLandscape("mse", [1.0, 2.0], [1.0, 1.5], [[3.0, 2.0], [1.0, 4.0]]).minimum
        (2.0, 1.0)
    """

    name: str
    c0: FloatArray
    c1: FloatArray
    risks: FloatArray

    def __post_init__(self) -> None:
        for name in ("c0", "c1"):
            object.__setattr__(self, name, _increasing(getattr(self, name), f"values of {name}"))
        shape = len(self.c0), len(self.c1)
        risks = drawable_grid(self.risks, f"risks of {self.name!r}", shape=shape, finite=False)
        object.__setattr__(self, "risks", risks)

    @property
    def minimum(self) -> tuple[float, float]:
        """The pair $(c_0, c_1)$ of the grid with the lowest finite risk."""
        i, j = np.unravel_index(np.argmin(_masked(self.risks)), self.risks.shape)
        return float(self.c0[i]), float(self.c1[j])

    @property
    def runs_away(self) -> bool:
        """Whether the lowest risk stands apart from all others, as beside a pole, so that it is no minimum."""
        return _runs_away(self.risks)


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """A risk over one coefficient. Risks that are NaN or infinite are left out of figures.

    Args:
        name: Name of the loss.
        c: Increasing coefficients.
        risks: The risk at each of them.

    Example:
        >>> RiskCurve("pare", [1.0, 1.5, 2.0], [0.3, 0.1, 0.2]).minimum
        1.5
    """

    name: str
    c: FloatArray
    risks: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", _increasing(self.c, "coefficients"))
        risks = np.asarray(self.risks)
        if risks.ndim != 1:
            msg = f"Got risks of {self.name!r} of shape {risks.shape}; expected one per coefficient."
            raise InvalidInputError(msg)
        grid = drawable_grid(risks[None], f"risks of {self.name!r}", shape=(1, len(self.c)), finite=False)
        object.__setattr__(self, "risks", grid[0])

    @property
    def minimum(self) -> float:
        """The coefficient with the lowest finite risk."""
        return float(self.c[np.argmin(_masked(self.risks))])

    @property
    def runs_away(self) -> bool:
        """Whether the lowest risk stands apart from all others, as beside a pole, so that it is no minimum."""
        return _runs_away(self.risks)


def spread(risks: FloatArray) -> tuple[float, float]:
    """Return the median of the finite risks and their median absolute deviation from it.

    Example:
        >>> spread(np.array([1.0, 2.0, 4.0, np.inf]))
        (2.0, 1.0)
    """
    finite = risks[np.isfinite(risks)]
    middle = float(np.median(finite))
    return middle, float(np.median(np.abs(finite - middle)))


def _increasing(values: FloatArray, role: str) -> FloatArray:
    array = drawable_values(values, role)
    if len(array) < 2 or np.any(np.diff(array) <= 0):
        msg = f"Got {len(array)} {role} that do not increase; expected at least two, in increasing order."
        raise InvalidInputError(msg)
    return array


def _masked(risks: FloatArray) -> FloatArray:
    return np.where(np.isfinite(risks), risks, np.inf)


def _runs_away(risks: FloatArray) -> bool:
    middle, deviation = spread(risks)
    return middle - float(_masked(risks).min()) > _FAR * deviation


def risk_curve_figure(
    curves: Sequence[RiskCurve],
    *,
    nominal: float | None = None,
    nominal_label: str = "from the sums of weights",
    label: str = "Target coefficient $c_1$",
    title: str | None = None,
) -> Figure:
    """Draw each risk over the same coefficient, with its minimum marked.

    Losses have scales of their own, so each has its own panel; that of a risk that runs away is logarithmic
    on both sides of zero.

    Args:
        curves: One per loss.
        nominal: The coefficient of the data, drawn as a dashed line.
        nominal_label: What to call it in the legend.
        label: What to call the coefficient on its axis.
        title: Line above the figure.

    Example:
        >>> c = np.linspace(1, 2, 11)
        >>> figure = risk_curve_figure([RiskCurve("pare", c, (c - 1.3) ** 2)], nominal=1.25)
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['pare', 'minimum, 1.3', 'from the sums of weights, 1.25']
    """
    if len(curves) == 0:
        msg = "Got no curves to draw; expected at least one."
        raise InvalidInputError(msg)
    if nominal is not None and not math.isfinite(nominal):
        msg = f"Got nominal = {nominal}; expected a finite coefficient, or None."
        raise InvalidInputError(msg)
    styles = method_styles([curve.name for curve in curves])
    with figure_style():
        figure = new_figure(0.7 + 2.1 * len(curves))
        panels = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        for axes, curve in zip(panels, curves, strict=True):
            _draw(axes, curve, styles[curve.name])
            if nominal is not None:
                axes.axvline(
                    nominal,
                    color=TARGET_COLOR,
                    linestyle="--",
                    linewidth=1.0,
                    label=f"{nominal_label}, {short_number(nominal)}",
                )
            legend_beside(axes)
        panels[-1].set_xlim(min(c.c[0] for c in curves), max(c.c[-1] for c in curves))
        panels[-1].set_xlabel(label)
        draw_title(panels[0], title)
    return figure


def _draw(axes: Axes, curve: RiskCurve, style: MethodStyle) -> None:
    finite = np.isfinite(curve.risks)
    if curve.runs_away:
        middle, deviation = spread(curve.risks)
        reach = float(np.abs(curve.risks[finite]).max())
        linear, ticks = symmetric_powers(max(deviation, abs(middle)), reach)
        axes.set_yscale("symlog", linthresh=linear)
        axes.set_yticks(ticks)
        axes.yaxis.minorticks_off()
    line = np.where(finite, curve.risks, np.nan)
    axes.plot(curve.c, line, color=style.color, label=curve.name)
    lowest = curve.c == curve.minimum
    axes.plot(
        curve.c[lowest],
        curve.risks[lowest],
        "*",
        color=style.color,
        markeredgecolor="black",
        markersize=11,
        linestyle="none",
        label=f"{'lowest risk' if curve.runs_away else 'minimum'}, {short_number(curve.minimum)}",
        clip_on=False,
    )
    if not curve.runs_away:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_ylabel("Risk", loc="center")


_DECADES = 4
_PER_DECADE = 4


def landscape_figure(
    landscapes: Sequence[RiskLandscape],
    *,
    nominal: tuple[float, float] | None = None,
    nominal_label: str = "from the sums of weights",
    title: str | None = None,
) -> Figure:
    """Draw each risk above its own minimum, in logarithmic contours.

    A risk that runs away, so that its lowest value stands apart from all others, has no contours: its values
    are drawn as they are, about their median, blue below and red above. Coefficients without a finite risk
    are left grey.

    Args:
        landscapes: One per loss; each gets a panel.
        nominal: The coefficients $(c_0, c_1)$ of the data, to compare the minimum with.
        nominal_label: What to call them in the legend.
        title: Line above the figure.

    Example:
        >>> c = np.linspace(1, 2, 5)
        >>> bowl = RiskLandscape("pare", c, c, (c[:, None] - 1.5) ** 2 + (c - 1.25) ** 2)
        >>> landscape_figure([bowl], nominal=(1.4, 1.3)).axes[0].get_title("left")
        'pare: minimum at (1.5, 1.25)'
    """
    if len(landscapes) == 0:
        msg = "Got no landscapes to draw; expected at least one."
        raise InvalidInputError(msg)
    if nominal is not None:
        drawable_values(nominal, "nominal coefficients", n_expected=2)
    with figure_style():
        figure = new_figure(4.2, width=4.2 * len(landscapes))
        panels = figure.subplots(1, len(landscapes), squeeze=False)[0]
        for axes, landscape in zip(panels, landscapes, strict=True):
            axes.set_facecolor(NEGATIVE_COLOR)
            (_draw_runaway if landscape.runs_away else _draw_bowl)(figure, axes, landscape)
            axes.set_xlim(landscape.c1[0], landscape.c1[-1])
            axes.set_ylim(landscape.c0[0], landscape.c0[-1])
            axes.plot(
                *landscape.minimum[::-1],
                "*",
                color="white",
                markeredgecolor="black",
                markersize=13,
                linestyle="none",
                label="lowest risk",
                clip_on=False,
            )
            if nominal is not None:
                axes.plot(
                    *nominal[::-1],
                    "o",
                    color=PALETTE[0],
                    markeredgecolor="black",
                    markersize=7,
                    linestyle="none",
                    label=nominal_label,
                )
            at = ", ".join(short_number(c) for c in landscape.minimum)
            kind = "no minimum, lowest" if landscape.runs_away else "minimum"
            draw_title(axes, f"{readable_text(landscape.name, longest=20)}: {kind} at ({at})")
            axes.set_xlabel("Target coefficient $c_1$")
            axes.set_ylabel("Reference coefficient $c_0$")
        draw_title(figure, title)
        legend_above(figure, list(panels), n_columns=3)
    return figure


def _draw_bowl(figure: Figure, axes: Axes, landscape: RiskLandscape) -> None:
    excess = np.ma.masked_invalid(landscape.risks)
    excess = excess - excess.min()
    positive = excess.compressed()[excess.compressed() > 0]
    top = float(positive.max()) if len(positive) else 1.0
    bottom = top * 10.0**-_DECADES
    levels = np.geomspace(bottom, top, _DECADES * _PER_DECADE + 1)
    above = np.ma.maximum(excess, 1e-3 * bottom)  # the minimum itself has no logarithm
    contours = axes.contourf(
        landscape.c1,
        landscape.c0,
        above,
        levels=levels,
        cmap=SEQUENTIAL_MAP,
        norm=LogNorm(bottom, top),
        extend="min",
    )
    axes.contour(landscape.c1, landscape.c0, above, levels=levels, colors="white", linewidths=0.4, alpha=0.7)
    bar = figure.colorbar(contours, ax=axes, aspect=30, pad=0.02)
    bar.ax.yaxis.set_major_locator(LogLocator())
    bar.ax.yaxis.set_major_formatter(LogFormatterMathtext())
    bar.set_label("Risk above the minimum")


def _draw_runaway(figure: Figure, axes: Axes, landscape: RiskLandscape) -> None:
    middle, deviation = spread(landscape.risks)
    around = np.ma.masked_invalid(landscape.risks) - middle
    linear, ticks = symmetric_powers(deviation, float(np.abs(around).max()))
    reach = max(float(np.abs(around).max()), 10 * linear)
    mesh = axes.pcolormesh(
        landscape.c1,
        landscape.c0,
        around,
        shading="nearest",
        cmap=DIVERGING_MAP,
        norm=SymLogNorm(linear, vmin=-reach, vmax=reach),
        rasterized=True,
    )
    bar = figure.colorbar(mesh, ax=axes, aspect=30, pad=0.02)
    bar.set_ticks(ticks)
    bar.ax.yaxis.set_major_formatter(LogFormatterMathtext())
    bar.ax.minorticks_off()
    bar.set_label("Risk above the median")
