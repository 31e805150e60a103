"""Strings and numbers of users, as they may stand in a page."""

from __future__ import annotations

import html
import math
import re
from numbers import Integral, Real
from typing import Any

from quasiratio.wording import range_texts

__all__ = ["anchor", "ends_text", "number_text", "paragraphs", "plain_number", "safe"]

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTIONS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # turn around what follows them
_BLANK_LINES = re.compile(r"\n\s*\n")


def safe(text: object) -> str:
    """Return text in which nothing is markup, for the content of elements and for quoted attributes.

    Control characters, marks of the direction of writing, and bytes of file names that are no text become
    replacement characters.

    Example:
        >>> safe('<b title="a">')
        '&lt;b title=&quot;a&quot;&gt;'
    """
    characters = str(text).encode("utf-8", "replace").decode("utf-8")
    for unwanted in (_UNPRINTABLE, _DIRECTIONS):
        characters = unwanted.sub("\N{REPLACEMENT CHARACTER}", characters)
    return html.escape(characters, quote=True)


def paragraphs(text: str, css_class: str = "") -> str:
    r"""Return one `<p>` per paragraph.

    Example:
        >>> print(paragraphs("One.\n\nTwo & three."))
        <p>One.</p>
        <p>Two &amp; three.</p>
    """
    attribute = f' class="{css_class}"' if css_class else ""
    parts = [part.strip() for part in _BLANK_LINES.split(text)]
    return "\n".join(f"<p{attribute}>{safe(part)}</p>" for part in parts if part)


def plain_number(value: object) -> bool | int | float | None:
    """Return a number of Python for one of Python or NumPy, and nothing for what is not a number.

    Example:
        >>> plain_number(3), plain_number("3")
        (3, None)
    """
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    number: Any = value
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(number)
    return float(number) if isinstance(value, Real) else None


def number_text(value: float) -> str:
    """Return a number as the page shows it: whole numbers whole, others with three significant digits.

    Example:
        >>> [number_text(value) for value in (200000, 1.2345, -0.000012345, 45678.9, float("inf"), True)]
        ['200000', '1.23', '−1.23e−5', '45700', '∞', 'yes']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        text = str(value)
    elif math.isnan(value):
        return "NaN"
    elif math.isinf(value):
        text = "∞" if value > 0 else "-∞"
    else:
        text = _three_digits(value)
    return text.replace("-", "\N{MINUS SIGN}")


def ends_text(low: float, high: float) -> tuple[str, str]:
    """Return the ends of a range as the page shows numbers, with more digits where three do not tell its width.

    Example:
        >>> ends_text(0.5, 12.345), ends_text(1700000010.25, 1700000012.5)
        (('0.5', '12.3'), ('1700000010.25', '1700000012.5'))
    """
    if high - low > 0.01 * max(abs(low), abs(high)):
        return number_text(low), number_text(high)
    first, last = (text.replace("-", "\N{MINUS SIGN}") for text in range_texts(low, high))
    return first, last


def anchor(title: str, taken: set[str]) -> str:
    """Return a name for the address of a heading, from plain letters, and remember it.

    Example:
        >>> taken: set[str] = set()
        >>> anchor("Jet <pt>", taken), anchor("jet pt", taken)
        ('jet-pt', 'jet-pt-2')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "part"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def _three_digits(value: float) -> str:
    rounded = float(f"{value:.3g}")
    if rounded == 0:
        return "0"
    if 1e-3 <= abs(rounded) < 1e6:
        return f"{rounded:.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"
    mantissa, exponent = f"{rounded:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"
