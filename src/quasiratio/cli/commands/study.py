"""`quasiratio study`: results of the paper and ours beside them, by one command each."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from quasiratio.cli.options import INCOMPLETE
from quasiratio.cli.terminal import in_options
from quasiratio.errors import InvalidInputError
from quasiratio.outputs import require_output_directory, require_output_name

__all__ = ["study"]


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="signed-gaussians, loss-landscapes, weight-variance, smeft-hh; all of them; or list."
        ),
    ],
    output: Annotated[str | None, typer.Option("-o", "--output", help="Directory of the results.")] = None,
    preset: Annotated[
        str, typer.Option(help="smoke (a minute), quick (ten), or full (the published sizes).")
    ] = "quick",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the directory holds.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write among files that are there already.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Local processes; by default one per core.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Dask scheduler, such as tcp://node1:8786.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, instead of the preset's.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Method to run; may be repeated.")] = None,
    published_settings: Annotated[
        bool, typer.Option("--published-settings", help="The paper's networks and schedules.")
    ] = False,
    samples: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="REFERENCE TARGET", help="Files of events for smeft-hh, instead of generating them."
        ),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="OLD NEW", help="Say what changed between two runs beyond noise, and run nothing."
        ),
    ] = None,
) -> None:
    """Run a study of the paper, or all of them, and write reports, tables and figures.

    Interrupt it at any time; the same command with --resume goes on.
    """
    if name == "list":
        _list()
        return
    if compare is not None:
        _compare(name, *compare)
        return
    if output is None:
        msg = "Got no output directory; expected one. Add -o DIRECTORY."
        raise InvalidInputError(msg)
    directory = require_output_name(output, "directory")
    require_output_directory(directory)
    from quasiratio.studies.engine.conduct import StudyOptions, conduct_study  # noqa: PLC0415 - keeps --help fast
    from quasiratio.studies.engine.registry import study_by_name  # noqa: PLC0415

    options = StudyOptions(
        preset=preset, resume=resume, force=force, jobs=jobs, scheduler=scheduler, seeds=seeds, methods=method or (),
        published_settings=published_settings, samples=samples,
    )  # fmt: skip
    command = shlex.join(["quasiratio", *sys.argv[1:]])
    if name == "all":
        from quasiratio.studies.engine.all_studies import conduct_all_studies  # noqa: PLC0415

        is_complete = conduct_all_studies(directory, options, command=command, say=_say)
        typer.echo(f"Index: {directory / 'index.html'}")
    else:
        outcome, _ = conduct_study(study_by_name(name), directory, options, command=command, say=_say)
        is_complete = outcome.is_complete
        typer.echo(f"Report: {directory / 'report.html'}")
    if not is_complete:
        raise typer.Exit(INCOMPLETE)


def _say(line: str) -> None:
    typer.echo(in_options(line))


def _list() -> None:
    from quasiratio.studies.engine.registry import study_by_name, study_names  # noqa: PLC0415 - keeps --help fast

    for name in study_names():
        typer.echo(f"{name:18s} {study_by_name(name).question}")


def _compare(name: str, old: Path, new: Path) -> None:
    from quasiratio.studies.output.comparison import compare_runs, read_results  # noqa: PLC0415 - keeps --help fast

    if (found := read_results(new)["study"]) != name:
        msg = f"Got {str(new)!r}, a run of {found!r}; expected one of {name!r}. Check the paths."
        raise InvalidInputError(msg)
    for line in compare_runs(old, new).lines():
        typer.echo(line)
