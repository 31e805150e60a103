"""What the demo computes: samples of the Signed case, four fits, their closure and their ratios."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.distributions import SignedGaussianCase, signed_gaussian_case
from quasiratio.errors import DivergenceWarning, NegativeWeightWarning, QuasiratioWarning
from quasiratio.estimators import DirectRatio, RatioEstimator, SignedMixtureRatio, SignResolvedRatio
from quasiratio.metrics import ObservableClosure, closure, radial_edges
from quasiratio.plots import RatioCurve

__all__ = ["DemoResult", "run_demo", "short_notes"]

EXACT = "exact ratio"
_N_RADII, _N_ANGLES = 141, 48


@dataclass(frozen=True)
class DemoResult:
    """The demo's numbers and curves, ready for tables and figures.

    Args:
        n_events: Training events per class.
        closure: Radial closure of each method, the exact ratio last.
        curves: The learned ratio of each method along the radius; the band is its spread over the angle.
        exact_curve: The exact ratio along the radius.
        seconds: Time of each fit.
        notes: One sentence per method whose fit had something to say.
    """

    n_events: int
    closure: ObservableClosure
    curves: tuple[RatioCurve, ...]
    exact_curve: RatioCurve
    seconds: dict[str, float]
    notes: tuple[str, ...]


def demo_methods(max_steps: int, seed: int) -> dict[str, RatioEstimator]:
    """Return the unfitted methods by name.

    Cross-entropy gets a tenth of the default rate: at the default its risk runs away so fast that the ratio
    is lost at every radius, and not only where the density is negative.
    """
    methods: dict[str, RatioEstimator] = {
        "MLP, BCE": DirectRatio(loss="bce", learning_rate=1e-3),
        "RoSMM": SignedMixtureRatio(),
        "REVERT": DirectRatio(loss="revert"),
        "sign-resolved": SignResolvedRatio(),
    }
    for method in methods.values():
        method.set_params(max_steps=max_steps, random_state=seed)
    return methods


def run_demo(
    n_events: int,
    *,
    seed: int,
    max_steps: int,
    report: Callable[[str, float], None] | None = None,
) -> DemoResult:
    """Fit all methods on one sample of the Signed case and compare them on another.

    Args:
        n_events: Events per class, for training and again for the test.
        seed: Seed of the samples and the fits.
        max_steps: Optimiser steps of each fit.
        report: Called after each fit with the method and its seconds.

    Example:
        >>> run_demo(1000, seed=0, max_steps=1).exact_curve.name
        'exact ratio'
    """
    case = signed_gaussian_case("signed")
    rng = np.random.default_rng(seed)
    reference, target = case.samples(n_events, rng)
    test_reference, test_target = case.test_samples(n_events, rng)
    rings = _Rings(case)

    ratios, curves, seconds, notes = {}, [], {}, []
    test_features = np.array(test_reference.features)
    for name, method in demo_methods(max_steps, seed).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", QuasiratioWarning)
            start = time.perf_counter()
            method.fit_samples(reference, target)
            seconds[name] = time.perf_counter() - start
            ratios[name] = method.predict_ratio(test_features)
            curves.append(rings.curve(name, method.predict_ratio(rings.points)))
        notes.extend(short_notes(name, caught))
        if report is not None:
            report(name, seconds[name])
    ratios[EXACT] = case.exact_ratio(test_reference.features)
    result = closure(
        test_reference, ratios, test_target, observables={"r": _radius}, edges={"r": radial_edges}
    )
    exact = RatioCurve(EXACT, rings.radii, case.exact_ratio(rings.axis))
    return DemoResult(n_events, result["r"], tuple(curves), exact, seconds, tuple(notes))


class _Rings:
    """Points on circles, up to the radius that holds all but 0.1% of either sample's events."""

    def __init__(self, case: SignedGaussianCase) -> None:
        widest = min(case.reference.sigma_1, case.target.sigma_1)
        self.radii = np.linspace(0.0, widest * np.sqrt(2 * np.log(1e3)), _N_RADII)
        self.axis = np.stack([self.radii, np.zeros(_N_RADII)], axis=1)
        angles = np.linspace(0.0, 2 * np.pi, _N_ANGLES, endpoint=False)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self.points = (self.radii[:, None, None] * circle).reshape(-1, 2)

    def curve(self, name: str, ratios: npt.NDArray[np.float64]) -> RatioCurve:
        return RatioCurve.from_draws(name, self.radii, ratios.reshape(_N_RADII, _N_ANGLES))


def _radius(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(np.hypot(features[:, 0], features[:, 1]))


def short_notes(name: str, caught: list[warnings.WarningMessage]) -> list[str]:
    """Turn the expected warnings of a fit into one sentence, and keep the first of every other kind."""
    kinds = [warning.category for warning in caught]
    if any(issubclass(kind, DivergenceWarning) for kind in kinds):
        return [
            f"{name} cannot express a negative ratio, and its risk ran away where the density is negative."
        ]
    if any(issubclass(kind, NegativeWeightWarning) for kind in kinds):
        return [f"{name} cannot express a negative ratio, and the density is negative in the middle."]
    first = {warning.category: warning.message for warning in reversed(caught)}
    return [f"{name}: {message}" for message in first.values()]
