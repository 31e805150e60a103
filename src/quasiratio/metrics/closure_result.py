"""What `closure` returns: numbers for tables, histograms for figures, nothing that draws.

All histograms are scaled to a sum of one over their whole sample, flow included, so that neither the
sizes of the samples nor the scales of their weights matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.metrics.chi_squared import ChiSquared
from quasiratio.metrics.histogram import WeightedHistogram
from quasiratio.metrics.training_error import TrainingError
from quasiratio.metrics.tsallis import TsallisEntropy

__all__ = ["ClosureResult", "MethodClosure", "ObservableClosure"]


@dataclass(frozen=True, eq=False)
class MethodClosure:
    """One observable of the reference, reweighted by one method, against the target.

    Args:
        method: Name of the method.
        histogram: The reweighted reference, scaled to unit sum.
        chi_squared: Chi-squared to the target.
        relative_entropy: Tsallis relative entropy to the target.
        wasserstein: One-dimensional Wasserstein distance in the observable's units; `None` where not
            asked for, NaN where the reweighted weights have no positive sum.
        member_band: Standard deviation of each bin's content over the members of an ensemble, each
            scaled to unit sum; `None` for a single model.
        training_error: Error that the bins inherit from the training sample; `None` where nothing is known of it.
        total_chi_squared: Chi-squared to the target with that error counted, see `total_chi_squared`.

    Example:
        >>> from quasiratio.metrics import chi_squared, tsallis_relative_entropy, weighted_histogram
        >>> b, t = (weighted_histogram(v, edges=[0, 1, 2]) for v in ([0.5, 1.5], [0.5, 1.5, 1.5]))
        >>> entry = MethodClosure("mlp", b, chi_squared(b, t), tsallis_relative_entropy(b, t))
        >>> entry.member_band is None
        True
    """

    method: str
    histogram: WeightedHistogram
    chi_squared: ChiSquared
    relative_entropy: TsallisEntropy
    wasserstein: float | None = None
    member_band: FloatArray | None = None
    training_error: TrainingError | None = None
    total_chi_squared: ChiSquared | None = None


@dataclass(frozen=True, eq=False)
class ObservableClosure:
    """One observable: the target, the reference as it was, and the reference as each method reweights it.

    Args:
        name: Name of the observable.
        target: The target, scaled to unit sum.
        reference: The reference before reweighting, with its own chi-squared to the target.
        methods: One entry per method.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> entry = closure(sample, [1.0, 1.0, 2.0], sample, edges={"x": [0, 1, 2]})["x"]
        >>> entry.target.values.round(3).tolist(), entry["ratio"].histogram.values.tolist()
        ([0.667, 0.333], [0.5, 0.5])
    """

    name: str
    target: WeightedHistogram
    reference: MethodClosure
    methods: tuple[MethodClosure, ...]

    @property
    def edges(self) -> FloatArray:
        """Edges of the bins, common to all histograms."""
        return self.target.edges

    def __getitem__(self, method: str) -> MethodClosure:
        """Return the entry of a method."""
        for entry in self.methods:
            if entry.method == method:
                return entry
        msg = f"Got the method {method!r}; expected one of {[entry.method for entry in self.methods]}."
        raise InvalidInputError(msg)

    def pulls(self, method: str) -> FloatArray:
        """Return reweighted minus target in units of their statistical error; NaN in empty bins."""
        reweighted = self[method].histogram
        variance = reweighted.variances + self.target.variances
        error = np.sqrt(np.where(variance > 0, variance, np.nan))
        return np.asarray((reweighted.values - self.target.values) / error)

    def to_hist(self) -> dict[str, Any]:
        """Return `hist.Hist` objects with `Weight` storage: the target, the reference and each method."""
        entries = {"target": self.target, "reference": self.reference.histogram}
        entries |= {entry.method: entry.histogram for entry in self.methods}
        return {key: histogram.to_hist(self.name) for key, histogram in entries.items()}


@dataclass(frozen=True, eq=False)
class ClosureResult:
    """Closure of every method in every observable.

    Indexing by the name of an observable, then of a method, gives the single entries; `print` shows the
    table.

    Args:
        observables: One entry per observable.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
        >>> [(row["observable"], row["method"], row["chi2_per_dof"]) for row in result.table()]
        [('x', 'none', 0.0)]
    """

    observables: tuple[ObservableClosure, ...]

    def __getitem__(self, observable: str) -> ObservableClosure:
        """Return the entry of an observable."""
        for entry in self.observables:
            if entry.name == observable:
                return entry
        msg = f"Got the observable {observable!r}; expected one of {[o.name for o in self.observables]}."
        raise InvalidInputError(msg)

    def table(self, *, include_reference: bool = False) -> list[dict[str, Any]]:
        """Return one row per observable and method, as dictionaries that a data frame can take.

        Args:
            include_reference: Begin each observable with the reference before reweighting.
        """
        rows = []
        has_totals = any(m.total_chi_squared is not None for o in self.observables for m in o.methods)
        for observable in self.observables:
            for entry in ((observable.reference,) if include_reference else ()) + observable.methods:
                row = {
                    "observable": observable.name,
                    "method": entry.method,
                    "chi2_per_dof": entry.chi_squared.value,
                    "n_dof": entry.chi_squared.n_dof,
                    "relative_entropy": entry.relative_entropy.value,
                    "n_bins_left_out": entry.relative_entropy.n_bins_left_out,
                    "fraction_outside": entry.histogram.underflow + entry.histogram.overflow,
                }
                if has_totals:
                    total = entry.total_chi_squared
                    row["total_chi2_per_dof"] = None if total is None else total.value
                if entry.wasserstein is not None:
                    row["wasserstein"] = entry.wasserstein
                rows.append(row)
        return rows

    def to_hist(self) -> dict[str, dict[str, Any]]:
        """Return `hist.Hist` objects by observable, then by target, reference and method.

        Example:
            >>> from quasiratio import WeightedSample
            >>> from quasiratio.metrics import closure
            >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
            >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
            >>> result.to_hist()["x"]["target"].values().round(3).tolist()
            [0.667, 0.333]
        """
        return {observable.name: observable.to_hist() for observable in self.observables}

    def __str__(self) -> str:
        rows = self.table(include_reference=True)
        if not rows:
            return "no observables"
        columns = {
            "observable": "observable",
            "method": "method",
            "chi2_per_dof": "chi2/ndof",
            "n_dof": "ndof",
        }
        if "total_chi2_per_dof" in rows[0]:
            columns["total_chi2_per_dof"] = "with training"
        alpha = self.observables[0].reference.relative_entropy.alpha
        columns |= {"relative_entropy": f"D_S{alpha:g}", "n_bins_left_out": "left out"}
        if "wasserstein" in rows[0]:
            columns["wasserstein"] = "W1"
        lines = [list(columns.values()), *([_as_text(row[key]) for key in columns] for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        return "\n".join(
            "  ".join(
                text.ljust(width) if i < 2 else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
