"""EFT samples in files: the same coefficients whichever way the weights are stored, inspection, and fits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.distributions import LatentAmplitudeCase
from quasiratio.errors import InvalidInputError
from quasiratio.io import open_table
from quasiratio.workflows import (
    apply_eft_files,
    evaluate_eft_files,
    fit_eft_files,
    inspect_eft_files,
    read_eft_sample,
)
from quasiratio.workflows.fitted_model import EFT_KEY, NOTES_KEY

CASE = LatentAmplitudeCase()
POINTS = [{}, {"a": 1.0}, {"a": -1.0}, {"b": 1.0}, {"b": -1.0}, {"a": 1.0, "b": 1.0}, {"a": -0.5, "b": 1.5}]
NAMES = [
    "rwgt0_sm",
    "rwgt1_a_1p0",
    "rwgt2_a_m1p0",
    "rwgt3_b_1p0",
    "rwgt4_b_m1p0",
    "rwgt5_a_1p0_b_1p0",
    "rwgt6_a_m0p5_b_1p5",
]
YAML = "\n".join(f"- {json.dumps(point)}" for point in POINTS) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("eft")
    events = CASE.sample(6000, np.random.default_rng(0))
    weights = 2.0 * events.mined @ CASE.basis(POINTS).T
    columns: dict[str, Any] = {"x": events.features[:, 0], "noise": events.features[:, 1]}
    named: dict[str, Any] = dict(zip(NAMES, weights.T, strict=True))
    np.savez(directory / "named.npz", **columns, **named)
    ready: dict[str, Any] = {f"c{k}": events.mined[:, k] for k in range(6)}
    np.savez(directory / "ready.npz", **columns, **ready, w=np.full(6000, 2.0))
    (directory / "points.yaml").write_text(YAML)
    uproot = pytest.importorskip("uproot")
    with uproot.recreate(directory / "nano.root") as file:
        file["Events"] = {**columns, "LHEReweightingWeight": weights, "genWeight": np.ones(6000)}
    return directory


def test_every_way_gives_the_same_coefficients(files: Path) -> None:
    expected = CASE.sample(6000, np.random.default_rng(0)).mined
    yaml = files / "points.yaml"
    samples = [
        read_eft_sample(files / "named.npz", pattern="rwgt*"),
        read_eft_sample(files / "named.npz", points=yaml, columns=NAMES),
        read_eft_sample(
            f"{files}/nano.root:Events", points=yaml, branch="LHEReweightingWeight", weight="genWeight"
        ),
        read_eft_sample(
            files / "ready.npz", coefficients=[f"c{k}" for k in range(6)], parameters=["a", "b"], weight="w"
        ),
    ]
    for sample in samples:
        np.testing.assert_allclose(sample.coefficients, expected, atol=1e-9)
        np.testing.assert_allclose(sample.reference_weights, 2.0, rtol=1e-9)


def test_an_inspection_has_the_facts(files: Path) -> None:
    found = inspect_eft_files(files / "named.npz", pattern="rwgt*")
    assert found.rank == 6
    assert found.largest_residual < 1e-12
    assert found.points[0].rate == pytest.approx(1.0)
    assert found.points[0].effective_size == pytest.approx(6000)
    assert all(axis.lowest == -np.inf for axis in found.axes)  # a square is never negative
    assert max(found.rounding_errors) < 1e-3
    linear = inspect_eft_files(
        files / "ready.npz", coefficients=["c0", "c1", "c2"], parameters=["a", "b"], order=1, weight="1"
    )
    slope = CASE.sample(6000, np.random.default_rng(0)).mined[:, 1]
    assert linear.axes[0].lowest == pytest.approx(-1 / slope.max())
    assert linear.axes[0].highest == pytest.approx(-1 / slope.min())


def test_rounded_weights_of_a_square_are_not_negative(files: Path, tmp_path: Path) -> None:
    """Weights of 14 bits leave a perfect square below zero by their rounding: that is no negative density."""
    with np.load(files / "named.npz") as stored:
        columns = dict(stored)
    for name in NAMES:
        mantissa, exponent = np.frexp(columns[name])
        columns[name] = np.ldexp(np.round(mantissa * 2**15) / 2**15, exponent)
    np.savez(tmp_path / "rounded.npz", **columns)
    found = inspect_eft_files(tmp_path / "rounded.npz", pattern="rwgt*")
    assert 1e-6 < found.largest_residual < 1e-3
    assert [point.negative_fraction for point in found.points] == [0.0] * len(POINTS)
    assert all((axis.lowest, axis.highest) == (-np.inf, np.inf) for axis in found.axes)
    shown = CliRunner().invoke(app, ["eft", "inspect", str(files / "named.npz"), "--pattern", "rwgt*"])
    assert "nonnegative at every value of a (others at the reference)" in shown.output


def test_an_event_that_the_reference_hardly_has_is_counted_and_judged(files: Path, tmp_path: Path) -> None:
    """Its coefficients are large and, with 14 bits, poorly known; the sign of its density is not."""
    with np.load(files / "named.npz") as stored:
        columns = dict(stored)
    for name, weight in zip(NAMES, CASE.basis(POINTS) @ [1e-5, 0.5, 0.3, 0.3, 0.1, 0.2], strict=True):
        columns[name][7] = weight
    np.savez(tmp_path / "hardly.npz", **columns)
    found = inspect_eft_files(tmp_path / "hardly.npz", pattern="rwgt*")
    assert [point.n_uncovered for point in found.points] == [0, 1, 1, 1, 1, 1, 1]
    assert found.points[1].largest_ratio == pytest.approx(80_001, rel=1e-6)
    at = {tuple(point.theta.values()): point.negative_fraction for point in found.points}
    assert at[-1.0, 0.0] == pytest.approx(1 / 6000)
    assert found.axes[0].lowest == pytest.approx(-2e-5, rel=1e-3)
    said = CliRunner().invoke(app, ["eft", "inspect", str(tmp_path / "hardly.npz"), "--pattern", "rwgt*"])
    text = " ".join(said.output.split())
    assert (
        "1 of 6000 events have nearly no weight at the reference: less than a thousandth of that at a = 1"
        in text
    )
    assert "and such at 5 other points" in text


def test_points_in_another_order_are_refused(files: Path) -> None:
    swapped = [NAMES[1], NAMES[0], *NAMES[2:]]
    with pytest.raises(
        InvalidInputError, match=r"of 6000 events.*no polynomial of order 2.*order of the points"
    ):
        read_eft_sample(files / "named.npz", points=files / "points.yaml", columns=swapped)


def test_too_few_points_are_refused_by_name(files: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.yaml"
    few.write_text("\n".join(YAML.splitlines()[:5]) + "\n")
    with pytest.raises(InvalidInputError, match=r"a\*b"):
        inspect_eft_files(files / "named.npz", points=few, columns=NAMES[:5])
    with pytest.raises(InvalidInputError, match="expected one weight per point"):
        inspect_eft_files(f"{files}/nano.root:Events", points=few, branch="LHEReweightingWeight", weight="1")


def test_a_fit_closes_at_every_point_and_is_kept(files: Path, tmp_path: Path) -> None:
    done = fit_eft_files(
        files / "named.npz",
        tmp_path / "model",
        pattern="rwgt*",
        estimator={"max_steps": 400, "random_state": 0, "weight_decay": 0.03},
        closure_points=[{"a": 0.5}, {"b": -0.5, "a": 0.2}],
    )
    assert done.features == ("x", "noise")
    assert [point.label for point in done.closure] == ["a = 0.5, b = 0", "a = 0.2, b = -0.5"]
    assert all(value < 2.5 for point in done.closure for value in point.chi_squared().values())
    again = qr.load(tmp_path / "model")
    assert isinstance(again, qr.PolynomialRatio)
    assert again.basis.parameters == ("a", "b")


def test_the_command_line(files: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    inspected = runner.invoke(app, ["eft", "inspect", str(files / "named.npz"), "--pattern", "rwgt*"])
    assert inspected.exit_code == 0, inspected.output
    assert "rank 6 of 6 terms" in inspected.output
    as_json = runner.invoke(app, ["eft", "inspect", str(files / "named.npz"), "--pattern", "rwgt*", "--json"])
    assert json.loads(as_json.output)["rank"] == 6
    options = ["--pattern", "rwgt*", "--steps", "50", "-o", str(tmp_path / "model"), "--at", "a=0.5", "-q"]
    fitted = runner.invoke(app, ["eft", "fit", str(files / "named.npz"), *options])
    assert fitted.exit_code == 0, fitted.output
    assert (tmp_path / "model" / "model.json").exists()


def _fitted(files: Path, output: Path, *more: str) -> Any:
    options = ["--pattern", "rwgt*", "--steps", "30", "-o", str(output), "-q", *more]
    return CliRunner().invoke(app, ["eft", "fit", str(files / "named.npz"), *options])


def test_weights_are_never_features(files: Path, tmp_path: Path) -> None:
    """Neither those in use, nor those of the factor, nor those that the pattern leaves out."""
    with np.load(files / "named.npz") as stored:
        columns = dict(stored)
    extra = {"rwgt7_a_2p0": columns["rwgt1_a_1p0"], "b_3p0": columns["rwgt0_sm"]}
    one = np.ones(6000)
    np.savez(tmp_path / "a.npz", **columns, **extra, weight=one, lumi_scale=one * 3, a_like=columns["x"] ** 2)
    done = fit_eft_files(
        tmp_path / "a.npz",
        pattern="rwgt[0-6]*",
        weight="lumi_scale",
        estimator={"max_steps": 5, "random_state": 0},
    )
    assert done.features == ("x", "noise", "a_like")
    for asked, why in (("rwgt0*", "'rwgt0_sm'"), ("y=x * rwgt1_a_1p0", "'rwgt1_a_1p0'")):
        with pytest.raises(InvalidInputError, match=f"made of {why}: weights or coefficients"):
            fit_eft_files(tmp_path / "a.npz", pattern="rwgt[0-6]*", features=[asked], weight="lumi_scale")
    named = fit_eft_files(
        tmp_path / "a.npz",
        pattern="rwgt[0-6]*",
        features=["x"],
        weight="1",
        estimator={"max_steps": 5, "random_state": 0},
    )
    assert named.features == ("x",)


def test_the_output_is_checked_before_the_training(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _fitted(files, tmp_path / "model", "--at", "a=0.5").exit_code == 0
    monkeypatch.setattr(qr.PolynomialRatio, "fit", lambda *_: pytest.fail("it was trained first"))
    again = _fitted(files, tmp_path / "model")
    assert again.exit_code == 2
    assert "holds a model already" in again.output
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    assert _fitted(files, tmp_path / "other", "--force").exit_code == 2


def test_a_model_is_kept_where_its_closure_fails(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        msg = "no closure"
        raise InvalidInputError(msg)

    monkeypatch.setattr("quasiratio.workflows.eft_files.closure_at", broken)
    assert _fitted(files, tmp_path / "model").exit_code == 2
    assert isinstance(qr.load(tmp_path / "model"), qr.PolynomialRatio)


def test_points_without_a_density_are_said(files: Path, tmp_path: Path) -> None:
    done = fit_eft_files(
        files / "ready.npz",
        tmp_path / "model",
        features=["x"],
        coefficients=["c0", "c1", "c2"],
        parameters=["a", "b"],
        order=1,
        weight="w",
        estimator={"max_steps": 5, "random_state": 0},
        closure_points=[{"a": 0.01}, {"a": -1e4}, {"a": 1e4}],
    )
    first, *others = done.closure
    assert not first.reason
    assert first.chi_squared()
    silent = [point.label for point in others if "rate is not positive" in point.reason]
    assert silent
    assert list(done.as_dict()["not_compared"]) == silent


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"points": "points.yaml", "branch": "B", "columns": NAMES}, ("branch", "columns")),
        ({"points": "points.yaml", "pattern": "rwgt*"}, ("points", "pattern")),
        ({"points": "points.yaml", "parameters": ["a", "b"]}, ("points", "parameters")),
        ({"points": "points.yaml", "coefficients": ["c0"]}, ("coefficients", "points")),
        ({"pattern": "rwgt*", "columns": NAMES}, ("pattern", "columns")),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    files: Path, options: dict[str, Any], named: tuple[str, str]
) -> None:
    if "points" in options:
        options = {**options, "points": files / options["points"]}
    with pytest.raises(InvalidInputError, match=f"`{named[0]}` or `{named[1]}`"):
        read_eft_sample(files / "named.npz", **options)


def test_weights_that_were_filled_in_are_noticed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {name: np.ones(500) for name in NAMES}
    np.savez(tmp_path / "ones.npz", x=rng.normal(size=500), **columns)
    said = CliRunner().invoke(app, ["eft", "inspect", str(tmp_path / "ones.npz"), "--pattern", "rwgt*"])
    assert said.exit_code == 0
    assert "All terms but the first vanish" in said.output
    assert "500 of 500 events have the same weight at all points" in said.output


def test_a_weight_beside_those_at_points_is_not_left_out_in_silence(files: Path, tmp_path: Path) -> None:
    """Those of nanoAOD are relative to genWeight, which may be negative; others are whole weights."""
    uproot, ak = pytest.importorskip("uproot"), pytest.importorskip("awkward")
    events = CASE.sample(500, np.random.default_rng(0))
    weights = events.mined @ CASE.basis(POINTS).T
    signs = np.where(np.arange(500) % 5 == 0, -2.0, 2.0)
    vectors = ak.from_regular(ak.Array(weights))
    types = {"x": np.float64, "LHEReweightingWeight": "var * float64", "genWeight": np.float64}
    with uproot.recreate(tmp_path / "nano.root") as file:
        file.mktree("Events", types)
        file["Events"].extend(
            {"x": events.features[:, 0], "LHEReweightingWeight": vectors, "genWeight": signs}
        )
    command = ["eft", "inspect", f"{tmp_path}/nano.root", "--branch", "LHEReweightingWeight"]
    command += ["--points", str(files / "points.yaml")]
    refused = CliRunner().invoke(app, command)
    said = " ".join(refused.output.split())
    assert refused.exit_code == 2
    assert "which also has 'genWeight'; expected to be told" in said
    assert said.endswith("Add --weight genWeight, or --weight 1 for whole weights.")
    rates = []
    for weight in ("genWeight", "1"):
        done = CliRunner().invoke(app, [*command, "--weight", weight, "--json"])
        rates.append(json.loads(done.output)["points"][1]["rate"])
    assert rates == pytest.approx([signs @ weights[:, 1] / signs.sum(), weights[:, 1].mean()])


def test_ready_coefficients_are_checked(files: Path, tmp_path: Path) -> None:
    with np.load(files / "ready.npz") as stored:
        columns = dict(stored)
    ready: dict[str, Any] = {
        "coefficients": [f"c{k}" for k in range(6)],
        "parameters": ["a", "b"],
        "weight": "w",
    }
    bad = columns["c1"].copy()
    bad[[3, 8]] = np.nan
    np.savez(tmp_path / "nan.npz", **{**columns, "c1": bad})
    with pytest.raises(InvalidInputError, match=r"2 of 6000 events .* such as number 3, 8"):
        inspect_eft_files(tmp_path / "nan.npz", **ready)
    for factor in (0.0, -1.0):
        np.savez(tmp_path / "sum.npz", **{**columns, "w": factor * columns["w"]})
        with pytest.raises(InvalidInputError, match="positive"):
            inspect_eft_files(tmp_path / "sum.npz", **ready)


def test_weights_are_judged_and_other_columns_are_not(files: Path, tmp_path: Path) -> None:
    """NaN in a column that is not asked for is nobody's business; in a weight it is counted; no column serves two points."""
    with np.load(files / "named.npz") as stored:
        columns = dict(stored)
    hole = np.where(np.arange(6000) == 5, np.nan, 1.0)
    np.savez(tmp_path / "hole.npz", a_hole=hole, **columns)
    assert len(read_eft_sample(tmp_path / "hole.npz", pattern="rwgt*")) == 6000
    np.savez(tmp_path / "nan.npz", **{**columns, NAMES[3]: hole})
    with pytest.raises(InvalidInputError, match=r"1 of 6000 events with a weight .* such as number 5"):
        read_eft_sample(tmp_path / "nan.npz", pattern="rwgt*")
    points, ready = files / "points.yaml", [f"c{k}" for k in range(5)]
    with pytest.raises(InvalidInputError, match=f"column '{NAMES[5]}' twice"):
        read_eft_sample(files / "named.npz", points=points, columns=[*NAMES[:6], NAMES[5]])
    with pytest.raises(InvalidInputError, match="column 'c4' twice"):
        read_eft_sample(files / "ready.npz", coefficients=[*ready, "c4"], parameters=["a", "b"], weight="w")


