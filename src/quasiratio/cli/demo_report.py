"""The demo as a report: what each method makes of a density that is negative in the middle."""

from __future__ import annotations

from quasiratio.cli.demo_run import EXACT, DemoResult
from quasiratio.plots import closure_figure, ratio_figure
from quasiratio.report import Facts, Picture, Report, Section, Table, Text
from quasiratio.report.closure_quality import SIGNIFICANCE, ClosureQuality, closure_qualities
from quasiratio.report.content import Cell
from quasiratio.report.safe_text import number_text

__all__ = ["demo_pictures", "demo_report"]

_RADIUS = "Radius $r$"


def demo_pictures(result: DemoResult) -> dict[str, Picture]:
    """Return the figures of the demo by the names of their files."""
    title = f"Signed Gaussian mixtures, {result.n_events} events per class"
    methods = [curve.name for curve in result.curves]
    closure = closure_figure(result.closure, label=_RADIUS, title=title, methods=methods)
    ratio = ratio_figure(result.curves, result.exact_curve, label=_RADIUS, title=title, band="68% of angles")
    return {
        "closure": Picture(
            closure,
            "Density along the radius: the target, the reference, and the reference as each method reweights it; "
            "below, the pulls of each method. Dotted lines mark where the target changes sign.",
            "Closure in the radius",
        ),
        "ratio": Picture(
            ratio,
            "Learned ratios against the exact one, which is negative in the middle. Bands are the spread over the angle.",
            "Ratio along the radius",
        ),
    }


def demo_report(
    result: DemoResult, *, pictures: dict[str, Picture], command: str, seed: int, max_steps: int
) -> Report:
    """Describe the demo to people.

    Args:
        result: The demo's numbers and curves.
        pictures: Its figures.
        command: The command that repeats it.
        seed: Seed of the samples and the fits.
        max_steps: Optimiser steps of each fit.

    Example:
        >>> from quasiratio.cli.demo_run import run_demo
        >>> result = run_demo(1000, seed=0, max_steps=1)
        >>> report = demo_report(result, pictures={}, command="quasiratio demo", seed=0, max_steps=1)
        >>> [section.title for section in report.sections]
        ['Methods', 'Figures', 'Samples and fits']
    """
    before, *rows = closure_qualities(result.closure, n_observables=1)
    learned = [row for row in rows if row.method != EXACT]
    entropy = f"D_S{result.closure.reference.relative_entropy.alpha:g}"
    columns = ["method", "chi2/ndof", "ndof", "p-value", "agrees", entropy, "largest pull", "seconds"]
    table = Table(
        columns,
        [_row(row, result.seconds.get(row.method)) for row in (before, *rows)],
        "Radius of the reweighted reference against that of the target, on events that no fit has seen.",
    )
    notes = [Text(note) for note in result.notes]
    return Report(
        "Demo: a ratio with a sign",
        _verdict(learned, next(row for row in rows if row.method == EXACT)),
        [
            Section("Methods", [table, *notes]),
            Section("Figures", list(pictures.values())),
            Section(
                "Samples and fits",
                [
                    Text(
                        "Two signed mixtures of two Gaussians in the plane, the Signed case of arXiv:2410.10216. "
                        "The target's density is negative near the origin, so the exact ratio is too."
                    ),
                    Facts(
                        {
                            "events per class, training": result.n_events,
                            "events per class, test": result.n_events,
                            "optimiser steps per fit": max_steps,
                            "seed": seed,
                        }
                    ),
                ],
            ),
        ],
        command,
        subtitle=f"Four methods on two signed samples of {result.n_events} events each",
    )


def _row(row: ClosureQuality, seconds: float | None) -> list[Cell]:
    agrees = "yes" if row.agrees else "no"
    cells: list[Cell] = [row.method, row.chi2_per_dof, row.n_dof, row.p_value, agrees]
    return [*cells, row.relative_entropy, row.largest_pull, seconds]


def _verdict(learned: list[ClosureQuality], exact: ClosureQuality) -> str:
    passed = [row for row in learned if row.agrees]
    failed = [row for row in learned if not row.agrees]
    parts = [
        f"{opening} "
        + "; ".join(f"{row.method} (chi2/ndof {number_text(row.chi2_per_dof)})" for row in rows)
        + "."
        for rows, opening in ((passed, "The target is met by"), (failed, "The target is missed by"))
        if rows
    ]
    rule = (
        f"To meet it is to have a p-value of chi-squared of at least {number_text(SIGNIFICANCE)}. Reweighting by the "
        f"exact ratio gives chi2/ndof {number_text(exact.chi2_per_dof)}, which is what statistics allow."
    )
    return "\n\n".join([" ".join(parts), rule])
