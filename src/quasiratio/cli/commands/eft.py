"""`quasiratio eft`: samples with weights at several parameter points, looked at and fitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quasiratio.cli.options import Features, Json, Quiet, Selection, Tree, split_files, split_list
from quasiratio.cli.terminal import Printer
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.workflows.eft_files import InspectedEft

__all__ = ["eft_app"]

eft_app = typer.Typer(no_args_is_help=True, help="Densities that are polynomials of parameters.")

Sample = Annotated[str, typer.Argument(metavar="SAMPLE", help="File, pattern or comma list.")]
Points = Annotated[
    Path | None,
    typer.Option("--points", metavar="FILE", help="Points: a YAML file or a MadGraph reweight card."),
]
Pattern = Annotated[
    str | None,
    typer.Option("--pattern", metavar="GLOB", help="Weights whose names tell their points: 'EFTrwgt*'."),
]
Branch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="One vector with the weights of all points, in order."),
]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", metavar="NAMES", help="One column per point, in order.")
]
Coefficients = Annotated[
    list[str] | None,
    typer.Option("--coefficients", metavar="NAMES", help="Ready coefficients, in the order of the terms."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--parameters", metavar="NAMES", help="Names of the parameters, where nothing else tells."),
]
Order = Annotated[int, typer.Option("--order", help="Highest degree: 2, or 1 for a linear truncation.")]
Reference = Annotated[
    str | None,
    typer.Option("--reference", metavar="NAME=VALUE,...", help="Point of the reference; default: all zero."),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="EXPR", help="Factor of all weights, such as 'genWeight'.")
]


@eft_app.command("inspect")
def inspect(
    sample: Sample,
    points: Points = None,
    pattern: Pattern = None,
    branch: Branch = None,
    columns: Columns = None,
    coefficients: Coefficients = None,
    parameters: Parameters = None,
    order: Order = 2,
    reference: Reference = None,
    weight: Weight = None,
    selection: Selection = None,
    tree: Tree = None,
    as_json: Json = False,
) -> None:
    """Say what the weights of a sample determine: rank, condition, effective size, negative densities."""
    from quasiratio.workflows.eft_files import inspect_eft_files  # noqa: PLC0415 - keeps --help fast

    found = inspect_eft_files(
        split_files(sample),
        points=points,
        pattern=pattern,
        branch=branch,
        columns=split_list(columns),
        coefficients=split_list(coefficients),
        parameters=split_list(parameters),
        order=order,
        reference=_point(reference),
        weight=weight,
        selection=selection,
        tree=tree,
    )
    printer = Printer(as_json=as_json)
    printer.result(found.as_dict())
    _print(printer, found)


@eft_app.command("fit")
def fit(
    sample: Sample,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Directory of the model.")],
    features: Features = None,
    points: Points = None,
    pattern: Pattern = None,
    branch: Branch = None,
    columns: Columns = None,
    coefficients: Coefficients = None,
    parameters: Parameters = None,
    order: Order = 2,
    reference: Reference = None,
    weight: Weight = None,
    selection: Selection = None,
    tree: Tree = None,
    method: Annotated[
        Literal["regression", "sign-resolved", "positive"],
        typer.Option(help="How the coefficients are learned."),
    ] = "regression",
    n_members: Annotated[int, typer.Option("--n-members", "--members", help="Networks in the ensemble.")] = 1,
    max_steps: Annotated[int | None, typer.Option("--max-steps", "--steps", help="Optimiser steps.")] = None,
    random_state: Annotated[
        int, typer.Option("--random-state", "--seed", min=0, max=2**32 - 1, help="Seed.")
    ] = 0,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="NAME=VALUE,...", help="Point at which to look at the closure; may be repeated."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn the density at all parameter values from one sample with weights at several points."""
    from quasiratio.progress import progress_lines  # noqa: PLC0415
    from quasiratio.workflows.eft_files import fit_eft_files  # noqa: PLC0415 - keeps --help fast

    with progress_lines():
        done = fit_eft_files(
            split_files(sample),
            output,
            features=split_list(features),
            method=method,
            estimator={
                "n_members": n_members,
                "max_steps": max_steps,
                "random_state": random_state,
                "verbose": not quiet,
            },
            closure_points=None if at is None else [_point(text) or {} for text in at],
            overwrite=force,
            points=points,
            pattern=pattern,
            branch=branch,
            columns=split_list(columns),
            coefficients=split_list(coefficients),
            parameters=split_list(parameters),
            order=order,
            reference=_point(reference),
            weight=weight,
            selection=selection,
            tree=tree,
        )
    printer = Printer(as_json=as_json, quiet=quiet)
    printer.result({"output": str(output), **done.as_dict()})
    printer.line(f"Features: {', '.join(done.features)}")
    _print(printer, done.inspection)
    printer.line(str(done.model.fit_check_))
    printer.line(str(done.model.trials_))
    rows = [[label, *(f"{value:.2f}" for value in values.values())] for label, values in done.closure.items()]
    if rows:
        printer.table("", ["chi2/ndof at", *done.features], rows)
    printer.line(f"Written: {output}")


def _print(printer: Printer, found: InspectedEft) -> None:
    printer.line(
        f"{found.n_events} events, {len(found.points)} points, rank {found.rank} of {len(found.terms)} terms, condition number "
        f"{found.condition_number:.4g}, largest residual {found.largest_residual:.2g}"
    )
    rows = [
        [
            ", ".join(f"{name} = {value:g}" for name, value in point.theta.items()),
            f"{point.rate:.5g}",
            f"{point.effective_size:.6g}",
            f"{point.negative_fraction:.2%}",
            f"{point.largest_share:.2%}",
        ]
        for point in found.points
    ]
    printer.table("", ["point", "rate", "effective size", "negative", "largest share"], rows)
    rows = [
        [term, f"{mean:.5g}", f"{largest:.4g}", f"{error:.2g}"]
        for term, mean, largest, error in zip(
            found.terms, found.means, found.largest, found.rounding_errors, strict=True
        )
    ]
    printer.table("", ["term", "rate", "largest |c|", "14-bit error / spread"], rows)
    for axis in found.axes:
        printer.line(
            f"The density of every event is nonnegative for {axis.parameter} between {axis.lowest:.4g} and {axis.highest:.4g} "
            "(others zero)."
        )
    printer.line(f"Largest coefficients: events {', '.join(str(number) for number in found.largest_events)}")


def _point(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    point = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        try:
            point[name] = float(value)
        except ValueError:
            msg = f"Got the point {text!r}; expected NAME=VALUE pairs, such as 'C_H=1.5,C_uH=-2'."
            raise InvalidInputError(msg) from None
    return point
