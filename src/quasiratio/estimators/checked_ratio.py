r"""A ratio at events that it was not fitted to: what of it is its own doing.

Where ratios are compared by their risk $J(r) = E_0[r^2]/2 - E_1[r]$, and where a reweighted sample is to be used, one event
that carries a sum decides about it alone. A steep ratio is another matter. Where the samples overlap little, single events of
the reference stand for many of the target's, and rightly so; a pole is told from them by the target, which has no events there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from quasiratio.metrics import RatioRisk, ratio_risk, ratio_risk_difference
from quasiratio.sample import effective_size

__all__ = ["TERMS", "CheckedRatio", "DecisiveEvent", "RemovedShare", "Term", "one_event_decides"]

FloatArray = npt.NDArray[np.float64]
Term = Literal["the reweighted reference", "the quadratic term of the risk", "the target term of the risk"]
TERMS: tuple[Term, ...] = get_args(Term)
"""Sums that one event must not carry, where ratios are compared."""

_LARGE_SHARE, _NATURAL_FACTOR = 0.05, 5.0
_NEIGHBOURHOOD, _SUPPORTED_SHARE, _SUPPORTED_ERRORS = 3.0, 0.1, 2.0
"""Target events with at least a third of the ratio of an event support it, if together they have a tenth of the share of such
reference events: few of these are to be expected, and one more or less is chance. At a pole the target has none."""

_HALF, _FLAT_ERRORS, _APART_ERRORS = 0.5, 3.0, 3.0


class RemovedShare(NamedTuple):
    """Share of the distance of two samples that a reweighting removes, and its standard error; one is right.

    Example:
        >>> RemovedShare(0.2, 0.05).is_flat, RemovedShare(0.9, 0.1).is_flat
        (True, False)
    """

    value: float
    error: float

    @property
    def is_flat(self) -> bool:
        """Whether it is less than half, seen by three times the error: hardly more than no reweighting."""
        return self.value + _FLAT_ERRORS * self.error < _HALF


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

    @property
    def expected_size(self) -> float:
        r"""Effective size of the reweighted reference as the target tells it, $n / E_1[r]$, as $E_0[r^2] = E_1[r]$ for the exact ratio.

        The events of a reference that hardly overlaps with the target lack the few on which its own effective size would hang.
        """
        mean = float(self.target @ self.target_weights / self.target_weights.sum())
        return effective_size(self.reference_weights) / max(mean, 1.0)

    @property
    def carries_much(self) -> bool:
        """Whether one event carries the reweighted reference, with or without support of the target."""
        return one_event_decides(self.shares, _shares(self.reference_weights))

    def decisive_event(self, terms: Sequence[Term] = TERMS) -> DecisiveEvent | None:
        r"""Return the event that decides alone, if one does.

        It has more than 5% of the reweighted reference $\sum |w r|$, of the quadratic term $\sum |w| a_0 r^2$ of the risk, or
        of its target term $\sum |w r|$ over the target, and a ratio of more than five times the typical one: an event whose
        weight is large is not the ratio's fault. Nor is the tail of a steep ratio, for which the target has its events.

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
            found = int(np.argmax(shares))
            share, value = float(shares[found]), float(ratio[found])
            if not one_event_decides(shares, _shares(weights), power=power):
                continue
            if ratio is not self.reference or not self._is_supported(value, weights, power):
                return DecisiveEvent(term, int(numbers[found]), share, value, self.numbered_in)
        return None

    @property
    def is_steep(self) -> bool:
        """Whether the target has events at the ratios that carry the quadratic term of the risk, so that these are none of poles."""
        terms = np.abs(self.judge_weights) * np.square(self.reference)
        order = np.argsort(np.abs(self.reference))
        middle = order[np.searchsorted(np.cumsum(terms[order]), 0.5 * terms.sum())]
        return self._is_supported(float(self.reference[middle]), self.judge_weights, 2)

    def _is_supported(self, value: float, weights: FloatArray, power: int) -> bool:
        r"""Whether the target has its events at ratios like `value` and beyond, as it has for the exact ratio.

        Their share in $E_1[r^{p-1}]$ is then that of the reference events at such ratios in $E_0[r^p]$, however few these are.
        """
        if not (np.isfinite(value) and np.isfinite(self.target).all()):
            return False
        sign, least = np.sign(value), abs(value) / _NEIGHBOURHOOD
        at_reference = np.abs(weights * self.reference**power)
        at_target = sign**power * self.target_weights * self.target ** (power - 1)
        share = at_reference[sign * self.reference >= least].sum() / at_reference.sum()
        near, total = at_target[sign * self.target >= least], abs(at_target.sum())
        is_seen = near.sum() > _SUPPORTED_ERRORS * np.linalg.norm(near)
        return bool(is_seen and near.sum() >= _SUPPORTED_SHARE * share * total)

    @property
    def removed(self) -> RemovedShare:
        r"""What of the distance of the samples along the ratio the reweighting removes.

        With $g$ the rank of the ratio among the events of both samples, $(E_0[r g] - E_0[g]) / (E_1[g] - E_0[g])$: one for the
        exact ratio, whatever the signs, and zero for none; NaN where the samples are not seen to be apart. A rank is bounded, so that the
        largest ratios do not decide.
        """
        ratios = np.concatenate([self.reference, self.target])
        at_reference, at_target = np.split(rankdata(ratios) / len(ratios), [len(self.reference)])
        target, of_target = _mean(at_target, self.target_weights)
        reference, of_reference = _mean(at_reference, self.reference_weights)
        reweighted, of_reweighted = _mean(at_reference, self.reference_weights * self.reference)
        apart = target - reference
        if abs(apart) <= _APART_ERRORS * np.hypot(np.linalg.norm(of_target), np.linalg.norm(of_reference)):
            return RemovedShare(float("nan"), float("nan"))
        share = (reweighted - reference) / apart
        # To first order, what each event adds to the numerator less the share of what it adds to the denominator.
        added = np.concatenate([of_reweighted - (1.0 - share) * of_reference, -share * of_target])
        return RemovedShare(share, float(np.linalg.norm(added) / abs(apart)))

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


def _mean(values: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return a weighted mean, and what a fluctuation of each event adds to it."""
    shares = weights / weights.sum()
    mean = float(shares @ values)
    return mean, shares * (values - mean)
