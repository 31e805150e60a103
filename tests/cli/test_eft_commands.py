"""EFT samples and models on the command line, as somebody with files of a generator meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase

CASE = LatentAmplitudeCase()
QUICK: dict[str, Any] = {"max_steps": 20, "random_state": 0, "verbose": False}


def told(*arguments: object, code: int = 0) -> str:
    """Run a command and return what it says, on one line."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


@pytest.mark.parametrize("kind", ["polynomial", "joint"])
def test_a_mined_model_is_shown_with_its_check(kind: str, tmp_path: Path) -> None:
    model: qr.PolynomialRatio | qr.JointRatio
    if kind == "polynomial":
        events = CASE.sample(2000, np.random.default_rng(0))
        model = qr.PolynomialRatio(CASE.basis, **QUICK).fit(events.features, events.mined)
    else:
        events = LatentExponentialCase().sample(2000, np.random.default_rng(0))
        model = qr.JointRatio(**QUICK).fit(events.features, events.mined)
    model.save(tmp_path / "model")
    shown = told("models", "show", tmp_path / "model")
    assert " ".join(str(model.fit_check_).split()) in shown
    assert type(model).__name__ in shown


def test_terms_that_rounding_hides_are_named(tmp_path: Path) -> None:
    """Points near a line determine the products and squares with a condition number of a million."""
    t = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 1.5])
    points = np.column_stack([t, 2 * t + 0.01 * np.array([0, 1, -1, 1, 2, -1, 3])])
    events = CASE.sample(500, np.random.default_rng(0))
    weights = events.mined @ CASE.basis(points).T
    columns: dict[str, Any] = {f"w{k}": weights[:, k] for k in range(7)}
    np.savez(tmp_path / "a.npz", x=events.features[:, 0], **columns)
    rows = "\n".join(f"- {row}" for row in points.tolist())
    (tmp_path / "points.yaml").write_text(f"parameters: [a, b]\npoints:\n{rows}\n")
    names = ",".join(columns)
    shown = told(
        "eft", "inspect", tmp_path / "a.npz", "--points", tmp_path / "points.yaml", "--columns", names
    )
    assert "rounding hides these terms: a^2, a*b, b^2." in shown
