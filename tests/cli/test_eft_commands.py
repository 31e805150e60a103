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
