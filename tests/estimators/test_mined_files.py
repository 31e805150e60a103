"""Mined estimators in files: saved and loaded to the bit, and as ONNX graphs with the parameters as an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import quasiratio as qr
from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase

onnxruntime = pytest.importorskip("onnxruntime")
QUICK: dict[str, Any] = {"max_steps": 100, "random_state": 0, "weight_decay": 0.03}
METHODS = ("regression", "sign-resolved", "positive")
THETA = np.array([0.4, -0.2])


@pytest.fixture(scope="module", params=[(m, n, k) for m in METHODS for n, k in ((0.0, 1), (0.5, 3))], ids=str)
def fitted(request: pytest.FixtureRequest) -> tuple[qr.PolynomialRatio, np.ndarray]:
    method, negative, n_members = request.param
    case = LatentAmplitudeCase(negative=negative)
    events = case.sample(6000, np.random.default_rng(0))
    model = qr.PolynomialRatio(case.basis, method=method, n_members=n_members, **QUICK)
    return model.fit(events.features, events.mined, events.weights), events.features[:500].astype(np.float32)


def test_a_saved_model_is_the_same(fitted: tuple[qr.PolynomialRatio, np.ndarray], tmp_path: Path) -> None:
    model, X = fitted
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert isinstance(again, qr.PolynomialRatio)
    assert again.basis == model.basis
    np.testing.assert_array_equal(again.predict_coefficients(X), model.predict_coefficients(X))
    np.testing.assert_array_equal(
        again.predict_ratio(X, [THETA, 2 * THETA]), model.predict_ratio(X, [THETA, 2 * THETA])
    )
    assert again.rate(THETA) == model.rate(THETA)
    assert str(again.fit_check_) == str(model.fit_check_)
    if model.n_members > 1:
        np.testing.assert_array_equal(
            again.predict_ratio(X, THETA, return_std=True)[1],
            model.predict_ratio(X, THETA, return_std=True)[1],
        )
    again.save(tmp_path / "again")
    for name in ("model.json", "weights.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_onnx_takes_the_parameters(fitted: tuple[qr.PolynomialRatio, np.ndarray], tmp_path: Path) -> None:
    model, X = fitted
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert json.loads(session.get_modelmeta().custom_metadata_map["parameters"]) == ["a", "b"]
    theta = THETA.astype(np.float32)
    ratio, intensity = session.run(["ratio", "intensity"], {"features": X, "theta": theta[None]})
    np.testing.assert_allclose(ratio, model.predict_ratio(X, theta), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(intensity, model.predict_intensity(X, theta), rtol=2e-6, atol=1e-6)
    each = np.random.default_rng(0).normal(scale=0.3, size=(500, 2)).astype(np.float32)
    (own,) = session.run(["intensity"], {"features": X, "theta": each})
    expected = np.sum(model.basis(each) * model.predict_coefficients(X), axis=1)
    np.testing.assert_allclose(own, expected, rtol=2e-6, atol=1e-6)
    if model.n_members > 1:
        (std,) = session.run(["ratio_std"], {"features": X, "theta": theta[None]})
        np.testing.assert_allclose(
            std, model.predict_ratio(X, theta, return_std=True)[1], rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
def test_joint_ratios_in_files(method: Any, tmp_path: Path) -> None:
    case = LatentExponentialCase(slopes=(0.7, -0.7))
    events = case.sample(3000, np.random.default_rng(0))
    model = qr.JointRatio(method=method, n_members=2, **QUICK).fit(events.features, events.mined)
    model.save(tmp_path / "model")
    X = events.features[:300].astype(np.float32)
    np.testing.assert_array_equal(qr.load(tmp_path / "model").predict_ratio(X), model.predict_ratio(X))
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    ratio, std = session.run(["ratio", "ratio_std"], {"features": X})
    expected = model.predict_ratio(X, return_std=True)
    np.testing.assert_allclose(ratio, expected[0], rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-4, atol=1e-6)


def test_a_document_with_another_basis_or_other_outputs_is_refused(
    fitted: tuple[qr.PolynomialRatio, np.ndarray],
) -> None:
    model = fitted[0]
    for place, value, complaint in (
        (("parameters", "basis", "order"), 3, "number of terms"),
        (("model", "network", "n_outputs"), 40, "number of outputs"),
        (("model", "n_members"), 7, "members"),
    ):
        document = model.fitted_document().model_dump(mode="json")
        part = document
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = value
        with pytest.raises(ValidationError, match=complaint):
            type(model).document_type().model_validate(document)


def test_a_model_whose_parameters_were_changed_is_saved_as_it_was_fitted(tmp_path: Path) -> None:
    """`n_members` is a parameter, which may be set for the next fit; the fitted members are those of the model."""
    case = LatentAmplitudeCase()
    events = case.sample(2000, np.random.default_rng(0))
    model = qr.PolynomialRatio(case.basis, n_members=2, max_steps=20, random_state=0)
    model.fit(events.features, events.mined).set_params(n_members=1)
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model", expected=qr.PolynomialRatio)
    expected = model.predict_ratio(events.features, [0.5, 0.0], return_std=True)
    for one, other in zip(
        again.predict_ratio(events.features, [0.5, 0.0], return_std=True), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)
