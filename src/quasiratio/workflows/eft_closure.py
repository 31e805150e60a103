"""Whether a learned density closes at several parameter values: events reweighted by it, against events with exact weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.metrics import ClosureResult, closure, natural_edges
from quasiratio.report.evaluation import distinct_features
from quasiratio.sample import WeightedSample
from quasiratio.workflows.eft_inspection import point_label

__all__ = ["EftClosure", "closure_at"]

FloatArray = npt.NDArray[np.float64]
LEARNED = "learned"
_CHUNK = 2**15


@dataclass(frozen=True, eq=False)
class EftClosure:
    """Closure at one point.

    Attributes:
        label: The point, for people.
        theta: Its values, by name.
        rate: Cross-section relative to the reference, from the exact weights of the events.
        rate_error: Its statistical error.
        learned_rate: The same from the learned functions of the events.
        result: Closure of every feature, or `None` where there is no density to compare.
        reason: Why there is none.
    """

    label: str
    theta: dict[str, float]
    rate: float
    rate_error: float
    learned_rate: float
    result: ClosureResult | None
    reason: str = ""

    def chi_squared(self) -> dict[str, float]:
        """Return chi-squared per degree of freedom by feature; nothing where there is no density."""
        rows = [] if self.result is None else self.result.table()
        return {str(row["observable"]): float(row["chi2_per_dof"]) for row in rows}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "theta": self.theta,
            "rate": self.rate,
            "rate_error": self.rate_error,
            "learned_rate": self.learned_rate,
            "reason": self.reason,
            "closure": [] if self.result is None else self.result.table(include_reference=True),
        }


def closure_at(
    model: PolynomialRatio,
    events: WeightedSample,
    coefficients: FloatArray,
    points: FloatArray,
    *,
    seed: int,
    n_bins: int = 30,
) -> list[EftClosure]:
    """Reweight one half of the events by the learned ratio, and compare with the other half with its exact weights.

    The spread of the members of an ensemble is the error of the training sample, and counts beside that of the events.
    Points at which a density cannot be normalised, because its rate is not positive, are returned with the reason.

    Args:
        model: The fitted model.
        events: Features, and weights of the reference.
        coefficients: Exact coefficients of the events.
        points: `(n_points, n_parameters)`.
        seed: Of the halves.
        n_bins: Bins of each feature.
    """
    if len(events) < 2:
        msg = f"Got {len(events)} event; expected at least two, to compare one half with the other."
        raise InvalidInputError(msg)
    order = np.random.default_rng(seed).permutation(len(events))
    one, other = order[: len(order) // 2], order[len(order) // 2 :]
    w, halves = events.weights, [_part(events, part, events.weights[part]) for part in (one, other)]
    learned = model.predict_coefficients(halves[0])
    of_members = _member_intensities(model, halves[0], model.basis(points))
    compared = distinct_features(halves[0], halves[1])
    edges = dict.fromkeys(compared, partial(natural_edges, n_bins=n_bins))
    found = []
    for theta, members in zip(points, of_members, strict=True):
        monomials = model.basis(theta)
        exact, intensity = coefficients @ monomials, learned @ monomials
        rate = float(w @ exact / w.sum())
        error = float(np.sqrt(np.sum(np.square(w * (exact - rate)))) / abs(w.sum()))
        half_rates = [_mean(intensity, w[one]), _mean(exact[other], w[other])]
        reason, result = _no_density(w, (one, other), half_rates), None
        if not reason:
            target = _part(events, other, w[other] * exact[other])
            try:
                ratio = _with_members(intensity / half_rates[0], members, w[one])
                result = closure(halves[0], {LEARNED: ratio}, target, observables=compared, edges=edges)
            except InvalidInputError as problem:  # such as a feature that does not vary
                reason = str(problem).rstrip(".")
        values = dict(zip(model.basis.parameters, theta.tolist(), strict=True))
        label = point_label(model.basis, theta)
        found.append(EftClosure(label, values, rate, error, half_rates[0], result, reason))
    return found


def _part(events: WeightedSample, index: npt.NDArray[np.int64], weights: FloatArray) -> WeightedSample:
    return WeightedSample.adopt(events.features[index], np.array(weights), events.names, events.fill)


def _member_intensities(model: PolynomialRatio, events: WeightedSample, monomials: FloatArray) -> FloatArray:
    """Return the intensities of each member, `(n_points, n_members, n)`; of none where there is but one."""
    n_members = model.model_.n_members if model.model_.n_members > 1 else 0
    result = np.empty((len(monomials), n_members, len(events)))
    for start in range(0, len(events) if n_members else 0, _CHUNK):
        rows = slice(start, start + _CHUNK)
        functions = model.predict_member_coefficients(events[rows])
        result[..., rows] = np.einsum("mnk,pk->pmn", functions, monomials)
    return result


def _with_members(ratio: FloatArray, intensities: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the ratios of members, `(n_members, n)`, whose mean is that of the ensemble; the latter where there are none."""
    rates = intensities @ weights / weights.sum()
    if not len(rates) or not np.all(rates > 0):
        return ratio
    members: FloatArray = intensities / rates[:, None]
    return np.asarray(members + (ratio - members.mean(axis=0)))


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = float(weights.sum())
    return float(weights @ values) / total if total else float("nan")


def _no_density(w: FloatArray, halves: Sequence[npt.NDArray[np.int64]], rates: Sequence[float]) -> str:
    """Return why there are no two densities to compare, or nothing."""
    if any(not w[half].sum() > 0 for half in halves):
        return "the weights of the reference have no positive sum in one half of the events"
    whose = [name for name, rate in zip(("learned", "exact"), rates, strict=True) if not rate > 0]
    if whose:
        return f"the {' and the '.join(whose)} rate is not positive ({min(rates):.4g}), so that there is no density to normalise"
    return ""
