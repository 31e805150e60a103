"""What a referee would send back, whatever the figure: checked for one figure of every kind."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from quasiratio import plots
from quasiratio.plots.style import figure_style


def legends(figure: Figure) -> list[Legend]:
    of_axes = [axes.get_legend() for axes in figure.axes]
    return [*figure.legends, *(legend for legend in of_axes if legend is not None)]


def written(figure: Figure) -> list[Text]:
    """Return the texts that can be seen."""
    found: list[Any] = figure.findobj(Text)
    hidden = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for label in (tick.label1, tick.label2)
        if not (min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval()))
    }
    return [
        text for text in found if text.get_text().strip() and text.get_visible() and id(text) not in hidden
    ]


def test_every_function_has_a_figure_here(figure_builders: dict[str, Callable[[], Figure]]) -> None:
    drawn = {name.split("-")[0] for name in figure_builders}
    assert drawn == {name for name in plots.__all__ if name.endswith("_figure") and name != "save_figure"}


def test_no_panel_is_empty(any_figure: Figure) -> None:
    for axes in any_figure.axes:
        assert axes.lines or axes.patches or axes.collections or axes.images
        assert axes.has_data()


def test_axes_have_labels(any_figure: Figure) -> None:
    """A panel without a label of its own shares the axis with one that has it."""
    for axes in any_figure.axes:
        names = {"x": axes.get_xlabel(), "y": axes.get_ylabel()}
        if not names["x"] and "colorbar" not in str(axes.get_label()):
            assert any(
                other.get_xlabel() and other.get_xlim() == axes.get_xlim() for other in any_figure.axes
            )
        if not names["y"]:
            below = names["x"].startswith("Outside the reference")  # bars named by their ticks
            assert below or any(
                other.get_ylabel() and _overlaps(other, axes)
                for other in any_figure.axes
                if other is not axes
            )


def _overlaps(one: Axes, other: Axes) -> bool:
    a, b = one.get_position(), other.get_position()
    return bool(a.y0 < b.y1 and b.y0 < a.y1)


def test_a_legend_names_things_and_stands_clear_of_the_data(any_figure: Figure) -> None:
    found = legends(any_figure)
    has_color_bar = any("colorbar" in str(axes.get_label()) for axes in any_figure.axes)
    assert found or has_color_bar
    for legend in found:
        assert all(text.get_text() for text in legend.get_texts())
        box = legend.get_window_extent()
        for axes in any_figure.axes:
            panel = axes.get_window_extent()
            wide = min(box.x1, panel.x1) - max(box.x0, panel.x0)
            high = min(box.y1, panel.y1) - max(box.y0, panel.y0)
            assert min(wide, high) < 1.0, (legend.get_texts()[0].get_text(), axes.get_ylabel())


def test_nothing_is_written_outside_the_figure(any_figure: Figure) -> None:
    for text in written(any_figure):
        box = text.get_window_extent()
        assert box.x0 >= -2, text
        assert box.y0 >= -2, text
        assert box.x1 <= any_figure.bbox.x1 + 2, text
        assert box.y1 <= any_figure.bbox.y1 + 2, text


def test_texts_do_not_overlap(any_figure: Figure) -> None:
    texts = [text for text in written(any_figure) if text.get_window_extent().width > 1]
    boxes = np.array([text.get_window_extent().extents for text in texts])
    for i, text in enumerate(texts):
        wide = np.minimum(boxes[:, 2], boxes[i, 2]) - np.maximum(boxes[:, 0], boxes[i, 0])
        high = np.minimum(boxes[:, 3], boxes[i, 3]) - np.maximum(boxes[:, 1], boxes[i, 1])
        over = [texts[j] for j in np.flatnonzero((wide > 2) & (high > 3)) if j != i]
        assert not over, (text, over)


def test_numbers_are_short(any_figure: Figure) -> None:
    for text in written(any_figure):
        for number in re.findall(r"\d[\d.]*", text.get_text()):
            assert len(number.replace(".", "")) <= 5, text


def test_limits_are_finite_and_hold_most_of_the_data(any_figure: Figure) -> None:
    for axes in any_figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        for line in axes.lines:
            x, y = (np.asarray(values, dtype=float) for values in line.get_data())
            if str(line.get_label()).startswith("_") or len(x) < 3 or line.get_transform() != axes.transData:
                continue
            inside = (x >= min(axes.get_xlim())) & (x <= max(axes.get_xlim()))
            inside &= (y >= min(axes.get_ylim())) & (y <= max(axes.get_ylim()))
            assert inside.mean() > 0.5, line


def test_output_is_vector_graphics_with_letters(any_figure: Figure) -> None:
    buffer = io.BytesIO()
    with figure_style():
        any_figure.savefig(buffer, format="svg")
    assert 5_000 < len(buffer.getvalue()) < 400_000
    assert b"<text" in buffer.getvalue()


def test_no_figure_is_known_to_pyplot(any_figure: Figure) -> None:
    assert any_figure.axes
    assert plt.get_fignums() == []
