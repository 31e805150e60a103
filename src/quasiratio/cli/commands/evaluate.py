"""`quasiratio evaluate`: does the reweighted reference look like the target?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quasiratio.cli.commands.eft import (
    At,
    Branch,
    CoefficientOrder,
    Coefficients,
    Columns,
    Parameters,
    Pattern,
    Points,
    Seed,
    parse_points,
    print_closure,
)
from quasiratio.cli.options import (
    AllowLarge,
    Jobs,
    Json,
    Labels,
    Plugins,
    Quiet,
    ReferenceWeight,
    Scheduler,
    Selection,
    TargetWeight,
    Tree,
    Weight,
    choices,
    early_workers,
    named,
    require_unused,
    split_files,
    split_list,
)
from quasiratio.cli.terminal import Printer, repeat_command, seen_line
from quasiratio.errors import InvalidInputError
from quasiratio.registry import load_plugins
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.report.evaluation import Evaluation

__all__ = ["evaluate"]

_OF_WEIGHTS = ("points", "pattern", "branch", "columns", "coefficients", "coefficient_order", "parameters")
"""Where the weights of a sample at points are."""


def evaluate(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="Reference: file, pattern, @list or comma list.")
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="Target: file, pattern, @list or comma list; none for a model of 'eft fit'.",
        ),
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Directory of report, figures and numbers.")
    ],
    observables: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPR", help="More observables, such as 'ht=pt1 + pt2', with commas or repeated."
        ),
    ] = None,
    label: Labels = None,
    weight: Weight = None,
    reference_weight: ReferenceWeight = None,
    target_weight: TargetWeight = None,
    variation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of several weights, which to judge; the first by default."),
    ] = None,
    selection: Selection = None,
    tree: Tree = None,
    allow_large: AllowLarge = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    n_bins: Annotated[int, typer.Option("--n-bins", "--bins", help="Bins of each observable.")] = 50,
    binning: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N:LOW:HIGH", help="Bins and range of one observable; with commas or repeated."
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Observables with a logarithmic scale, or all."),
    ] = None,
    lower: Annotated[
        str,
        typer.Option(
            help="Below the densities: pull, difference or quotient.",
            autocompletion=choices("pull", "difference", "quotient"),
        ),
    ] = "pull",
    at: At = None,
    draw: Annotated[
        int | None,
        typer.Option("--draw", metavar="N", help="Points to draw for a model of 'eft fit'; default: 6."),
    ] = None,
    random_state: Seed = 0,
    points: Points = None,
    pattern: Pattern = None,
    branch: Branch = None,
    columns: Columns = None,
    coefficients: Coefficients = None,
    coefficient_order: CoefficientOrder = "ours",
    parameters: Parameters = None,
    force: Annotated[bool, typer.Option("--force", help="Write among files that are there already.")] = False,
    plugins: Plugins = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the reweighted reference with the target, observable by observable.

    Prints a verdict and a table, and writes report.html, results.json and a figure per observable. Weights and selection are those of the
    fit unless options name others; events that the fit has not seen make the stronger test.

    A model of 'eft fit' needs one sample with weights at points, and is looked at in several points: those of --at, or some that are
    drawn. Its weights are looked for where they were in the sample of the fit, unless --points, --pattern, --branch, --columns or
    --coefficients say otherwise.
    """
    if not 1 <= n_bins <= 10_000:
        msg = f"Got {named(context, 'n_bins')} {n_bins}; expected a whole number from 1 to 10000."
        raise InvalidInputError(msg)

    early_workers(jobs)
    load_plugins(split_list(plugins) or [])
    from quasiratio.workflows import evaluate_files  # noqa: PLC0415 - keeps --help fast
    from quasiratio.workflows.eft_evaluation import evaluate_eft_files, is_eft_model  # noqa: PLC0415

    printer = Printer(as_json=as_json, quiet=quiet)
    if is_eft_model(model):
        require_unused(
            context,
            (
                "target",
                "observables",
                "label",
                "reference_weight",
                "target_weight",
                "allow_large",
                "binning",
                "log",
                "lower",
                "jobs",
                "scheduler",
            ),
        )
        judged = evaluate_eft_files(
            model,
            split_files(reference),
            output,
            at=parse_points(at),
            n_drawn=draw,
            random_state=random_state,
            n_bins=n_bins,
            weight=weight,
            selection=selection,
            tree=tree,
            overwrite=force,
            command=repeat_command(context),
            say=printer.line,
            points=points,
            pattern=pattern,
            branch=branch,
            columns=split_list(columns),
            coefficients=split_list(coefficients),
            coefficient_order=coefficient_order if coefficients else None,
            parameters=split_list(parameters),
        )
        printer.result(judged.values)
        printer.line(f"Verdict: {'undecided' if judged.status == 'info' else judged.status}")
        for reason in judged.verdict.split("\n\n"):
            printer.paragraph(reason)
        print_closure(printer, judged.points, judged.values["features"])
        printer.line(f"Report: {judged.path / 'report.html'}")
        return
    require_unused(context, ("at", "draw", "random_state", *_OF_WEIGHTS))
    if target is None:
        msg = f"Got the model {str(model)!r} and one sample; expected a reference and a target to compare it with."
        raise InvalidInputError(msg)
    done = evaluate_files(
        model,
        split_files(reference),
        split_files(target),
        output,
        observables=split_list(observables) or [],
        label=label or (),
        weight=weight,
        reference_weight=reference_weight,
        target_weight=target_weight,
        variation=variation,
        selection=selection,
        tree=tree,
        allow_large=allow_large,
        n_bins=n_bins,
        binning=split_list(binning) or (),
        log=split_list(log) or (),
        lower=lower,
        overwrite=force,
        command=repeat_command(context),
        jobs=jobs,
        scheduler=scheduler,
        say=printer.line,
    )
    verdict = done.verdict
    printer.result(done.values)
    printer.line(f"Verdict: {'undecided' if verdict.status == 'info' else verdict.status}")
    for reason in verdict.text.split("\n\n"):
        printer.paragraph(reason)
    printer.line("")
    _print(printer, done.evaluation)
    printer.line(f"Report: {done.path / 'report.html'}")


def _print(printer: Printer, result: Evaluation) -> None:
    from quasiratio.report.closure_quality import closure_qualities  # noqa: PLC0415 - keeps --help fast

    entries = result.closure.observables
    pairs = [closure_qualities(entry, n_observables=len(entries)) for entry in entries]
    has_totals = any(after.total_chi2_per_dof is not None for _, after in pairs)
    headings = ["observable", "chi2/ndof before", "after", *(["with training"] if has_totals else []), "ndof"]
    headings += ["p-value", "wrong share before", "after", "size"]
    rows = [
        [
            after.observable,
            f"{before.chi2_per_dof:.2f}",
            f"{after.chi2_per_dof:.2f}",
            *(
                [f"{after.total_chi2_per_dof:.2f}"]
                if after.total_chi2_per_dof is not None
                else [""] * has_totals
            ),
            f"{after.n_dof}",
            f"{after.p_value:.2g}",
            percent(before.size),
            percent(after.size),
            after.judgement,
        ]
        for before, after in pairs
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
    if result.limits:
        printer.line(result.limits)
    for role, share in zip(("reference", "target"), result.seen, strict=True):
        line = seen_line(share, f"{role} events")
        if line is not None:
            printer.line(line)
