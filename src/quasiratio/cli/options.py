"""Options that several commands share, each written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllowLarge",
    "Features",
    "Json",
    "Labels",
    "Quiet",
    "ReferenceWeight",
    "Selection",
    "TargetWeight",
    "Tree",
    "Weight",
    "choices",
    "split_files",
    "split_list",
]

Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="NAMES",
        help="Columns, patterns such as 'jet_*', elements such as 'fill(jet_pt[0], 0)' and formulas such as "
        "'ptg=pt/1000', with commas or repeated. "
        "Default: every numeric column but weights and identifiers.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=TEXT",
        help="What to call a feature or observable in figures and tables, such as 'mll=m_ll [GeV]'; may be repeated.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", metavar="EXPR", help="Signed weight, such as 'w_gen*w_pu'; 1 for none."),
]
Selection = Annotated[
    str | None, typer.Option("--selection", metavar="EXPR", help="Events to use, such as 'pt > 30'.")
]
ReferenceWeight = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Weight of the reference, where it differs.")
]
TargetWeight = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Weight of the target, where it differs.")
]
Tree = Annotated[
    str | None, typer.Option("--tree", metavar="NAME", help="Tree of ROOT files, where the path names none.")
]
AllowLarge = Annotated[
    bool, typer.Option("--allow-large", help="Read small .npz files that unpack to gigabytes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]


def choices(*names: str) -> Callable[[], list[str]]:
    """Return what the shell offers to complete an option with.

    Example:
        >>> choices("warn", "raise")()
        ['warn', 'raise']
    """
    return lambda: list(names)


def split_list(values: list[str] | None) -> list[str] | None:
    """Split repeated options with commas into single names; commas within brackets or backticks stay.

    Example:
        >>> split_list(["pt, eta", "max(a, b)"])
        ['pt', 'eta', 'max(a, b)']
    """
    if not values:
        return None
    return [name for value in values for name in _split(value)]


def split_files(value: str) -> list[str]:
    """Split a list of files at its commas, unless a file has that very name.

    Example:
        >>> split_files("a.root:events,b.root:events")
        ['a.root:events', 'b.root:events']
    """
    if "," not in value or Path(value).exists():
        return [value]
    return [name.strip() for name in value.split(",") if name.strip()]


def _split(text: str) -> list[str]:
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == "`"
        if not quoted:
            depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
