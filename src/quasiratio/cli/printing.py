"""What a command prints: tables and lines for people, or one JSON object for machines."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from quasiratio.cli.printable import printable

__all__ = ["Printer", "as_json"]

_WIDEST = 100


@dataclass(frozen=True)
class Printer:
    """Standard output of one command.

    Args:
        as_json: Print nothing but the JSON object of `result`.
        quiet: Print nothing for people.

    Example:
        >>> printer = Printer()
        >>> printer.table("", ["feature", "overlap"], [["pt", "0.93"], ["n_jets", "1"]])
        feature  overlap
        pt          0.93
        n_jets         1
    """

    as_json: bool = False
    quiet: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether nothing is printed for people."""
        return self.as_json or self.quiet

    def line(self, text: str) -> None:
        """Print one line for people."""
        if not self.is_silent:
            typer.echo(printable(text))

    def paragraph(self, text: str) -> None:
        """Print prose for people, indented and wrapped to the terminal, at most 100 characters wide."""
        width = min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
        if not self.is_silent:
            lines = textwrap.wrap(
                printable(text),
                max(width, 20),
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            typer.echo("\n".join(lines))

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table: drawn on a terminal, aligned columns elsewhere; the first column is text."""
        if self.is_silent:
            return
        cells = [[printable(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            _draw(title, headings, cells)
            return
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (headings, *cells)
        ]
        typer.echo("\n".join([title, *lines] if title else lines))

    def result(self, values: Mapping[str, Any]) -> None:
        """Print the result for machines, where that was asked for."""
        if self.as_json:
            typer.echo(as_json(values))


def as_json(values: Mapping[str, Any]) -> str:
    r"""Return standard JSON, with `null` for numbers that it does not have.

    Example:
        >>> as_json({"c": float("nan"), "n": 2})
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


def _draw(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=title or None, title_justify="left")
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="right" if column else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
