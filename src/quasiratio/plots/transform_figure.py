"""What a network must output for each ratio: poles, and whether the ratios of the data stay clear of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.style import (
    NEGATIVE_COLOR,
    PALETTE,
    REFERENCE_COLOR,
    TARGET_COLOR,
    draw_title,
    figure_style,
    legend_above,
    new_figure,
    short_number,
)

if TYPE_CHECKING:
    from quasiratio.losses import RatioLoss

__all__ = ["LossTransform", "transform_figure"]


@dataclass(frozen=True)
class LossTransform:
    """The output that a network should have for a given ratio.

    Args:
        name: Name of the loss.
        output: Function of an array of ratios; NaN where the loss has no output for them.
        pole: The ratio at which the output is infinite, or `None`.
        output_label: What to call the output on its axis.

    Example:
        >>> LossTransform("lsif", lambda ratio: ratio).pole is None
        True
    """

    name: str
    output: Callable[[FloatArray], FloatArray]
    pole: float | None = None
    output_label: str = "Raw output $z$"

    @classmethod
    def from_loss(cls, loss: RatioLoss, *, name: str | None = None) -> LossTransform:
        """Take the link of a loss: ratio to raw output.

        Args:
            loss: The loss; its parameters must have values.
            name: What to call it; its own name when left out.

        Example:
            >>> from quasiratio.losses import Mse
            >>> mse = LossTransform.from_loss(Mse())
            >>> mse.pole, mse.output(np.array([1.0])).tolist()
            (-1.0, [0.5])
        """
        import torch  # noqa: PLC0415 - figures of other things need no torch

        link = loss.link

        def output(ratio: FloatArray) -> FloatArray:
            return np.asarray(link.raw(torch.from_numpy(np.asarray(ratio, dtype=np.float64))).numpy())

        pole = getattr(link, "pole", None)
        return cls(name or loss.name, output, pole if pole is not None and math.isfinite(pole) else None)

    @classmethod
    def published_pare(cls, t0: float, t1: float) -> LossTransform:
        r"""Return the score of PARE as published, $s = (t_0 + t_1 r) / (t_0^2 + t_1^2 r)$.

        The networks of this package output another coordinate, which keeps its precision; that is
        `from_loss(Pare(t0, t1))`. For $t_0 = t_1$ the published score does not depend on the ratio.

        Args:
            t0: First parameter; positive.
            t1: Second parameter; positive, and not equal to the first.

        Example:
            >>> pare = LossTransform.published_pare(2, 1)
            >>> pare.pole, pare.output(np.array([0.0])).tolist()
            (-4.0, [0.5])
        """
        if not (0 < t0 < math.inf and 0 < t1 < math.inf) or t0 == t1:
            msg = f"Got t0 = {t0}, t1 = {t1}; expected two different positive numbers, such as 2 and 1."
            raise InvalidInputError(msg)
        return cls(
            f"PARE({t0:g}, {t1:g})",
            lambda ratio: (t0 + t1 * ratio) / (t0**2 + t1**2 * ratio),
            -((t0 / t1) ** 2),
            "Score $s$",
        )


_N_POINTS = 2001
_BOX_COLOR = PALETTE[0]


def transform_figure(
    transforms: Sequence[LossTransform],
    *,
    data_range: tuple[float, float],
    ratio_range: tuple[float, float] | None = None,
    data_label: str = "range of the data",
    title: str | None = None,
) -> Figure:
    """Draw output against ratio, one panel per loss, with the range of the data and the pole.

    A dashed box holds the ratios of the data and the outputs they need. It is open above and below where the
    pole lies among them, since the outputs are then unbounded. Ratios that a loss cannot express are shaded.

    Args:
        transforms: One per loss.
        data_range: Smallest and largest ratio of the data.
        ratio_range: Ratios to draw; the range of the data and as much again on either side when left out.
        data_label: What to call the box in the legend.
        title: Line above the figure.

    Example:
        >>> pair = [LossTransform.published_pare(2, 1), LossTransform.published_pare(3, 1)]
        >>> figure = transform_figure(pair, data_range=(-1.3, 1.7))
        >>> [axes.get_title("left") for axes in figure.axes]
        ['PARE(2, 1), pole at \N{MINUS SIGN}4', 'PARE(3, 1), pole at \N{MINUS SIGN}9']
    """
    if len(transforms) == 0:
        msg = "Got no losses to draw; expected at least one transform."
        raise InvalidInputError(msg)
    inner = _ordered(data_range, "data_range")
    width = inner[1] - inner[0]
    outer = (
        (inner[0] - width, inner[1] + width) if ratio_range is None else _ordered(ratio_range, "ratio_range")
    )
    with figure_style():
        n_columns = 2 if len(transforms) == 4 else min(3, len(transforms))
        n_rows = -(-len(transforms) // n_columns)
        figure = new_figure(0.5 + 3.3 * n_rows, width=max(4.6, 3.6 * n_columns))
        panels = [figure.add_subplot(n_rows, n_columns, i + 1) for i in range(len(transforms))]
        for axes, transform in zip(panels, transforms, strict=True):
            _draw(axes, transform, inner, outer, data_label)
            axes.set_xlabel("Ratio $r$")
            axes.set_ylabel(transform.output_label)
        legend_above(figure, panels, n_columns=4)
        draw_title(figure, title)
    return figure


def _draw(
    axes: Axes,
    transform: LossTransform,
    inner: tuple[float, float],
    outer: tuple[float, float],
    data_label: str,
) -> None:
    pole = transform.pole
    ratios = np.linspace(*outer, _N_POINTS)
    outputs = _outputs(transform, ratios)
    if not np.isfinite(outputs).any():
        msg = f"The loss {transform.name!r} has no output for ratios from {outer[0]:.4g} to {outer[1]:.4g}."
        raise InvalidInputError(msg)
    shown = False
    if pole is not None and outer[0] < pole < outer[1]:
        shown = True
        after = int(np.searchsorted(ratios, pole))  # the curve has two branches
        ratios, outputs = np.insert(ratios, after, pole), np.insert(outputs, after, np.nan)
    limits = _output_limits(transform, outputs, inner, has_pole=shown)
    axes.set(xlim=outer, ylim=limits)
    missing = ~np.isfinite(outputs) & (ratios != pole)
    if missing.any():
        axes.axvspan(
            ratios[missing].min(),
            ratios[missing].max(),
            color=NEGATIVE_COLOR,
            linewidth=0,
            label="not expressible",
        )
    axes.axvline(0.0, color=REFERENCE_COLOR, linewidth=0.7, linestyle=":")
    axes.plot(ratios, outputs, color=PALETTE[1], linewidth=1.8, label="output")
    title = transform.name
    if pole is not None:
        title += f", pole at {short_number(pole)}"
        if shown:
            axes.axvline(pole, color=TARGET_COLOR, linewidth=1.0, linestyle="-.", label="pole")
    draw_title(axes, title)
    bottom, top = _box(transform, inner, limits)
    axes.add_patch(
        Rectangle(
            (inner[0], bottom),
            inner[1] - inner[0],
            top - bottom,
            fill=False,
            edgecolor=_BOX_COLOR,
            linestyle="--",
            linewidth=1.3,
            label=data_label,
        )
    )


def _box(
    transform: LossTransform, inner: tuple[float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    """Return the outputs that the data need, or beyond the limits where they are unbounded or missing."""
    outputs = _outputs(transform, np.linspace(*inner, _N_POINTS))
    span = limits[1] - limits[0]
    unbounded = limits[0] - span, limits[1] + span
    if transform.pole is not None and inner[0] <= transform.pole <= inner[1]:
        return unbounded
    if not np.isfinite(outputs).all():
        return unbounded
    return float(outputs.min()), float(outputs.max())


def _output_limits(
    transform: LossTransform, outputs: FloatArray, inner: tuple[float, float], *, has_pole: bool
) -> tuple[float, float]:
    finite = outputs[np.isfinite(outputs)]
    if has_pole:
        needed = _outputs(transform, np.linspace(*inner, _N_POINTS))
        near = np.quantile(finite, [0.1, 0.9])
        if not (transform.pole is not None and inner[0] <= transform.pole <= inner[1]):
            near = np.array([min(near[0], needed.min()), max(near[1], needed.max())])
        lower, upper = float(near[0]), float(near[1])
    else:
        lower, upper = (float(value) for value in np.quantile(finite, [0.01, 0.99]))
    margin = 0.15 * (upper - lower or 1.0)
    return lower - margin, upper + margin


def _outputs(transform: LossTransform, ratios: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(transform.output(ratios), dtype=np.float64)


def _ordered(pair: tuple[float, float], name: str) -> tuple[float, float]:
    lower, upper = (float(value) for value in pair)
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        msg = f"Got {name} = ({lower:.4g}, {upper:.4g}); expected two finite ratios, the smaller first."
        raise InvalidInputError(msg)
    return lower, upper
