"""Several weights from the command line: one fit, one file with a column for each, and one sentence if it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.io import create_table, open_table

NAMES = ["w_nominal", "w_up", "w_down"]
FIT = ["fit", "reference.root", "target.parquet", "--steps", "100", "-o", "model", "--weights"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def events(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, nominal = rng.normal(0.3 * seed, 1.0, 3000), rng.choice([1.0, -0.5], 3000, p=[0.9, 0.1])
    shift = (0.1 + 0.2 * seed) * np.tanh(x)
    return {
        "x": x,
        "y": rng.normal(size=3000),
        "w_nominal": nominal,
        "w_up": nominal * (1 + shift),
        "w_down": nominal * (1 - shift),
    }


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("weights")
    with uproot.recreate(path / "reference.root") as file:
        file["events"] = events(0)
    pq.write_table(pa.table(events(1)), path / "target.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert "Weights: w_nominal, w_up, w_down" in run(*FIT, "w_nominal, w_up, w_*")
    return path


@pytest.fixture(autouse=True)
def inside(workspace, monkeypatch) -> None:
    monkeypatch.chdir(workspace)


def test_no_weight_is_a_feature_and_files_and_onnx_have_all(tmp_path) -> None:
    model = qr.load("model")
    assert model.feature_list() == ["x", "y"]
    assert model.names_ == NAMES
    columns = events(0)
    features = np.column_stack([columns["x"], columns["y"]]).astype(np.float32)
    ratios = model.predict_ratios({"x": features[:, 0], "y": features[:, 1]})
    run("export", "model", "-o", str(tmp_path / "model.onnx"))
    graph = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"features": features})
    for kind in ("root", "parquet"):
        run("apply", "model", "reference.root", "-o", f"{tmp_path}/out.{kind}")
        (chunk,) = open_table(f"{tmp_path}/out.{kind}").chunks()
        for k, name in enumerate(NAMES):
            np.testing.assert_allclose(chunk[f"ratio_{name}"], ratios[:, k], rtol=1e-9)
            np.testing.assert_allclose(
                chunk[f"weight_{name}"], columns[name] * graph[k], rtol=1e-5, atol=1e-6
            )
            assert chunk[f"weight_{name}"].sum() == pytest.approx(columns[name].sum(), rel=1e-6)
    up_over_down = chunk["ratio_w_up"] / chunk["ratio_w_down"]
    assert np.corrcoef(np.tanh(columns["x"]), up_over_down)[0, 1] > 0.95


def test_other_files_may_name_their_weights_otherwise(tmp_path) -> None:
    renamed = {name.removeprefix("w_"): values for name, values in events(0).items()}
    with create_table(tmp_path / "other.npz") as writer:
        writer.append(renamed)
    weights = "w_nominal=nominal, w_down=down, w_up=up"
    run("apply", "model", f"{tmp_path}/other.npz", "-o", f"{tmp_path}/out.npz", "--weights", weights)
    assert "ratio_w_up" in open_table(f"{tmp_path}/out.npz").columns
    message = refused(
        "apply",
        "model",
        f"{tmp_path}/other.npz",
        "-o",
        f"{tmp_path}/no.npz",
        "--weights",
        "w_nominal=nominal,w_up=up",
    )
    assert "without 'w_down'; expected one for each of w_nominal, w_up, w_down" in message


def test_a_variation_is_judged_with_its_own_weights(tmp_path) -> None:
    found = {}
    for name in NAMES[1:]:
        text = run(
            *("evaluate", "model", "reference.root", "target.parquet", "-o", f"{tmp_path}/{name}"),
            *("--variation", name, "--bins", "10", "--json"),
        )
        found[name] = json.loads(text)
        assert found[name]["samples"]["reference"]["weight"] == name
    chi2 = [
        {row["observable"]: row["chi2_per_dof"] for row in one["quality"][1::2]}["x"]
        for one in found.values()
    ]
    before = [
        {row["observable"]: row["chi2_per_dof"] for row in one["quality"][::2]}["x"] for one in found.values()
    ]
    assert all(after < 0.3 * was for after, was in zip(chi2, before, strict=True))
    message = refused(
        "evaluate", "model", "reference.root", "target.parquet", "-o", "r", "--variation", "left"
    )
    assert "Got the variation 'left'; expected one of w_nominal, w_up, w_down" in message


def test_a_sample_with_one_weight_has_it_for_all(tmp_path) -> None:
    arguments = ["--reference-weight", "w_nominal", "-o", f"{tmp_path}/model"]
    run("fit", "reference.root", "target.parquet", "--steps", "20", "--weights", "w_nominal,w_up", *arguments)
    run("apply", f"{tmp_path}/model", "reference.root", "-o", f"{tmp_path}/out.npz")
    (chunk,) = open_table(f"{tmp_path}/out.npz").chunks()
    new = chunk["ratio_w_up"] * chunk["w_nominal"]
    np.testing.assert_allclose(chunk["weight_w_up"] / new, chunk["weight_w_up"].sum() / new.sum(), rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w_nominal"], "at least two"),
        (["w_nominal,w_left"], "w_left"),
        (["w_nominal,2*w_up"], "which is no column and no pattern of columns"),
        (["w_nominal,w_nominal=w_up"], "Got the weight 'w_nominal' twice"),
        (["w_nominal,w_up", "--weight", "w_nominal"], "beside several weights"),
        (
            ["w_nominal,w_up", "--reference-weight", "w_up", "--target-weight", "w_up"],
            "a weight of its own for each sample",
        ),
        (["up=w_nominal*(x>0),w_up"], "with the nominal weight 'up' zero"),
    ],
)
def test_bad_weights_are_one_sentence(arguments, message, tmp_path) -> None:
    text = refused(*FIT[:5], "-o", f"{tmp_path}/no", "--weights", *arguments)
    assert message in text
    assert not (tmp_path / "no").exists()


def test_models_of_one_weight_have_no_variations(tmp_path) -> None:
    run(*FIT[:5], "-o", f"{tmp_path}/one", "--weight", "w_nominal", "--features", "x")
    assert "of a model of one weight" in refused(
        "evaluate", f"{tmp_path}/one", "reference.root", "target.parquet", "-o", "r", "--variation", "w_up"
    )
    assert "Got several weights for a model of one" in refused(
        "apply", f"{tmp_path}/one", "reference.root", "-o", "out.npz", "--weights", "w_nominal,w_up"
    )