def test_ready_coefficients_in_other_orders_and_in_one_vector(files: Path, tmp_path: Path) -> None:
    uproot = pytest.importorskip("uproot")
    events = CASE.sample(6000, np.random.default_rng(0))
    factorials = np.array([1, 1, 1, 2, 1, 2])
    with uproot.recreate(tmp_path / "top.root") as file:
        file["Events"] = {
            "x": events.features[:, 0],
            "EFTfitCoefficients": 2.0 * CASE.basis.to_topcoffea(events.mined),
            "derivatives": events.mined * factorials,
        }
    for name, kind, weight in (
        ("EFTfitCoefficients", "topcoffea", "1"),
        ("derivatives", "derivatives", "2 * 1"),
    ):
        sample = read_eft_sample(
            f"{tmp_path}/top.root:Events",
            coefficients=[name],
            coefficient_order=kind,  # type: ignore[arg-type]
            parameters=["a", "b"],
            weight=weight,
        )
        np.testing.assert_allclose(sample.coefficients, events.mined, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sample.reference_weights, 2.0)
    found = inspect_eft_files(
        f"{tmp_path}/top.root:Events",
        coefficients=["EFTfitCoefficients"],
        coefficient_order="topcoffea",
        parameters=["a", "b"],
        weight="1",
        at=[{"a": 0.5}],
    )
    assert found.points[0].theta == {"a": 0.5, "b": 0.0}
    drawn = inspect_eft_files(
        files / "ready.npz", coefficients=[f"c{k}" for k in range(6)], parameters=["a", "b"], weight="w"
    )
    assert len(drawn.points) == 4
    ready = ["--coefficients", ",".join(f"c{k}" for k in range(6)), "--parameters", "a,b", "--weight", "w"]
    said = CliRunner().invoke(app, ["eft", "inspect", str(files / "ready.npz"), *ready])
    assert "14-bit" not in said.output  # nothing is known of how they were stored
    assert all(point.effective_size < 6000 for point in drawn.points)


