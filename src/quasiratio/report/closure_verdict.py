"""An evaluation in words: does it close, where not, by how much, and what it cost.

Two questions are kept apart. Whether a difference is *there* is the test of chi-squared, with the errors of statistics
and, where it is known, of the training sample: a perfect model fails it in any of the observables with a probability of
one per cent, and the omnibus test with another. How *large* it is, is the share of the weight in the wrong place, graded
by `GRADE_LIMITS`. A difference that is there and negligible is no failure; where differences that would be large could
not have been seen, or were seen but might come from the training sample, there is no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quasiratio.metrics import GRADE_LIMITS, Grade, grade
from quasiratio.report.closure_quality import SIGNIFICANCE, ClosureQuality, closure_qualities
from quasiratio.report.origins import EvaluatedModel, SampleSource
from quasiratio.report.safe_text import number_text

if TYPE_CHECKING:
    from quasiratio.report.content import Status
    from quasiratio.report.evaluation import Evaluation
    from quasiratio.report.omnibus import OmnibusTest

__all__ = ["Verdict", "evaluation_verdict"]

_QUANTILE_95 = 1.645
_SIGNIFICANT_RISK = 3.0
_NOTABLE_BAND = 0.5
_NOTABLE_SHARE = 0.1
_FEW_EVENTS = 500
_CERTAIN = 4.0
_MOST_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """The judgement of an evaluation.

    Attributes:
        status: `"good"`, `"fair"`, `"poor"`, or `"info"` where the events do not suffice to judge.
        summary: The judgement in two or three words.
        text: The reasons, as paragraphs with empty lines between them.
    """

    status: Status
    summary: str
    text: str


def evaluation_verdict(
    evaluation: Evaluation,
    *,
    model: EvaluatedModel | None = None,
    sources: Mapping[str, SampleSource] | None = None,
) -> Verdict:
    """Judge an evaluation.

    Args:
        evaluation: The numbers.
        model: What is known of the model; says whether its training ran away.
        sources: Samples of the evaluation by `"reference"` and `"target"`; says whether they are those of the fit.

    Example:
        >>> import quasiratio as qr
        >>> from quasiratio.report.evaluation import evaluate_model
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (qr.WeightedSample(rng.normal(mean, 1.0, 4000)) for mean in (0.0, 0.5))
        >>> fitted = qr.DirectRatio(max_steps=200, random_state=0).fit_samples(reference, target)
        >>> verdict = evaluation_verdict(evaluate_model(fitted, reference, target, n_bins=20))
        >>> verdict.status, verdict.text.split(": ")[0]
        ('good', 'Closes')
    """
    entries = evaluation.closure.observables
    pairs = [tuple(closure_qualities(entry, n_observables=len(entries))[:2]) for entry in entries]
    before, after = ([pair[i] for pair in pairs] for i in (0, 1))
    if not after:
        return Verdict(
            "info", "Nothing to judge", "No observable could be compared: no feature has more than one value."
        )
    status, closing = _closing(before, after, evaluation.omnibus)
    summary = closing.partition(":")[0]
    status, cautions = _cautions(status, evaluation, after, model, sources or {})
    check = None if model is None else getattr(model.estimator, "fit_check_", None)
    if check is not None and check.status == "failed":
        status, closing = "poor", f"{check}\n\n{closing}"
    parts = [
        closing,
        _omnibus_text(evaluation.omnibus),
        *_costs(evaluation, after),
        *cautions,
        f"{_rule(len(after))} {_errors(evaluation)}",
    ]
    return Verdict(status, summary, "\n\n".join(parts))


def _closing(
    before: Sequence[ClosureQuality], after: Sequence[ClosureQuality], omnibus: OmnibusTest | None
) -> tuple[Status, str]:
    failing = [(old, new) for old, new in zip(before, after, strict=True) if not new.agrees]
    grades: list[Grade] = [new.grade for _, new in failing]
    found = omnibus is not None and omnibus.p_value < SIGNIFICANCE
    if omnibus is not None and found:
        grades.append(_omnibus_grade(omnibus, max(row.size for row in before)))
    unclear = [row for row in after if row.agrees and row.limit_grade == "large"]
    start = _start(before)
    if any(each in ("moderate", "large") for each in grades):
        return "poor", f"Does not close: {_differences(failing, len(after), found=found)} {start}"
    if "small" in grades:
        left = "What is left is small."
        return (
            "fair",
            f"Nearly closes: {_differences(failing, len(after), found=found)} {left} {start}",
        )
    if unclear:
        return "info", f"Cannot tell: {_unclear(unclear)} {start}"
    explained = [pair for pair in zip(before, after, strict=True) if pair[1].needs_training_error]
    if any(new.grade == "moderate" for _, new in explained):
        seen = _differences(explained, len(after), found=False)
        return (
            "fair",
            f"Closes within the error of its training sample: {seen} That error explains it. {start}",
        )
    n_observables = len(after)
    where = "the one observable" if n_observables == 1 else f"all {n_observables} observables"
    largest = max(after, key=lambda row: row.limit)
    hidden = (
        f"With a confidence of 95% at most {_percent(largest.limit)} of the weight is in the wrong place in any of them "
        f"({largest.observable})."
        if n_observables > 1
        else f"With a confidence of 95% at most {_percent(largest.limit)} of the weight is in the wrong place."
    )
    if failing:
        seen = _differences(failing, n_observables, found=False)
        return "good", f"Closes: {seen} This is significant, but negligible. {hidden} {start}"
    worst = min(after, key=lambda row: row.p_value)
    return "good", (
        f"Closes: the reweighted reference agrees with the target in {where}. The least likely is {worst.observable}, "
        f"with {_chi2(worst)} and p = {number_text(worst.p_value)}. {hidden} {start}"
    )


def _differences(
    failing: Sequence[tuple[ClosureQuality, ClosureQuality]], n_observables: int, *, found: bool
) -> str:
    """Say where the samples differ, and by how much."""
    if not failing:
        return (
            "a classifier can tell the reweighted reference from the target, though every observable agrees."
        )
    ordered = sorted(failing, key=lambda pair: -pair[1].size)
    named = "; ".join(
        f"{new.observable} ({new.grade}: {_percent(new.size)} of the weight in the wrong place, before "
        f"{_percent(old.size)}; {_chi2(new)}, before {number_text(old.chi2_per_dof)})"
        for old, new in ordered[:_MOST_NAMED]
    )
    rest = f"; and {len(failing) - _MOST_NAMED} more" if len(failing) > _MOST_NAMED else ""
    where = "the one observable" if n_observables == 1 else f"{len(failing)} of {n_observables} observables"
    worse = [new.observable for old, new in failing if new.size > old.size and new.grade != "negligible"]
    harm = f" Reweighting made it worse in {_listed(worse)}." if worse else ""
    also = " A classifier sees it too." if found else ""
    return f"the reweighted reference differs from the target in {where}: {named}{rest}.{harm}{also}"


def _unclear(rows: Sequence[ClosureQuality]) -> str:
    worst = max(rows, key=lambda row: row.limit)
    seen = [row for row in rows if row.grade == "large"]
    if seen:
        largest = max(seen, key=lambda row: row.size)
        return (
            f"nothing significant was found, but {largest.observable} may have {_percent(largest.size)} of its weight in "
            "the wrong place, which is no more than the errors of the test and of the training sample explain. More "
            "events would decide."
        )
    return (
        f"nothing significant was found, but in {worst.observable} up to {_percent(worst.limit)} of the weight might be in "
        "the wrong place without being noticed. More events to test with would decide."
    )


def _start(before: Sequence[ClosureQuality]) -> str:
    n_observables, n_agreed = len(before), sum(row.agrees for row in before)
    if n_agreed == n_observables:
        return f"Before reweighting {'it' if n_observables == 1 else 'all of them'} agreed as well."
    worst = max(before, key=lambda row: row.chi2_per_dof)
    agreed = f"{n_agreed} of {n_observables} agreed" if n_observables > 1 else "it did not agree"
    return (
        f"Before reweighting {agreed}; the worst was {worst.observable} with chi2/ndof "
        f"{number_text(worst.chi2_per_dof)} and {_percent(worst.size)} of the weight in the wrong place."
    )


def _rule(n_observables: int) -> str:
    shared = (
        f", which is {number_text(SIGNIFICANCE)} shared among {n_observables} observables"
        if n_observables > 1
        else ""
    )
    limits = ", ".join(
        f"{name} up to {_percent(absolute)} or {_percent(relative)} of what it was"
        for name, (absolute, relative) in GRADE_LIMITS.items()
    )
    return (
        f"To agree is to have a p-value of chi-squared of at least {number_text(SIGNIFICANCE / n_observables)}{shared}; a "
        f"share of weight in the wrong place is {limits}, else large."
    )


def _omnibus_grade(omnibus: OmnibusTest, before: float) -> Grade:
    """Grade what a classifier found; negligible only where it cannot be more, as its size is a lower bound."""
    found = grade(omnibus.size, before)
    at_most = grade(omnibus.size + _QUANTILE_95 * omnibus.size_error, before)
    return "small" if found == "negligible" and at_most != "negligible" else found


def _omnibus_text(omnibus: OmnibusTest | None) -> str:
    if omnibus is None:
        return "The omnibus test was not made: there are too few events, or it was not asked for."
    facts = f"p = {number_text(omnibus.p_value)}, {number_text(omnibus.z)} standard deviations"
    if omnibus.training_share > _NOTABLE_SHARE:
        facts += f"; {_percent(omnibus.training_share)} of its variance is the training sample's"
    if omnibus.p_value >= SIGNIFICANCE:
        return (
            f"Omnibus test: a classifier that looks at all features at once, tried on events it has not seen, cannot tell "
            f"the reweighted reference from the target ({facts})."
        )
    return (
        f"Omnibus test: a classifier that looks at all features at once, tried on events it has not seen, can tell the "
        f"reweighted reference from the target ({facts}). What it shows is {_percent(omnibus.size)} ± "
        f"{_percent(omnibus.size_error)} of the weight in the wrong place, and there may be more."
    )


def _errors(evaluation: Evaluation) -> str:
    """Say which errors were counted."""
    errors = [entry.methods[0].training_error for entry in evaluation.closure.observables]
    source = next((error.source for error in errors if error is not None), None)
    if source == "members":
        return (
            "Counted are the errors of statistics and of the training sample, the latter as the spread of the "
            "ensemble's members."
        )
    if source is not None and evaluation.training_sizes is not None:
        reference, target = evaluation.training_sizes
        return (
            "Counted are the errors of statistics and of the training sample, the latter as estimated from its effective "
            f"sizes of {reference:.0f} and {target:.0f} for a single network; an ensemble would measure it."
        )
    return (
        "Counted are the errors of statistics alone: neither members nor the size of the training sample are known. "
        "With more events here than in the training, a good model may fail."
    )


def _chi2(row: ClosureQuality) -> str:
    total = row.total_chi2_per_dof
    training = "" if total is None else f", {number_text(total)} with the training sample's error"
    return f"chi2/ndof {number_text(row.chi2_per_dof)}{training}"


def _costs(evaluation: Evaluation, after: Sequence[ClosureQuality]) -> list[str]:
    worst = max(after, key=lambda row: abs(row.largest_pull))
    n_bins = sum(row.n_dof + 1 for row in after)
    parts = [f"The largest pull is {_signed(worst.largest_pull)}, of {n_bins} bins in all: {worst.place}."]
    reference, reweighted = evaluation.reference, evaluation.reweighted
    kept = reweighted.effective_size / reference.effective_size
    size = (
        f"Reweighting leaves an effective size of {reweighted.effective_size:.0f}, {_percent(kept)} of the "
        f"{reference.effective_size:.0f} that the reference had with its {reference.n_events} events."
    )
    parts.append(f"{size} {_negative_weights(evaluation)}")
    bands = [row.member_band for row in after if row.member_band is not None]
    if bands:
        widest = max(bands)
        verdict = (
            "so it is not negligible, and must be propagated"
            if widest > _NOTABLE_BAND
            else "so statistics dominate"
        )
        parts.append(
            f"The spread of the ensemble's members is, in the median bin of the observable where it is widest, "
            f"{number_text(widest)} of the statistical error, {verdict}."
        )
    return parts


def _negative_weights(evaluation: Evaluation) -> str:
    remaining = evaluation.reweighted.negative_fraction
    if remaining == 0:
        given = evaluation.reference.negative_fraction
        return "No weight is negative." if given == 0 else "No reweighted weight is negative any more."
    n_ratios = float(np.mean(evaluation.ratios < 0))
    given = evaluation.reference.negative_fraction
    weights = f"{_percent(given)} of the reference's own are" if given else "none of the reference's own is"
    ratios = f"negative at {_percent(n_ratios)} of its events" if n_ratios else "negative nowhere"
    return (
        f"{_percent(remaining)} of the reweighted weights are negative: {weights}, and the ratio is {ratios}. "
        f"In the target {_percent(evaluation.target.negative_fraction)} are."
    )


def _cautions(
    status: Status,
    evaluation: Evaluation,
    after: Sequence[ClosureQuality],
    model: EvaluatedModel | None,
    sources: Mapping[str, SampleSource],
) -> tuple[Status, list[str]]:
    parts = []
    risk = evaluation.risk_difference
    if risk.significance > _SIGNIFICANT_RISK:
        parts.append(
            f"By the risk of the ratio it is worse than no reweighting at all ({number_text(risk.value)} ± "
            f"{number_text(risk.error)}), which holds where the reference density is not negative."
        )
        status = "fair" if status == "good" else status
    if model is not None and getattr(model.estimator, "diverged_", False):
        parts.append(
            "The risk ran away during the training, and the last sound state was kept: the loss cannot express what "
            "the signed weights ask for."
        )
        status = "fair" if status == "good" else status
    too_good = [
        row.observable
        for row in after
        if row.member_band is not None and row.p_value > 1 - SIGNIFICANCE / len(after)
    ]
    if too_good:
        parts.append(
            f"The agreement is better than the spread of the members allows in {_listed(too_good)}: the spread is too "
            "wide, as it is where a member went astray, and hides differences from the p-values, though not from the sizes."
        )
        status = "fair" if status == "good" else status
    negative = _negative_observables(evaluation)
    if negative and not np.any(evaluation.ratios < 0):
        parts.append(
            f"The target's density is negative in a part of {_listed(negative)}, but the ratio is negative nowhere: "
            "this model cannot follow it there."
        )
    fewest = min(evaluation.reweighted.effective_size, evaluation.target.effective_size)
    if fewest < _FEW_EVENTS:
        parts.append(f"With an effective size of {fewest:.0f} only coarse differences could show.")
    stronger = "Events that the fit has not seen make the stronger test."
    if model is not None and model.estimator.predicts_unseen:
        pass  # whatever the events are, each is predicted by a model that has not seen it
    elif model is not None and _is_same(sources, model.fitted_on):
        parts.append(f"These are the events of the fit, as far as their files tell. {stronger}")
    elif max(evaluation.seen) > 0:
        role = "reference" if evaluation.seen[0] >= evaluation.seen[1] else "target"
        share = _percent(round(max(evaluation.seen), 2))
        parts.append(f"About {share} of the {role} events took part in the fit. {stronger}")
    return status, parts


def _negative_observables(evaluation: Evaluation) -> list[str]:
    """Name the observables in which some bin of the target is negative beyond doubt."""
    return [
        entry.name
        for entry in evaluation.closure.observables
        if np.any(
            (entry.target.values < -_CERTAIN * np.sqrt(entry.target.variances)) & (entry.target.values < 0)
        )
    ]


def _is_same(sources: Mapping[str, SampleSource], fitted_on: Mapping[str, SampleSource]) -> bool:
    roles = ("reference", "target")
    return any(
        role in sources and role in fitted_on and sources[role].is_same_as(fitted_on[role]) for role in roles
    )


def _percent(fraction: float) -> str:
    return f"{number_text(100 * fraction)}%"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number_text(value)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
