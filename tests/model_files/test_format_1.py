"""A model of format 1, written by quasiratio 0.1.0, which every later version must load.

It is a stack of four methods (a tuned sign-resolved classifier, RoSMM with tuned coefficients, PARE with an
automatic pole, REVERT) with two members each, three activations and one feature in logarithm. Neither the
model nor the expected numbers may ever be written anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import quasiratio as qr
from quasiratio.estimators.loading import describe

HERE = Path(__file__).parent / "format_1"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    numbers = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    return {"candidates": numbers.pop("candidates")} | {
        name: np.array(values) for name, values in numbers.items()
    }


def test_it_predicts_what_it_predicted_then(expected: dict[str, Any]) -> None:
    """In float32, whose rounding depends on the machine."""
    model = qr.load(HERE / "model")
    ratio, std = model.predict_ratio(expected["features"], return_std=True)
    np.testing.assert_allclose(ratio, expected["ratio"], rtol=1e-6, atol=4e-6)
    np.testing.assert_allclose(std, expected["ratio_std"], rtol=1e-6, atol=4e-6)


def test_it_predicts_so_to_many_digits(expected: dict[str, Any]) -> None:
    """In float64, which a large noise asks for."""
    model = qr.load(HERE / "model")
    for candidate in model.candidates_.values():
        candidate.model_.output_noise = 1.0
    ratio, std = model.predict_ratio(expected["features"], return_std=True)
    np.testing.assert_allclose(ratio, expected["ratio"], rtol=1e-9)
    np.testing.assert_allclose(std, expected["ratio_std"], rtol=1e-9)
    np.testing.assert_allclose(model.predict_members(expected["features"]), expected["members"], rtol=1e-9)
    assert list(model.candidates_) == list(expected["candidates"])
    for name, values in expected["candidates"].items():
        np.testing.assert_allclose(
            model.candidates_[name].predict_ratio(expected["features"]), values, rtol=1e-9
        )


def test_it_is_what_it_was() -> None:
    model = qr.load(HERE / "model")
    assert model.feature_names_ == ("mass", "p_T (µ)")
    assert model.candidates_["pare"].log_features_ == ["p_T (µ)"]
    assert model.candidates_["pare"].loss_.eps > 0
    assert model.candidates_["pare"].loss.eps == "auto"
    assert model.candidates_["sign-resolved"].tuning_history_.stage == "tune:pare"
    assert model.candidates_["rosmm"].coefficients_.shape == (2, 2)
    assert model.candidates_["revert"].hidden_layers == [6]
    assert model.stack_weights_.sum() == pytest.approx(1.0)
    assert model.report_.best == "sign-resolved"
    assert model.fingerprint_.n_events == 6000
    content = describe(HERE / "model")
    assert content.versions["quasiratio"] == "0.1.0"
    assert content.notes == {"made with": "quasiratio 0.1.0"}


def test_it_can_be_saved_and_exported_again(expected: dict[str, Any], tmp_path: Path) -> None:
    model = qr.load(HERE / "model")
    model.save(tmp_path / "model")
    features = expected["features"].astype(np.float32)
    np.testing.assert_array_equal(
        qr.load(tmp_path / "model").predict_ratio(features), model.predict_ratio(features)
    )
    model.export_onnx(tmp_path / "model.onnx")
    (ratio,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(["ratio"], {"features": features})
    np.testing.assert_allclose(ratio, expected["ratio"], rtol=1e-6)
