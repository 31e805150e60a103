"""`quasiratio generate gg-hh`: signed SMEFT events of Higgs-pair production, into a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quasiratio.cli.options import Json, Quiet
from quasiratio.cli.terminal import Printer
from quasiratio.errors import InvalidInputError
from quasiratio.outputs import output_file
from quasiratio.progress import progress_display
from quasiratio.wording import percent

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from quasiratio.generators.gg_hh import Couplings, GeneratedSample, PtCuts, WeightPoint

__all__ = ["generate_app"]

generate_app = typer.Typer(no_args_is_help=True, help="Generate events with known signed ratios.")

_PT_CUTS = ("jet", "mu1", "mu2", "mu3", "mu4")
Progress = Callable[[int, int, float], None]


@generate_app.callback()
def _generators() -> None:
    """Generate events with known signed ratios."""


@generate_app.command("gg-hh")
def gg_hh(
    output: Annotated[str, typer.Option("-o", "--output", help="A .root, .parquet or .npz file.")],
    sample: Annotated[
        Literal["sm", "linear", "quadratic"],
        typer.Option(help="The Standard Model; with the interference (signed); with the square as well."),
    ] = "linear",
    events: Annotated[int, typer.Option(help="Events to generate; about 76% pass the selection.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same events.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1, max=1024)] = 1,
    mpi: Annotated[
        bool, typer.Option("--mpi", help="Simulate multiparton interactions (seven times slower).")
    ] = False,
    parton_level: Annotated[bool, typer.Option("--parton-level", help="Stop before the shower.")] = False,
    ecm: Annotated[float, typer.Option(help="Collider energy in GeV.")] = 13000.0,
    wilson: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Wilson coefficients of the target: C_Hkin, C_H, C_uH, C_HG, Lambda in GeV; default: the paper's.",
        ),
    ] = None,
    alpha_s: Annotated[
        Literal["running", "fixed"], typer.Option(help="Strong coupling in the contact couplings.")
    ] = "running",
    pdf: Annotated[Path | None, typer.Option(help="LHAPDF grid text file; default: Pythia's own.")] = None,
    pt_cuts: Annotated[
        str | None,
        typer.Option(
            metavar="JET,MU1,MU2,MU3,MU4",
            help="Upper bounds on the transverse momenta in GeV, or 'none'; default: the 99.8 percentiles "
            "of the 13 TeV Standard-Model sample without multiparton interactions.",
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file of Wilson coefficients: the weight of every event at each of these points, as columns rwgt*.",
        ),
    ] = None,
    photons: Annotated[
        bool,
        typer.Option(
            "--photons/--no-photons", help="Photon radiation of the muons (TimeShower:QEDshowerByL)."
        ),
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Generate gg -> hh -> 4 muons with weights of +1 and -1.

    Finished parts are kept beside the output until it is complete: after an interruption, the same
    command goes on from there.
    """
    printer = Printer(as_json=json, quiet=quiet)
    out = output_file(output, overwrite=force)
    path = out.path
    couplings, cuts = _couplings(wilson, alpha_s), _cuts(pt_cuts)
    weights = _points(points, wilson, alpha_s)

    from quasiratio.generators.gg_hh import generate  # noqa: PLC0415 - keeps --help fast
    from quasiratio.io import create_table  # noqa: PLC0415

    writer = create_table(path, tree=out.tree or "events")  # a bad name fails before the work
    parts = path.with_name(f".{path.name}.parts")
    with _executor(jobs) as executor, _progress(quiet=printer.is_silent) as progress:
        try:
            generated = generate(
                sample,
                events,
                seed,
                executor=executor,
                mpi=mpi,
                parton_level=parton_level,
                ecm=ecm,
                couplings=couplings,
                pdf=pdf,
                pt_cuts=cuts,
                points=weights,
                photons=photons,
                chunk_dir=parts,
                progress=progress,
            )
        except KeyboardInterrupt:
            if parts.is_dir():
                typer.echo(f"Finished parts are kept in {parts}; repeat the command to go on.", err=True)
            raise
    writer.metadata = generated.metadata
    with writer:
        writer.append(generated.columns)
    shutil.rmtree(parts, ignore_errors=True)
    _report(printer, generated, path)


