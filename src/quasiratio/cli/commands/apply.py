"""`quasiratio apply`: the ratio and the new weight of every event of a file, in constant memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.commands.eft import At, parse_points
from quasiratio.cli.options import (
    INCOMPLETE,
    AllowLarge,
    Jobs,
    Json,
    NamePattern,
    Output,
    OutputDir,
    Plugins,
    Quiet,
    Resume,
    Scheduler,
    Selection,
    Tree,
    Weight,
    Weights,
    choices,
    early_workers,
    one_place,
    require_unused,
    split_files,
    split_list,
)
from quasiratio.cli.terminal import Printer, print_missing, seen_line
from quasiratio.progress import event_progress, study_progress
from quasiratio.registry import load_plugins
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.workflows import AppliedEach, AppliedFiles

__all__ = ["apply"]


def apply(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    files: Annotated[
        list[str], typer.Argument(metavar="IN", help="Files, patterns, addresses, @lists or comma lists.")
    ],
    output: Output = None,
    output_dir: OutputDir = None,
    name_pattern: NamePattern = None,
    resume: Resume = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    weight: Weight = None,
    weights: Weights = None,
    selection: Selection = None,
    tree: Tree = None,
    allow_large: AllowLarge = False,
    ratio_name: Annotated[str, typer.Option(metavar="NAME", help="Name of the ratio's column.")] = "ratio",
    weight_name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the new weight's column.")
    ] = "weight_reweighted",
    members: Annotated[
        bool, typer.Option("--members", help="Add the spread of the ensemble and the ratio of each member.")
    ] = False,
    compression: Annotated[
        str,
        typer.Option(
            help="auto, zstd, lz4, zlib or none.", autocompletion=choices("zstd", "lz4", "zlib", "none")
        ),
    ] = "auto",
    at: At = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    plugins: Plugins = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy IN to OUT, or each file of IN into DIR, with two more columns: the ratio, and weight times ratio.

    The weight is that of the fit's reference unless --weight names another. A model of several weights adds two
    columns for each, ratio_NAME and weight_NAME. A model of 'eft fit' adds intensity and ratio at the points of --at, or
    without points its coefficient functions.

    With --output-dir a file that cannot be read is named, the others are finished, and the exit code is 1; --resume goes
    on with what was done.
    """
    early_workers(jobs)
    load_plugins(split_list(plugins) or [])
    from quasiratio.workflows import apply_each_file, apply_files  # noqa: PLC0415 - keeps --help fast
    from quasiratio.workflows.eft_evaluation import apply_eft_files, is_eft_model  # noqa: PLC0415

    printer = Printer(as_json=as_json, quiet=quiet)
    one_place(context, output, output_dir)
    is_eft = is_eft_model(model)
    of_ratios = ("weight", "ratio_name", "weight_name", "members", "output_dir", "jobs", "scheduler")
    require_unused(context, of_ratios if is_eft else ("at",))
    names = [name for one in files for name in split_files(one)]
    chosen = None if compression == "none" else compression
    if is_eft and output is not None:
        with event_progress("Applying", quiet=printer.quiet) as progress:
            written = apply_eft_files(
                model,
                names,
                output,
                at=parse_points(at),
                selection=selection,
                tree=tree,
                allow_large=allow_large,
                compression=chosen,
                overwrite=force,
                say=printer.line,
                progress=progress,
            )
        printer.result(written.as_dict())
        rows = [[name, f"{share:.2%}"] for name, share in written.negative.items()]
        printer.table("", [f"{written.n_events} events", "negative"], rows)
        printer.line(f"Written: {written.path}, with {len(rows)} columns beside those of {written.source}")
        return
    options: dict[str, Any] = {
        "weight": weight,
        "weights": split_list(weights),
        "selection": selection,
        "tree": tree,
        "allow_large": allow_large,
        "ratio_name": ratio_name,
        "weight_name": weight_name,
        "members": members,
        "compression": chosen,
        "overwrite": force,
        "jobs": jobs,
        "scheduler": scheduler,
        "plugins": split_list(plugins) or [],
        "say": printer.line,
    }
    if output_dir is not None:
        if name_pattern is not None:
            options["name_pattern"] = name_pattern
        with study_progress("Files", quiet=printer.is_silent) as show:
            each = apply_each_file(model, names, output_dir, resume=resume, progress=show, **options)
        printer.result(each.as_dict())
        _print_each(printer, each)
        if not each.is_complete:
            raise typer.Exit(INCOMPLETE)
        return
    with event_progress("Applying", quiet=printer.quiet) as progress:
        done = apply_files(model, names, output or "", progress=progress, **options)
    printer.result(done.as_dict())
    _print(printer, done)
    printer.line(f"Written: {done.path}, with {', '.join(done.columns)} beside the columns of {done.source}")


def _print_each(printer: Printer, each: AppliedEach) -> None:
    if each.total is not None:
        _print(printer, each.total)
        printer.line(
            f"Written: {len(each.outputs)} files in {each.directory}, with {', '.join(each.total.columns)} beside the "
            "columns of their inputs"
        )
    print_missing(printer, each)


def _print(printer: Printer, done: AppliedFiles) -> None:
    if done.fit_check.status == "failed":
        printer.line(str(done.fit_check))
    pairs = [done.before.as_dict(), done.after.as_dict()]
    rows = [
        ["sum of weights", *(f"{sums['sum_of_weights']:.6g}" for sums in pairs)],
        ["negative weights", *(percent(sums["negative_fraction"]) for sums in pairs)],
        ["effective size", *(f"{sums['effective_size']:.6g}" for sums in pairs)],
    ]
    printer.table("", [f"{done.n_events} events, weight {done.weight or '1'}", "before", "after"], rows)
    printer.line(f"Ratios from {done.ratio_range[0]:.4g} to {done.ratio_range[1]:.4g}")
    line = seen_line(done.share_seen)
    if line is not None:
        printer.line(line)
