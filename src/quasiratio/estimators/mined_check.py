r"""A mined fit that checks itself, on events that took no part in it.

On reference events the joint coefficient is an unbiased, if noisy, measurement of the function: what a fit has learned is how
much closer to it than a constant the function comes, $E[(f_k - c_k)^2] - E[(\bar c_k - c_k)^2]$, in units of the spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from quasiratio.estimators.checked_ratio import one_event_decides
from quasiratio.estimators.fit_check import Status
from quasiratio.model_files.document import Document, Measured, Text, as_measured, from_measured

__all__ = ["MinedCheck", "MinedCheckDocument", "check_mined", "check_points"]

FloatArray = npt.NDArray[np.float64]
_FEWEST_EVENTS = 50
_MOST_NAMED = 8
_WORSE_ERRORS = 2.0
"""Errors below a constant at which one function fails; several are allowed the same chance of a false alarm together."""


class MinedCheckDocument(Document):
    """`MinedCheck`."""

    status: Literal["good", "failed", "unknown"]
    n_events: Annotated[int, Field(ge=0)]
    explained: list[Measured]
    explained_error: list[Measured]
    largest_share: Measured
    peak_fraction: Measured
    reasons: list[Text]
    of_samples: bool = False


@dataclass(frozen=True)
class MinedCheck:
    r"""Whether fitted coefficient functions can be used.

    Attributes:
        status: `"good"`, `"failed"`, or `"unknown"` where too few events were left to tell.
        n_events: Events that checked it.
        explained: Per term, the share of the variance of $c_k$ that the function explains; NaN for constant terms. Below one also
            where the function is exact, because $c_k$ depends on what is not seen. After `fit_points` per sample, the risk gained
            over a constant in units of what the exact function would gain with the same spread.
        explained_error: Its statistical error.
        largest_share: Largest share of one event in $\sum |w f_k|$, over all terms.
        peak_fraction: Share of the training after which its best state was reached.
        reasons: Why it failed, or what to know of it; one sentence each.
        of_samples: Whether `explained` is per sample, of `fit_points`.
    """

    status: Status
    n_events: int
    explained: tuple[float, ...] = ()
    explained_error: tuple[float, ...] = ()
    largest_share: float = float("nan")
    peak_fraction: float = 1.0
    reasons: tuple[str, ...] = ()
    of_samples: bool = False

    def __str__(self) -> str:
        opening = {
            "good": "The fit passed its check",
            "failed": "DO NOT USE THIS FIT: it failed its check",
            "unknown": "The fit could not be checked",
        }[self.status]
        if self.status == "unknown":
            return f"{opening}: {' '.join(self.reasons)}"
        known = [share for share in self.explained if np.isfinite(share)]
        if self.status == "good" and not self._tells_from_constants:
            opening = "The fit is no better than constants"
        ends = [f"{share:.1%}" for share in (min(known, default=0.0), max(known, default=0.0))]
        reach = " to ".join(dict.fromkeys(ends)) if known else "nothing"
        what = (
            f"over constants it gains {reach} of what exact ratios of this size would"
            if self.of_samples
            else f"it explains {reach} of the variance of the coefficients"
        )
        facts = f"{opening} on {self.n_events} events kept aside: {what}; largest share of one event {self.largest_share:.1%}."
        return " ".join([facts, *self.reasons])

    @property
    def _tells_from_constants(self) -> bool:
        """Whether any function explains more than the error of what it explains."""
        pairs = zip(self.explained, self.explained_error, strict=True)
        return any(value >= _WORSE_ERRORS * error for value, error in pairs)

    def document(self) -> MinedCheckDocument:
        """Describe the check."""
        return MinedCheckDocument(
            status=self.status,
            n_events=self.n_events,
            explained=[as_measured(share) for share in self.explained],
            explained_error=[as_measured(error) for error in self.explained_error],
            largest_share=as_measured(self.largest_share),
            peak_fraction=as_measured(self.peak_fraction),
            reasons=list(self.reasons),
            of_samples=self.of_samples,
        )

    @classmethod
    def stored(cls, document: MinedCheckDocument) -> Self:
        """Make the check again."""
        return cls(
            document.status,
            document.n_events,
            tuple(from_measured(share) for share in document.explained),
            tuple(from_measured(error) for error in document.explained_error),
            from_measured(document.largest_share),
            from_measured(document.peak_fraction),
            tuple(document.reasons),
            document.of_samples,
        )


def check_mined(
    learned: FloatArray,
    known: FloatArray,
    weights: FloatArray,
    terms: Sequence[str],
    *,
    peak_fraction: float = 1.0,
) -> MinedCheck:
    """Compare functions with the coefficients of events kept aside.

    Args:
        learned: `(n, n_terms)` functions at these events.
        known: Their joint coefficients.
        weights: Their signed weights.
        terms: Names of the terms.
        peak_fraction: Share of the training after which its best state was reached.

    Example:
        >>> c = np.random.default_rng(0).normal(size=(1000, 1))
        >>> check_mined(c, c, np.ones(1000), ["r"]).explained
        (1.0,)
    """
    if len(weights) < _FEWEST_EVENTS or not weights.sum() > 0:
        return MinedCheck("unknown", len(weights), reasons=(f"only {len(weights)} events were kept aside.",))
    n_errors = _errors_to_fail(len(terms))
    normalised = weights / weights.sum()
    mean = normalised @ known
    spread = normalised @ np.square(known - mean)
    explained, errors, worse, shares = [], [], [], []
    for k, name in enumerate(terms):
        if not spread[k] > 1e-8 * max(mean[k] ** 2, 1e-300):
            explained.append(float("nan"))
            errors.append(float("nan"))
            continue
        gain = np.square(known[:, k] - mean[k]) - np.square(known[:, k] - learned[:, k])
        value = float(normalised @ gain)
        error = float(np.sqrt(np.square(normalised) @ np.square(gain - value)))
        explained.append(value / float(spread[k]))
        errors.append(error / float(spread[k]))
        if value < -n_errors * error:
            worse.append(name)
        carried = np.abs(weights * learned[:, k])
        natural = np.abs(weights * known[:, k])
        if carried.sum() > 0 and natural.sum() > 0:
            share = carried / carried.sum()
            shares.append(float(share.max()))
            if one_event_decides(share, natural / natural.sum()):
                worse.append(f"{name} (one event carries {share.max():.0%})")
    return _judged(len(weights), terms, explained, errors, shares, worse, peak_fraction)


def check_points(
    learned: FloatArray,
    numbers: npt.NDArray[np.int64],
    weights: FloatArray,
    scales: FloatArray,
    totals: FloatArray,
    *,
    peak_fraction: float = 1.0,
) -> MinedCheck:
    r"""Compare functions with samples kept aside, by the risk of LSIF against that of a constant.

    For sample $s$ the risk $\frac12 E_\mathrm{ref}[f^2] - E_s[f]$ needs no coefficients of events; the exact function $f$ gains
    $\frac12 E_\mathrm{ref}[(f - t)^2]$ over the constant $t$, its mean.

    Args:
        learned: `(n, n_samples)` ratio of each sample to the reference, at events of all samples.
        numbers: Number of the sample of each event, zero for the reference.
        weights: Signed weights.
        scales: Per sample, reference first, by what sums over these events stand for all of them.
        totals: Sum of weights of each sample, reference first, over all events.
        peak_fraction: Share of the training after which its best state was reached.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, numbers = rng.normal(np.repeat([0.0, 0.5], 2000)), np.repeat([0, 1], 2000)
        >>> ratio, one = np.exp(0.5 * x - 0.125)[:, None], np.ones(2)
        >>> check_points(ratio, numbers, np.ones(4000), one, 2000 * one).status
        'good'
        >>> check_points(1 / ratio, numbers, np.ones(4000), one, 2000 * one).status
        'failed'
    """
    n_fewest = int(np.bincount(numbers, minlength=len(totals)).min())
    if n_fewest < _FEWEST_EVENTS:
        return MinedCheck(
            "unknown", len(weights), reasons=(f"only {n_fewest} events of a sample were kept aside.",)
        )
    shares = weights * scales[numbers] / totals[0]
    is_reference = numbers == 0
    n_errors = _errors_to_fail(len(totals) - 1)
    explained, errors, worse, largest = [], [], [], []
    for number in range(1, len(totals)):
        f, constant = learned[:, number - 1], totals[number] / totals[0]
        used = is_reference | (numbers == number)
        gain = np.where(is_reference, 0.5 * (constant**2 - f**2), f - constant) * shares
        value, error = float(gain[used].sum()), float(np.sqrt(np.square(gain[used]).sum()))
        possible = 0.5 * float(shares[is_reference] @ np.square(f[is_reference] - constant))
        explained.append(value / possible if possible > 0 else float("nan"))
        errors.append(error / possible if possible > 0 else float("nan"))
        if value < -n_errors * error:
            worse.append(f"sample {number}")
        carried = np.abs(shares * f)[is_reference]
        if carried.sum() > 0:
            share = carried / carried.sum()
            largest.append(float(share.max()))
            if one_event_decides(share, np.abs(shares[is_reference]) / np.abs(shares[is_reference]).sum()):
                worse.append(f"sample {number} (one event carries {share.max():.0%})")
    names = [f"sample {number}" for number in range(1, len(totals))]
    found = _judged(len(weights), names, explained, errors, largest, worse, peak_fraction)
    return replace(found, of_samples=True)


def _errors_to_fail(n_functions: int) -> float:
    """Return by how many errors one of so many functions must be worse than a constant to fail.

    Example:
        >>> round(_errors_to_fail(1), 6), round(_errors_to_fail(135), 2)
        (2.0, 3.59)
    """
    normal = NormalDist()
    return normal.inv_cdf(1.0 - normal.cdf(-_WORSE_ERRORS) / max(n_functions, 1))


def _judged(
    n_events: int,
    names: Sequence[str],
    explained: list[float],
    errors: list[float],
    shares: list[float],
    worse: list[str],
    peak_fraction: float,
) -> MinedCheck:
    advice = f"Worse than a constant: {_listed(worse)}. Give more events, fewer features or an ensemble."
    unseen = [
        f"{name} ({value:.0%} ± {error:.0%} explained)"
        for name, value, error in zip(names, explained, errors, strict=True)
        if value < _WORSE_ERRORS * error
    ]
    doubt = f"These events cannot tell from a constant: {_listed(unseen)}."
    return MinedCheck(
        "failed" if worse else "good",
        n_events,
        tuple(explained),
        tuple(errors),
        max(shares, default=float("nan")),
        peak_fraction,
        (advice,) if worse else (doubt,) if unseen else (),
    )


def _listed(texts: Sequence[str]) -> str:
    """Name the first of many."""
    n_more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")
