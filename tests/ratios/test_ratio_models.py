"""Ratio models: chunks, members, the average of an ensemble, and Jensen's law for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from quasiratio.losses import LOSSES, RatioLoss, loss_by_name
from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.ratios import (
    SIGN_CLASSES,
    DirectModel,
    RatioModel,
    RatioView,
    SignedMixtureModel,
    SignResolvedModel,
    ratio_model,
)
from quasiratio.ratios.signed_mixture import SignPair, sign_pairs
from quasiratio.training import CrossEntropyObjective

N_MEMBERS = 3
MODELS = ("direct", "signed mixture", "sign resolved", "tuned sign resolved")


def make(kind: str, *, n_members: int = N_MEMBERS, seed: int = 0) -> RatioModel:
    generator = torch.Generator().manual_seed(seed)
    features = np.random.default_rng(1).normal(size=(100, 2)).astype(np.float32)
    scaling = FeatureScaling.from_data(features)
    if kind == "direct":
        return DirectModel(
            scaling, StackedMlp(n_members, 2, (8,), 1, generator=generator), n_members, loss_by_name("revert")
        )
    if kind == "signed mixture":
        pairs: tuple[SignPair, ...] = sign_pairs(SIGN_CLASSES)
        coefficients = torch.tensor([[1.2, 1.4]]).repeat(n_members, 1)
        network = StackedMlp(n_members * len(pairs), 2, (8,), 1, generator=generator)
        return SignedMixtureModel(scaling, network, n_members, pairs, coefficients)
    network = StackedMlp(n_members, 2, (8,), 4, generator=generator)
    model = SignResolvedModel(scaling, network, n_members, SIGN_CLASSES)
    if kind.startswith("tuned"):
        model.tuned_with = loss_by_name("pare")
    return model


def features(n: int = 1000) -> np.typing.NDArray[np.float32]:
    return np.random.default_rng(2).normal(size=(n, 2)).astype(np.float32)


@pytest.mark.parametrize("kind", MODELS)
def test_predictions_do_not_depend_on_the_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(kind)
    whole = model.predict(features(), members=True)
    for size in (1000, 333, 64):
        monkeypatch.setattr(ratio_model, "_CHUNK_VALUES", size * model.network.width)
        parts = model.predict(features(), members=True)
        # A ratio n/d carries the float32 rounding of d multiplied by r^2; an average that of its worst member.
        rounding = 2e-6 * (1.0 + whole.members**2)
        assert np.all(np.abs(parts.members - whole.members) <= rounding)
        assert np.all(np.abs(parts.ratio - whole.ratio) <= rounding.max(axis=0) + 2e-6 * whole.ratio**2)
        assert parts.n_nonpositive_reference == whole.n_nonpositive_reference
    assert whole.ratio.shape == (1000,)
    assert whole.ratio.dtype == np.float64
    assert whole.members.shape == (N_MEMBERS, 1000)


@pytest.mark.parametrize("kind", MODELS)
def test_no_events_no_predictions(kind: str) -> None:
    assert make(kind).predict(features(0)).ratio.shape == (0,)


@pytest.mark.parametrize("kind", MODELS)
def test_one_member_is_its_own_ensemble(kind: str) -> None:
    predictions = make(kind, n_members=1).predict(features(), members=True)
    np.testing.assert_array_equal(predictions.ratio, predictions.members[0])


@pytest.mark.parametrize("kind", MODELS)
def test_the_view_for_tuning_gives_the_member_ratios(kind: str) -> None:
    model = make(kind)
    inputs = model.scaling(torch.from_numpy(features(50)))
    seen = RatioView(model)(inputs).detach().numpy()
    np.testing.assert_allclose(seen, model.predict(features(50), members=True).members, rtol=1e-3, atol=1e-4)
    for_each = RatioView(model)(inputs.expand(N_MEMBERS, -1, -1)).detach().numpy()
    np.testing.assert_allclose(for_each, seen, rtol=1e-5)


def test_equal_members_average_to_themselves() -> None:
    for kind in MODELS:
        model = make(kind)
        with torch.no_grad():
            for parameter in model.network.parameters():
                block = len(parameter) // N_MEMBERS
                parameter.copy_(parameter[:block].repeat(N_MEMBERS, *[1] * (parameter.dim() - 1)))
        predictions = model.predict(features(), members=True)
        np.testing.assert_allclose(predictions.ratio, predictions.members[0], rtol=1e-6)


def weighted_events(n: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(3)
    return torch.from_numpy(rng.integers(0, 2, n).astype(float)), torch.from_numpy(rng.exponential(1.0, n))


@pytest.mark.parametrize("name", LOSSES)
def test_the_risk_of_the_averaged_direct_model_is_at_most_the_mean_risk(name: str) -> None:
    """Jensen's law, exactly, on positive weights and widely different members."""
    loss: RatioLoss = loss_by_name(name)
    network = StackedMlp(N_MEMBERS, 2, (8,), 1, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4.0)
    model = DirectModel(FeatureScaling(2), network, N_MEMBERS, loss)
    outputs = model.outputs(torch.from_numpy(features())).detach().double()
    labels, weights = weighted_events(1000)
    risks = (loss.per_event(outputs[..., 0], labels.expand(N_MEMBERS, -1)) * weights).mean(dim=1)
    average = (loss.per_event(model.average(outputs)[0, :, 0], labels) * weights).mean()
    assert float(risks.std()) > 1e-3  # the members differ
    assert float(average) < float(risks.mean())
    through_ratio = loss.link.raw(model.combined_values(outputs).ratio[0])
    torch.testing.assert_close(
        (loss.per_event(through_ratio, labels) * weights).mean(), average, rtol=1e-6, atol=1e-9
    )


def test_the_risk_of_the_averaged_softmax_is_at_most_the_mean_risk() -> None:
    model = make("sign resolved")
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.mul_(4.0)
    outputs = model.outputs(torch.from_numpy(features())).detach().double()
    _, weights = weighted_events(1000)
    classes = torch.from_numpy(np.random.default_rng(4).integers(0, 4, 1000))
    objective = CrossEntropyObjective()
    risks = (objective.per_event(outputs, classes.expand(N_MEMBERS, -1)) * weights).mean(dim=1)
    average = (objective.per_event(model.average(outputs), classes[None]) * weights).mean()
    assert float(risks.std()) > 1e-3
    assert float(average) < float(risks.mean())


@pytest.mark.parametrize("name", ["pare", "lsif"])
def test_the_risk_of_the_averaged_tuned_model_is_at_most_the_mean_risk(name: str) -> None:
    loss = loss_by_name(name)
    model = make("sign resolved")
    model.tuned_with = loss
    with torch.no_grad():
        model.network.biases[-1][:, 0, 1] = -4.0  # a reference that stays positive: finite ratios
    outputs = model.outputs(torch.from_numpy(features())).detach().double()
    labels, weights = weighted_events(1000)

    def risk(ratio: Tensor) -> float:
        return float((loss.per_event(loss.link.raw(ratio), labels.expand(len(ratio), -1)) * weights).mean())

    members, combined = model.member_values(outputs).ratio, model.combined_values(outputs).ratio
    assert combined.shape == (1, 1000)
    assert risk(combined) < risk(members)
    in_raw = loss.link.ratio(loss.average(loss.link.raw(members)))
    torch.testing.assert_close(combined[0], in_raw)  # averaged in the coordinate of the tuning loss
    model.tuned_with = None
    untuned = model.combined_values(outputs).ratio
    assert not torch.allclose(untuned, combined, rtol=1e-4)  # and in log-probabilities else
