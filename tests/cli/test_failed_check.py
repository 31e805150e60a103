"""A ratio that should not be used says so first: in `fit`, `apply`, `models show`, `evaluate` and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.errors import UntrustworthyFitWarning

SAID = "DO NOT USE THIS RATIO: the fit failed its check"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A memory of noise, fitted by the command; its directory and what the command printed."""
    directory = tmp_path_factory.mktemp("failed")
    rng = np.random.default_rng(0)
    for name in ("reference", "target"):
        features: dict[str, Any] = {f"x{number}": rng.normal(size=1200) for number in range(12)}
        np.savez(directory / f"{name}.npz", **features)
    samples = [str(directory / f"{name}.npz") for name in ("reference", "target")]
    options = [
        "--method",
        "direct",
        "--loss",
        "lsif",
        "--steps",
        "600",
        "--learning-rate",
        "0.05",
        "--weight-decay",
        "0",
    ]
    options += [
        "--hidden-layers",
        "64,64",
        "--validation-fraction",
        "0.2",
        "--seed",
        "0",
        "-o",
        str(directory / "model"),
    ]
    result = CliRunner().invoke(app, ["fit", *samples, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return directory, result.stdout


def printed(arguments: list[str]) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_fit_says_it_first(failed: tuple[Path, str]) -> None:
    """Before anything that the training found; what was read is told before it starts."""
    result = [
        line
        for line in failed[1].splitlines()
        if line.split()[0] not in ("Features", "Reference:", "Target:")
    ]
    assert result[0].startswith(SAID)
    assert result[-1].startswith("Model: ")


def test_apply_says_it_first_and_python_can_ask(failed: tuple[Path, str]) -> None:
    directory, _ = failed
    source, model = str(directory / "reference.npz"), directory / "model"
    out = printed(["apply", str(model), source, "-o", str(directory / "out.npz")])
    assert out.splitlines()[1].startswith(SAID)  # below the features in use
    with pytest.warns(UntrustworthyFitWarning, match=SAID):
        done = qr.workflows.apply_files(model, source, directory / "again.npz")
    first = done.warnings()[0]
    assert isinstance(first, UntrustworthyFitWarning)
    assert str(first) == str(done.fit_check)


def test_models_show_says_it_first(failed: tuple[Path, str]) -> None:
    assert printed(["models", "show", str(failed[0] / "model")]).startswith(SAID)


def test_the_report_says_it_first(failed: tuple[Path, str]) -> None:
    directory, _ = failed
    samples = [str(directory / f"{name}.npz") for name in ("reference", "target")]
    out = printed(["evaluate", str(directory / "model"), *samples, "-o", str(directory / "report")])
    assert SAID in out
    page = (directory / "report" / "report.html").read_text()
    body = page[page.index("<body") :]
    assert body.index(SAID) < body.index("<table")
