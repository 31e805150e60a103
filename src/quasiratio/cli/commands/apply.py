"""`quasiratio apply`: the ratio and the new weight of every event of a file, in constant memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.event_progress import event_progress
from quasiratio.cli.options import AllowLarge, Json, Quiet, Selection, Tree, Weight, choices, split_files
from quasiratio.cli.output_file import output_file
from quasiratio.cli.printing import Printer
from quasiratio.cli.samples import SampleFiles, feature_line, require_weight_option
from quasiratio.cli.seen_events import seen_line

if TYPE_CHECKING:
    from quasiratio.workflows.apply_files import AppliedModel

__all__ = ["apply"]


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    files: Annotated[list[str], typer.Argument(metavar="IN", help="Files, patterns or comma lists.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUT", help="New .root, .parquet or .npz file.")
    ],
    weight: Weight = None,
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
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy IN to OUT with two more columns: the ratio, and weight times ratio.

    The weight is that of the fit's reference unless --weight names another.
    """
    out = output_file(output, force=force)

    from quasiratio.cli.loaded_model import load_ratio_model  # noqa: PLC0415 - keeps --help fast
    from quasiratio.workflows.apply_files import NewColumns, apply_to_file  # noqa: PLC0415

    loaded = load_ratio_model(model)
    table = SampleFiles(
        [name for one in files for name in split_files(one)], tree=tree, allow_large=allow_large
    ).open()
    loaded.require_features(table)
    weight = weight or loaded.notes.reference.weight
    require_weight_option(table, weight)
    printer = Printer(as_json=as_json, quiet=quiet)
    printer.line(feature_line(loaded.inputs))
    with event_progress("Applying", quiet=printer.quiet) as progress:
        done = apply_to_file(
            loaded.estimator,
            table,
            out.path,
            features=loaded.inputs,
            weight=weight,
            selection=selection,
            names=NewColumns(ratio_name, weight_name),
            members=members,
            ranges=loaded.ranges,
            fit_selection=loaded.notes.selection,
            tree=out.tree_like(table),
            compression=None if compression == "none" else compression,
            metadata={"quasiratio": {"model": str(model), "weight": weight, "selection": selection}},
            progress=progress,
        )
    check = loaded.estimator.fit_check_
    printer.result(_as_dict(done, out.path, weight) | {"fit_check": check.status})
    if check.status == "failed":
        printer.line(str(check))
    _print(printer, done, weight)
    printer.line(f"Written: {out.path}, with {', '.join(done.columns)} beside the columns of {table.label}")


def _as_dict(done: AppliedModel, path: Path, weight: str | None) -> dict[str, Any]:
    return {
        "output": str(path),
        "n_events": done.n_events,
        "columns": done.columns,
        "weight": weight,
        "before": done.before.as_dict(),
        "after": done.after.as_dict(),
        "ratio_range": done.ratio_range,
        "n_nonpositive_reference": done.n_nonpositive,
        "n_infinite_ratios": done.n_infinite,
        "n_outside_selection_of_fit": done.n_unselected,
        "share_seen_in_training": done.share_seen,
        "outside_training_range": {feature.name: feature.outside for feature in done.outside},
    }


def _print(printer: Printer, done: AppliedModel, weight: str | None) -> None:
    pairs = [done.before.as_dict(), done.after.as_dict()]
    rows = [
        ["sum of weights", *(f"{sums['sum_of_weights']:.6g}" for sums in pairs)],
        ["negative weights", *(f"{sums['negative_fraction']:.2%}" for sums in pairs)],
        ["effective size", *(f"{sums['effective_size']:.6g}" for sums in pairs)],
    ]
    printer.table("", [f"{done.n_events} events, weight {weight or '1'}", "before", "after"], rows)
    printer.line(f"Ratios from {done.ratio_range[0]:.4g} to {done.ratio_range[1]:.4g}")
    line = seen_line(done.share_seen)
    if line is not None:
        printer.line(line)
