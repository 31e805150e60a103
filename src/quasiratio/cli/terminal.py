"""What a command prints: tables and lines for people, or one JSON object for machines, and one line per warning.

Texts from files and messages are made printable first. Advice of the library, which names arguments of Python, is
told in options.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

import typer

from quasiratio.cli.options import named
from quasiratio.errors import QuasiratioWarning
from quasiratio.wording import plain_json

__all__ = [
    "Printer",
    "advised",
    "in_options",
    "print_missing",
    "printable",
    "repeat_command",
    "seen_line",
    "warning_lines",
]

_WIDEST = 100
_ARGUMENT = re.compile(r"`(\w+)(?:=([^`]+))?`")
_OTHER_NAMES = {"output": "-o", "overwrite": "--force", "methods": "--method", "n_drawn": "--draw"}


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
            typer.echo(plain_json(values))


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


def in_options(text: str) -> str:
    """Return advice of the library with options in the place of arguments.

    Example:
        >>> in_options("Choose another with `output`, or add `overwrite=True`; `weight='w gen'`, `n_members=8`.")
        "Choose another with -o, or add --force; --weight 'w gen', --n-members 8."
    """
    return _ARGUMENT.sub(_option, text)


def _option(argument: re.Match[str]) -> str:
    name, value = argument[1], argument[2]
    option = _OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")
    if value is None or value == "True":
        return option
    with suppress(ValueError, SyntaxError):
        value = str(ast.literal_eval(value))
    return f"{option} {shlex.quote(value)}"


def advised(error: BaseException | str) -> str:
    """Return the text of an error or a warning, its advice in options.

    Example:
        >>> from quasiratio.errors import InvalidInputError
        >>> advised(InvalidInputError("Got `output`.", advice="Choose another `output`."))
        'Got `output`. Choose another -o.'
    """
    advice = getattr(error, "advice", "")
    return f"{getattr(error, 'message', '')} {in_options(advice)}".strip() if advice else str(error)


def seen_line(share: float, what: str = "events") -> str | None:
    """Return one line with the share and the way out, or nothing where no event was recognised.

    Example:
        >>> seen_line(0.0)
        >>> seen_line(0.75).split(". ")[0]
        'About 75% of the events took part in the training of this model, and share their fluctuations with its ratio'
    """
    if share <= 0:
        return None
    return (
        f"About {share:.0%} of the {what} took part in the training of this model, and share their fluctuations with "
        "its ratio. For ratios from models that have not seen the event: 'quasiratio fit --folds 5'."
    )


class _ManyFiles(Protocol):
    @property
    def failures(self) -> Mapping[str, str]: ...
    @property
    def empty(self) -> Sequence[str]: ...
    @property
    def outputs(self) -> Sequence[object]: ...


def print_missing(printer: Printer, done: _ManyFiles) -> None:
    """Name the files that have no output: those without events, and on standard error those that failed."""
    if done.empty:
        more = f" and {len(done.empty) - 1} more" if len(done.empty) > 1 else ""
        printer.line(f"Without events, and so without an output: {done.empty[0]}{more}")
    for source, sentence in done.failures.items():
        typer.echo(printable(f"Failed: {source}: {in_options(sentence)}"), err=True)
    if done.failures:
        n_files = len(done.outputs) + len(done.empty) + len(done.failures)
        typer.echo(
            f"{len(done.failures)} of {n_files} files failed; mend or leave them out, and go on with --resume.",
            err=True,
        )


@contextmanager
def warning_lines() -> Iterator[None]:
    """Print every warning of quasiratio as a line on standard error; others come out as Python has them."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # of NumPy: what is not finite gets a sentence of ours
        warnings.simplefilter("always", QuasiratioWarning)
        as_usual, said = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, QuasiratioWarning):
                as_usual(message, category, filename, lineno, file, line)
                return
            text = printable(f"Warning: {advised(message)}")
            if text not in said:
                said.add(text)
                typer.echo(text, err=True)

        warnings.showwarning = show
        yield


def repeat_command(context: typer.Context) -> str:
    """Return the command with the arguments and options that were given, quoted for a shell.

    Example:
        >>> from typer.testing import CliRunner
        >>> example = typer.Typer()
        >>> @example.command()
        ... def show(context: typer.Context, name: str, times: int = 1, loud: bool = False) -> None:
        ...     print(repeat_command(context))
        >>> result = CliRunner().invoke(example, ["a b", "--times", "2", "--loud"], prog_name="quasiratio show")
        >>> result.stdout.strip()
        "quasiratio show 'a b' --times 2 --loud"
        >>> CliRunner().invoke(example, ["a"], prog_name="python -m quasiratio show").stdout.strip()
        'quasiratio show a'
    """
    words = context.command_path.split()
    command = ["quasiratio", *words[3 if words[1:2] == ["-m"] else 1 :]]  # however it was started
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value: Any = context.params[name]
        values = [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        if parameter.param_type_name == "argument":
            arguments += values
        elif isinstance(value, bool):
            options.append(named(context, name) if value else parameter.secondary_opts[-1])
        else:
            options += [word for one in values for word in (named(context, name), one)]
    if any(word.startswith("-") for word in arguments):
        return shlex.join([*command, *options, "--", *arguments])
    return shlex.join([*command, *arguments, *options])
