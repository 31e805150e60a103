"""Formulas, fills, angles and objects from the command line: the same ratios from every door, and one sentence if not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.cli.options import split_list
from quasiratio.io import open_table, read_sample

pytestmark = pytest.mark.usefixtures("workspace")
FEATURES = (
    "l1_ptg=l1_pt/1000, l1_eta, l1_phi, l2_pt, l2_eta, l2_phi, met_phi, j1=fill(jet_pt[0], 0), n_jets=len(jet_pt),"
    "mll=sqrt(2*l1_pt*l2_pt*(cosh(l1_eta-l2_eta)-cos(l1_phi-l2_phi))), when, year, where(flag & (l1_pt > 30), 1, 0)"
)
OBJECTS = "l1:l1_ptg,l1_eta,l1_phi; l2:l2_pt,l2_eta,l2_phi"
FIT = [
    "--weight",
    "w",
    "--steps",
    "80",
    "--features",
    FEATURES,
    "--objects",
    OBJECTS,
    "--symmetry",
    "azimuth,eta",
]


def events(n_events: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n_jets = rng.poisson(1.0 + 0.5 * seed, n_events)
    return {
        "l1_pt": rng.exponential(20.0 + 5.0 * seed, n_events) + 20.0,
        "l1_eta": rng.normal(0.0, 1.2, n_events),
        "l1_phi": rng.uniform(-np.pi, np.pi, n_events),
        "l2_pt": rng.exponential(20.0, n_events) + 10.0,
        "l2_eta": rng.normal(0.0, 1.2, n_events),
        "l2_phi": rng.uniform(-np.pi, np.pi, n_events),
        "met_phi": rng.uniform(-np.pi, np.pi, n_events),
        "jet_pt": ak.unflatten(rng.exponential(30.0, n_jets.sum()) + 20.0, n_jets),
        "when": 1.7e9 + rng.normal(3.0 * seed, 10.0, n_events),
        "year": np.full(n_events, 2018, dtype=np.int32),
        "flag": rng.random(n_events) < 0.5,
        "w": rng.choice([1.0, -0.5], n_events, p=[0.85, 0.15]),
    }


def write(path: Path, columns: dict[str, Any]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({k: v.to_list() if k == "jet_pt" else v for k, v in columns.items()}), path)
        return
    kinds = {name: "var * float64" if name == "jet_pt" else values.dtype for name, values in columns.items()}
    with uproot.recreate(path) as file:
        file.mktree("events", kinds)
        file["events"].extend(columns)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    for seed, name in enumerate(("reference", "target")):
        for suffix in (".root", ".parquet"):
            write(directory / f"{name}{suffix}", events(2000, seed))
    return directory


@pytest.fixture
def workspace(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(prepared)
    return prepared


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def model(workspace: Path) -> str:
    if not (workspace / "model").exists():
        run("fit", "reference.root", "target.root", *FIT, "--label", "mll=m_ll [GeV]", "-o", "model")
    return "model"


def test_every_door_gives_the_same_ratios(model: str) -> None:
    loaded = qr.load(model)
    sample = read_sample("reference.root", features=split_list([FEATURES]), weight="w")
    assert sample.fill == {"j1": 0.0}
    expected = loaded.predict_ratio(sample)
    assert expected.std() > 0.05
    scale = 1e-5 * (1 + np.abs(expected))
    for suffix in (".root", ".parquet"):
        run("apply", model, f"reference{suffix}", "-o", f"out{suffix}", "--force")
        (chunk,) = open_table(f"out{suffix}").chunks(["ratio"])
        assert np.all(np.abs(chunk["ratio"] - expected) < scale)
    run("export", model, "-o", "model.onnx", "--force")
    session = onnxruntime.InferenceSession("model.onnx")
    assert session.get_inputs()[0].type == "tensor(double)"  # for the time stamps
    (graph,) = session.run(["ratio"], {"features": sample.features.astype(np.float64)})
    assert np.all(np.abs(graph - expected) < scale)


def test_fit_says_what_it_does() -> None:
    out = run("fit", "reference.parquet", "target.parquet", *FIT, "--invariants", "-o", "said")
    assert "l1_ptg = l1_pt/1000" in out
    assert "Left out, being constant or the same as another feature: year" in out
    assert "Objects: l1, l2; azimuths measured from l1; mirror images in eta" in out
    assert "says whether the value is there: j1" in out
    undeclared = [*FIT[:4], "--features", "tau=where(flag, l1_eta, -999), l1_pt", "-o", "undeclared"]
    out = run("fit", "reference.parquet", "target.parquet", *undeclared)
    assert "Taken for missing values, being far from all others: tau (-999)\n" in out
    shown = run("models", "show", "said")
    assert "  1699999" in shown  # of the time stamps as many digits as tell them apart
    assert shown.count("  1700000") == 1
    assert "l1_ptg = l1_pt/1000\n" in shown
    assert "model.scaling.objects" in shown


def test_degrees_are_warned_of_and_turned_into_radians() -> None:
    given = ["fit", "reference.root", "target.root", *FIT[:4], "-o", "degrees", "--force"]
    result = CliRunner().invoke(app, [*given, "--features", "a_phi=met_phi*57.29577951308232"])
    assert result.exit_code == 0
    assert result.stderr.count("'a_phi' looks like an angle in degrees") == 1
    result = CliRunner().invoke(app, [*given, "--features", "a_phi=radians(met_phi*57.29577951308232)"])
    assert "degrees" not in result.stderr
    assert "Angles, taken as cosine and sine: a_phi" in result.stdout


def test_evaluate_draws_what_was_asked_for(model: str) -> None:
    options = [
        "--observables",
        "ht=sum(jet_pt), dphi=deltaphi(l1_phi, l2_phi)",
        "--log",
        "ht,mll",
        "--lower",
        "quotient",
    ]
    options += ["--binning", "mll=20:0:200,ht=10:0:300", "--label", "ht=H_T [GeV]", "--bins", "10"]
    out = run("evaluate", model, "reference.root", "target.parquet", *options, "-o", "report", "--force")
    assert "m_ll [GeV]" in out
    assert "H_T [GeV]" in out
    assert "m_ll [GeV]" in run("models", "show", model)
    results = json.loads(Path("report/results.json").read_text())
    assert results["histograms"]["mll"]["edges"] == np.linspace(0, 200, 21).tolist()
    assert len(results["histograms"]["ht"]["edges"]) == 11
    assert len(results["histograms"]["n_jets"]["edges"]) < 15  # one bin for each number
    assert "dphi" in results["histograms"]
    assert "H_T" in Path("report/report.html").read_text(encoding="utf-8")
    assert any(path.name.startswith("closure-ht") for path in Path("report").iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "x=l1_pt +"], "error at"),
        (["--features", "x=nosuch*2"], "'nosuch', which does not exist"),
        (["--features", "x=__import__(l1_pt)"], "no function here"),
        (["--features", "l1_pt, x=jet_pt[0]"], r"of 2000 events"),
        (["--features", "x=fill(jet_pt[0], nothing)"], "no number"),
        (["--features", "x=fill(jet_pt[0], 'a')"], "no number"),
        (["--features", "jet_pt"], "several values per event"),
        (["--features", "x=l1_pt, x=l2_pt"], "more than once"),
        (
            ["--features", "l1_pt,l1_eta", "--objects", "l:l1_pt,l1_eta,l1_phi"],
            "'l1_phi', which is no feature",
        ),
        (["--features", "l1_pt,l1_eta", "--objects", "l:l1_pt,l1_eta"], "of 2 features"),
        (["--features", "l1_pt,l1_eta", "--symmetry", "azimuth"], "without objects"),
        (["--features", "l1_pt,l1_eta", "--periodic", "met_phi"], "'met_phi' among the periodic features"),
        (["--features", "l1_pt", "--label", "nothing"], "expected a name and a text"),
        (["--features", "l1_pt", "--label", "zzz=foo"], "Got a label for 'zzz'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(options: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["fit", "reference.root", "target.root", "--weight", "w", "--steps", "5", *options, "-o", "bad"]
    )
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert "Reference: " not in result.stdout  # before all events are read
    assert not Path("bad").exists()


def test_evaluate_bins_what_is_there(model: str) -> None:
    observables = "far=fill(jet_pt[0], -999), tau=where(flag, l1_eta, -999), own=where(flag, l1_eta, -999)"
    options = ["--observables", observables, "--binning", "own=10:-1000:10", "--bins", "20", "--force"]
    run("evaluate", model, "reference.root", "target.root", *options, "-o", "far")
    histograms = json.loads(Path("far/results.json").read_text())["histograms"]
    for name in ("far", "tau"):
        assert len(histograms[name]["edges"]) == 22
        assert histograms[name]["edges"][0] == -999.0
        assert sum(value > 0 for value in histograms[name]["target"]) > 15
    assert histograms["own"]["edges"] == np.linspace(-1000.0, 10.0, 11).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--observables", "x=nosuch"], "does not exist"),
        (["--observables", "mll=l1_pt"], "a feature of that name"),
        (["--observables", "x=log(l1_eta)"], "NaN or infinite"),
        (["--log", "nosuch"], "'nosuch'; expected one of the observables"),
        (["--binning", "mll=0:1"], "expected a name, a number of bins and a range"),
        (["--lower", "nothing"], "expected one of pull, difference, quotient"),
    ],
)
def test_evaluate_refuses_in_one_sentence(model: str, options: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["evaluate", model, "reference.root", "target.root", *options, "-o", "bad", "--bins", "5"]
    )
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
