"""What happened during a fit: losses of every network, the states that were kept, and the rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_values, mark_beyond, robust_limits
from quasiratio.plots.style import (
    PALETTE,
    TARGET_COLOR,
    draw_title,
    figure_style,
    height_beside_legend,
    legend_beside,
    method_styles,
    new_figure,
    readable_text,
)

if TYPE_CHECKING:
    from quasiratio.training import TrainingHistory

__all__ = ["loss_curves_figure", "training_figure"]


def loss_curves_figure(
    curves: Mapping[str, npt.ArrayLike],
    *,
    optimum: float | None = None,
    optimum_label: str = "analytic optimum",
    label: str = "Validation loss",
    title: str | None = None,
) -> Figure:
    """Draw losses epoch by epoch; a point marks where each training stopped.

    The limits follow the second half of every curve, and the first as far as it is near; triangles at the edge mark what lies beyond.

    Args:
        curves: The loss at each epoch, by what was trained. Lengths may differ.
        optimum: The lowest loss that is possible, drawn in black.
        optimum_label: What to call it in the legend.
        label: What to call the loss on its axis.
        title: Line above the figure.

    Example:
        >>> figure = loss_curves_figure({"unweighted": [0.69, 0.62, 0.60]}, optimum=0.59)
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['unweighted', 'analytic optimum', 'stopped']
    """
    if not curves:
        msg = "Got no loss curves to draw; expected at least one."
        raise InvalidInputError(msg)
    if optimum is not None and not math.isfinite(optimum):
        msg = f"Got optimum = {optimum}; expected a finite loss, or None."
        raise InvalidInputError(msg)
    losses = {name: drawable_values(curve, f"losses of {name!r}") for name, curve in curves.items()}
    styles = method_styles(list(losses))
    with figure_style():
        figure = new_figure(height_beside_legend(2 + len(losses), at_least=3.2) + 0.6)
        axes = figure.subplots()
        trusted = [curve[len(curve) // 2 :] for curve in losses.values()]
        axes.set_ylim(
            *robust_limits([*trusted, [] if optimum is None else [optimum]], losses.values(), stretch=4.0)
        )
        for name, curve in losses.items():
            epochs = np.arange(1.0, len(curve) + 1)
            color, linestyle = styles[name]
            axes.plot(epochs, curve, color=color, linestyle=linestyle, label=name)
            axes.plot(epochs[-1:], curve[-1:], "o", color=color, markersize=4, label="_stop", clip_on=False)
            mark_beyond(axes, epochs, curve, color)
        if optimum is not None:
            axes.axhline(optimum, color=TARGET_COLOR, linewidth=1.2, label=optimum_label)
        axes.plot([], [], "o", color=TARGET_COLOR, markersize=4, label="stopped")
        longest = max(len(curve) for curve in losses.values())
        axes.set_xlim(1 if longest > 1 else 0, longest + 0.02 * longest + 0.2)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_xlabel("Epoch")
        axes.set_ylabel(label)
        legend_beside(axes)
        draw_title(axes, title)
    return figure


_TRAIN_COLOR, _VALIDATION_COLOR = PALETTE[5], PALETTE[1]
_UNKNOWN = -2


def training_figure(
    history: TrainingHistory, *, networks: Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """Draw training and validation losses over the optimiser's steps, and the learning rate below.

    Without names all networks share one panel. Diamonds mark the states that were kept, where that is not the one before
    training. A network whose risk
    ran away is dotted and black, and does not set the scale.

    Args:
        history: `history_` or `tuning_history_` of a fitted estimator.
        networks: Names of the networks, one panel each, such as the sub-ratios of a signed mixture.
            Networks of several members repeat them in order.
        title: Line above the figure.

    Example:
        >>> from quasiratio.training import TrainingHistory
        >>> history = TrainingHistory("bce")
        >>> for step, loss in ((10, 0.7), (20, 0.6)):
        ...     history.append(step, np.array([loss]), np.array([loss + 0.01]), 1e-3, 0.1)
        >>> history.best_epoch, history.diverged = np.array([1]), np.array([False])
        >>> [axes.get_ylabel() for axes in training_figure(history).axes]
        ['Loss', 'Rate']
    """
    steps, train, validation = _checked(history)
    n_networks = validation.shape[1]
    names = [""] if networks is None else list(networks)
    if not names or n_networks % len(names):
        msg = (
            f"Got {len(names)} names for {n_networks} networks; expected one name per network, or a divisor of "
            "their number that is repeated for every member."
        )
        raise InvalidInputError(msg)
    best = history.best_epoch if len(history.best_epoch) == n_networks else np.full(n_networks, _UNKNOWN)
    diverged = history.diverged if len(history.diverged) == n_networks else np.zeros(n_networks, dtype=bool)
    with figure_style():
        has_rate = any(history.learning_rate)  # closed-form stages have none
        heights = [2.6 if len(names) == 1 else 1.7] * len(names) + [1.0] * has_rate
        figure = new_figure(sum(heights) + 0.6)
        panels: list[Axes] = list(
            figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        )
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.0)  # type: ignore[union-attr, call-arg]
        for p, (axes, name) in enumerate(zip(panels, names, strict=False)):
            chosen = np.arange(p, n_networks, len(names))
            _draw_losses(axes, steps, train[:, chosen], validation[:, chosen], best[chosen], diverged[chosen])
            axes.set_ylabel(
                f"Loss, {readable_text(name, longest=16)}" if name else "Loss",
                loc="center" if name else "top",
            )
        marker = "o" if len(steps) == 1 else None
        if has_rate:
            panels[-1].plot(steps, history.learning_rate, color=TARGET_COLOR, marker=marker)
            panels[-1].set_ylim(bottom=0.0)
            panels[-1].ticklabel_format(axis="y", scilimits=(-2, 3), useMathText=True)
            panels[-1].set_ylabel("Rate", loc="center")
        panels[-1].set_xlim(0.0, (1.03 if len(steps) > 1 else 2.0) * steps[-1])
        panels[-1].xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
        panels[-1].set_xlabel("Optimiser step")
        legend_beside(panels[0])
        draw_title(panels[0], title)
    return figure


def _draw_losses(
    axes: Axes,
    steps: FloatArray,
    train: FloatArray,
    validation: FloatArray,
    best: np.typing.NDArray[np.int64],
    diverged: np.typing.NDArray[np.bool_],
) -> None:
    several = validation.shape[1] > 1
    marker = "o" if len(steps) == 1 else None
    for losses, color, name in (
        (train, _TRAIN_COLOR, "training"),
        (validation, _VALIDATION_COLOR, "validation"),
    ):
        for k in np.flatnonzero(~diverged):
            first = k == np.flatnonzero(~diverged)[0]
            label = (
                (f"{name}, {int((~diverged).sum())} networks" if several else name) if first else f"_{name}"
            )
            axes.plot(
                steps,
                losses[:, k],
                color=color,
                linewidth=0.9 if several else 1.4,
                alpha=0.8 if several else 1.0,
                marker=marker,
                label=label,
            )
    for i, k in enumerate(np.flatnonzero(diverged)):
        label = f"ran away, {int(diverged.sum())} of {len(diverged)}" if i == 0 else "_ran away"
        axes.plot(steps, validation[:, k], color=TARGET_COLOR, linestyle=":", linewidth=1.0, label=label)
    kept = [(steps[b], validation[b, k]) for k, b in enumerate(best) if b >= 0]
    if kept:
        axes.plot(
            *np.transpose(kept),
            "D",
            color=PALETTE[0],
            markeredgecolor="black",
            markersize=5,
            linestyle="none",
            label="kept",
            zorder=5,
        )
    n_unchanged = int(np.count_nonzero(best == -1))
    if n_unchanged:
        label = f"state before kept, {n_unchanged} of {len(best)}"
        axes.plot([], [], "D", color="white", markeredgecolor="black", markersize=5, label=label)
    axes.set_ylim(*_limits(np.concatenate([train, validation])[:, ~diverged], validation))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)


def _limits(sound: FloatArray, validation: FloatArray) -> tuple[float, float]:
    """Contain what did not run away, but not the height from which a training starts."""
    values = sound if sound.size else validation
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    return robust_limits([np.quantile(finite, [0.0, 0.9])], [finite], stretch=1.0)


def _checked(history: TrainingHistory) -> tuple[FloatArray, FloatArray, FloatArray]:
    if len(history) == 0:
        msg = f"Got the history of {history.stage!r} without epochs; expected that of a finished fit."
        raise InvalidInputError(msg)
    train = np.array(history.train_loss, dtype=np.float64).reshape(len(history), -1)
    validation = history.validation_curves().reshape(len(history), -1)
    return np.array(history.steps, dtype=np.float64), train, validation