def test_where_a_density_of_third_order_turns_negative(tmp_path: Path) -> None:
    """(1 - t)(1 + t/2)^2 for one event, which touches zero at -2 and crosses it at one; 1 + t^3/27 for the other."""
    touching = np.polynomial.Polynomial([1, -1]) * np.polynomial.Polynomial([1, 0.5]) ** 2
    rows = np.array([touching.coef, [1, 0, 0, 1 / 27]])
    columns: dict[str, Any] = {f"c{k}": rows[:, k] for k in range(4)}
    np.savez(tmp_path / "a.npz", x=[0.0, 1.0], **columns)
    found = inspect_eft_files(
        tmp_path / "a.npz", coefficients=["c0", "c1", "c2", "c3"], parameters=["t"], order=3, weight="1"
    )
    assert found.axes[0].highest == pytest.approx(1.0)
    assert found.axes[0].lowest == pytest.approx(-3.0)


def _fresh(path: Path, n_events: int) -> None:
    """Write events that no fit has seen, with named weights, a vector of them and ready coefficients."""
    fresh = CASE.sample(n_events, np.random.default_rng(1))
    weights = 2.0 * fresh.mined @ CASE.basis(POINTS).T
    columns: dict[str, Any] = dict(zip(NAMES, weights.T, strict=True))
    columns |= {f"c{k}": 2.0 * fresh.mined[:, k] for k in range(6)}
    np.savez(path, x=fresh.features[:, 0], noise=fresh.features[:, 1], **columns)


