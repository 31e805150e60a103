"""`quasiratio demo`: four methods on a pair of samples whose exact, signed ratio is known."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from quasiratio.cli.options import named
from quasiratio.cli.terminal import repeat_command
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from quasiratio.workflows.demo import DemoResult

__all__ = ["demo"]

_MIN_EVENTS, _MAX_EVENTS = 1_000, 10_000_000
_MAX_SEED = 2**32 - 1


def demo(
    context: typer.Context,
    output: Annotated[str, typer.Option("-o", "--output", help="Directory of report and figures.")] = "demo",
    random_state: Annotated[
        int, typer.Option("--random-state", "--seed", help="Seed of the samples and the fits.")
    ] = 0,
    n_events: Annotated[
        int, typer.Option("--n-events", "--events", help="Training events per class, and test events.")
    ] = 200_000,
    max_steps: Annotated[
        int, typer.Option("--max-steps", "--steps", hidden=True, help="Optimiser steps per fit.")
    ] = 600,
    force: Annotated[bool, typer.Option("--force", help="Write among files that are there already.")] = False,
) -> None:
    """Compare four methods on a toy with negative density.

    Takes about a minute. Prints a table and writes report.html, and the figures closure and ratio as PNG and PDF.
    """
    _require_between(named(context, "n_events"), n_events, _MIN_EVENTS, _MAX_EVENTS)
    _require_between(named(context, "random_state"), random_state, 0, _MAX_SEED)
    _require_between(named(context, "max_steps"), max_steps, 1, 100_000)

    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    from quasiratio.workflows import demo_files  # noqa: PLC0415

    done = demo_files(
        output,
        n_events=n_events,
        random_state=random_state,
        max_steps=max_steps,
        overwrite=force,
        command=repeat_command(context),
        fitted=None if sys.stderr.isatty() else _report_fit,
    )
    console = Console()
    console.print(_table(done.result))
    for note in done.result.notes:
        console.print(f"Note: {note}", style="dim", highlight=False)
    console.print("Figures: " + ", ".join(map(str, done.figures)), highlight=False, soft_wrap=True)
    console.print(f"Report: {done.report}", highlight=False, soft_wrap=True)


def _require_between(option: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        msg = f"Got {option} {value}; expected a whole number from {lowest} to {highest}."
        raise InvalidInputError(msg)


def _report_fit(method: str, seconds: float) -> None:
    typer.echo(f"fitted {method} in {seconds:.1f} s", err=True)


def _table(result: DemoResult) -> Table:
    from rich.table import Table  # noqa: PLC0415 - keeps --help fast

    table = Table(title=f"Signed case, radius, {result.n_events} events per class")
    table.add_column("method")
    for heading in ("chi2/ndof", "D_S2", "time (s)"):
        table.add_column(heading, justify="right")
    for entry in result.closure.methods:
        seconds = result.seconds.get(entry.method)
        table.add_row(
            entry.method,
            f"{entry.chi_squared.value:.2f}",
            f"{entry.relative_entropy.value:.2g}",
            "" if seconds is None else f"{seconds:.1f}",
        )
    return table
