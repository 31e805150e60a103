"""Labels of axes, with units where there are any, and numbers short enough to read."""

from __future__ import annotations

import math

from matplotlib.cbook import is_math_text
from matplotlib.mathtext import MathTextParser

__all__ = ["axis_label", "density_label", "readable_text", "short_number"]

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