def test_a_verdict_says_what_it_cannot_say(files: Path, tmp_path: Path) -> None:
    """Few events hide large differences, an ensemble knows the error of its training, and a fit that failed stays poor."""
    estimator = {"max_steps": 200, "random_state": 0, "weight_decay": 0.03, "n_members": 3}
    done = fit_eft_files(files / "named.npz", tmp_path / "model", pattern="rwgt*", estimator=estimator)
    _fresh(tmp_path / "few.npz", 1000)
    _fresh(tmp_path / "many.npz", 20_000)
    at = [{"a": 0.3}]
    few = evaluate_eft_files(tmp_path / "model", tmp_path / "few.npz", tmp_path / "one", at=at)
    assert few.status == "info"
    assert "without being noticed. More events to test with would decide" in few.verdict
    many = evaluate_eft_files(tmp_path / "model", tmp_path / "many.npz", tmp_path / "two", at=at)
    assert many.status == "good"
    assert "With a confidence of 95% at most" in many.verdict
    (point,) = many.points
    assert point.result is not None
    for entry in point.result.observables:
        assert entry.methods[0].member_band is not None
    page = (tmp_path / "two" / "report.html").read_text()
    assert "The p-value counts the spread of the members" in page
    done.model.fit_check_ = replace(
        done.model.fit_check_, status="failed", reasons=("Worse than a constant: a.",)
    )
    notes = read_eft_sample(files / "named.npz", pattern="rwgt*").notes
    done.model.save(
        tmp_path / "failed", notes={NOTES_KEY: done.notes.model_dump(), EFT_KEY: notes.model_dump()}
    )
    failed = evaluate_eft_files(tmp_path / "failed", tmp_path / "many.npz", tmp_path / "three", at=at)
    assert failed.status == "poor"
    assert failed.verdict.startswith("DO NOT USE THIS FIT")


