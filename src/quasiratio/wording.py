"""How results are told: texts of any length and shares of any size in messages, plain values in JSON."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = [
    "NamedFormula",
    "feature_line",
    "first_of",
    "percent",
    "plain_json",
    "range_texts",
    "shortened",
    "value_text",
]

_LONGEST_SHOWN = 60
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 4 * _LONGEST_SHOWN


def shortened(text: str, longest: int = _LONGEST_SHOWN) -> str:
    """Return what a message shows of a text that may have any length: its beginning and its end.

    Example:
        >>> shortened("w_gen * w_pu"), shortened("abcdefghij", longest=7)
        ('w_gen * w_pu', 'ab...ij')
    """
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def value_text(value: object) -> str:
    """Return what a message shows of a value that came from a file: aliases may stand for more than memory holds.

    Example:
        >>> value_text([1, "a"]), value_text(list(range(100)))
        ("[1, 'a']", '[0, 1, 2, 3, 4, 5, ...]')
        >>> value_text(1 << 20_000)
        'a very large number'
    """
    try:
        return shortened(_REPR.repr(value))
    except ValueError:  # Python does not write such numbers
        return "a very large number"


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first of many names, for a message.

    Example:
        >>> first_of(["w", "w_up"], 3), first_of(["w", "w_up"], 1)
        ("'w', 'w_up'", "'w', ...")
    """
    return ", ".join(repr(name) for name in names[:most]) + (", ..." if len(names) > most else "")


def percent(fraction: float, digits: int = 2) -> str:
    """Return a share in per cent; one that would be rounded to nothing is 'below' the smallest that is shown.

    Example:
        >>> percent(0.1234), percent(0.0), percent(1e-9)
        ('12.34%', '0.00%', 'below 0.01%')
    """
    smallest = 10.0 ** -(digits + 2)
    return f"below {smallest:.{digits}%}" if 0 < fraction < smallest / 2 else f"{fraction:.{digits}%}"


def range_texts(low: float, high: float) -> tuple[str, str]:
    """Return the ends of a range with five digits, or as many as tell them apart.

    Example:
        >>> range_texts(-1.2345678, 250.0), range_texts(1699999930.90, 1700000092.42)
        (('-1.2346', '250'), ('1699999930.9', '1700000092.4'))
    """
    size, span = max(abs(low), abs(high)), high - low
    digits = 5
    if 0 < span < size < math.inf:
        digits = min(max(digits, 3 + math.ceil(math.log10(size / span))), 17)
    return f"{low:.{digits}g}", f"{high:.{digits}g}"


class NamedFormula(Protocol):
    """A feature that has a name and is made of columns, such as `quasiratio.io.Feature`."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def text(self) -> str:
        """The column, or the formula."""


def feature_line(features: Sequence[str | NamedFormula]) -> str:
    """Return the line that says which features are in use, with the formulas of those that have a name.

    Example:
        >>> from quasiratio.io import parse_features
        >>> feature_line(["pt", *parse_features(["ptg=pt/1000", "cos(phi)"], [])])
        'Features (3): pt, ptg = pt/1000, cos(phi)'
    """
    return f"Features ({len(features)}): {', '.join(_shown(feature) for feature in features)}"


def _shown(feature: str | NamedFormula) -> str:
    if isinstance(feature, str):
        return feature
    return feature.name if feature.name == feature.text else f"{feature.name} = {feature.text}"


def plain_json(values: Mapping[str, Any]) -> str:
    r"""Return standard JSON, with `null` for numbers that it does not have.

    Example:
        >>> plain_json({"c": float("nan"), "n": 2})
        '{\n "c": null,\n "n": 2\n}'
    """
    return json.dumps(_plain(values), indent=1, allow_nan=False)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a tree of plain values
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
