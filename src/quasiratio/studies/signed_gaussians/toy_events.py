"""The signed Gaussian toys of one seed, and how a ratio is judged on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.distributions import SignedGaussianCase, signed_gaussian_case
from quasiratio.metrics import ClosureResult, closure, radial_edges
from quasiratio.sample import WeightedSample
from quasiratio.studies.output.finite_ratios import finite_ratios
from quasiratio.studies.output.stored_closure import histogram_to_numbers

__all__ = ["OBSERVABLES", "ToyEvents", "closure_of", "radius", "stored_methods", "toy_events"]

FloatArray = npt.NDArray[np.float64]
SamplePair = tuple[WeightedSample, WeightedSample]

OBSERVABLES = ("r", "x", "y")


@dataclass(frozen=True)
class ToyEvents:
    """Reference and target to train and to validate on, and the two test samples."""

    case: SignedGaussianCase
    training: SamplePair
    validation: SamplePair
    reference: WeightedSample
    target: WeightedSample
    seed: int

    @cached_property
    def exact(self) -> FloatArray:
        """The exact ratio at the reference events of the test."""
        return self.case.exact_ratio(self.reference.features)

    @cached_property
    def exact_chi2(self) -> float:
        """Radial chi2 of the exact ratio on these events: what statistics alone leave."""
        return closure_of(self.reference, {"exact": self.exact}, self.target)["r"]["exact"].chi_squared.value

    def judge(self, ratio: FloatArray) -> dict[str, Any]:
        """Return radial chi2 (also over the exact ratio's), D_S2, the rms error, and all histograms."""
        finite, infinite_fraction = finite_ratios(ratio)
        result = closure_of(self.reference, {"ratio": finite}, self.target)
        entry = result["r"]["ratio"]
        squared_error = np.average((finite - self.exact) ** 2, weights=self.reference.weights)
        return {
            "chi2": entry.chi_squared.value,
            "exact_chi2": self.exact_chi2,
            "chi2_to_exact": entry.chi_squared.value / self.exact_chi2,
            "entropy": entry.relative_entropy.value,
            # With signed weights the mean of a square can fluctuate below zero.
            "rms": float(np.sqrt(np.maximum(squared_error, 0.0))),
            "infinite_fraction": infinite_fraction,
            "closure": stored_methods(result)["ratio"],
        }

    def signed_test_samples(self) -> tuple[WeightedSample, WeightedSample]:
        """Return test samples with weights of both signs, which the parts of either sign are taken from."""
        if not self.target.weights.min() > 0:
            return self.reference, self.target
        rng = np.random.default_rng([self.seed, 1])  # the unweighted test samples have no parts
        return self.case.samples(len(self.reference), rng)


def toy_events(case_name: str, seed: int, sizes: Sequence[int]) -> ToyEvents:
    """Draw the samples of one case.

    Args:
        case_name: `"nonnegative"` or `"signed"`.
        seed: Of all random numbers.
        sizes: Events of each class for training, validation and test.

    Example:
        >>> events = toy_events("signed", 0, (100, 50, 200))
        >>> len(events.training[0]), len(events.target), events.judge(events.exact)["rms"]
        (100, 200, 0.0)
    """
    case, rng = signed_gaussian_case(case_name), np.random.default_rng(seed)
    training, validation = (case.samples(n, rng) for n in sizes[:2])
    return ToyEvents(case, training, validation, *case.test_samples(sizes[2], rng), seed)


def radius(features: npt.ArrayLike) -> FloatArray:
    """Return the distance of `(n, 2)` points from the origin.

    Example:
        >>> radius([[3.0, 4.0]]).tolist()
        [5.0]
    """
    points = np.asarray(features, dtype=np.float64)
    return np.asarray(np.hypot(points[:, 0], points[:, 1]))


def closure_of(
    reference: WeightedSample, ratios: Mapping[str, FloatArray], target: WeightedSample
) -> ClosureResult:
    """Compare in the radius and in both coordinates, with the paper's 99 bins.

    Example:
        >>> events = toy_events("signed", 0, (10, 10, 1000))
        >>> [o.name for o in closure_of(events.reference, {"exact": events.exact}, events.target).observables]
        ['r', 'x', 'y']
    """
    return closure(
        reference,
        ratios,
        target,
        observables={"r": radius, "x": "x", "y": "y"},
        edges={"r": radial_edges},
    )


def stored_methods(result: ClosureResult) -> dict[str, dict[str, Any]]:
    """Return the histograms as numbers: by method, `target` or `reference`, then by observable.

    Example:
        >>> events = toy_events("signed", 0, (10, 10, 1000))
        >>> sorted(stored_methods(closure_of(events.reference, {"exact": events.exact}, events.target)))
        ['exact', 'reference', 'target']
    """
    stored: dict[str, dict[str, Any]] = {}
    for observable in result.observables:
        histograms = {"target": observable.target, "reference": observable.reference.histogram}
        histograms |= {entry.method: entry.histogram for entry in observable.methods}
        for name, histogram in histograms.items():
            stored.setdefault(name, {})[observable.name] = histogram_to_numbers(histogram)
    return stored