def test_the_weights_to_judge_by_may_be_elsewhere(files: Path, tmp_path: Path) -> None:
    """Other points, other columns, ready coefficients, parameters in another order; and a model that knows of none."""
    done = fit_eft_files(
        files / "named.npz",
        tmp_path / "model",
        pattern="rwgt*",
        estimator={"max_steps": 20, "random_state": 0},
    )
    _fresh(tmp_path / "fresh.npz", 1000)
    (tmp_path / "swapped.yaml").write_text(
        "\n".join(["parameters: [b, a]", "points:", *(f"- {json.dumps(point)}" for point in POINTS)])
    )
    (tmp_path / "other.yaml").write_text("- {}\n- {c: 1}\n- {c: -1}\n")
    names, ready = ",".join(NAMES), ",".join(f"c{k}" for k in range(6))
    runner, numbers = CliRunner(), []
    for number, more in enumerate(
        (
            [],
            ["--pattern", "rwgt*"],
            ["--points", f"{tmp_path}/swapped.yaml", "--columns", names],
            ["--columns", names],
            ["--coefficients", ready],
        )
    ):
        out = tmp_path / f"report{number}"
        command = ["evaluate", f"{tmp_path}/model", f"{tmp_path}/fresh.npz", "-o", str(out), "--at", "a=0.3"]
        said = runner.invoke(app, [*command, *more])
        assert said.exit_code == 0, said.output
        (point,) = json.loads((out / "results.json").read_text())["points"]
        numbers.append([point["rate"], *(row["chi2_per_dof"] for row in point["closure"])])
    np.testing.assert_allclose(numbers, [numbers[0]] * len(numbers), rtol=1e-9)
    done.model.save(tmp_path / "bare")
    command = ["evaluate", f"{tmp_path}/bare", f"{tmp_path}/fresh.npz", "-o", str(tmp_path / "bare-report")]
    refused = runner.invoke(app, command)
    assert refused.exit_code == 2
    assert "Give --points, --pattern or --coefficients" in " ".join(refused.output.split())
    assert not (tmp_path / "bare-report").exists()
    assert runner.invoke(app, [*command, "--pattern", "rwgt*"]).exit_code == 0
    other = ["--points", f"{tmp_path}/other.yaml", "--columns", ",".join(NAMES[:3]), "--force"]
    refused = runner.invoke(app, [*command, *other])
    assert refused.exit_code == 2
    assert "points of the parameters c; expected a, b" in " ".join(refused.output.split())


