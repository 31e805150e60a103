"""Ratios near the zeros of the reference: as exact as the stored networks, not as their float32 rounding."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from quasiratio.losses import loss_by_name
from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.ratios import SIGN_CLASSES, DirectModel, RatioModel, SignedMixtureModel, SignResolvedModel
from quasiratio.ratios.double_precision import needs_double
from quasiratio.ratios.signed_mixture import sign_pairs

KINDS = ("sign resolved", "signed mixture", "mse", "revert", "bce")
N_EVENTS = 20_000


def make(kind: str, n_members: int, *, tuned: bool = False, size: float = 3.0) -> RatioModel:
    """A model with random networks, whose reference changes its sign."""
    generator = torch.Generator().manual_seed(1)
    scaling = FeatureScaling(2)
    model: RatioModel
    if kind == "sign resolved":
        network = StackedMlp(n_members, 2, (16, 16), 4, generator=generator)
        model = SignResolvedModel(scaling, network, n_members, SIGN_CLASSES)
    elif kind == "signed mixture":
        network = StackedMlp(4 * n_members, 2, (16, 16), 1, generator=generator)
        coefficients = torch.tensor([[2.0, 1.5]]).repeat(n_members, 1)
        model = SignedMixtureModel(scaling, network, n_members, sign_pairs(SIGN_CLASSES), coefficients)
    else:
        network = StackedMlp(n_members, 2, (16, 16), 1, generator=generator)
        model = DirectModel(scaling, network, n_members, loss_by_name(kind))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(size)
    if tuned:
        model.tuned_with = loss_by_name("lsif")
    model.measure_noise(features()[:2000])
    return model.eval()


def features() -> np.typing.NDArray[np.float32]:
    return np.random.default_rng(2).normal(size=(N_EVENTS, 2)).astype(np.float32)


def exact(model: RatioModel) -> tuple[np.typing.NDArray[np.float64], np.typing.NDArray[np.float64]]:
    """Everything in float64."""
    double = deepcopy(model).double()
    with torch.inference_mode():
        outputs = double.outputs(double.scaling(torch.from_numpy(features()).double()))
        members, combined = double.member_values(outputs).ratio, double.combined_values(outputs).ratio
    return combined[0].numpy(), members.numpy()


def error(ratio: np.typing.NDArray[np.float64], truth: np.typing.NDArray[np.float64]) -> float:
    return float(np.max(np.abs(ratio - truth) / (1.0 + np.abs(truth))))


@pytest.mark.parametrize(("n_members", "tuned"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_exact_to_a_few_parts_in_a_million(kind: str, n_members: int, tuned: bool) -> None:
    model = make(kind, n_members, tuned=tuned)
    predictions = model.predict(features(), members=True)
    combined, members = exact(model)
    assert error(predictions.ratio, combined) < 1e-5
    assert error(predictions.members, members) < 1e-5


@pytest.mark.parametrize("kind", ["sign resolved", "signed mixture", "mse"])
def test_without_double_precision_they_would_not_be(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(kind, 1)
    monkeypatch.setattr(
        "quasiratio.ratios.ratio_model.needs_double",
        lambda ratio, *_: torch.zeros(ratio.shape[1], dtype=torch.bool),
    )
    assert error(model.predict(features()).ratio, exact(model)[0]) > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_the_sensitivity_is_the_gradient(kind: str) -> None:
    model = make(kind, 2, size=1.0)
    outputs = model.outputs(torch.from_numpy(features()[:500])).detach().double().requires_grad_()
    ratio = model.member_values(outputs).ratio
    (gradient,) = torch.autograd.grad(ratio.sum(), outputs)
    squares = (gradient * (1.0 + outputs.detach().abs())).square().sum(dim=2)
    expected = squares.view(2, -1, squares.shape[1]).sum(dim=1).sqrt()
    # A finite difference is rough near a pole, where all that matters is that it is large.
    is_regular = expected < 30.0 * (1.0 + ratio.detach().abs())
    torch.testing.assert_close(
        model.sensitivity(outputs.detach())[is_regular], expected[is_regular], rtol=0.1, atol=1e-3
    )


def test_few_events_of_an_ordinary_model_need_it() -> None:
    model = make("sign resolved", 1, size=1.0)
    outputs = model.outputs(model.scaling(torch.from_numpy(features()))).detach().double()
    ratio, sensitivity = model.member_values(outputs).ratio, model.sensitivity(outputs)
    assert 0 < float(needs_double(ratio, sensitivity, model.output_noise).double().mean()) < 0.2
    assert float(needs_double(ratio, sensitivity, 1e-6).double().mean()) == 1.0  # large noise: all of them
    nothing = torch.full_like(sensitivity, torch.nan)
    assert bool(needs_double(ratio, nothing, 1e-7).all())


def test_noise_is_measured_on_the_events() -> None:
    assert 1e-8 < make("sign resolved", 1).output_noise < 5e-7
    assert make("sign resolved", 1, size=30.0).output_noise > make("sign resolved", 1).output_noise
