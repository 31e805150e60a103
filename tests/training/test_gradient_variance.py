"""The paper's variance identity holds on sampled weights, within statistical errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from quasiratio.distributions import signed_gaussian_case
from quasiratio.losses import Bce, Lsif, RatioLoss
from quasiratio.networks import StackedMlp
from quasiratio.sample import WeightedSample
from quasiratio.training.gradient_variance import measure_gradient_variance, per_event_gradients

CASE = signed_gaussian_case("nonnegative")


def stacked(
    reference: WeightedSample, target: WeightedSample
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    features = np.concatenate([reference.features, target.features]) / 2.5
    weights = np.concatenate([s.weights / s.weights.mean() for s in (reference, target)])
    labels = np.repeat([0.0, 1.0], [len(reference), len(target)])
    return tuple(torch.from_numpy(a).float() for a in (features, labels, weights))  # type: ignore[return-value]


@pytest.mark.parametrize("loss", [Bce(), Lsif()])
def test_identity_holds_on_signed_sample(loss: RatioLoss) -> None:
    rng = np.random.default_rng(5)
    weighted = stacked(*CASE.samples(30_000, rng))
    features, labels, _ = stacked(*CASE.test_samples(30_000, rng))
    network = StackedMlp(1, 2, (6,), 1, generator=torch.Generator().manual_seed(1))
    result = measure_gradient_variance(network, loss, weighted, (features, labels))
    assert result.formula > 10 * result.error, "the effect must be visible for the test to mean anything"
    assert abs(result.excess - result.formula) < 4 * result.error


def test_per_event_gradients_sum_to_the_gradient() -> None:
    network = StackedMlp(1, 2, (4,), 1, generator=torch.Generator().manual_seed(0))
    features, labels = torch.randn(10, 2), torch.arange(10).remainder(2).float()
    loss = Bce()
    loss.per_event(network(features)[0, :, 0], labels).sum().backward()
    total = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    torch.testing.assert_close(per_event_gradients(network, loss, features, labels).sum(dim=0), total)
