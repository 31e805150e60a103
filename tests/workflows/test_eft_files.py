"""EFT samples in files: the same coefficients whichever way the weights are stored, inspection, and fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.distributions import LatentAmplitudeCase
from quasiratio.errors import InvalidInputError
from quasiratio.workflows.eft_files import fit_eft_files, inspect_eft_files, read_eft_sample

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
    assert set(done.closure) == {"a = 0.5, b = 0", "a = 0.2, b = -0.5"}
    assert all(value < 2.5 for row in done.closure.values() for value in row.values())
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
