"""The events that all points share: the Nonnegative toy, unweighted, drawn by inverse transform."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from scipy.integrate import quad
from torch import Tensor

from quasiratio.distributions import signed_gaussian_case
from quasiratio.metrics import WeightedHistogram, tsallis_relative_entropy, weighted_histogram
from quasiratio.metrics.arrays import FloatArray

__all__ = ["EventSizes", "SharedEvents", "optimal_cross_entropy", "shared_events"]

_EDGES = np.linspace(0.0, 8.0, 150)


@dataclass(frozen=True)
class EventSizes:
    """Events per class.

    Args:
        training: For training.
        validation: For early stopping; always the same ones.
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
    """Features as network inputs, and labels, in random order.

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
    rng = np.random.default_rng([seed, 8])
    reference, target = case.test_samples(sizes.training + sizes.validation + sizes.test, rng)
    scale = float(np.std(reference.features[: sizes.training], dtype=np.float64))

    def mixed(first: int, last: int) -> tuple[Tensor, Tensor]:
        features = np.concatenate([reference.features[first:last], target.features[first:last]])
        labels = np.repeat(np.array([0, 1], dtype=np.float32), last - first)
        order = rng.permutation(len(labels))
        inputs = (features[order] / scale).astype(np.float32)
        return torch.from_numpy(inputs), torch.from_numpy(labels[order])

    first_test = sizes.training + sizes.validation
    radii = [np.hypot(*sample.features[first_test:].T.astype(np.float64)) for sample in (reference, target)]
    return SharedEvents(
        *mixed(0, sizes.training),
        *mixed(sizes.training, first_test),
        torch.from_numpy((reference.features[first_test:] / scale).astype(np.float32)),
        radii[0],
        weighted_histogram(radii[1], edges=_EDGES),
    )


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
