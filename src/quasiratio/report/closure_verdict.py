"""An evaluation in words: does it close, where not, and what it cost.

The test of closure is that of chi-squared, with statistical errors only. A perfect model fails it in any of the
observables with a probability of one per cent. A failure is called small where chi-squared per degree of freedom
is a hundredth of what it was before, so that differences are a tenth, or a tenth of it and at most two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quasiratio.estimators.reweighter import predicts_unseen
from quasiratio.report.closure_quality import SIGNIFICANCE, ClosureQuality, closure_qualities
from quasiratio.report.evaluated_model import EvaluatedModel, SampleSource
from quasiratio.report.safe_text import number_text

if TYPE_CHECKING:
    from quasiratio.estimators.evaluation import Evaluation
    from quasiratio.report.content import Status

__all__ = ["Verdict", "evaluation_verdict"]

_SMALL_CHI2, _SMALL_SHARE, _TINY_SHARE = 2.0, 0.1, 0.01
_SIGNIFICANT_RISK = 3.0
_NOTABLE_BAND = 0.5
_FEW_EVENTS = 500
_CERTAIN = 4.0
_MOST_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """The judgement of an evaluation.

    Attributes:
        status: `"good"`, `"fair"`, `"poor"`, or `"info"` where there is nothing to judge.
        text: The reasons, as paragraphs with empty lines between them.
    """

    status: Status
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
        >>> from quasiratio.estimators.evaluation import evaluate_model
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (qr.WeightedSample(rng.normal(mean, 1.0, 4000)) for mean in (0.0, 0.5))
        >>> X, y = np.concatenate([reference.features, target.features]), np.repeat([0, 1], 4000)
        >>> fitted = qr.DirectRatio(max_steps=200, random_state=0).fit(X, y)
        >>> verdict = evaluation_verdict(evaluate_model(fitted, reference, target, n_bins=20))
        >>> verdict.status, verdict.text.split(": ")[0]
        ('good', 'Closes')
    """
    entries = evaluation.closure.observables
    pairs = [tuple(closure_qualities(entry, n_observables=len(entries))[:2]) for entry in entries]
    before, after = ([pair[i] for pair in pairs] for i in (0, 1))
    status, closing = _closing(before, after)
    status, cautions = _cautions(status, evaluation, after, model, sources or {})
    parts = [closing, *_costs(evaluation, after), *cautions]
    return Verdict(status, "\n\n".join(parts))


def _closing(before: Sequence[ClosureQuality], after: Sequence[ClosureQuality]) -> tuple[Status, str]:
    if not after:
        return "info", "No observable could be compared: no feature has more than one value."
    n_observables = len(after)
    failing = [(old, new) for old, new in zip(before, after, strict=True) if not new.agrees]
    n_before = sum(row.agrees for row in before)
    worst_before = max(before, key=lambda row: row.chi2_per_dof)
    rule = f"p-value of chi-squared of at least {number_text(SIGNIFICANCE / n_observables)}" + (
        f", which is {number_text(SIGNIFICANCE)} shared among {n_observables} observables"
        if n_observables > 1
        else ""
    )
    if n_before == n_observables:
        start = f"Before reweighting {'it' if n_observables == 1 else 'all of them'} agreed as well"
    else:
        agreed = f"{n_before} of {n_observables} agreed" if n_observables > 1 else "it did not agree"
        start = (
            f"Before reweighting {agreed}; the worst was {worst_before.observable} with "
            f"chi2/ndof {number_text(worst_before.chi2_per_dof)}"
        )
    if not failing:
        worst = min(after, key=lambda row: row.p_value)
        where = "the one observable" if n_observables == 1 else f"all {n_observables} observables"
        return "good", (
            f"Closes: the reweighted reference agrees with the target in {where} ({rule}). The least likely is "
            f"{worst.observable}, with chi2/ndof {number_text(worst.chi2_per_dof)} and p = {number_text(worst.p_value)}. "
            f"{start}."
        )
    is_small = all(_is_small(old.chi2_per_dof, new.chi2_per_dof) for old, new in failing)
    failing.sort(key=lambda pair: -pair[1].chi2_per_dof)
    named = "; ".join(
        f"{new.observable} (chi2/ndof {number_text(new.chi2_per_dof)}, before {number_text(old.chi2_per_dof)})"
        for old, new in failing[:_MOST_NAMED]
    )
    rest = f"; and {len(failing) - _MOST_NAMED} more" if len(failing) > _MOST_NAMED else ""
    opening = "Nearly closes" if is_small else "Does not close"
    where = "the one observable" if n_observables == 1 else f"{len(failing)} of {n_observables} observables"
    worse = [new.observable for old, new in failing if new.chi2_per_dof > old.chi2_per_dof]
    text = f"{opening}: the reweighted reference differs from the target in {where}: {named}{rest}. {start}."
    if is_small:
        text += " What is left is a small part of the difference that there was, seen with many events."
    if worse:
        text += f" Reweighting made it worse in {_listed(worse)}."
    return ("fair" if is_small else "poor"), f"{text} To agree is to have a {rule}."


def _is_small(before: float, after: float) -> bool:
    return after <= _TINY_SHARE * before or (after <= _SMALL_CHI2 and after <= _SMALL_SHARE * before)


def _costs(evaluation: Evaluation, after: Sequence[ClosureQuality]) -> list[str]:
    parts = []
    if after:
        worst = max(after, key=lambda row: abs(row.largest_pull))
        n_bins = sum(row.n_dof + 1 for row in after)
        parts.append(
            f"The largest pull is {_signed(worst.largest_pull)}, of {n_bins} bins in all: {worst.place}."
        )
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
            f"{number_text(widest)} of the statistical error, {verdict}. It does not enter chi-squared."
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
    negative = _negative_observables(evaluation)
    if negative and not np.any(evaluation.ratios < 0):
        parts.append(
            f"The target's density is negative in a part of {_listed(negative)}, but the ratio is negative nowhere: "
            "this model cannot follow it there."
        )
    fewest = min(evaluation.reweighted.effective_size, evaluation.target.effective_size)
    if after and fewest < _FEW_EVENTS:
        parts.append(f"With an effective size of {fewest:.0f} only coarse differences could show.")
    stronger = "Events that the fit has not seen make the stronger test."
    if model is not None and predicts_unseen(model.estimator):
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
