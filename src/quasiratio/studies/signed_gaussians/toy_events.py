"""The signed Gaussian toys of one seed, and how a ratio is judged on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.distributions import SignedGaussianCase, SignedGaussianMixture, signed_gaussian_case
from quasiratio.metrics import ClosureResult, closure, radial_edges
from quasiratio.sample import WeightedSample
from quasiratio.studies.output.stored_closure import finite_ratios, histogram_to_numbers

__all__ = [
    "OBSERVABLES",
    "SIGNS",
    "ToyEvents",
    "closure_of",
    "pair_name",
    "radius",
    "stored_methods",
    "sub_density_closures",
    "toy_events",
]

SIGNS = {1: "+", -1: "-"}


def pair_name(pair: tuple[int, int]) -> str:
    """Return the signs of a sub-ratio as text, that of the reference part first.

    Example:
        >>> pair_name((1, -1))
        '+-'
    """
    return "".join(SIGNS[sign] for sign in pair)


def sub_density_closures(estimator: Any, events: ToyEvents) -> dict[str, Any]:  # noqa: ANN401 - a fitted RoSMM
    """Return stored histograms by pair, then by target, reference, `sub-ratio` and `exact`, then by observable.

    Args:
        estimator: A fitted `SignedMixtureRatio`.
        events: The events of its fit.
    """
    reference, target = events.signed_test_samples()
    learned = estimator.predict_sub_ratios(reference.features)
    stored = {}
    for pair in learned:
        of_reference = _part(reference, pair[0])
        of_target = _part(target, pair[1])
        chosen = _is_of_sign(reference, pair[0])
        ratios = {
            "sub-ratio": finite_ratios(learned[pair][chosen]).ratio,
            "exact": _component(events.case.target, pair[1]).density_ratio(
                _component(events.case.reference, pair[0]), of_reference.features
            ),
        }
        stored[pair_name(pair)] = stored_methods(closure_of(of_reference, ratios, of_target))
    return stored


def _part(sample: WeightedSample, sign: int) -> WeightedSample:
    chosen = _is_of_sign(sample, sign)
    return WeightedSample(sample.features[chosen], np.abs(sample.weights[chosen]), sample.names)


def _is_of_sign(sample: WeightedSample, sign: int) -> np.typing.NDArray[np.bool_]:
    return np.asarray((sample.weights < 0) == (sign < 0))


def _component(mixture: SignedGaussianMixture, sign: int) -> SignedGaussianMixture:
    """Return the Gaussian that is added, or the one that is subtracted, alone."""
    sigma = mixture.sigma_1 if sign > 0 else mixture.sigma_2
    return SignedGaussianMixture(1.0, sigma, sigma)


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
        squares = (finite - self.exact) ** 2
        squared_error = np.average(squares, weights=self.reference.weights)
        if (
            squared_error < 0
        ):  # with signed weights the mean of a square can fluctuate below zero; this one cannot
            squared_error = np.average(squares, weights=np.abs(self.reference.weights))
        return {
            "chi2": entry.chi_squared.value,
            "exact_chi2": self.exact_chi2,
            "chi2_to_exact": entry.chi_squared.value / self.exact_chi2,
            "entropy": entry.relative_entropy.value,
            "rms": float(np.sqrt(squared_error)),
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
