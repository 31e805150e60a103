"""`fit`, `apply`, `evaluate`, `positive`, `export` and `models show`: what they print and what they write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.estimators.reweighter import fold_of_events
from quasiratio.io import open_table, read_metadata

pytestmark = pytest.mark.usefixtures("workspace")
PAIR = ["reference.npz", "target.npz"]
SHORT = ["--weight", "w", "--steps", "20"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def columns_of(path: str) -> dict[str, Any]:
    (chunk,) = open_table(path).chunks()
    return chunk


def model_of(path: str) -> Any:
    return qr.load(path)


def test_fit_says_what_it_uses_and_writes_the_model() -> None:
    out = run("fit", *PAIR, *SHORT, "-o", "new")
    assert out.startswith("Features (2): pt, eta\nReference: 1500 events of reference.npz, sum of weights ")
    assert "% negative\nTarget: 1500 events of target.npz" in out
    kept = np.mean(model_of("new").history_.kept_loss)
    assert f"20 steps, validation loss {kept:.5f} of the state that was kept." in out
    assert out.endswith("Model: new\n")
    assert sorted(path.name for path in Path("new").iterdir()) == [
        "model.json",
        "times.json",
        "weights.safetensors",
    ]
    assert not Path("new.partial").exists()


def test_the_same_command_gives_the_same_model_and_another_seed_another() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    run("fit", *PAIR, *SHORT, "-o", "a", "--quiet")
    run("fit", *PAIR, *SHORT, "-o", "b", "--quiet")
    run("fit", *PAIR, *SHORT, "-o", "b", "--quiet", "--force", "--seed", "1")
    run("fit", *PAIR, *SHORT, "-o", "c", "--quiet")
    first, other, again = (model_of(name).predict_ratio(X) for name in "abc")
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("options", "kind", "parameters"),
    [
        (["--method", "rosmm", "--tune", "coefficients"], "SignedMixtureRatio", {"tune": "coefficients"}),
        (["--method", "direct", "--loss", "lsif"], "DirectRatio", {"loss": "lsif"}),
        (["--method", "auto"], "AutoRatio", {}),
        (
            ["--tune", "all", "--tune-loss", "lsif", "--hidden-layers", "8,4"],
            "SignResolvedRatio",
            {"tune": "all"},
        ),
    ],
)
def test_methods(options: list[str], kind: str, parameters: dict[str, str]) -> None:
    values = json.loads(run("fit", *PAIR, *SHORT, *options, "-o", "new", "--json"))
    model = model_of("new")
    assert type(model).__name__ == kind
    assert parameters.items() <= model.get_params().items()
    assert values["features"] == ["pt", "eta"]
    assert values["reference"]["n_events"] == 1500


def test_a_file_and_options_over_it() -> None:
    text = run("fit", *PAIR, *SHORT, "-o", "new", "--features", "p*", "--print-config")
    Path("fit.yaml").write_text(text)
    assert "Features (1): pt\n" in run("fit", "fit.yaml", "--members", "3")
    assert model_of("new").n_members == 3


def test_files_as_repeated_options_and_lists() -> None:
    rest = ["--reference", "target.npz", "--target", "target.npz", *SHORT, "-o", "new", "--json"]
    values = json.loads(run("fit", "--reference", "reference.npz", *rest))
    assert values["reference"]["files"] == ["reference.npz", "target.npz"]
    values = json.loads(run("fit", "reference.npz,target.npz", "target.npz", *SHORT, "-o", "new2", "--json"))
    assert values["reference"]["n_events"] == 3000


def test_quiet_says_nothing() -> None:
    for arguments in (
        ["fit", *PAIR, *SHORT, "-o", "new", "-q", "--features", "pt"],
        ["apply", "new", "reference.npz", "-o", "out.npz", "-q"],
        ["evaluate", "new", *PAIR, "-o", "report", "-q"],
        ["positive", "reference.npz", *SHORT, "-o", "positive.npz", "-q"],
    ):
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_apply_keeps_everything_and_adds_ratio_and_weight() -> None:
    out = run("apply", "model", "reference.npz", "-o", "out.parquet")
    assert "1500 events, weight w" in out
    assert "Written: out.parquet, with ratio, weight_reweighted beside the columns of reference.npz" in out
    given, written = columns_of("reference.npz"), columns_of("out.parquet")
    X = np.column_stack([given["pt"], given["eta"]]).astype(np.float32)
    ratio = model_of("model").predict_ratio(X)
    assert np.array_equal(written["ratio"], ratio)
    assert np.array_equal(written["weight_reweighted"], given["w"] * ratio)
    assert {name: values.tolist() for name, values in given.items()}.items() <= {
        name: np.asarray(values).tolist() for name, values in written.items()
    }.items()
    assert read_metadata("out.parquet")["quasiratio"]["weight"] == "w"


def test_apply_with_members_names_and_another_weight() -> None:
    names = ["--ratio-name", "r", "--weight-name", "v", "--members"]
    values = json.loads(
        run(
            "apply",
            "model",
            *PAIR,
            "-o",
            "out.npz",
            "--weight",
            "2*w",
            "--selection",
            "pt>0",
            *names,
            "--json",
        )
    )
    assert values["columns"] == ["r", "v", "r_std", "r_member_0", "r_member_1"]
    written = columns_of("out.npz")
    assert values["n_events"] == len(written["pt"])
    assert written["pt"].min() > 0
    assert np.allclose(written["v"], 2 * written["w"] * written["r"])
    assert np.allclose(
        written["r_std"], np.std([written["r_member_0"], written["r_member_1"]], axis=0, ddof=1)
    )


def test_apply_warns_of_values_that_the_fit_has_not_seen() -> None:
    given = columns_of("reference.npz")
    np.savez("far.npz", **(given | {"pt": given["pt"] * 1000}))
    result = CliRunner().invoke(app, ["apply", "model", "far.npz", "-o", "out.npz"], catch_exceptions=False)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert all(line.startswith("Warning: ") for line in lines)
    assert lines[0].startswith("Warning: Values lie outside the range of the training data: 'pt' (9")
    assert "farther than the range is wide" in lines[0]


def test_apply_warns_of_events_that_the_fit_did_not_select() -> None:
    run("fit", *PAIR, *SHORT, "-o", "new", "--selection", "eta > 0", "--features", "pt")
    result = CliRunner().invoke(
        app, ["apply", "new", "reference.npz", "-o", "out.npz"], catch_exceptions=False
    )
    assert "do not pass the selection of the fit" in result.stderr
    run("evaluate", "new", *PAIR, "-o", "report")
    assert json.loads(Path("report/results.json").read_text())["samples"]["target"]["selection"] == "eta > 0"


def test_a_root_tree_keeps_its_name_unless_another_is_given() -> None:
    run("apply", "model", "reference.npz", "-o", "a.root:mine")
    assert open_table("a.root").sources == ("a.root:mine",)
    run("apply", "model", "a.root", "-o", "b.root", "--ratio-name", "r2", "--weight-name", "w2")
    assert open_table("b.root").sources == ("b.root:mine",)


def test_evaluate_prints_a_table_and_writes_numbers_and_figures() -> None:
    Path("report").mkdir()
    Path("report/mine.txt").write_text("mine")
    out = run(
        "evaluate",
        "model",
        *PAIR,
        "-o",
        "report",
        "--observables",
        "pt*eta, max(pt, eta)",
        "--bins",
        "20",
        "--force",
    )
    for name in ("pt", "eta", "pt*eta", "max(pt, eta)"):
        assert f"\n{name} " in out
    assert "Risk against no reweighting: -" in out
    written = sorted(path.name for path in Path("report").iterdir())
    assert written == sorted(
        [
            f"closure-{name}.{suffix}"
            for name in ("pt", "eta", "pt_eta", "max_pt_eta")
            for suffix in ("pdf", "png")
        ]
        + [".quasiratio.json", "mine.txt", "report.html", "results.json"]
    )
    values = json.loads(Path("report/results.json").read_text())
    rows = {(row["observable"], row["method"]): row["chi2_per_dof"] for row in values["closure"]}
    assert rows["pt", "model"] < rows["pt", "reference"]
    assert len(values["histograms"]["pt"]["edges"]) == 21
    assert len(values["histograms"]["pt"]["member_band"]) == 20
    assert sum(values["histograms"]["pt"]["reweighted"]) == pytest.approx(1.0, abs=0.02)
    assert values["samples"]["reference"]["weight"] == "w"
    statuses = {"good": "good", "fair": "fair", "poor": "poor", "info": "undecided"}
    verdict = values["verdict"]
    lines = out.splitlines()
    start = lines.index(f"Verdict: {statuses[verdict['status']]}")
    assert lines[start + 1].startswith(f"  {verdict['summary']}: ")
    assert max(map(len, lines[start : start + 10])) <= 100
    told = " ".join(" ".join(lines[start + 1 :]).split())
    for reason in verdict["reasons"]:
        assert reason in told
    assert 0 < values["omnibus"]["p_value"] < 1
    quality = {(row["observable"], row["method"]): row for row in values["quality"]}
    assert quality["pt", "model"]["total_chi2_per_dof"] < rows["pt", "model"]
    assert quality["pt", "model"]["size"] < quality["pt", "before"]["size"]
    page = Path("report/report.html").read_text(encoding="utf-8")
    assert "Omnibus test" in page
    assert "with training" in page


def test_evaluate_counts_the_training_sample_of_one_network() -> None:
    run("fit", *PAIR, *SHORT, "-o", "new", "--features", "pt", "--members", "1")
    values = json.loads(run("evaluate", "new", *PAIR, "-o", "report", "--json"))
    assert values["training_sizes"][0] > 100
    assert all("total_chi2_per_dof" in row for row in values["closure"])
    assert "for a single network" in " ".join(values["verdict"]["reasons"])


def test_evaluate_leaves_out_what_has_one_value() -> None:
    for name in PAIR:
        np.savez(f"flat-{name}", **(columns_of(name) | {"flat": np.full(1500, 3.0)}))
    pair = [f"flat-{name}" for name in PAIR]
    run("fit", *pair, *SHORT, "-o", "new", "--features", "pt,flat")
    arguments = ["evaluate", "new", *pair, "-o", "report", "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(Path("report/results.json").read_text())
    assert "Warning: Left out of the closure, as they have one value only: 'flat'." in result.stderr


def test_folds_predict_every_event_by_a_model_that_has_not_seen_it() -> None:
    out = run("fit", *PAIR, *SHORT, "--folds", "3", "--members", "2", "-o", "folded")
    assert "Fold 2: " in out
    model = model_of("folded")
    assert (type(model).__name__, model.n_folds, model.total) == ("Reweighter", 3, "original")
    out = run("apply", "folded", "reference.npz", "-o", "out.npz", "--members")
    assert "took part in the training" not in out
    written = columns_of("out.npz")
    X = np.column_stack([written["pt"], written["eta"]])
    folds = fold_of_events(X.astype(np.float32), 3)
    for fold, ratio in enumerate(model.ratios_):
        mine = folds == fold
        assert np.allclose(written["ratio"][mine], ratio.predict_ratio(X[mine]))
        assert ratio.fingerprint_.share_seen(X[mine]) == 0.0  # it has not seen what it predicts
        assert ratio.fingerprint_.share_seen(X[~mine]) == 1.0
    members = np.array([written["ratio_member_0"], written["ratio_member_1"]])
    assert np.allclose(written["ratio_std"], members.std(axis=0, ddof=1))
    assert written["weight_reweighted"].sum() == pytest.approx(written["w"].sum())
    out = run("evaluate", "folded", *PAIR, "-o", "report")
    assert "took part in the training" not in out
    assert run("export", "folded", "-o", "folded.onnx").startswith("Written: folded.onnx, ")
    shown = run("models", "show", "folded")
    assert "parameters.n_folds: 3" in shown
    assert "ratios.2.history.n_steps: " in shown
    assert "sketches" not in shown


def test_folds_in_a_file_and_resumed() -> None:
    text = run("fit", *PAIR, *SHORT, "--folds", "2", "-o", "new", "--print-config")
    assert "\nn_folds: 2\n" in text
    Path("fit.yaml").write_text(text)
    assert json.loads(run("fit", "fit.yaml", "--json"))["diverged"] is False
    assert model_of("new").n_folds == 2
    result = CliRunner().invoke(app, ["fit", *PAIR, *SHORT, "-o", "no", "--folds", "0"])
    assert "Got --folds 0; expected a whole number of at least 1 and at most 100." in result.stderr


def test_training_events_of_a_model_without_folds_are_recognised() -> None:
    out = run("apply", "model", "reference.npz", "-o", "out.npz")
    line = "About 100% of the events took part in the training of this model"
    assert line in out
    assert "'quasiratio fit --folds 5'" in out
    values = json.loads(run("apply", "model", "reference.npz", "-o", "out2.npz", "--json"))
    assert values["share_seen_in_training"] == 1.0
    fresh = {name: column + 0.01 for name, column in columns_of("reference.npz").items()}
    np.savez("fresh.npz", **fresh)
    assert "took part in the training" not in run("apply", "model", "fresh.npz", "-o", "out3.npz")
    out = run("evaluate", "model", "fresh.npz", "target.npz", "-o", "report")
    assert "About 100% of the target events took part" in out
    assert "reference events took part" not in out
    seen = json.loads(Path("report/results.json").read_text())["share_seen_in_training"]
    assert seen == {"reference": 0.0, "target": 1.0}


def test_positive_writes_and_reports() -> None:
    out = run("positive", "reference.npz", *SHORT, "-o", "positive.npz", "--weight-name", "v")
    assert "Features (2): pt, eta\n" in out
    assert "Gain " in out
    assert "without the error of the training, " in out
    assert "with it (in 20 bins of each feature); negative density over" in out
    written = columns_of("positive.npz")
    assert written["v"].min() >= 0
    assert written["v"].sum() == pytest.approx(written["w"].sum())
    options = [*SHORT, "-o", "fewer.npz", "--resample", "--seed", "3", "--json"]
    values = json.loads(run("positive", "reference.npz", *options))
    assert values["n_written"] == len(columns_of("fewer.npz")["pt"]) < 1500
    assert values["gain"] > 1
    assert 0 < values["gain_with_training"] < values["gain"]


def test_positive_writes_the_weights_of_the_members() -> None:
    run("positive", "reference.npz", *SHORT, "-o", "members.npz", "--members", "3", "--write-members")
    written = columns_of("members.npz")
    members = np.array([written[f"weight_positive_member_{k}"] for k in range(3)])
    assert np.allclose(written["weight_positive_std"], members.std(axis=0, ddof=1))
    assert members.std(axis=0).max() > 0
    out = run("positive", "reference.npz", *SHORT, "-o", "one.npz", "--members", "1")
    assert "which one network does not know" in out
    assert "--members 8 would know" in out
    for option, word in ((["--resample"], "--resample"), (["--members", "1"], "--members 1")):
        arguments = ["positive", "reference.npz", *SHORT, "-o", "no.npz", "--write-members", *option]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert f"Got --write-members with {word}" in result.stderr
        assert not Path("no.npz").exists()


def test_export_and_show() -> None:
    assert run("export", "model", "-o", "m.onnx").startswith("Written: m.onnx, ")
    import onnxruntime

    X = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)
    session = onnxruntime.InferenceSession("m.onnx")
    ratio = session.run(["ratio"], {"features": X})[0]
    assert np.allclose(ratio, model_of("model").predict_ratio(X), rtol=1e-5)
    out = run("models", "show", "model")
    assert out.startswith("model: SignResolvedRatio\nThe fit could not be checked on 150 events kept aside")
    assert "\nfeature   type" in out
    for text in (
        "Reference: 1500 events of",
        "weight w, sum",
        "parameters.n_members: 2",
        "Versions: quasiratio",
    ):
        assert text in out
    values = json.loads(run("models", "show", "model", "--json"))
    assert values["estimator"]["features"]["names"] == ["pt", "eta"]
    assert values["notes"]["fit"]["kinds"] == {"pt": "float", "eta": "float"}


def test_a_model_saved_from_python_can_be_applied_and_evaluated() -> None:
    given = [columns_of(name) for name in PAIR]
    X = {"pt": np.concatenate([sample["pt"] for sample in given])}
    y = np.repeat([0, 1], 1500)
    qr.DirectRatio(loss="lsif", max_steps=5, random_state=0).fit(X, y).save("python")
    run("apply", "python", "reference.npz", "-o", "out.npz", "--weight", "w")
    run("evaluate", "python", *PAIR, "-o", "report", "--weight", "w")
    qr.PositiveReweighter(max_steps=5, random_state=0).fit(X, np.ones(3000)).save("positive")
    result = CliRunner().invoke(app, ["apply", "positive", "reference.npz", "-o", "x.npz"])
    assert result.exit_code == 2
    assert "PositiveReweighter, which has no ratio" in result.stderr


def test_help_of_every_command_has_a_line_for_every_option() -> None:
    for command in ("demo", "inspect", "fit", "apply", "evaluate", "positive", "export", "models show"):
        out = run(*command.split(), "--help")
        assert out.startswith(f"Usage: quasiratio {command}")
        assert "-h, --help" in out
