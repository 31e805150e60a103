"""How messages show what users gave: texts of any length, and shares of any size."""

from __future__ import annotations

__all__ = ["percent", "shortened"]

_LONGEST_SHOWN = 60


def shortened(text: str, longest: int = _LONGEST_SHOWN) -> str:
    """Return what a message shows of a text that may have any length: its beginning and its end.

    Example:
        >>> shortened("w_gen * w_pu"), shortened("abcdefghij", longest=7)
        ('w_gen * w_pu', 'ab...ij')
    """
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def percent(fraction: float, digits: int = 2) -> str:
    """Return a share in per cent; one that would be rounded to nothing is 'below' the smallest that is shown.

    Example:
        >>> percent(0.1234), percent(0.0), percent(1e-9)
        ('12.34%', '0.00%', 'below 0.01%')
    """
    smallest = 10.0 ** -(digits + 2)
    return f"below {smallest:.{digits}%}" if 0 < fraction < smallest / 2 else f"{fraction:.{digits}%}"
