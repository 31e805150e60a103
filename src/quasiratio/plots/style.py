"""Colours, sizes and fonts that all figures share.

The ticks and fonts are mplhep's, the colours those of Okabe and Ito, which can be told apart with any
colour vision; line styles repeat the distinction for a black and white print. A figure is drawn *and* saved
inside `figure_style()`, since Matplotlib reads some parameters only when it renders; outside of it nothing
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import mplhep
from matplotlib.figure import Figure

__all__ = [
    "DIVERGING_MAP",
    "NEGATIVE_COLOR",
    "PALETTE",
    "REFERENCE_COLOR",
    "SEQUENTIAL_MAP",
    "TARGET_COLOR",
    "WIDTH",
    "MethodStyle",
    "figure_style",
    "method_styles",
    "new_figure",
]

PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Vermilion, blue, green, purple, orange and sky blue of Okabe and Ito."""

TARGET_COLOR = "#000000"
REFERENCE_COLOR = "#9C9CA1"
NEGATIVE_COLOR = "#ECECF1"
SEQUENTIAL_MAP = "viridis"
DIVERGING_MAP = "RdBu_r"
"""Blue below zero, white at zero, red above: told apart with any colour vision."""

WIDTH = 7.0
"""Width of a figure in inches."""

_LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1.5, 1.5)), (0, (1.5, 1.2)))
_OVERRIDES: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "font.size": 11,
    "legend.fontsize": "small",
    "axes.linewidth": 0.9,
    "axes.axisbelow": False,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.4,
    "mathtext.default": mpl.rcParamsDefault["mathtext.default"],  # letters in italics, digits upright
    "xtick.major.size": 6,
    "xtick.minor.size": 3,
    "ytick.major.size": 6,
    "ytick.minor.size": 3,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "quasiratio",
}


class MethodStyle(NamedTuple):
    """How one method is drawn, in every figure and panel."""

    color: str
    linestyle: Any


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the style of the project, and restore what was there before.

    Example:
        >>> import matplotlib as mpl
        >>> before = mpl.rcParams["font.size"]
        >>> with figure_style():
        ...     mpl.rcParams["font.size"]
        11.0
        >>> mpl.rcParams["font.size"] == before
        True
    """
    parameters: Any = {**mplhep.style.ROOT, **_OVERRIDES}
    with mpl.rc_context(rc=parameters):
        yield


def new_figure(height: float, *, width: float = WIDTH) -> Figure:
    """Return an empty figure, in inches, that no window or global list knows of."""
    return Figure(figsize=(width, height), layout="constrained")


def method_styles(methods: Sequence[str]) -> dict[str, MethodStyle]:
    """Return one style per method, in order; colours repeat only with another line style.

    Example:
        >>> method_styles(["mlp", "rosmm"])["mlp"].color
        '#D55E00'
    """
    n_colors, n_styles = len(PALETTE), len(_LINE_STYLES)
    return {
        method: MethodStyle(PALETTE[i % n_colors], _LINE_STYLES[(i + i // n_colors) % n_styles])
        for i, method in enumerate(methods)
    }