def test_an_evaluation_at_several_points(files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    fit_eft_files(
        files / "named.npz",
        model,
        pattern="rwgt*",
        selection="x < 3",
        estimator={"max_steps": 400, "random_state": 0, "weight_decay": 0.03},
    )
    _fresh(tmp_path / "fresh.npz", 20_000)
    done = evaluate_eft_files(model, tmp_path / "fresh.npz", tmp_path / "report", n_drawn=3, random_state=1)
    assert len(done.points) == 3
    assert done.values["selection"] == "x < 3"  # that of the fit
    assert done.share_seen == 0
    box = CASE.basis.points(POINTS)
    for point in done.points:
        theta = np.array(list(point.theta.values()))
        assert np.all((box.min(axis=0) <= theta) & (theta <= box.max(axis=0)))
        assert point.rate == pytest.approx(point.learned_rate, rel=0.1)
    near = [{"a": 0.3}, {"a": 0.1, "b": -0.2}]
    assert evaluate_eft_files(model, tmp_path / "fresh.npz", tmp_path / "near", at=near).status == "good"
    assert "<html" in (tmp_path / "report" / "report.html").read_text()
    runner = CliRunner()
    command = ["evaluate", str(model), str(tmp_path / "fresh.npz"), "-o", str(tmp_path / "again")]
    said = runner.invoke(app, [*command, "--at", "a=0.3", "--at", "a=0.1,b=0.2"])
    assert said.exit_code == 0, said.output
    assert "a = 0.1, b = 0.2" in said.output
    refused = runner.invoke(app, [*command, str(tmp_path / "fresh.npz")])
    assert refused.exit_code == 2
    assert "second sample" in refused.output
    graph = runner.invoke(app, ["export", str(model), "-o", str(tmp_path / "model.onnx")])
    assert "a PolynomialRatio of x, noise, at theta = (a, b)" in " ".join(graph.output.split())
    for wrong in (["--at", "c=1"], ["--draw", "0"], ["--draw", "2", "--at", "a=1"]):
        assert runner.invoke(app, [*command, *wrong, "--force"]).exit_code == 2


def test_a_model_that_is_wrong_is_found_out(files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    done = fit_eft_files(files / "named.npz", pattern="rwgt*", estimator={"max_steps": 5, "random_state": 0})
    done.model.model_.matrix *= 0.0  # all functions become constants
    notes = read_eft_sample(files / "named.npz", pattern="rwgt*").notes
    done.model.save(model, notes={NOTES_KEY: done.notes.model_dump(), EFT_KEY: notes.model_dump()})
    judged = evaluate_eft_files(model, files / "named.npz", tmp_path / "report", at=[{"a": 0.8}])
    assert judged.status in {"fair", "poor"}
    assert judged.share_seen > 0.5


def test_learned_densities_in_a_file(files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    fit_eft_files(files / "named.npz", model, pattern="rwgt*", estimator={"max_steps": 50, "random_state": 0})
    loaded = qr.load(model, expected=qr.PolynomialRatio)
    table = open_table(files / "named.npz")
    X = {name: next(iter(table.chunks([name])))[name] for name in ("x", "noise")}
    points = [{"a": 0.5, "b": -1.5}, {}]
    apply_eft_files(model, files / "named.npz", tmp_path / "at.npz", at=points)
    with np.load(tmp_path / "at.npz") as written:
        np.testing.assert_allclose(
            written["ratio_a_0p5_b_m1p5"], loaded.predict_ratio(X, points[0]), rtol=1e-6
        )
        np.testing.assert_allclose(
            written["intensity_a_0p5_b_m1p5"], loaded.predict_intensity(X, points[0]), rtol=1e-6
        )
        np.testing.assert_array_equal(written["x"], X["x"])
    runner = CliRunner()
    command = ["apply", str(model), str(files / "named.npz"), "-o", str(tmp_path / "rho.npz")]
    assert runner.invoke(app, command).exit_code == 0
    with np.load(tmp_path / "rho.npz") as written:
        np.testing.assert_allclose(written["rho_a_b"], loaded.predict_coefficients(X)[:, 4], rtol=1e-6)
    refused = runner.invoke(app, [*command, "--weight", "x", "--force"])
    assert refused.exit_code == 2
    assert "--weight" in refused.output


@pytest.mark.parametrize("scale", ["1e250", "1e-250"])
def test_weights_whose_squares_are_no_numbers_are_one_sentence(
    files: Path, scale: str, tmp_path: Path
) -> None:
    columns = dict(np.load(files / "named.npz"))
    np.savez(
        tmp_path / "scaled.npz", **{n: v * float(scale) if n in NAMES else v for n, v in columns.items()}
    )
    with pytest.raises(InvalidInputError, match="Multiply all weights by one constant"):
        inspect_eft_files(tmp_path / "scaled.npz", pattern="rwgt*")
    with pytest.raises(InvalidInputError, match="Multiply all weights by one constant"):
        inspect_eft_files(
            files / "ready.npz",
            coefficients=[f"c{k}" for k in range(6)],
            parameters=["a", "b"],
            weight=f"w*{scale}",
        )
