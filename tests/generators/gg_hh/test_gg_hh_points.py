"""Weights at points of Wilson coefficients: those of the amplitudes, quadratic, and in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import PAPER_POINT, generate, weight_points
from quasiratio.generators.gg_hh.couplings import PAPER_WILSON_COEFFICIENTS
from quasiratio.generators.gg_hh.production import PARTON_FEATURES
from quasiratio.workflows import read_eft_sample

POINTS = [{}, {"C_H": 3.0}, {"C_H": -3.0}, {"C_uH": 3.0}, {"C_uH": -3.0}, {"C_H": 3.0, "C_uH": 3.0}]


def test_weights_are_ratios_of_squared_amplitudes() -> None:
    paper = {name: value for name, value in PAPER_WILSON_COEFFICIENTS.items() if name != "Lambda"}
    points = weight_points([{}, paper])
    assert points[1].couplings == PAPER_POINT
    events = generate("sm", 2000, 1, parton_level=True, points=points).columns
    np.testing.assert_allclose(events["rwgt0_sm"], 1.0)
    np.testing.assert_allclose(events[points[1].column], events["truth_raw_ratio_quadratic"], rtol=1e-9)
    linear = weight_points([paper], expansion="linear")
    events = generate("linear", 2000, 1, parton_level=True, points=linear).columns
    np.testing.assert_allclose(events[linear[0].column], events["weight"])


def test_the_density_is_a_quadratic_polynomial() -> None:
    """The solution of six points predicts the seventh."""
    basis, seventh = qr.PolynomialBasis(["C_H", "C_uH"]), {"C_H": -1.7, "C_uH": 2.2}
    points = weight_points([*POINTS, seventh])
    events = generate("sm", 2000, 2, parton_level=True, points=points).columns
    weights = np.column_stack([events[point.column] for point in points])
    solved = basis.solve(POINTS, weights[:, :6])
    np.testing.assert_allclose(solved.coefficients @ basis(seventh), weights[:, 6], rtol=1e-9)
    matrix = np.empty((2000, 3, 3))
    for term, (i, j) in enumerate([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]):
        matrix[:, i, j] = matrix[:, j, i] = solved.coefficients[:, term] * (1.0 if i == j else 0.5)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9  # a squared amplitude is physical


def test_unknown_coefficients_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="C_x"):
        weight_points([{"C_x": 1.0}])


def test_the_command_writes_what_eft_reads(tmp_path: Path) -> None:
    (tmp_path / "points.yaml").write_text("\n".join(f"- {point}".replace("'", "") for point in POINTS))
    out = tmp_path / "sm.npz"
    command = [
        "generate",
        "gg-hh",
        "--sample",
        "sm",
        "--parton-level",
        "--events",
        "500",
        "-q",
        "-o",
        str(out),
    ]
    done = CliRunner().invoke(app, [*command, "--points", str(tmp_path / "points.yaml")])
    assert done.exit_code == 0, done.output
    sample = read_eft_sample(out, pattern="rwgt*")
    assert sample.basis.parameters == ("C_H", "C_uH")
    assert sample.coefficients.shape == (500, 6)
    model = tmp_path / "model"
    fitted = CliRunner().invoke(
        app, ["eft", "fit", str(out), "--pattern", "rwgt*", "--steps", "5", "-o", str(model), "-q"]
    )
    assert fitted.exit_code == 0, fitted.output
    ranges = qr.load(model, expected=qr.PolynomialRatio).fingerprint_.ranges
    assert set(ranges) == set(PARTON_FEATURES)  # and no weight


@pytest.mark.parametrize("photons", [True, False])
def test_weights_at_particle_level_are_those_of_the_hard_process(photons: bool) -> None:
    """With photon radiation and without; the muons know the mass of the pair where there is none."""
    pytest.importorskip("pythia8mc")
    columns = generate("sm", 60, 3, points=weight_points(POINTS), photons=photons).columns
    weights = np.column_stack([columns[point.column] for point in weight_points(POINTS)])
    solved = qr.PolynomialBasis(["C_H", "C_uH"]).solve(POINTS, weights)
    np.testing.assert_allclose(solved.coefficients[:, 0], 1.0)
    assert np.ptp(solved.coefficients[:, 1]) > 0.01
    near = np.abs(columns["m_hh"] / columns["truth_m_hh"] - 1.0) < 0.01
    assert bool(near.mean() > 0.95) is not photons
