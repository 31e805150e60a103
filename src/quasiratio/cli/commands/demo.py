"""`quasiratio demo`: four methods on a pair of samples whose exact, signed ratio is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quasiratio.cli.output_directory import create_output_directory, output_directory, publish_directory
from quasiratio.cli.repeat_command import repeat_command
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from quasiratio.cli.demo_run import DemoResult

__all__ = ["demo"]

_MIN_EVENTS, _MAX_EVENTS = 1_000, 10_000_000
_MAX_SEED = 2**32 - 1


def demo(
    context: typer.Context,
    output: Annotated[str, typer.Option("-o", "--output", help="Directory of report and figures.")] = "demo",
    seed: Annotated[int, typer.Option(help="Seed of the samples and the fits.")] = 0,
    events: Annotated[int, typer.Option(help="Training events per class, and test events.")] = 200_000,
    steps: Annotated[int, typer.Option(hidden=True, help="Optimiser steps per fit.")] = 600,
    force: Annotated[bool, typer.Option("--force", help="Write among files that are there already.")] = False,
) -> None:
    """Compare four methods on a toy with negative density.

    Takes about a minute. Prints a table and writes report.html, and the figures closure and ratio as PNG and PDF.
    """
    _require_between("--events", events, _MIN_EVENTS, _MAX_EVENTS)
    _require_between("--seed", seed, 0, _MAX_SEED)
    _require_between("--steps", steps, 1, 100_000)
    directory = output_directory(output, command="demo", force=force)

    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    from quasiratio.cli.demo_run import run_demo  # noqa: PLC0415 - keeps --help fast

    report = None if sys.stderr.isatty() else _report_fit
    result = run_demo(events, seed=seed, max_steps=steps, report=report)
    console = Console()
    console.print(_table(result))
    for note in result.notes:
        console.print(f"Note: {note}", style="dim", highlight=False)
    figures, report_path = _write(
        result, directory, command=repeat_command(context), seed=seed, max_steps=steps
    )
    console.print("Figures: " + ", ".join(str(path) for path in figures), highlight=False, soft_wrap=True)
    console.print(f"Report: {report_path}", highlight=False, soft_wrap=True)


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


def _write(
    result: DemoResult, directory: Path, *, command: str, seed: int, max_steps: int
) -> tuple[list[Path], Path]:
    from quasiratio.atomic_files import scratch_directory  # noqa: PLC0415
    from quasiratio.cli.demo_report import demo_pictures, demo_report  # noqa: PLC0415 - keeps --help fast
    from quasiratio.plots import save_figure  # noqa: PLC0415
    from quasiratio.report import write_report  # noqa: PLC0415

    pictures = demo_pictures(result)
    create_output_directory(directory.parent)
    with scratch_directory(directory.parent) as workspace:
        finished = workspace / "finished"
        finished.mkdir()
        drawn = [path for name, one in pictures.items() for path in save_figure(one.figure, finished / name)]
        report = demo_report(result, pictures=pictures, command=command, seed=seed, max_steps=max_steps)
        write_report(report, finished / "report.html")
        publish_directory(finished, directory, command="demo")
    return [directory / path.name for path in drawn], directory / "report.html"
