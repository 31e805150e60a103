"""The page of a density that was learned at all parameter values: rates, closure at several of them, and the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quasiratio.plots import training_figure
from quasiratio.report.closure_quality import closure_qualities
from quasiratio.report.closure_section import closure_pictures
from quasiratio.report.content import Block, Cell, Facts, Picture, Report, Section, Status, Table, Text
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.estimators.polynomial import PolynomialRatio
    from quasiratio.metrics import ClosureResult

__all__ = ["eft_report", "eft_verdict"]

_MOST_PICTURES = 24
Compared = Sequence[tuple[str, "ClosureResult | None"]]
RateRow = tuple[str, float, float, float, str]


def eft_verdict(compared: Compared, reasons: Sequence[str], share_seen: float) -> tuple[Status, str]:
    """Judge the closure at all points together: what differs significantly, and how large it is.

    Args:
        compared: Label and closure of each point; `None` where there was none.
        reasons: Why there was none.
        share_seen: Share of the events that the model was trained on.
    """
    n_tests = sum(len(result.observables) for _, result in compared if result is not None)
    wrong: list[tuple[str, str]] = []
    grades = set()
    for label, result in compared:
        for entry in () if result is None else result.observables:
            (row,) = closure_qualities(entry, n_observables=n_tests, include_reference=False)
            if not row.agrees:
                share = (
                    f"{percent(row.size)} of the weight in the wrong place"
                    if row.size > 0
                    else "in some bins; no more of the weight is in the wrong place than noise explains"
                )
                wrong.append((row.grade, f"{entry.name} at {label} ({share})"))
                grades.add(row.grade)
    n_points = sum(result is not None for _, result in compared)
    paragraphs = []
    status: Status = "info"
    if n_points and not wrong:
        status = "good"
        paragraphs.append(
            f"The reweighted events agree with the exact weights in every feature at all {n_points} points."
        )
    elif n_points:
        status = "poor" if grades & {"large"} else "fair"
        shown = "; ".join(text for _, text in wrong[:5]) + (
            f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        )
        paragraphs.append(f"{len(wrong)} of {n_tests} comparisons differ significantly: {shown}.")
    else:
        paragraphs.append("There was no point at which two densities could be compared.")
    paragraphs += [
        f"Not compared at {label}: {reason}."
        for (label, _), reason in zip(compared, reasons, strict=True)
        if reason
    ]
    if share_seen > 0:
        paragraphs.append(
            f"About {share_seen:.0%} of the events took part in the training; events that the fit has not seen make the stronger test."
        )
    return status, "\n\n".join(paragraphs)


def eft_report(
    model: PolynomialRatio,
    compared: Compared,
    rates: Sequence[RateRow],
    *,
    title: str,
    status: Status,
    verdict: str,
    command: str,
    facts: Mapping[str, str | float | int],
) -> Report:
    """Describe the closure of a `PolynomialRatio` to people.

    Args:
        model: The fitted model.
        compared: Label and closure of each point; `None` where there was none.
        rates: Label, exact rate, its error, learned rate and the reason for no closure, of each point.
        title: Title of the page.
        status: How the verdict is marked.
        verdict: The result in words.
        command: The command that repeats it.
        facts: Where the events come from.
    """
    rows: list[list[Cell]] = []
    for label, result in compared:
        for entry in () if result is None else result.observables:
            before, after = closure_qualities(entry, n_observables=len(result.observables) if result else 1)
            rows.append(
                [
                    label,
                    entry.name,
                    before.chi2_per_dof,
                    after.chi2_per_dof,
                    after.n_dof,
                    after.p_value,
                    after.size,
                    after.judgement,
                ]
            )
    figures: list[Block] = []
    for label, result in compared:
        for picture in () if result is None or len(figures) >= _MOST_PICTURES else closure_pictures(result):
            figures.append(
                Picture(picture.figure, f"{label}. {picture.caption}", f"{picture.title}, {label}")
            )
    if len(rows) > len(figures):
        figures.append(Text(f"{len(rows) - len(figures)} more comparisons are in the table and not drawn."))
    explained = Text(
        "One half of the events, with the learned ratio as a weight, against the other half with its exact weights. Before is the "
        "reference as it is. Size is the share of the weight in the wrong place, the noise taken off."
    )
    rate_rows: list[list[Cell]] = [
        [label, rate, error, learned, reason or None] for label, rate, error, learned, reason in rates
    ]
    columns = ["point", "feature", "chi2/ndof before", "after", "ndof", "p-value", "size", "judgement"]
    history = model.history_
    return Report(
        title,
        verdict,
        [
            Section(
                "Rates",
                [
                    Table(
                        ["point", "rate", "error", "learned", "why not compared"],
                        rate_rows,
                        "Cross-sections relative to the reference.",
                    )
                ],
            ),
            Section("Closure", [Table(columns, rows, "Distance to the exact weights."), explained]),
            Section("Features", figures or [Text("There is nothing to draw.")]),
            Section("Training", [Picture(training_figure(history), f"{history.n_steps} steps.", "Training")]),
            Section(
                "Model",
                [
                    Facts(
                        {
                            "terms": ", ".join(model.basis.terms),
                            "method": model.method,
                            "members": model.n_members,
                            **facts,
                        }
                    ),
                    Text(str(model.fit_check_)),
                    Text(str(model.trials_)),
                ],
            ),
        ],
        command,
        subtitle=f"{', '.join(model.basis.parameters)} to order {model.basis.order}, {len(compared)} points",
        status=status,
    )
