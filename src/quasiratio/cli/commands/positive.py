"""`quasiratio positive`: one sample with negative weights, the same expectations, positive weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from quasiratio.cli.options import (
    AllowLarge,
    Features,
    Json,
    Quiet,
    Selection,
    Tree,
    choices,
    split_files,
    split_list,
)
from quasiratio.cli.output_file import output_file
from quasiratio.cli.printing import Printer
from quasiratio.cli.samples import SampleFiles, chosen_features, feature_line
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.workflows.positive_files import PositiveFile

__all__ = ["positive"]


def positive(
    files: Annotated[list[str], typer.Argument(metavar="IN", help="Files, patterns or comma lists.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUT", help="New .root, .parquet or .npz file.")
    ],
    weight: Annotated[
        str, typer.Option("--weight", metavar="EXPR", help="Signed weight, such as 'w_gen*w_pu'.")
    ],
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
    seed: Annotated[int, typer.Option(help="Seed of the training and the resampling.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Events per step.")] = None,
    members: Annotated[
        int, typer.Option(help="Networks in the ensemble, whose scatter is the error of the training.")
    ] = 8,
    write_members: Annotated[
        bool,
        typer.Option("--write-members", help="Add the spread of the ensemble and the weight of each member."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy IN to OUT with a weight that is positive and has the same expectations.

    Only expectations of the features are protected: give all that matter.
    """
    if not 0 <= seed < 2**32:
        msg = f"Got --seed {seed}; expected a whole number from 0 to {2**32 - 1}."
        raise InvalidInputError(msg)
    if write_members and (resample or members < 2):
        msg = (
            f"Got --write-members with {'--resample' if resample else f'--members {members}'}; expected all events and "
            "at least two members. Leave one of the two options out."
        )
        raise InvalidInputError(msg)
    out = output_file(output, force=force)

    from quasiratio.cli.event_progress import event_progress  # noqa: PLC0415 - keeps --help fast
    from quasiratio.estimators import PositiveReweighter  # noqa: PLC0415
    from quasiratio.training import progress_lines  # noqa: PLC0415
    from quasiratio.workflows.positive_files import make_positive_file  # noqa: PLC0415

    sample = SampleFiles([n for one in files for n in split_files(one)], weight, selection, tree, allow_large)
    table = sample.open()
    names = chosen_features(split_list(features), [sample], [table])
    printer = Printer(as_json=as_json, quiet=quiet)
    printer.line(feature_line(names))
    reweighter = PositiveReweighter(max_steps=steps, n_members=members, random_state=seed, verbose=not quiet)
    reweighter.set_params(on_negative_density=on_negative_density)
    if batch_size is not None:
        reweighter.set_params(batch_size=batch_size)
    with progress_lines(), event_progress("Writing", quiet=quiet) as progress:
        done = make_positive_file(
            reweighter,
            table,
            out.path,
            features=names,
            weight=weight,
            selection=selection,
            weight_name=weight_name,
            members=write_members,
            resample=resample,
            seed=seed,
            tree=out.tree_like(table),
            progress=progress,
        )
    printer.result(
        {"output": str(out.path), "features": [one.name for one in names], "weight": weight, **done.as_dict()}
    )
    _print(printer, done)
    printer.line(
        f"Written: {out.path}, {done.n_written} events with {weight_name} beside the columns of {table.label}"
    )


def _print(printer: Printer, done: PositiveFile) -> None:
    report = done.report
    rows = [
        [
            "negative weights",
            f"{report.negative_fraction_before:.2%}",
            f"{report.negative_fraction_after:.2%}",
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
        f"{sentence[0].upper()}{sentence[1:]}; negative density over {report.negative_density_fraction:.2%} of the "
        f"absolute weight, flattened to zero over {report.flattened_fraction:.2%}"
    )
    if math.isnan(report.effective_size_with_training):
        printer.line("--members 8 would know the error of the training.")
    rows = [
        [entry.name, f"{entry.reference.chi_squared.value:.2f}", f"{entry.reference.chi_squared.n_dof}"]
        for entry in done.closure.observables
    ]
    printer.table("", ["feature", "chi2/ndof, new against signed", "ndof"], rows)
