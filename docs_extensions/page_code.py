"""Runs the code of a page of the documentation: what the tests check, and what makes its figures.

The blocks that open with three backticks and `python` run one after the other in one namespace. A text block
right after one is what it prints: exactly, or if it opens with `{.text .approximate}` with other last digits,
as trainings have them on another machine. A picture of `assets/figures` is what the variable `figure` draws
where the picture stands.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Block", "Picture", "parts", "run", "same_output"]

_PART = re.compile(
    r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$|^!\[[^\]]*\]\((?P<picture>[^)]*assets/figures/[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"[-+−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_ABSOLUTE, _RELATIVE = 0.05, 0.1


class Block(NamedTuple):
    """Python, the line of the page where it starts, and what the page says it prints."""

    code: str
    line: int
    output: str | None = None
    approximate: bool = False


class Picture(NamedTuple):
    """The file that a page shows."""

    path: Path


def parts(page: Path, text: str) -> list[Block | Picture]:
    """Find the Python blocks of a page with their output, and its pictures, in their order."""
    found: list[Block | Picture] = []
    matches = list(_PART.finditer(text))
    for match, following in zip_longest(matches, matches[1:]):
        if match["picture"] is not None:
            found.append(Picture((page.parent / match["picture"]).resolve()))
        elif match["info"].strip() == "python":
            info = "" if following is None or following["info"] is None else following["info"].strip()
            follows = following is not None and not text[match.end() : following.start()].strip()
            approximate = info == "{.text .approximate}"
            prints = following is not None and follows and (info == "text" or approximate)
            line = text[: match.start("body")].count("\n") + 1
            output = following["body"] if prints and following is not None else None
            found.append(Block(match["body"], line, output, prints and approximate))
    return found


def same_output(printed: str, promised: str, *, approximate: bool) -> bool:
    """Compare what a block prints with what the page says; numbers with a tolerance if it is approximate."""
    if not approximate:
        return printed == promised
    words = [re.sub(r"[\[\]]", " ", _NUMBER.sub("#", text)).split() for text in (printed, promised)]
    numbers = [
        [float(number.replace("−", "-")) for number in _NUMBER.findall(text)] for text in (printed, promised)
    ]
    return words[0] == words[1] and all(
        abs(a - b) <= _ABSOLUTE + _RELATIVE * abs(b) for a, b in zip(*numbers, strict=True)
    )


def run(page: Path, *, compare: bool = True) -> Iterator[tuple[Path, Any]]:
    """Run a page; yield each picture's path with the figure that belongs there.

    Raises:
        AssertionError: A block prints something else than the page says.
    """
    from quasiratio.errors import QuasiratioWarning  # noqa: PLC0415 - the site is built without it

    namespace: dict[str, Any] = {"__name__": "__main__"}
    for part in parts(page, page.read_text(encoding="utf-8")):
        if isinstance(part, Picture):
            yield part.path, namespace.get("figure")
            continue
        padded = "\n" * (part.line - 1) + part.code  # so that a traceback names the line of the page
        printed = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore", QuasiratioWarning)  # short trainings may well deserve them
            exec(compile(padded, str(page), "exec", dont_inherit=True), namespace)  # noqa: S102
        if not compare:
            print(printed.getvalue(), end="")  # noqa: T201
        elif part.output is not None and not same_output(
            printed.getvalue(), part.output, approximate=part.approximate
        ):
            msg = f"{page.name}, line {part.line}: the page says\n{part.output}\nthe code prints\n{printed.getvalue()}"
            raise AssertionError(msg)
