r"""A fit that checks itself, on events that took no part in training, choosing or helping.

A ratio can be useless in two ways that no training loss shows: one event carries the reweighted sample, because the
ratio has a pole there, or the ratio is worse than none, because it was learned from fluctuations. Both are seen on
events that were kept aside: the largest share of one event in $\sum |w r|$, and the risk $J(r) - J(1)$ with its error.

The same is asked wherever ratios are compared by their risk $J(r) = E_0[r^2]/2 - E_1[r]$: where one event carries one of its
terms, it decides about the ratio alone, and the ratio is out (`CheckedRatio.decisive_event`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import Field

from quasiratio.metrics import RatioRisk, ratio_risk, ratio_risk_difference
from quasiratio.model_files.document import Document, Measured, Text, as_measured, from_measured
from quasiratio.sample import effective_size

__all__ = [
    "TERMS",
    "CheckedRatio",
    "DecisiveEvent",
    "FitCheck",
    "FitCheckDocument",
    "RiskDocument",
    "check_ratio",
    "one_event_decides",
]

FloatArray = npt.NDArray[np.float64]
Status = Literal["good", "failed", "unknown"]
Term = Literal["the reweighted reference", "the quadratic term of the risk", "the target term of the risk"]
TERMS: tuple[Term, ...] = get_args(Term)
"""Sums that one event must not carry, where ratios are compared."""

_LARGE_SHARE, _NATURAL_FACTOR = 0.05, 5.0
_WORSE_ERRORS = 2.0
_LARGE_ERROR = 5.0
"""Of the risk, which is -1/2 without reweighting: above it a few events decide."""
_FEWEST_EVENTS = 50
_FEW_EVENTS = 100.0
"""Effective size of those that check below which a check says how little it sees, and passes only what it sees to be better."""
_N_WORST = 5
_EARLY_PEAK = 0.6
_REAL_POLES = (
    "The reference density changes its sign, and the exact ratio has poles there: no weights made of it have a finite "
    "variance. Ratios hold away from them; to reweight, take a reference of positive density."
)


@dataclass(frozen=True)
class DecisiveEvent:
    """An event that carries so much of a sum that it decides alone.

    Attributes:
        term: The sum.
        number: Number of the event.
        share: Its share.
        ratio: Its ratio.
        numbered_in: What the number counts, where not the events given to `fit`.
    """

    term: Term
    number: int
    share: float
    ratio: float
    numbered_in: str = ""

    def __str__(self) -> str:
        if not np.isfinite(self.ratio):
            return f"The ratio is not finite at event {self.number}{self.numbered_in}."
        return (
            f"One event, number {self.number}{self.numbered_in}, carries {self.share:.0%} of {self.term} (its ratio is "
            f"{self.ratio:.3g})."
        )


@dataclass(frozen=True)
class CheckedRatio:
    """A ratio at the events of both classes that check it.

    Args:
        reference: The ratio at the reference events.
        target: The ratio at the target events.
        reference_weights: Signed weights of the reference events.
        target_weights: Signed weights of the target events.
        judge_weights: Weights of the reference events for the risk, positive unless its density is negative.
        reference_numbers: Numbers of the reference events.
        target_numbers: Numbers of the target events.
        numbered_in: What the numbers count, where not the events given to `fit`.
    """

    reference: FloatArray
    target: FloatArray
    reference_weights: FloatArray
    target_weights: FloatArray
    judge_weights: FloatArray
    reference_numbers: npt.NDArray[np.int64]
    target_numbers: npt.NDArray[np.int64]
    numbered_in: str = ""

    @property
    def risk(self) -> RatioRisk:
        """The risk of the ratio; lower is better."""
        return ratio_risk(
            self.reference,
            self.reference_weights,
            self.target,
            self.target_weights,
            judge_weights=self.judge_weights,
        )

    @property
    def shares(self) -> FloatArray:
        r"""Share of each reference event in $\sum |w r|$; one where the ratio is not finite."""
        return _shares(self.reference_weights * self.reference)

    def decisive_event(self, terms: Sequence[Term] = TERMS) -> DecisiveEvent | None:
        r"""Return the event that decides alone, if one does.

        It has more than 5% of the reweighted reference $\sum |w r|$, of the quadratic term $\sum |w| a_0 r^2$ of the risk, or
        of its target term $\sum |w r|$ over the target, and a ratio of more than five times the typical one: an event whose
        weight is large is not the ratio's fault, nor is the tail of an exact ratio in a small sample.

        Args:
            terms: Which of the three to ask.
        """
        at_reference = (self.reference, self.reference_numbers)
        for term in terms:
            (ratio, numbers), weights, power = {
                "the reweighted reference": (at_reference, self.reference_weights, 1),
                "the quadratic term of the risk": (at_reference, self.judge_weights, 2),
                "the target term of the risk": ((self.target, self.target_numbers), self.target_weights, 1),
            }[term]
            with np.errstate(over="ignore", invalid="ignore"):
                shares = _shares(weights * ratio**power)
            if one_event_decides(shares, _shares(weights), power=power):
                found = int(np.argmax(shares))
                return DecisiveEvent(
                    term, int(numbers[found]), float(shares[found]), float(ratio[found]), self.numbered_in
                )
        return None

    @property
    def risk_difference(self) -> RatioRisk:
        """The risk of the ratio minus that of no reweighting; negative is better."""
        return ratio_risk_difference(
            (self.reference, self.target),
            (np.ones(len(self.reference)), np.ones(len(self.target))),
            weights_reference=self.reference_weights,
            weights_target=self.target_weights,
            judge_weights=self.judge_weights,
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
        return cls(
            document.status,
            document.n_events,
            from_measured(document.effective_share),
            from_measured(document.largest_share),
            tuple(document.worst_events),
            document.risk_difference.restored(),
            (low, high),
            from_measured(document.near_cap),
            from_measured(document.peak_fraction),
            document.helped,
            tuple(document.reasons),
        )


def one_event_decides(shares: FloatArray, natural_shares: FloatArray, *, power: int = 1) -> bool:
    """Whether the largest of `shares` is above 5%, and above five times what the weights alone have.

    Args:
        shares: Shares in a sum of weights times ratios.
        natural_shares: Those in the sum of weights.
        power: Of the ratio in the sum; five times as large a ratio counts five times, or 25 times where it is squared.

    Example:
        >>> one_event_decides(np.array([0.2, 0.8]), np.array([0.5, 0.5])), one_event_decides(np.full(2, 0.5), np.ones(2))
        (False, False)
    """
    return bool(shares.max() > max(_LARGE_SHARE, _NATURAL_FACTOR**power * natural_shares.max()))


def _shares(terms: FloatArray) -> FloatArray:
    """Return the share of each absolute value in their sum; one where it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.abs(terms) / np.abs(terms).sum()
    return np.where(np.isfinite(terms), np.nan_to_num(shares), 1.0)


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
        facts = (nan, nan, (), RatioRisk(nan, nan), _reach(checked.reference))
        return FitCheck("unknown", n_events, *facts, near_cap, peak_fraction, helped, (reason,))
    reasons = []
    shares = checked.shares
    worst = np.argsort(-shares)[:_N_WORST]
    finite = all(bool(np.isfinite(ratio).all()) for ratio in (new_weights, checked.target))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = checked.risk_difference if finite else RatioRisk(float("inf"), float("nan"))
        kept = effective_size(new_weights) / effective_size(checked.reference_weights) if finite else 0.0
    has_poles = bool(np.any(checked.judge_weights < 0))
    decisive = checked.decisive_event(TERMS[:1] if has_poles else terms)
    if decisive is not None:
        reasons.append(str(decisive))
    elif difference.error > _LARGE_ERROR:
        reasons.append(
            f"A few events with ratios up to {np.abs(checked.reference).max():.3g} decide: the risk is known to "
            f"± {difference.error:.2g} only."
        )
    if difference.value > _WORSE_ERRORS * difference.error:
        reasons.append("By its risk the ratio is worse than none.")
    status: Status = "failed" if reasons else "good"
    bribe = None if has_poles or decisive is not None else checked.decisive_event(TERMS[2:])
    if bribe is not None:
        reasons.append(f"{bribe} What the risk says is its doing.")
    if has_poles:
        reasons.append(_REAL_POLES)
    elif status == "failed":
        reasons.append(
            "Give more events or fewer features, fit an ensemble, or state what you know of the densities' signs."
        )
    worth = min(effective_size(checked.reference_weights), effective_size(checked.target_weights))
    if worth < _FEW_EVENTS:
        is_seen = difference.value < -_WORSE_ERRORS * difference.error
        if status == "good" and not is_seen:
            status = "unknown"
        reasons.append(
            f"By their weights the events kept aside are worth {worth:.0f}, with which a check sees gross failures only"
            f"{'' if is_seen else ', and cannot tell this ratio from none'}."
        )
    if peak_fraction < _EARLY_PEAK:
        reasons.append(
            f"Validation was best after {peak_fraction:.0%} of the training; that state was kept, a shorter training would "
            "do."
        )
    return FitCheck(
        status,
        n_events,
        float(kept),
        float(shares.max()),
        tuple(int(number) for number in checked.reference_numbers[worst]),
        difference,
        _reach(checked.reference),
        near_cap,
        peak_fraction,
        helped,
        (*reasons, *remarks),
    )


def _reach(ratio: FloatArray) -> tuple[float, float]:
    return (float(ratio.min()), float(ratio.max())) if len(ratio) else (float("nan"), float("nan"))
