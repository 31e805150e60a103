"""Several weights in one fit, on a toy whose ratios are known for every weight."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.mined_check import MinedCheck
from quasiratio.estimators.variation_factors import VariationFactors

N_EVENTS = 6000
NOISE = 0.5


def toy(seed, mean, slope, negative=0.0):
    """Events with a hidden z behind x; 'up' depends on z, 'down' on the other feature, 'rate' on nothing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(mean, 1.0, N_EVENTS)
    features = np.column_stack([z + NOISE * rng.normal(size=N_EVENTS), rng.normal(size=N_EVENTS)])
    nominal = np.where(rng.random(N_EVENTS) < negative, -1.0, 1.0) * rng.uniform(0.5, 1.5, N_EVENTS)
    factors = {
        "nominal": 1.0,
        "up": 1.0 + slope * np.tanh(z),
        "down": 1.0 - slope * np.tanh(features[:, 1]),
        "rate": 1.3,
    }
    return features.astype(np.float32), {name: nominal * factor for name, factor in factors.items()}


def up_factor(x, mean, slope):
    """Return E[1 + slope tanh z | x]; z is normal given x."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    width = NOISE / np.sqrt(1.0 + NOISE**2)
    centre = mean + (x - mean) / (1.0 + NOISE**2)
    return 1.0 + slope * np.tanh(centre[:, None] + width * nodes) @ shares / shares.sum()


def true_factors(features):
    x, other = features[:, 0].astype(float), np.tanh(features[:, 1].astype(float))
    return {
        "up": up_factor(x, 0.3, 0.4) / up_factor(x, 0.0, 0.2),
        "down": (1.0 - 0.4 * other) / (1.0 - 0.2 * other),
    }


def fitted(original, target, original_weight, target_weight, **parameters):
    ratio = qr.SignResolvedRatio(max_steps=400, random_state=0, verbose=False, **parameters)
    model = qr.VariationReweighter(ratio, total="original")
    return model.fit(original, target, original_weight, target_weight)


@pytest.fixture(scope="module", params=[0.0, 0.15], ids=["positive", "signed"])
def case(request):
    original, weights = toy(0, 0.0, 0.2, request.param)
    target, target_weights = toy(1, 0.3, 0.4, request.param)
    return original, weights, target, target_weights, fitted(original, target, weights, target_weights)


def test_factors_of_all_weights_are_those_of_the_closed_form(case) -> None:
    original, *_, model = case
    ratios = model.predict_ratios(original)
    quotients = dict(zip(model.names_, (ratios / ratios[:, :1]).T, strict=True))
    for name, truth in true_factors(original).items():
        relative = quotients[name] / truth
        assert np.std(relative / relative.mean()) < 0.15 * np.std(truth / truth.mean())
    np.testing.assert_allclose(quotients["rate"], 1.0, rtol=1e-12)  # a constant has nothing to learn


def test_every_ratio_is_normalised_with_its_own_weight(case) -> None:
    original, weights, *_, model = case
    ratios = model.predict_ratios(original)
    means = [np.average(ratios[:, k], weights=weights[name]) for k, name in enumerate(model.names_)]
    assert means[0] == pytest.approx(1.0, abs=0.01)  # of the events that trained it, exactly
    np.testing.assert_allclose(means, means[0], rtol=1e-9)
    new = model.predict_weights(original, weights)
    for name, values in new.items():
        assert values.sum() == pytest.approx(weights[name].sum(), rel=1e-9)


def test_files_give_the_same_ratios(case, tmp_path) -> None:
    original, *_, model = case
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_ratios(original), model.predict_ratios(original))
    assert again.names_ == ["nominal", "up", "down", "rate"]
    up = again.varied("up").predict_ratio(original)
    np.testing.assert_array_equal(up, model.predict_ratios(original)[:, 1])


def test_onnx_has_one_output_per_weight(case, tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    original, *_, model = case
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [f"weight_factor_{name}" for name in model.names_]
    assert [output.name for output in session.get_outputs()] == names
    expected = model.scales_ * model.predict_ratios(original)
    found = np.stack(session.run(names, {"features": original}), axis=1)
    assert np.max(np.abs(found - expected) / (1.0 + np.abs(expected))) < 1e-5


def test_a_variation_that_depends_on_the_sign_is_learned() -> None:
    """Here E_w and E_|w| differ: the factor of |w| alone would be flat."""
    rng = np.random.default_rng(0)
    n_events = 20_000
    x = rng.uniform(-1.0, 1.0, (n_events, 1)).astype(np.float32)
    weights = np.where(rng.random(n_events) < 0.25, -1.0, 1.0)
    varied = weights * (1.0 + np.where(weights > 0, 0.25, 0.75) * np.sign(weights) * x[:, 0])
    ratio = qr.SignResolvedRatio(max_steps=400, random_state=0, verbose=False)
    factors = VariationFactors.learned(
        ratio, ["up"], qr.WeightedSample(x, weights), np.stack([weights, varied], axis=1), "positive"
    )
    # E_w = E_|w|[s delta]/E_|w|[s] = (0.75 * 0.25 + 0.25 * 0.75) x / 0.5 = 0.75 x, while E_|w|[delta] = 0
    assert len(factors.parts) == 2
    found = factors.predict(qr.WeightedSample(x))[:, 0]
    assert np.sqrt(np.mean((found - 1.0 - 0.75 * x[:, 0]) ** 2)) < 0.08


def test_a_failed_factor_fails_the_model_wherever_it_is_shown(case, tmp_path) -> None:
    model = copy.copy(case[4])
    factors = model.target_factors_[0]
    broken = copy.copy(factors.parts[0])
    broken.fit_check_ = MinedCheck("failed", 100, reasons=("Worse than a constant: up.",))
    model.target_factors_ = [VariationFactors(factors.names, (broken, *factors.parts[1:]))]
    assert model.fit_check_.status == "failed"
    assert "Variations of the target: Worse than a constant: up." in str(model.fit_check_)
    model.save(tmp_path / "model")
    shown = (
        CliRunner().invoke(app, ["models", "show", str(tmp_path / "model")], catch_exceptions=False).stdout
    )
    assert shown.startswith("DO NOT USE THIS FIT")
    model.target_factors_ = [VariationFactors(factors.names, (factors.parts[0], broken))]
    assert model.fit_check_.status == case[4].fit_check_.status  # its terms were chosen on events kept aside


def test_one_array_serves_all_variations_and_folds_have_their_own(tmp_path) -> None:
    original, _ = toy(0, 0.0, 0.0)
    target, weights = toy(1, 0.3, 0.4)
    ratio = qr.SignResolvedRatio(max_steps=100, random_state=0, verbose=False)
    model = qr.VariationReweighter(ratio, n_folds=2).fit(original, target, target_weight=weights)
    assert [len(one.parts) for one in (*model.original_factors_, *model.target_factors_)] == [0, 0, 1, 1]
    new = model.predict_weights(original)
    for name, values in weights.items():  # by default the sums are those of the target, rates included
        assert new[name].sum() == pytest.approx(values.sum(), rel=1e-6)
    onnxruntime = pytest.importorskip("onnxruntime")
    model.export_onnx(tmp_path / "model.onnx")
    (found,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(
        ["weight_factor_up"], {"features": original}
    )
    np.testing.assert_allclose(found, new["up"], rtol=1e-5, atol=1e-5)


def test_members_spread_and_average() -> None:
    original, weights = toy(0, 0.0, 0.2)
    target, target_weights = toy(1, 0.3, 0.4)
    ratio = qr.SignResolvedRatio(max_steps=50, n_members=2, random_state=0, verbose=False)
    model = qr.VariationReweighter(ratio).fit(original, target, weights, target_weights)
    predicted = model.varied("up").predict_with_members(original, members=True)
    assert predicted.members.shape == (2, N_EVENTS)
    assert np.all(predicted.members.std(axis=0) > 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: {"nominal": w["nominal"]}, "at least two with names"),
        (lambda w: w | {"up": np.full(N_EVENTS, np.nan)}, "'up' of the target cannot be used"),
        (lambda w: w | {"up": -w["up"]}, "with 'up', sum to"),
        (
            lambda w: w | {"nominal": np.where(np.arange(N_EVENTS) < 7, 0.0, w["nominal"])},
            "Got 7 of 6000 events of the target with the nominal weight 'nominal' zero",
        ),
        (lambda _: None, "Got no weights by name"),
    ],
)
def test_bad_weights_are_one_sentence(change, message) -> None:
    original, _ = toy(0, 0.0, 0.2)
    target, weights = toy(1, 0.3, 0.4)
    with pytest.raises(InvalidInputError, match=message):
        fitted(original, target, None, change(weights))


def test_unknown_variations_are_named(case) -> None:
    *_, model = case
    with pytest.raises(InvalidInputError, match="Got the variation 'left'; expected one of nominal, up"):
        model.varied("left")
