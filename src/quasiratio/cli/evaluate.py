"""`quasiratio evaluate`: does the reweighted reference look like the target?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quasiratio.cli.options import (
    Json,
    Quiet,
    ReferenceWeight,
    Selection,
    TargetWeight,
    Tree,
    Weight,
    split_files,
    split_list,
)
from quasiratio.cli.output_directory import require_output_directory
from quasiratio.cli.printing import Printer
from quasiratio.cli.repeat_command import repeat_command
from quasiratio.cli.samples import SampleFiles, feature_line
from quasiratio.cli.seen_events import seen_line
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.estimators.evaluation import Evaluation

__all__ = ["evaluate"]


def evaluate(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    reference: Annotated[str, typer.Argument(metavar="REF", help="Reference: file, pattern or comma list.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Target: file, pattern or comma list.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Directory of report, figures and numbers.")
    ],
    observables: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPR", help="More observables, such as 'pt1 + pt2', with commas or repeated."),
    ] = None,
    weight: Weight = None,
    reference_weight: ReferenceWeight = None,
    target_weight: TargetWeight = None,
    selection: Selection = None,
    tree: Tree = None,
    bins: Annotated[int, typer.Option(help="Bins of each observable.")] = 50,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the reweighted reference with the target, observable by observable.

    Prints a table, and writes report.html, results.json and a figure per observable. Weights and selection are those of the
    fit unless options name others; events that the fit has not seen make the stronger test.
    """
    if not 1 <= bins <= 10_000:
        msg = f"Got --bins {bins}; expected a whole number from 1 to 10000."
        raise InvalidInputError(msg)
    require_output_directory(output)
    if (output / "model.json").exists():
        msg = f"Got the output directory {str(output)!r}, which is a model; expected one for the report. Choose another."
        raise InvalidInputError(msg)

    from quasiratio.cli.evaluate_run import EvaluationInput, run_evaluation  # noqa: PLC0415 - keeps --help fast
    from quasiratio.cli.loaded_model import load_ratio_model  # noqa: PLC0415

    loaded = load_ratio_model(model)
    notes = loaded.notes
    chosen = selection or notes.selection
    given = EvaluationInput(
        loaded,
        SampleFiles(
            split_files(reference), reference_weight or weight or notes.reference.weight, chosen, tree
        ),
        SampleFiles(split_files(target), target_weight or weight or notes.target.weight, chosen, tree),
        split_list(observables) or [],
        bins,
        repeat_command(context),
    )
    printer = Printer(as_json=as_json, quiet=quiet)
    printer.line(feature_line(loaded.features))
    result, values = run_evaluation(given, output)
    printer.result(values)
    _print(printer, result)
    printer.line(f"Report: {output / 'report.html'}")


def _print(printer: Printer, result: Evaluation) -> None:
    headings = ["observable", "chi2/ndof before", "after", "ndof", "D_S2 before", "after"]
    rows = [
        [
            entry.name,
            f"{entry.reference.chi_squared.value:.2f}",
            f"{entry['model'].chi_squared.value:.2f}",
            f"{entry['model'].chi_squared.n_dof}",
            f"{entry.reference.relative_entropy.value:.3g}",
            f"{entry['model'].relative_entropy.value:.3g}",
        ]
        for entry in result.closure.observables
    ]
    printer.table("", headings, rows)
    sizes = [
        f"{weights.effective_size:.6g}" for weights in (result.reference, result.reweighted, result.target)
    ]
    printer.line(f"Effective size: reference {sizes[0]}, reweighted {sizes[1]}, target {sizes[2]}")
    difference = result.risk_difference
    printer.line(
        f"Risk against no reweighting: {difference.value:+.5f} +- {difference.error:.5f} (negative is better)"
    )
    for role, share in zip(("reference", "target"), result.seen, strict=True):
        line = seen_line(share, f"{role} events")
        if line is not None:
            printer.line(line)
