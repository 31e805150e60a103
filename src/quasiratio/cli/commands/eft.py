"""`quasiratio eft`: samples with weights at several parameter points, looked at and fitted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quasiratio.cli.options import Features, Json, Quiet, Selection, Tree, split_files, split_list
from quasiratio.cli.terminal import Printer
from quasiratio.errors import InvalidInputError
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.workflows.eft_closure import EftClosure
    from quasiratio.workflows.eft_inspection import InspectedEft

__all__ = [
    "At",
    "Branch",
    "CoefficientOrder",
    "Coefficients",
    "Columns",
    "Parameters",
    "Pattern",
    "Points",
    "Seed",
    "eft_app",
    "parse_points",
    "print_closure",
]

_MOST_SHOWN = 5
_NOISY = 0.3
"""Error by rounding over the spread of a term above which it is named."""

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
    typer.Option(
        "--coefficients", metavar="NAMES", help="Ready coefficients: a column per term, or one vector."
    ),
]
CoefficientOrder = Annotated[
    Literal["ours", "topcoffea", "derivatives"],
    typer.Option(
        "--coefficient-order",
        help="Order of ready coefficients: by degree; topcoffea's lower triangle; or derivatives, by degree.",
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="NAME=VALUE,...", help="Point to look at; may be repeated."),
]
Seed = Annotated[int, typer.Option("--random-state", "--seed", min=0, max=2**32 - 1, help="Seed.")]
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
    coefficient_order: CoefficientOrder = "ours",
    parameters: Parameters = None,
    order: Order = 2,
    reference: Reference = None,
    weight: Weight = None,
    selection: Selection = None,
    tree: Tree = None,
    at: At = None,
    random_state: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what the weights of a sample determine: rank, condition, effective size, negative densities."""
    from quasiratio.workflows.eft_files import inspect_eft_files  # noqa: PLC0415 - keeps --help fast

    found = inspect_eft_files(
        split_files(sample),
        at=parse_points(at),
        random_state=random_state,
        points=points,
        pattern=pattern,
        branch=branch,
        columns=split_list(columns),
        coefficients=split_list(coefficients),
        coefficient_order=coefficient_order,
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
    coefficient_order: CoefficientOrder = "ours",
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
    random_state: Seed = 0,
    at: At = None,
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
            closure_points=parse_points(at),
            overwrite=force,
            points=points,
            pattern=pattern,
            branch=branch,
            columns=split_list(columns),
            coefficients=split_list(coefficients),
            coefficient_order=coefficient_order,
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
    print_closure(printer, done.closure, done.features)
    printer.line(f"Written: {output}")


def _print(printer: Printer, found: InspectedEft) -> None:
    printer.line(
        f"{found.n_events} events, {found.n_weights} points, rank {found.rank} of {len(found.terms)} terms, condition number "
        f"{found.condition_number:.4g}, largest residual {found.largest_residual:.2g}"
        if found.n_weights
        else f"{found.n_events} events with ready coefficients of {len(found.terms)} terms"
    )
    if len(found.vanishing) == len(found.terms) - 1 and found.terms[0] not in found.vanishing:
        printer.line(
            "All terms but the first vanish in every event: the weights do not depend on the parameters, as those that were filled in "
            "do. There is nothing to learn; check the columns."
        )
    elif found.vanishing:
        printer.line(f"These terms vanish in every event: {', '.join(found.vanishing)}")
    if found.n_same:
        printer.line(
            f"{found.n_same} of {found.n_events} events have the same weight at all points; check whether these were filled in."
        )
    rows = [
        [
            _point_text(point.theta),
            f"{point.rate:.5g}",
            f"{point.effective_size:.6g}",
            percent(point.negative_fraction),
            percent(point.largest_share),
            f"{point.largest_ratio:.4g}",
        ]
        for point in found.points
    ]
    printer.table(
        "", ["point", "rate", "effective size", "negative", "largest share", "largest w/w_ref"], rows
    )
    uncovered = [point for point in found.points if point.n_uncovered]
    if uncovered:
        worst = max(uncovered, key=lambda point: point.n_uncovered)
        printer.line(
            f"{worst.n_uncovered} of {found.n_events} events have nearly no weight at the reference: less than a thousandth of that at "
            f"{_point_text(worst.theta)}"
            + (f", and such at {len(uncovered) - 1} other points" if len(uncovered) > 1 else "")
            + ". A reference nearer to these points covers them better."
        )
    has_weights = found.n_weights > 0  # only of these can be said what rounding does
    rows = [
        [term, f"{mean:.5g}", f"{largest:.4g}", *([f"{error:.2g}"] if has_weights else [])]
        for term, mean, largest, error in zip(
            found.terms, found.means, found.largest, found.rounding_errors, strict=True
        )
    ]
    printer.table(
        "", ["term", "rate", "largest |c|", *(["14-bit error / spread"] if has_weights else [])], rows
    )
    noisy = [term for term, error in zip(found.terms, found.rounding_errors, strict=True) if error > _NOISY]
    if noisy:
        printer.line(
            f"If the weights have 14 bits, as those of nanoAOD, rounding hides these terms: {', '.join(noisy[:_MOST_SHOWN])}"
            + (f" and {len(noisy) - _MOST_SHOWN} more" if len(noisy) > _MOST_SHOWN else "")
            + ". Points that are farther from what leaves them open, or a reference nearer to the points, determine them better."
        )
    for axis in found.axes:
        where = f"for {axis.parameter} between {axis.lowest:.4g} and {axis.highest:.4g}"
        if not math.isfinite(axis.lowest) and not math.isfinite(axis.highest):
            where = f"at every value of {axis.parameter}"
        printer.line(f"The density of every event is nonnegative {where} (others at the reference).")
    printer.line(f"Largest coefficients: events {', '.join(str(number) for number in found.largest_events)}")


def _point_text(theta: Mapping[str, float]) -> str:
    """Name all parameters of a point, of many only those that are not zero."""
    shown = {name: value for name, value in theta.items() if value} if len(theta) > _MOST_SHOWN else theta
    return ", ".join(f"{name} = {value:g}" for name, value in shown.items()) or "all zero"


def print_closure(printer: Printer, points: Sequence[EftClosure], features: Sequence[str]) -> None:
    """Print chi-squared per degree of freedom at every point, and why there is none at the others."""
    rows = [
        [point.label, *(f"{value:.2f}" for value in point.chi_squared().values())]
        for point in points
        if not point.reason
    ]
    if rows:
        printer.table("", ["chi2/ndof at", *features], rows)
    for point in points:
        if point.reason:
            printer.line(f"Not compared at {point.label}: {point.reason}.")


def parse_points(texts: Sequence[str] | None) -> list[dict[str, float]] | None:
    """Return the points of `--at`, or nothing where there is none."""
    return None if not texts else [_point(text) or {} for text in texts]


def _point(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    point = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not name or name in point or not math.isfinite(number):
            msg = f"Got the point {text!r}; expected NAME=VALUE pairs with finite numbers, each name once, such as 'C_H=1.5,C_uH=-2'."
            raise InvalidInputError(msg)
        point[name] = number
    return point
