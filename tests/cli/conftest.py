"""Small samples and a small model for the tests of the commands."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from quasiratio.cli.main import app


def good_columns(n_events: int, seed: int) -> dict[str, Any]:
    """Return two features, an event number and a signed weight."""
    rng = np.random.default_rng(seed)
    return {
        "pt": rng.normal(0.3 * seed, 1.0, n_events),
        "eta": rng.normal(0.0, 1.0, n_events).astype(np.float32),
        "event": np.arange(n_events),
        "w": rng.choice([1.0, -0.5], n_events, p=[0.8, 0.2]),
    }


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Undo what a shell does to its background jobs, and what children would inherit: to ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def columns() -> Callable[[int, int], dict[str, Any]]:
    """Return a function (events, seed) -> columns of a sample."""
    return good_columns


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with reference.npz, target.npz and a model of both, not to be changed."""
    directory = tmp_path_factory.mktemp("prepared")
    for seed, name in enumerate(("reference", "target")):
        np.savez(directory / f"{name}.npz", **good_columns(1500, seed))
    samples = [str(directory / f"{name}.npz") for name in ("reference", "target")]
    options = ["--weight", "w", "--steps", "60", "--members", "2", "-o", str(directory / "model")]
    result = CliRunner().invoke(app, ["fit", *samples, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return directory


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the prepared directory as the current directory."""
    shutil.copytree(prepared, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"
