r"""A fit that checks itself, on events that took no part in training, choosing or helping.

A ratio can be useless in three ways that no training loss shows: one event carries the reweighted sample, because the ratio
has a pole there; it is worse than none, because it was learned from fluctuations; or it is hardly more than none. All three are
seen on events that were kept aside: the largest share of one event in $\sum |w r|$, the risk $J(r) - J(1)$ with its error, and
how much of the distance of the samples along the ratio is removed (`CheckedRatio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from quasiratio.estimators.checked_ratio import (
    TERMS,
    CheckedRatio,
    RemovedShare,
    Term,
)
from quasiratio.metrics import RatioRisk
from quasiratio.model_files.document import Document, Measured, Text, as_measured, from_measured
from quasiratio.sample import effective_size

__all__ = ["FitCheck", "FitCheckDocument", "RiskDocument", "Status", "check_ratio", "instability"]

FloatArray = npt.NDArray[np.float64]
Status = Literal["good", "failed", "unknown"]

_WORSE_ERRORS = 2.0
_LARGE_ERROR = 5.0
"""Of the risk, which is -1/2 without reweighting: above it a few events decide."""
_FEWEST_EVENTS = 50
_FEW_EVENTS = 100.0
"""Effective size of those that check below which a check says how little it sees, and passes only what it sees to be better."""
_N_WORST = 5
_EARLY_PEAK = 0.6
_NOT_MEASURED = RemovedShare(float("nan"), float("nan"))
_REAL_POLES = (
    "The reference density changes its sign, and the exact ratio has poles there: no weights made of it have a finite "
    "variance. Ratios hold away from them; to reweight, take a reference of positive density."
)


class RiskDocument(Document):
    """`RatioRisk`."""

    value: Measured
    error: Measured

    @classmethod
    def of(cls, risk: RatioRisk) -> Self:
        """Describe a risk."""
        return cls(value=as_measured(risk.value), error=as_measured(risk.error))

    def restored(self) -> RatioRisk:
        """Make the risk again."""
        return RatioRisk(from_measured(self.value), from_measured(self.error))


class FitCheckDocument(Document):
    """`FitCheck`."""

    status: Literal["good", "failed", "unknown"]
    n_events: Annotated[int, Field(ge=0)]
    effective_share: Measured
    largest_share: Measured
    worst_events: list[int] = Field(max_length=100)
    risk_difference: RiskDocument
    reach: Annotated[list[Measured], Field(min_length=2, max_length=2)]
    removed: Annotated[list[Measured], Field(min_length=2, max_length=2)] | None = None
    near_cap: Measured
    peak_fraction: Measured
    helped: Text
    reasons: list[Text] = Field(max_length=100)


@dataclass(frozen=True)
class FitCheck:
    r"""Whether a fitted ratio can be used.

    Attributes:
        status: `"good"`, `"failed"`, or `"unknown"` where those left to check it are too few to tell it from no ratio.
        n_events: Events that checked it, of both classes.
        effective_share: Effective size of the reweighted reference over that of the reference.
        largest_share: Largest share of one event in $\sum |w r|$ over the reference.
        worst_events: Numbers of the events with the largest shares, as they were given to `fit`: in `X`, where the events
            of `fit_samples` stand with the reference first, or in the validation events where those were given. A
            `Reweighter` counts in the samples that it was given, whatever the fold.
        risk_difference: Risk of the ratio minus that of no reweighting, $J(r) - J(1)$; negative is better.
        reach: Smallest and largest ratio.
        removed: Share of the distance of the samples along the ratio that the reweighting removes, and its error: one for the exact
            ratio, zero for none (`CheckedRatio.removed`).
        near_cap: Share of the reference's $|w|$ where the estimated sign asymmetry is at its floor.
        peak_fraction: Share of the training after which its best state was reached.
        helped: What was done because a first fit had failed; empty if nothing was.
        reasons: Why it failed, or what to know of it; one sentence each.
    """

    status: Status
    n_events: int
    effective_share: float
    largest_share: float
    worst_events: tuple[int, ...]
    risk_difference: RatioRisk
    reach: tuple[float, float]
    removed: RemovedShare = _NOT_MEASURED
    near_cap: float = 0.0
    peak_fraction: float = 1.0
    helped: str = ""
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        opening = {
            "good": "The fit passed its check",
            "failed": f"DO NOT {'REWEIGHT WITH' if _REAL_POLES in self.reasons else 'USE'} THIS RATIO: the fit failed its check",
            "unknown": "The fit could not be checked",
        }[self.status]
        if not np.isfinite(self.largest_share):
            return f"{opening}: {' '.join(self.reasons)}"
        facts = (
            f"on {self.n_events} events kept aside: effective size {self.effective_share:.0%} of the reference's, largest "
            f"share of one event {self.largest_share:.1%}, risk {self.risk_difference.value:+.3g} ± "
            f"{self.risk_difference.error:.2g} against no reweighting, ratios from {self.reach[0]:.3g} to "
            f"{self.reach[1]:.3g}."
        )
        return " ".join([opening, facts, *self.reasons, *([self.helped] if self.helped else [])])

    def document(self) -> FitCheckDocument:
        """Describe the check."""
        return FitCheckDocument(
            status=self.status,
            n_events=self.n_events,
            effective_share=as_measured(self.effective_share),
            largest_share=as_measured(self.largest_share),
            worst_events=list(self.worst_events),
            risk_difference=RiskDocument.of(self.risk_difference),
            reach=[as_measured(value) for value in self.reach],
            removed=[as_measured(value) for value in self.removed],
            near_cap=as_measured(self.near_cap),
            peak_fraction=as_measured(self.peak_fraction),
            helped=self.helped,
            reasons=list(self.reasons),
        )

    @classmethod
    def stored(cls, document: FitCheckDocument | None) -> Self:
        """Make the check again; models of the first version have none."""
        if document is None:
            nan = float("nan")
            reasons = ("it was made before fits were checked.",)
            return cls("unknown", 0, nan, nan, (), RatioRisk(nan, nan), (nan, nan), reasons=reasons)
        low, high = (from_measured(value) for value in document.reach)
        removed = document.removed
        return cls(
            document.status,
            document.n_events,
            from_measured(document.effective_share),
            from_measured(document.largest_share),
            tuple(document.worst_events),
            document.risk_difference.restored(),
            (low, high),
            _NOT_MEASURED if removed is None else RemovedShare(*map(from_measured, removed)),
            from_measured(document.near_cap),
            from_measured(document.peak_fraction),
            document.helped,
            tuple(document.reasons),
        )


def check_ratio(
    checked: CheckedRatio,
    *,
    terms: Sequence[Term] = TERMS[:1],
    near_cap: float = 0.0,
    peak_fraction: float = 1.0,
    helped: str = "",
    remarks: tuple[str, ...] = (),
) -> FitCheck:
    """Judge a ratio.

    Args:
        checked: The ratio and the weights at events that it was not fitted to.
        terms: Which sums one event must not carry. Those of the risk are for those who compare ratios; a ratio alone gets a
            remark where one event carries the target term, because a reweighted sample can be good nevertheless. Where the
            reference density is negative somewhere, the exact ratio has poles and the risk is no distance, so that only
            the reweighted reference is asked.
        near_cap: Share of the reference's absolute weight at the floor of its sign asymmetry.
        peak_fraction: Share of the training after which the best state was reached.
        helped: What was done because a first fit had failed.
        remarks: What else to know; one sentence each.
    """
    n_events = len(checked.reference) + len(checked.target)
    new_weights = checked.reference_weights * checked.reference
    if min(len(checked.reference), len(checked.target)) < _FEWEST_EVENTS:
        reason = (
            f"{n_events} events of both classes were kept aside, too few; give more, or validation events."
        )
        nan = float("nan")
        facts = (nan, nan, (), RatioRisk(nan, nan), _reach(checked.reference), _NOT_MEASURED)
        return FitCheck("unknown", n_events, *facts, near_cap, peak_fraction, helped, (reason,))
    shares = checked.shares
    worst = np.argsort(-shares)[:_N_WORST]
    finite = all(bool(np.isfinite(ratio).all()) for ratio in (new_weights, checked.target))
    has_poles = bool(np.any(checked.judge_weights < 0))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = checked.risk_difference if finite else RatioRisk(float("inf"), float("nan"))
        left = effective_size(new_weights) if finite else 0.0
        removed = checked.removed if finite and not has_poles else _NOT_MEASURED
    reasons = instability(checked, terms)
    is_unstable = bool(reasons)
    if is_unstable and not has_poles:
        reasons.append(
            "Give more events or fewer features, fit an ensemble, or state what you know of the densities' signs."
        )
    worth = min(effective_size(checked.reference_weights), effective_size(checked.target_weights))
    if removed.is_flat and worth >= _FEW_EVENTS:
        reasons.append(
            f"It removes {removed.value:.0%} ± {removed.error:.0%} of the distance of the samples along the ratio: hardly more "
            "than no reweighting. Train for longer or with less weight decay."
        )
    if not is_unstable and not has_poles and checked.expected_size < 1.0:
        reasons.append(
            f"The samples overlap too little to reweight one to the other: by the ratio at the target, {len(checked.reference)} "
            f"reference events are worth {checked.expected_size:.1g} of its events."
        )
    status: Status = "failed" if reasons else "good"
    if not is_unstable and checked.carries_much:
        reasons.append(
            f"One event carries {shares.max():.0%} of the reweighted reference, and not by mistake: the ratio is steep, and the "
            "target has many events where the reference has few. What is reweighted with it fluctuates accordingly."
        )
    bribe = None if has_poles or is_unstable else checked.decisive_event(TERMS[2:])
    if bribe is not None:
        reasons.append(f"{bribe} What the risk says is its doing.")
    if has_poles:
        reasons.append(_REAL_POLES)
    if worth < _FEW_EVENTS:
        is_unknown = status == "good" and not _is_better(difference)
        status = "unknown" if is_unknown else status
        reasons.append(
            f"By their weights the events kept aside are worth {worth:.0f}, with which a check sees gross failures only"
            f"{', and cannot tell this ratio from none' if is_unknown else ''}."
        )
    if peak_fraction < _EARLY_PEAK:
        reasons.append(
            f"Validation was best after {peak_fraction:.0%} of the training; that state was kept, a shorter training would "
            "do."
        )
    return FitCheck(
        status,
        n_events,
        left / effective_size(checked.reference_weights),
        float(shares.max()),
        tuple(int(number) for number in checked.reference_numbers[worst]),
        difference,
        _reach(checked.reference),
        removed,
        near_cap,
        peak_fraction,
        helped,
        (*reasons, *remarks),
    )


def instability(checked: CheckedRatio, terms: Sequence[Term] = TERMS[:1]) -> list[str]:
    """Return why a ratio is one that fluctuations made, a sentence for each reason; none where nothing says so.

    Only of such a ratio a stronger pull to no reweighting is the cure.

    Args:
        checked: The ratio and the weights at events that it was not fitted to.
        terms: As for `check_ratio`.
    """
    has_poles = bool(np.any(checked.judge_weights < 0))
    decisive = checked.decisive_event(TERMS[:1] if has_poles else terms)
    if not np.isfinite(np.concatenate([checked.reference, checked.target])).all():
        return [str(decisive)] if decisive is not None else ["The ratio is not finite at some target events."]
    difference, reasons = checked.risk_difference, []
    if decisive is not None:
        reasons.append(str(decisive))
    elif difference.error > _LARGE_ERROR and not (_is_better(difference) or checked.is_steep):
        reasons.append(
            f"A few events with ratios up to {np.abs(checked.reference).max():.3g} decide: the risk is known to "
            f"± {difference.error:.2g} only."
        )
    if difference.value > _WORSE_ERRORS * difference.error:
        reasons.append("By its risk the ratio is worse than none.")
    return reasons


def _is_better(difference: RatioRisk) -> bool:
    return difference.value < -_WORSE_ERRORS * difference.error


def _reach(ratio: FloatArray) -> tuple[float, float]:
    return (float(ratio.min()), float(ratio.max())) if len(ratio) else (float("nan"), float("nan"))
