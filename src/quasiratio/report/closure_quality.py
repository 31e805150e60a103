"""Whether two histograms agree, and how large a disagreement is: one row of numbers per observable and method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quasiratio.metrics import Grade, MethodClosure, ObservableClosure, disagreement, grade
from quasiratio.report.safe_text import ends_text

__all__ = ["BEFORE", "SIGNIFICANCE", "ClosureQuality", "closure_qualities"]

SIGNIFICANCE = 0.01
"""Chance that a perfect model fails in any observable at all."""

BEFORE = "before"


@dataclass(frozen=True)
class ClosureQuality:
    """How one method closes in one observable.

    Attributes:
        observable: Name of the observable.
        method: Name of the method, or `BEFORE`.
        chi2_per_dof: Chi-squared per degree of freedom, with statistical errors alone.
        total_chi2_per_dof: The same with the error of the training sample, or `None` where nothing is known of it.
        n_dof: Degrees of freedom.
        p_value: Probability of a larger chi-squared between samples of one distribution; of the total one where there
            is one.
        agrees: Whether the p-value is above `SIGNIFICANCE` over the number of observables.
        needs_training_error: Whether it agrees only because the error of the training sample is counted.
        size: Share of the weight that is in the wrong place, the noise taken off.
        limit: What that is at most, with a confidence of 95%.
        grade: What to call `size`, also by what it was before.
        limit_grade: What to call `limit`.
        relative_entropy: Tsallis relative entropy to the target.
        largest_pull: Pull of the bin that deviates most.
        pull_range: Edges of that bin.
        outside: Fraction of the weight outside all bins.
        member_band: Median over the bins of the members' spread in units of the statistical error, or `None`.
    """

    observable: str
    method: str
    chi2_per_dof: float
    total_chi2_per_dof: float | None
    n_dof: int
    p_value: float
    agrees: bool
    needs_training_error: bool
    size: float
    limit: float
    grade: Grade
    limit_grade: Grade
    relative_entropy: float
    largest_pull: float
    pull_range: tuple[float, float]
    outside: float
    member_band: float | None

    @property
    def judgement(self) -> str:
        """The grade of a significant disagreement; of another what it is at most, where that says anything."""
        if not self.agrees:
            return self.grade
        return "cannot tell" if self.limit_grade == "large" else f"at most {self.limit_grade}"

    @property
    def place(self) -> str:
        """The bin of the largest pull, in words."""
        return f"{self.observable} between {' and '.join(ends_text(*self.pull_range))}"


def closure_qualities(
    entry: ObservableClosure, *, n_observables: int, include_reference: bool = True
) -> list[ClosureQuality]:
    """Return one row for the reference before reweighting, then one per method.

    Args:
        entry: Closure of one observable.
        n_observables: Observables that are looked at in all; each must then pass a stricter test.
        include_reference: Whether to begin with the reference before reweighting.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample(np.repeat([0.5, 1.5], 100), names=["x"])
        >>> result = closure(sample, {"none": np.ones(200)}, sample, edges={"x": [0, 1, 2]})
        >>> [(row.method, row.agrees) for row in closure_qualities(result["x"], n_observables=1)]
        [('before', True), ('none', True)]
    """
    before = disagreement(entry.reference.histogram, entry.target).size
    rows = [_quality(entry, BEFORE, entry.reference, n_observables, 0.0)] if include_reference else []
    return rows + [_quality(entry, each.method, each, n_observables, before) for each in entry.methods]


def _quality(
    entry: ObservableClosure, name: str, method: MethodClosure, n_observables: int, before: float
) -> ClosureQuality:
    variance = method.histogram.variances + entry.target.variances
    filled = variance > 0
    error = np.sqrt(np.where(filled, variance, 1.0))
    pulls = np.where(filled, (method.histogram.values - entry.target.values) / error, 0.0)
    worst = int(np.argmax(np.abs(pulls)))
    band = None
    if method.member_band is not None:
        band = float(np.median((method.member_band / error)[filled]))
    total = method.total_chi_squared
    p_value = (total or method.chi_squared).p_value
    required = SIGNIFICANCE / n_observables
    found = disagreement(method.histogram, entry.target)
    return ClosureQuality(
        observable=entry.name,
        method=name,
        chi2_per_dof=method.chi_squared.value,
        total_chi2_per_dof=None if total is None else total.value,
        n_dof=method.chi_squared.n_dof,
        p_value=p_value,
        agrees=p_value >= required,
        needs_training_error=p_value >= required > method.chi_squared.p_value,
        size=found.size,
        limit=found.limit,
        grade=grade(found.size, before),
        limit_grade=grade(found.limit, before),
        relative_entropy=method.relative_entropy.value,
        largest_pull=float(pulls[worst]),
        pull_range=(float(entry.edges[worst]), float(entry.edges[worst + 1])),
        outside=float(method.histogram.underflow + method.histogram.overflow),
        member_band=band,
    )
