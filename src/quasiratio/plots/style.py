"""What all figures share: colours, sizes and fonts, labels of axes, short numbers, legends beside the data, titles."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import mplhep
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.mathtext import MathTextParser

__all__ = [
    "DIVERGING_MAP",
    "NEGATIVE_COLOR",
    "PALETTE",
    "REFERENCE_COLOR",
    "SEQUENTIAL_MAP",
    "TARGET_COLOR",
    "WIDTH",
    "MethodStyle",
    "axis_label",
    "density_label",
    "draw_title",
    "figure_style",
    "height_beside_legend",
    "legend_above",
    "legend_beside",
    "legend_over",
    "method_styles",
    "new_figure",
    "readable_text",
    "short_number",
]

_LONGEST = 48


def readable_text(text: str, *, longest: int = _LONGEST) -> str:
    r"""Return a name that can be drawn: math that Matplotlib cannot read stays text, long names lose their middle.

    Names of features and methods are the user's, and must not stop a figure from being drawn.

    Example:
        >>> readable_text("$m_{hh}$"), readable_text(r"$\oops$"), readable_text("ab" * 50, longest=9)
        ('$m_{hh}$', '\\$\\oops\\$', 'abab…abab')
    """
    return "\n".join(_readable_line(line, longest) for line in text.split("\n"))


def axis_label(name: str, unit: str | None = None) -> str:
    """Return `name [unit]`, or the name alone.

    Example:
        >>> axis_label("m", "GeV"), axis_label("r")
        ('m [GeV]', 'r')
    """
    return f"{readable_text(name)} [{readable_text(unit, longest=16)}]" if unit else readable_text(name)


def density_label(unit: str | None = None, other_unit: str | None = None) -> str:
    """Return the label of a density normalised to one, of one variable or of two.

    Example:
        >>> density_label("GeV"), density_label()
        ('Density [1/GeV]', 'Density')
        >>> density_label("cm", "cm"), density_label("cm", "GeV")
        ('Density [1/cm$^2$]', 'Density [1/(cm GeV)]')
    """
    units = [one for one in (unit, other_unit) if one]
    if len(units) == 2:
        together = f"{units[0]}$^2$" if units[0] == units[1] else f"({units[0]} {units[1]})"
        return axis_label("Density", f"1/{together}")
    return axis_label("Density", f"1/{units[0]}" if units else None)


def short_number(value: float, *, digits: int = 3) -> str:
    r"""Return a number with few digits, as Matplotlib's math where it needs a power of ten.

    Example:
        >>> short_number(1.15432), short_number(12345.678), short_number(0.000123)
        ('1.15', '12300', '$1.23\\times10^{-4}$')
    """
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e5:
        text = f"{rounded:.{digits}g}"
        text = f"{rounded:.0f}" if "e" in text else text
    else:
        mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
        text = rf"${mantissa}\times10^{{{int(exponent)}}}$"
    return text.replace("-", "\N{MINUS SIGN}") if "$" not in text else text


def _readable_line(line: str, longest: int) -> str:
    if is_math_text(line):
        try:
            MathTextParser("path").parse(line)
        except ValueError:
            return line.replace("$", r"\$")
        return line
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[:half]}…{line[-half:]}"


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
