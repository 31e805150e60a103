"""The page of a density that was learned at all parameter values: rates, closure at several of them, and the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quasiratio.plots import training_figure
from quasiratio.report.closure_quality import ClosureQuality, closure_qualities
from quasiratio.report.closure_section import closure_pictures
from quasiratio.report.content import Block, Cell, Facts, Picture, Report, Section, Status, Table, Text
from quasiratio.wording import percent

if TYPE_CHECKING:
    from quasiratio.estimators.mined_check import MinedCheck
    from quasiratio.estimators.polynomial import PolynomialRatio
    from quasiratio.metrics import ClosureResult

__all__ = ["eft_report", "eft_verdict"]

_MOST_PICTURES = 24
_MOST_NAMED = 5
Compared = Sequence[tuple[str, "ClosureResult | None"]]
RateRow = tuple[str, float, float, float, str]


def eft_verdict(
    compared: Compared, reasons: Sequence[str], share_seen: float, check: MinedCheck | None = None
) -> tuple[Status, str]:
    """Judge the closure at all points together: what differs significantly, how large it is, and what could not have been seen.

    The rules are those of every evaluation: a significant difference that is not small is poor, a small one fair, a negligible one
    none; where a large difference could not have been noticed there is no verdict; and a fit that failed its check is poor.

    Args:
        compared: Label and closure of each point; `None` where there was none.
        reasons: Why there was none.
        share_seen: Share of the events that the model was trained on.
        check: The check of the fit.
    """
    rows = list(_rows(compared))
    wrong = [(label, row) for label, _, row in rows if not row.agrees]
    unclear = [(label, row) for label, _, row in rows if row.agrees and row.limit_grade == "large"]
    grades = {row.grade for _, row in wrong}
    n_points = sum(result is not None for _, result in compared)
    status: Status = "info"
    if not n_points:
        paragraphs = ["There was no point at which two densities could be compared."]
    elif wrong:
        shown = "; ".join(_difference(label, row) for label, row in wrong[:_MOST_NAMED]) + (
            f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        )
        paragraphs = [f"{len(wrong)} of {len(rows)} comparisons differ significantly: {shown}."]
    else:
        paragraphs = [
            f"The reweighted events agree with the exact weights in every feature at {_points(n_points)}."
        ]
    if grades & {"moderate", "large"}:
        status = "poor"
    elif "small" in grades:
        status = "fair"
    elif unclear:
        label, worst = max(unclear, key=lambda pair: pair[1].limit)
        paragraphs.append(
            f"That is no verdict: in {worst.observable} at {label} up to {percent(worst.limit)} of the weight might be in the wrong "
            "place without being noticed. More events to test with would decide."
        )
    elif n_points:
        status = "good"
        limit = max(row.limit for _, _, row in rows)
        paragraphs.append(
            f"With a confidence of 95% at most {percent(limit)} of the weight is in the wrong place in any of them."
        )
    if check is not None and check.status == "failed":
        status = "poor"
        paragraphs.insert(0, str(check))
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


def _rows(compared: Compared) -> Iterator[tuple[str, ClosureQuality, ClosureQuality]]:
    """Yield the label of the point and both qualities, before and after, of every comparison."""
    n_tests = sum(len(result.observables) for _, result in compared if result is not None)
    for label, result in compared:
        for entry in () if result is None else result.observables:
            before, after = closure_qualities(entry, n_observables=n_tests)
            yield label, before, after


def _difference(label: str, row: ClosureQuality) -> str:
    share = (
        f"{row.grade}: {percent(row.size)} of the weight in the wrong place"
        if row.size > 0
        else "in some bins; no more of the weight is in the wrong place than noise explains"
    )
    return f"{row.observable} at {label} ({share})"


def _points(n_points: int) -> str:
    return "the one point" if n_points == 1 else f"all {n_points} points"


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
    rows: list[list[Cell]] = [
        [
            label,
            after.observable,
            before.chi2_per_dof,
            after.chi2_per_dof,
            after.n_dof,
            after.p_value,
            after.size,
            after.judgement,
        ]
        for label, before, after in _rows(compared)
    ]
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
        "reference as it is. Size is the share of the weight in the wrong place, the noise taken off. "
        + (
            "The p-value counts the spread of the members as the error of the training sample."
            if model.n_members > 1
            else "The p-value counts the errors of these events alone: with more of them than in the training, a good model may fail. An "
            "ensemble would measure the error of its training sample."
        )
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
