"""A model of format 1, written by quasiratio 0.1.0, which every later version must load.

It is a stack of four methods (a tuned sign-resolved classifier, RoSMM with tuned coefficients, PARE with an
automatic pole, REVERT) with two members each, three activations and one feature in logarithm. Neither the
model nor the expected numbers may ever be written anew. `expected.json` has them in float64, `single_precision.json` as the
code that wrote the model gives them; it gives both to the bit on the machine that `made_with` names.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors import safe_open

import quasiratio as qr
from quasiratio.estimators.loading import describe

HERE = Path(__file__).parent / "format_1"
FREE_OF_SIGNS = ("pare", "revert")
RECOMBINED = 1e-15


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    numbers = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    return {"candidates": numbers.pop("candidates")} | {
        name: np.array(values) for name, values in numbers.items()
    }


@pytest.fixture(scope="module")
def single() -> dict[str, Any]:
    return dict(json.loads((HERE / "single_precision.json").read_text(encoding="utf-8")))


def is_same_machine(single: dict[str, Any]) -> bool:
    """Whether this is the kind of machine, with the libraries, that made the numbers."""
    here = [platform.machine(), torch.backends.cpu.get_cpu_capability(), torch.__version__, np.__version__]
    return bool(here == single["made_with"])


def require_same(
    model: Any, then: dict[str, Any], features: Any, *, to_the_bit: bool, elsewhere: float
) -> None:
    """Compare all predictions.

    On the machine that made them, networks and losses give the same bits. Ratios of signed parts were once products of
    exponentials, which overflow; they are sums of logarithms since, and differ by two units in the last place. A standard
    deviation of two members that agree to a per cent magnifies that by a hundred.
    """
    if to_the_bit:
        for name in FREE_OF_SIGNS:
            np.testing.assert_array_equal(
                model.candidates_[name].predict_ratio(features), then["candidates"][name]
            )
    rtol = RECOMBINED if to_the_bit else elsewhere
    assert list(model.candidates_) == list(then["candidates"])
    for name, values in then["candidates"].items():
        np.testing.assert_allclose(model.candidates_[name].predict_ratio(features), values, rtol=rtol)
    ratio, std = model.predict_ratio(features, return_std=True)
    np.testing.assert_allclose(ratio, then["ratio"], rtol=rtol)
    np.testing.assert_allclose(model.predict_members(features), then["members"], rtol=rtol)
    np.testing.assert_allclose(std, then["ratio_std"], rtol=1000 * rtol)


def test_it_predicts_what_it_predicted_then(expected: dict[str, Any], single: dict[str, Any]) -> None:
    """In float32, whose rounding depends on the machine."""
    require_same(
        qr.load(HERE / "model"),
        single,
        expected["features"],
        to_the_bit=is_same_machine(single),
        elsewhere=4e-6,
    )


def test_it_predicts_so_to_many_digits(expected: dict[str, Any], single: dict[str, Any]) -> None:
    """In float64, which a large noise asks for."""
    model = qr.load(HERE / "model")
    for candidate in model.candidates_.values():
        candidate.model_.output_noise = 1.0
    require_same(model, expected, expected["features"], to_the_bit=is_same_machine(single), elsewhere=1e-12)


def test_nothing_of_it_changes_by_being_loaded(expected: dict[str, Any]) -> None:
    one, other = (qr.load(HERE / "model") for _ in range(2))
    with safe_open(HERE / "model" / "weights.safetensors", framework="np") as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    times = {f"{name}seconds": np.array(seconds) for name, seconds in one.fitted_times().items()}
    tensors = one.fitted_tensors() | times  # which have a file of their own since
    assert tensors.keys() == stored.keys()
    for name, values in stored.items():
        np.testing.assert_array_equal(tensors[name], values, strict=True)
    np.testing.assert_array_equal(
        one.predict_members(expected["features"]), other.predict_members(expected["features"])
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
