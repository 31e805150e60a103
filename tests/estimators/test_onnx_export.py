"""Every estimator as an ONNX graph: the same numbers in onnxruntime, named, described and written whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from sklearn.exceptions import NotFittedError

import quasiratio as qr
from quasiratio.distributions import SignedGaussianMixture
from quasiratio.errors import InvalidInputError

Fitted = Callable[[str], Any]
Matrix = npt.NDArray[np.float32]
pytestmark = [
    pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning"),  # fits of a few steps
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]
LARGEST_FLOAT = float(np.finfo(np.float32).max)


def sample(n: int = 4000, seed: int = 7) -> Matrix:
    """Events inside and far outside the training range, zero and negative values of a logarithmic one."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.lognormal(1.0, 1.0, n)]).astype(np.float32)
    X[:6] = np.array([[0, 0], [-0.0, -1], [50, 1e4], [-50, 1e-30], [1e-40, 5], [0, 1e6]])
    return X


def run(path: Path, X: Matrix) -> dict[str, npt.NDArray[np.float32]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    names = [output.name for output in session.get_outputs()]
    parts = [session.run(names, {"features": X[i : i + 50_000]}) for i in range(0, len(X), 50_000)]
    return {
        name: np.concatenate(columns) for name, columns in zip(names, zip(*parts, strict=True), strict=True)
    }


def require_equal(actual: Any, expected: Any, scale: Any) -> None:
    """|difference| <= 1e-5 (1 + |r|), but for what a float cannot hold."""
    assert actual.dtype == np.float32
    is_held = np.abs(expected) < LARGEST_FLOAT
    assert is_held.mean() > 0.99
    difference = np.abs(actual - expected)[is_held] / (1.0 + np.abs(scale)[is_held])
    assert difference.max() <= 1e-5


def require_portable(path: Path) -> None:
    """ONNX itself finds no fault, and the version is one that other frameworks have."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 18)]
    assert model.ir_version == 8
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_every_ratio_estimator(ratio_kind: str, fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator, X = fitted_estimator(ratio_kind), sample()
    estimator.export_onnx(tmp_path / "model.onnx")
    require_portable(tmp_path / "model.onnx")
    result = run(tmp_path / "model.onnx", X)
    require_equal(result["ratio"], estimator.predict_ratio(X), estimator.predict_ratio(X))
    if estimator.n_members == 1:
        assert list(result) == ["ratio"]
        return
    assert list(result) == ["ratio", "ratio_std"]
    members, std = estimator.predict_members(X), estimator.predict_ratio(X, return_std=True)[1]
    require_equal(result["ratio_std"], std, np.abs(members).max(axis=0))


def test_every_reweighter(weights_kind: str, fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator, X = fitted_estimator(weights_kind), sample()
    estimator.export_onnx(tmp_path / "model.onnx")
    require_portable(tmp_path / "model.onnx")
    result = run(tmp_path / "model.onnx", X)
    factor = estimator.predict_weights(X, np.ones(len(X)))
    require_equal(result["weight_factor"], factor, factor)
    if weights_kind == "reweighter":
        std = estimator.scale_ * estimator.ratios_[0].predict_ratio(X, return_std=True)[1]
        members = estimator.scale_ * estimator.ratios_[0].predict_members(X)
        require_equal(result["weight_factor_std"], std, np.abs(members).max(axis=0))
    else:
        assert list(result) == ["weight_factor"]


@pytest.mark.parametrize("estimator", [qr.SignResolvedRatio, qr.SignedMixtureRatio], ids=lambda e: e.__name__)
def test_a_million_events_around_the_zeros_of_the_reference(estimator: Any, tmp_path: Path) -> None:
    """Where the reference density changes its sign the ratio has poles, and rounding errors grow without limit."""
    rng = np.random.default_rng(0)
    reference = SignedGaussianMixture(2.0, 2.0, 0.8).sample(3000, rng)
    target = SignedGaussianMixture(1.0, 2.0, 1.0).sample(3000, rng)
    model = estimator(max_steps=100, batch_size=512, hidden_layers=(12,), random_state=0, verbose=False).fit(
        np.vstack([reference.features, target.features]),
        np.repeat([0, 1], 3000),
        sample_weight=np.concatenate([reference.weights, target.weights]),
    )
    n_events = 1_000_000 if estimator is qr.SignResolvedRatio else 100_000
    X = rng.normal(0.0, 1.5, size=(n_events, 2)).astype(np.float32)
    expected = model.predict_ratio(X)
    assert np.abs(expected).max() > 1e4
    assert expected.min() < 0
    model.export_onnx(tmp_path / "model.onnx")
    require_equal(run(tmp_path / "model.onnx", X)["ratio"], expected, expected)


def test_one_event_and_none(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator = fitted_estimator("reweighter folds")
    estimator.export_onnx(tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", sample(10)[7:8])["weight_factor"].shape == (1,)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert session.run(None, {"features": np.empty((0, 2), np.float32)})[0].shape == (0,)
    with pytest.raises(Exception, match="features"):
        session.run(None, {"features": np.zeros((2, 3), np.float32)})


def test_separate_inputs_have_the_names_of_the_features(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator, X = fitted_estimator("auto"), sample()
    estimator.export_onnx(tmp_path / "one.onnx")
    estimator.export_onnx(tmp_path / "several.onnx", separate_inputs=True)
    session = onnxruntime.InferenceSession(tmp_path / "several.onnx")
    inputs = {value.name: value for value in session.get_inputs()}
    assert list(inputs) == ["mass", "p_T <b>µ</b>"]
    assert [value.shape for value in inputs.values()] == [["batch", 1], ["batch", 1]]
    assert {value.type for value in inputs.values()} == {"tensor(float)"}
    several = session.run(None, {name: X[:, [column]] for column, name in enumerate(inputs)})
    for one, other in zip(run(tmp_path / "one.onnx", X).values(), several, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_names_that_cannot_be_inputs_are_refused(tmp_path: Path) -> None:
    X, y = sample(400), np.arange(400) % 2
    for name in ("ratio", "ratio_std", ""):
        model = qr.SignResolvedRatio(max_steps=5, hidden_layers=(4,), random_state=0, verbose=False)
        model.fit({"x": X[:, 0], name: X[:, 1]}, y)
        with pytest.raises(InvalidInputError, match="as inputs of their own"):
            model.export_onnx(tmp_path / "model.onnx", separate_inputs=True, overwrite=True)
        model.export_onnx(tmp_path / "model.onnx", overwrite=True)
    model.fit({"Exp_5": X[:, 0], "constant_1": X[:, 1]}, y)  # as the graph might call its own values
    model.export_onnx(tmp_path / "model.onnx", separate_inputs=True, overwrite=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (ratio,) = session.run(None, {"Exp_5": X[:, :1], "constant_1": X[:, 1:]})
    require_equal(ratio, model.predict_ratio(X), model.predict_ratio(X))


def test_metadata_say_what_the_graph_is(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator = fitted_estimator("mixture ensemble")
    estimator.export_onnx(tmp_path / "model.onnx")
    meta = onnxruntime.InferenceSession(tmp_path / "model.onnx").get_modelmeta()
    assert (meta.producer_name, meta.custom_metadata_map["quasiratio_version"]) == (
        "quasiratio",
        qr.__version__,
    )
    assert json.loads(meta.custom_metadata_map["features"]) == ["mass", "p_T <b>µ</b>"]
    assert meta.custom_metadata_map["estimator"].startswith("SignedMixtureRatio(")
    assert meta.custom_metadata_map["training_events"] == "1200"
    assert meta.custom_metadata_map["training_sha256"] == estimator.fingerprint_.sha256
    summary = json.loads(meta.custom_metadata_map["training_summary"])
    assert summary["stages"][0]["steps"] == 40
    assert summary["members"] == 3
    assert set(json.loads(meta.custom_metadata_map["outputs"])) == {"ratio", "ratio_std"}
    assert "did not see it" not in meta.description
    fitted_estimator("reweighter folds").export_onnx(tmp_path / "folds.onnx")
    meta = onnxruntime.InferenceSession(tmp_path / "folds.onnx").get_modelmeta()
    assert "of 3 models, each event gets the one that did not see it" in meta.description
    assert len(json.loads(meta.custom_metadata_map["training_summary"])) == 3


def test_a_loss_of_the_users_own(user_loss: Any, tmp_path: Path) -> None:
    X, y = sample(400), np.arange(400) % 2
    model = qr.DirectRatio(loss=user_loss(), max_steps=5, hidden_layers=(4,), verbose=False).fit(X, y)
    with pytest.raises(InvalidInputError, match="loss 'angle', whose link is your own code"):
        model.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_the_file_appears_whole_and_replaces_an_older_one(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator = fitted_estimator("resolved")
    place = tmp_path / "model.onnx"
    place.write_bytes(b"older")
    with pytest.raises(InvalidInputError, match="overwrite=True"):
        estimator.export_onnx(place)
    assert place.read_bytes() == b"older"
    estimator.export_onnx(str(place), overwrite=True)
    first = place.read_bytes()
    estimator.export_onnx(place, overwrite=True)
    assert place.read_bytes() == first  # and the same bytes each time
    (tmp_path / "directory").mkdir()
    with pytest.raises(InvalidInputError, match="expected the name of a file"):
        estimator.export_onnx(tmp_path / "directory")
    with pytest.raises(InvalidInputError, match="does not exist; create it first"):
        estimator.export_onnx(tmp_path / "no" / "model.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "model.onnx"]


def test_an_unfitted_estimator_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        qr.SignResolvedRatio().export_onnx(tmp_path / "model.onnx")


WITHOUT = """
import sys
sys.modules["onnx"] = None
import quasiratio as qr
from quasiratio.errors import MissingExtraError
try:
    qr.load(sys.argv[1]).export_onnx(sys.argv[1] + ".onnx")
except MissingExtraError as error:
    print(error)
"""


def test_without_the_extra_one_sentence_says_how_to_get_it(fitted_estimator: Fitted, tmp_path: Path) -> None:
    fitted_estimator("resolved").save(tmp_path / "model")
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ONNX export needs the package onnx")
    assert "pip install 'quasiratio[onnx]'" in done.stdout
    assert not (tmp_path / "model.onnx").exists()
