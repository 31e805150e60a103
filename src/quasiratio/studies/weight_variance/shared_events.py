"""The events that all points share: the Nonnegative toy, unweighted, drawn by inverse transform."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import quad
from torch import Tensor

from quasiratio.distributions import signed_gaussian_case
from quasiratio.metrics import WeightedHistogram, tsallis_relative_entropy, weighted_histogram
from quasiratio.metrics.arrays import FloatArray
from quasiratio.sample import WeightedSample

__all__ = ["EventSizes", "SharedEvents", "optimal_cross_entropy", "shared_events"]

_EDGES = np.linspace(0.0, 8.0, 150)
_STUDY = 8


@dataclass(frozen=True)
class EventSizes:
    """Events per class.

    Args:
        training: For training.
        validation: For early stopping; always the same ones, the first of them for RoSMM_r.
        test: For the relative entropy.

    Example:
        >>> EventSizes(training=4_400_000, validation=32_768, test=2_400_000).training
        4400000
    """

    training: int
    validation: int
    test: int


@dataclass(frozen=True, eq=False)
class SharedEvents:
    """Features as network inputs, and labels: events in random order, the classes in turn.

    Args:
        training: `(n, 2)` inputs.
        training_labels: One for the target.
        validation: `(m, 2)` inputs.
        validation_labels: One for the target.
        test_reference: Inputs of the unweighted test reference.
        reference_radii: Their radii.
        target_histogram: Radii of the unweighted test target in 149 bins on [0, 8].
    """

    training: Tensor
    training_labels: Tensor
    validation: Tensor
    validation_labels: Tensor
    test_reference: Tensor
    reference_radii: FloatArray
    target_histogram: WeightedHistogram

    def with_validation(self, n_events: int) -> SharedEvents:
        """Return the same with the first validation events only."""
        validation, labels = self.validation[:n_events], self.validation_labels[:n_events]
        return replace(self, validation=validation, validation_labels=labels)

    def relative_entropy(self, ratios: FloatArray) -> float:
        """Return D_S2 of the reference, reweighted by `ratios`, and the target; NaN where a ratio is not finite."""
        if not np.all(np.isfinite(ratios)):
            return float("nan")
        reweighted = weighted_histogram(self.reference_radii, ratios, edges=_EDGES)
        return tsallis_relative_entropy(reweighted, self.target_histogram).value


@lru_cache(maxsize=1)
def shared_events(seed: int, sizes: EventSizes) -> SharedEvents:
    """Draw the events of a seed; the last ones are remembered.

    Example:
        >>> events = shared_events(0, EventSizes(training=1000, validation=100, test=1000))
        >>> events.training.shape, float(events.training_labels.mean())
        (torch.Size([2000, 2]), 0.5)
    """
    case = signed_gaussian_case("nonnegative")
    # A stream for each part: the size of one does not change the events of another.
    streams = [np.random.default_rng([seed, _STUDY, part]) for part in range(3)]
    training = case.test_samples(sizes.training, streams[0])
    validation = case.test_samples(sizes.validation, streams[1])
    reference, target = case.test_samples(sizes.test, streams[2])
    scale = float(np.std(training[0].features, dtype=np.float64))
    radii = [np.hypot(*sample.features.T.astype(np.float64)) for sample in (reference, target)]
    return SharedEvents(
        *_mixed(training, scale, streams[0]),
        *_mixed(validation, scale, streams[1]),
        _scaled(reference.features, scale),
        radii[0],
        weighted_histogram(radii[1], edges=_EDGES),
    )


def _mixed(
    samples: tuple[WeightedSample, WeightedSample], scale: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return inputs and labels of both classes, the classes in turn, so that the first events have both alike."""
    features = np.stack([sample.features[rng.permutation(len(sample))] for sample in samples], axis=1)
    labels = np.tile(np.array([0, 1], dtype=np.float32), len(features))
    return _scaled(features.reshape(len(labels), -1), scale), torch.from_numpy(labels)


def _scaled(features: npt.NDArray[np.floating[Any]], scale: float) -> Tensor:
    return torch.from_numpy((features / scale).astype(np.float32))


def optimal_cross_entropy() -> float:
    r"""Return $\frac12 \int [q_0 \ln(1 + r^*) + q_1 \ln(1 + 1/r^*)]\,dx$, the lowest loss that is possible.

    Example:
        >>> round(optimal_cross_entropy(), 4)
        0.6661
    """
    case = signed_gaussian_case("nonnegative")

    def integrand(radius: float) -> float:
        q0, q1 = (float(mixture.radial_density(radius)) for mixture in (case.reference, case.target))
        terms = (q0 * np.log1p(q1 / q0) if q0 > 0 else 0.0) + (q1 * np.log1p(q0 / q1) if q1 > 0 else 0.0)
        return 0.5 * float(terms)

    return float(quad(integrand, 0.0, 30.0, limit=200, points=[1.0, 3.0, 6.0, 10.0])[0])