def _report(printer: Printer, generated: GeneratedSample, output: Path) -> None:
    facts = generated.metadata
    printer.line(
        f"{output}: {len(generated)} of {facts['n_generated']} generated events, "
        f"{percent(float((generated.columns['weight'] < 0).mean()), digits=1)} with negative weight."
    )
    printer.line(
        f"Cross-section {facts['cross_section_fb']:.4g} fb, "
        f"{facts['selected_cross_section_fb']:.4g} +- {facts['selected_cross_section_error_fb']:.2g} fb selected "
        "(leading order, without branching fractions)."
    )
    printer.line(f"Features: {', '.join(generated.features)}; the columns truth_* are not for training.")
    printer.result({"output": str(output), "n_selected": len(generated), **facts})


def _couplings(text: str | None, alpha_s: Literal["running", "fixed"]) -> Couplings:
    from quasiratio.generators.gg_hh.couplings import (  # noqa: PLC0415 - keeps --help fast
        PAPER_WILSON_COEFFICIENTS,
        Couplings,
    )

    if text is None:
        return Couplings.from_smeft(**PAPER_WILSON_COEFFICIENTS, alpha_s=alpha_s)
    given = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in PAPER_WILSON_COEFFICIENTS:
            msg = (
                f"Got --wilson {text!r}; expected NAME=VALUE pairs with names out of "
                f"{', '.join(PAPER_WILSON_COEFFICIENTS)}, such as 'C_H=2.64,C_uH=12.6,Lambda=1000'."
            )
            raise InvalidInputError(msg)
        given[name] = _number(value, f"--wilson {name}")
    return Couplings.from_smeft(**given, alpha_s=alpha_s)


def _points(
    path: Path | None, wilson: str | None, alpha_s: Literal["running", "fixed"]
) -> tuple[WeightPoint, ...]:
    """Read the points; their scale is that of the target's coefficients, where one is given."""
    if path is None:
        return ()
    from quasiratio.generators.gg_hh import weight_points  # noqa: PLC0415 - keeps --help fast
    from quasiratio.io.weight_points import read_points  # noqa: PLC0415

    found = read_points(path)
    if found.columns is not None or found.branch is not None or found.reference is not None:
        msg = (
            f"Got the points {str(path)!r} with names of columns, a branch or a reference, which the generator does not take: its columns "
            "are named after the points; expected points alone. Leave these entries out."
        )
        raise InvalidInputError(msg)
    scales = [
        part.partition("=")[2] for part in (wilson or "").split(",") if part.strip().startswith("Lambda")
    ]
    named = [
        {name: value for name, value in zip(found.parameters, row.tolist(), strict=True) if value}
        for row in found.points
    ]
    return weight_points(
        named, alpha_s=alpha_s, Lambda=_number(scales[0], "--wilson Lambda") if scales else 1000.0
    )


def _cuts(text: str | None) -> PtCuts:
    from quasiratio.generators.gg_hh import NO_PT_CUTS, REFERENCE_PT_CUTS, PtCuts  # noqa: PLC0415 - keeps --help fast

    if text is None:
        return REFERENCE_PT_CUTS
    if text == "none":
        return NO_PT_CUTS
    values = [_number(part, "--pt-cuts") for part in text.split(",")]
    if len(values) != len(_PT_CUTS):
        msg = f"Got --pt-cuts {text!r}; expected five numbers ({', '.join(_PT_CUTS)}) in GeV, or 'none'."
        raise InvalidInputError(msg)
    return PtCuts(*values)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"Got {text!r} for {option}; expected a number."
        raise InvalidInputError(msg) from None


@contextmanager
def _executor(jobs: int) -> Iterator[Executor | None]:
    if jobs == 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - only here

    pool = ProcessPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress | None]:
    """Yield a callback that shows events/s and the time left."""
    if quiet:
        yield None
        return
    with progress_display(
        "events", line="{done:.0f} of {total:.0f} events{note}", time_left=False
    ) as display:

        def show(n_done: int, n_events: int, seconds: float) -> None:
            rate = n_done / max(seconds, 1e-9)
            left = (n_events - n_done) / max(rate, 1e-9)
            display(n_done, n_events, f"{rate:.0f} events/s, {left:.0f} s left")

        yield show
