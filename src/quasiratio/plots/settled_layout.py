"""Arrange the panels of a figure once, then draw it in as many formats as needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from quasiratio.plots.style import figure_style

__all__ = ["settled_layout"]


@contextmanager
def settled_layout(figure: Figure) -> Iterator[None]:
    """Keep the panels where they are now for as long as this lasts.

    Constrained layout measures every label anew for each file, which takes as long as the drawing itself, and
    may differ by a pixel between formats.

    Args:
        figure: The figure; one that is empty, settled already, or without a layout engine is left alone.

    Example:
        >>> figure = Figure(layout="constrained")
        >>> axes = figure.subplots()
        >>> with settled_layout(figure):
        ...     figure.get_layout_engine().execute(figure)  # does nothing
        >>> type(figure.get_layout_engine()).__name__
        'ConstrainedLayoutEngine'
    """
    engine = figure.get_layout_engine()
    if not figure.axes or engine is None or isinstance(engine, PlaceHolderLayoutEngine):
        yield
        return
    with figure_style():
        engine.execute(figure)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
