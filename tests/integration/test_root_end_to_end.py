"""From ROOT files to a reweighted ROOT file that closes on the target: inspect, fit, apply, evaluate, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
import uproot
from typer.testing import CliRunner

from quasiratio.cli.main import app

N_EVENTS = 6000
WEIGHT = ["--weight", "w_gen * w_pu"]


def events(mean: float, negative: float, seed: int) -> dict[str, Any]:
    """Draw a transverse momentum, a rapidity, jets and a weight that is a product and often negative."""
    rng = np.random.default_rng(seed)
    n_jets = rng.integers(1, 4, N_EVENTS)
    return {
        "run": np.full(N_EVENTS, 7, dtype=np.int32),
        "event": np.arange(N_EVENTS),
        "pt": np.exp(rng.normal(3.5 + mean, 0.5, N_EVENTS)).astype(np.float32),
        "eta": rng.normal(0.0, 1.2, N_EVENTS),
        "jet_pt": ak.unflatten(rng.exponential(30.0 + 20.0 * mean, n_jets.sum()).astype(np.float32), n_jets),
        "w_gen": rng.choice([1.0, -1.0], N_EVENTS, p=[1 - negative, negative]),
        "w_pu": rng.uniform(0.8, 1.2, N_EVENTS).astype(np.float32),
    }


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def mean_and_error(values: npt.NDArray[Any], weights: npt.NDArray[Any]) -> tuple[float, float]:
    mean = float(np.average(values, weights=weights))
    return mean, float(np.sqrt(np.square(weights * (values - mean)).sum()) / abs(weights.sum()))


def test_from_root_to_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reference = events(0.0, 0.1, seed=1)
    with uproot.recreate("reference.root") as file:
        types = {name: values.dtype for name, values in reference.items() if name != "jet_pt"}
        file.mktree("events", types | {"jet_pt": "var * float32"}).extend(reference)
    with uproot.recreate("target.root") as file:
        file["events"] = events(0.4, 0.2, seed=2)  # an RNTuple, where uproot is new
    pair = ["reference.root:events", "target.root:events"]
    features = ["--features", "pt,eta,jet_pt[0]"]

    inspected = run("inspect", *pair, *WEIGHT, *features)
    assert inspected["recommendation"]["method"] == "sign-resolved"
    assert inspected["reference"]["weights"]["n_events"] == N_EVENTS
    assert inspected["target"]["weights"]["negative_fraction"] == pytest.approx(0.2, abs=0.02)
    overlaps = {entry["name"]: entry for entry in inspected["overlaps"]}
    assert overlaps["pt"]["distance"] > 0.2
    assert overlaps["eta"]["distance"] < 0.05

    fitted = run("fit", *pair, *WEIGHT, *features, "--steps", "250", "--batch-size", "2048", "-o", "model")
    assert fitted["features"] == ["pt", "eta", "jet_pt[0]"]
    assert fitted["diverged"] is False

    applied = run("apply", "model", pair[0], "-o", "reweighted.root")
    assert applied["n_events"] == N_EVENTS
    assert applied["weight"] == WEIGHT[1]

    with uproot.open("reweighted.root") as file, uproot.open("reference.root") as before:
        new, old = file["events"].arrays(), before["events"].arrays()
    for name in old.fields:
        assert ak.array_equal(new[name], old[name]), name
    assert set(new.fields) - set(old.fields) == {"ratio", "weight_reweighted"}
    weights = ak.to_numpy(new["weight_reweighted"])
    original = ak.to_numpy(old["w_gen"]) * ak.to_numpy(old["w_pu"]).astype(np.float64)
    assert np.allclose(weights, original * ak.to_numpy(new["ratio"]))
    assert weights.sum() == pytest.approx(original.sum(), rel=0.05)

    with uproot.open("target.root") as file:
        wanted = file["events"].arrays()
    target_weights = ak.to_numpy(wanted["w_gen"]) * ak.to_numpy(wanted["w_pu"])
    for quantity in (
        lambda tree: np.log(ak.to_numpy(tree["pt"])),
        lambda tree: ak.to_numpy(tree["eta"]),
        lambda tree: ak.to_numpy(tree["jet_pt"][:, 0]),
    ):
        truth, truth_error = mean_and_error(quantity(wanted), target_weights)
        value, error = mean_and_error(quantity(new), weights)
        assert abs(value - truth) < 4 * np.hypot(error, truth_error)
    shift = mean_and_error(np.log(ak.to_numpy(old["pt"])), original)[0]
    assert abs(shift - mean_and_error(np.log(ak.to_numpy(wanted["pt"])), target_weights)[0]) > 0.3

    judged = run("evaluate", "model", *pair, "-o", "report", "--observables", "w_pu, pt*cos(eta)")
    quality = {(row["observable"], row["method"]): row["chi2_per_dof"] for row in judged["closure"]}
    assert quality["pt", "reference"] > 5
    for observable in ("pt", "eta", "jet_pt[0]", "w_pu", "pt*cos(eta)"):
        assert quality[observable, "model"] < 2
    assert Path("report/closure-pt.png").read_bytes().startswith(b"\x89PNG")

    exported = run("export", "model", "-o", "model.onnx")
    assert exported["features"] == fitted["features"]
    columns = [ak.to_numpy(values) for values in (new["pt"], new["eta"], new["jet_pt"][:, 0])]
    X = np.column_stack(columns).astype(np.float32)
    (ratio,) = onnxruntime.InferenceSession("model.onnx").run(["ratio"], {"features": X})
    expected = ak.to_numpy(new["ratio"])
    assert np.all(np.abs(ratio - expected) <= 1e-5 * (1 + np.abs(expected)))
