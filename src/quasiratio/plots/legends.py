"""Legends that stand beside the data or above it, never on it, and titles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple

from quasiratio.plots.labels import readable_text

__all__ = ["draw_title", "height_beside_legend", "legend_above", "legend_beside", "legend_over"]

_LONGEST = 36


def draw_title(where: Axes | Figure, title: str | None) -> None:
    """Write a line above axes or a figure, on the left; nothing for `None`."""
    if not title:
        return
    if isinstance(where, Figure):
        where.suptitle(readable_text(title, longest=100), x=0.01, ha="left", fontsize="medium")
    else:
        where.set_title(readable_text(title, longest=60), loc="left", fontsize="medium")


def height_beside_legend(n_lines: int, *, at_least: float) -> float:
    """Return the height in inches of a panel that is not lower than the legend beside it.

    Example:
        >>> height_beside_legend(5, at_least=3.4), height_beside_legend(30, at_least=3.4)
        (3.4, 6.3)
    """
    return max(at_least, round(0.2 * n_lines + 0.3, 2))


def legend_beside(
    axes: Axes,
    *,
    first: str | None = None,
    without: Collection[str] = (),
    extra: Mapping[str, Any] | None = None,
    captions: Mapping[str, str] | None = None,
) -> None:
    """Draw the legend to the right of `axes`.

    Args:
        axes: The axes whose labelled artists are named.
        first: The label that comes first, whatever the order of drawing.
        without: Labels to leave out.
        extra: Further entries: handles, or tuples of handles drawn side by side, by label.
        captions: What to write for a label, where it is not the label itself.
    """
    entries = _entries([axes], first, extra)
    names = [name for name in entries if name not in without]
    if names:
        axes.legend(
            [entries[name] for name in names],
            [readable_text((captions or {}).get(name, name), longest=_LONGEST) for name in names],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.02),
            borderaxespad=0.3,
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.0)},
        )


def legend_over(axes: Axes, *, n_columns: int = 1, gap: float = 0.0) -> None:
    """Draw the legend of one of several panels over it.

    Args:
        axes: The panel.
        n_columns: Number of columns.
        gap: Room under the legend, as a share of the panel's height.
    """
    entries = _entries([axes], None, None)
    axes.legend(
        list(entries.values()),
        [readable_text(name, longest=2 * _LONGEST) for name in entries],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + gap),
        borderaxespad=0.2,
        ncols=n_columns,
    )


def legend_above(
    figure: Figure,
    panels: Sequence[Axes],
    *,
    n_columns: int,
    first: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Draw one legend for several panels above them; what appears in more than one is named once."""
    entries = _entries(panels, first, extra)
    if entries:
        figure.legend(
            list(entries.values()),
            [readable_text(name, longest=_LONGEST) for name in entries],
            loc="outside upper center",
            ncols=min(n_columns, len(entries)),
            columnspacing=1.4,
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.0)},
        )


def _entries(panels: Sequence[Axes], first: str | None, extra: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    found |= extra or {}
    return {name: found[name] for name in sorted(found, key=lambda name: name != first)}  # a stable sort
