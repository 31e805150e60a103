"""Text for one line of a terminal: names from files may hold line breaks and control characters."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Return text on one line, without characters that a terminal would act upon.

    Example:
        >>> printable("two\n  lines, \x1b[31mred\x1b[0m")
        'two lines, \\x1b[31mred\\x1b[0m'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in " ".join(text.split())
    )
