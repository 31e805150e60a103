"""`quasiratio positive`: one sample with negative weights, the same expectations, positive weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.options import (
    INCOMPLETE,
    AllowLarge,
    Features,
    Jobs,
    Json,
    NamePattern,
    Output,
    OutputDir,
    Quiet,
    Resume,
    Scheduler,
    Selection,
    Tree,
    choices,
    early_workers,
    named,
    one_place,
    split_files,
    split_list,
)
from quasiratio.cli.terminal import Printer, print_missing
from quasiratio.errors import InvalidInputError
from quasiratio.progress import event_progress, progress_lines, study_progress
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.workflows import PositiveFiles

__all__ = ["positive"]


def positive(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="IN", help="Files, patterns, addresses, @lists or comma lists.")
    ],
    *,
    weight: Annotated[
        str, typer.Option("--weight", metavar="EXPR", help="Signed weight, such as 'w_gen*w_pu'.")
    ],
    output: Output = None,
    output_dir: OutputDir = None,
    name_pattern: NamePattern = None,
    resume: Resume = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    features: Features = None,
    selection: Selection = None,
    tree: Tree = None,
    allow_large: AllowLarge = False,
    weight_name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the new weight's column.")
    ] = "weight_positive",
    on_negative_density: Annotated[
        str,
        typer.Option(
            help="Where the density itself is negative: keep-sign or refuse.",
            autocompletion=choices("keep-sign", "refuse"),
        ),
    ] = "keep-sign",
    resample: Annotated[
        bool,
        typer.Option("--resample", help="Keep fewer events, so that statistical errors stay what they were."),
    ] = False,
    random_state: Annotated[
        int, typer.Option("--random-state", "--seed", help="Seed of the training and the resampling.")
    ] = 0,
    max_steps: Annotated[int | None, typer.Option("--max-steps", "--steps", help="Optimiser steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Events per step.")] = None,
    n_members: Annotated[
        int,
        typer.Option(
            "--n-members",
            "--members",
            help="Networks in the ensemble, whose scatter is the error of the training.",
        ),
    ] = 8,
    write_members: Annotated[
        bool,
        typer.Option("--write-members", help="Add the spread of the ensemble and the weight of each member."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy IN to OUT, or each file of IN into DIR, with a weight that is positive and has the same expectations.

    Only expectations of the features are protected: give all that matter.
    """
    if not 0 <= random_state < 2**32:
        msg = f"Got {named(context, 'random_state')} {random_state}; expected a whole number from 0 to {2**32 - 1}."
        raise InvalidInputError(msg)
    if write_members and (resample or n_members < 2):
        other = "--resample" if resample else f"{named(context, 'n_members')} {n_members}"
        msg = (
            f"Got --write-members with {other}; expected all events and at least two members. "
            "Leave one of the two options out."
        )
        raise InvalidInputError(msg)

    one_place(context, output, output_dir)
    if output is not None and (jobs is not None or scheduler is not None):
        msg = (
            "Got --jobs or --scheduler with -o; expected --output-dir, where files are written side by side."
        )
        raise InvalidInputError(msg)

    early_workers(jobs)
    from quasiratio.estimators import PositiveReweighter  # noqa: PLC0415 - keeps --help fast
    from quasiratio.workflows import positive_each_file, positive_files  # noqa: PLC0415

    reweighter = PositiveReweighter(max_steps=max_steps, n_members=n_members, random_state=random_state)
    reweighter.set_params(on_negative_density=on_negative_density, verbose=not quiet)
    if batch_size is not None:
        reweighter.set_params(batch_size=batch_size)
    printer = Printer(as_json=as_json, quiet=quiet)
    names = [name for one in files for name in split_files(one)]
    options: dict[str, Any] = {
        "weight": weight,
        "features": split_list(features),
        "selection": selection,
        "tree": tree,
        "allow_large": allow_large,
        "weight_name": weight_name,
        "members": write_members,
        "resample": resample,
        "reweighter": reweighter,
        "random_state": random_state,
        "overwrite": force,
        "say": printer.line,
    }
    if output_dir is not None:
        if name_pattern is not None:
            options["name_pattern"] = name_pattern
        with progress_lines(), study_progress("Files", quiet=printer.is_silent) as show:
            each = positive_each_file(
                names, output_dir, resume=resume, jobs=jobs, scheduler=scheduler, progress=show, **options
            )
        printer.result(each.as_dict())
        _print(printer, each.total, named(context, "n_members"))
        printer.line(
            f"Written: {len(each.outputs)} files in {each.directory}, with {weight_name} beside the columns of their inputs"
        )
        print_missing(printer, each)
        if not each.is_complete:
            raise typer.Exit(INCOMPLETE)
        return
    with progress_lines(), event_progress("Writing", quiet=quiet) as progress:
        done = positive_files(names, output or "", progress=progress, **options)
    printer.result(done.as_dict())
    _print(printer, done, named(context, "n_members"))
    printer.line(
        f"Written: {done.path}, {done.n_written} events with {weight_name} beside the columns of {done.source}"
    )


def _print(printer: Printer, done: PositiveFiles, members_option: str) -> None:
    report = done.report
    rows = [
        [
            "negative weights",
            percent(report.negative_fraction_before),
            percent(report.negative_fraction_after),
        ],
        ["effective size", f"{report.effective_size_before:.6g}", f"{report.effective_size_after:.6g}"],
    ]
    if not math.isnan(report.effective_size_with_training):
        rows.append(
            ["the same with the error of the training", "", f"{report.effective_size_with_training:.6g}"]
        )
    printer.table("", ["", "before", "after"], rows)
    sentence = report.gain_sentence
    printer.line(
        f"{sentence[0].upper()}{sentence[1:]}; negative density over {percent(report.negative_density_fraction)} of the "
        f"absolute weight, flattened to zero over {percent(report.flattened_fraction)}"
    )
    if math.isnan(report.effective_size_with_training):
        printer.line(f"{members_option} 8 would know the error of the training.")
    rows = [
        [entry.name, f"{entry.reference.chi_squared.value:.2f}", f"{entry.reference.chi_squared.n_dof}"]
        for entry in done.closure.observables
    ]
    printer.table("", ["feature", "chi2/ndof, new against signed", "ndof"], rows)
