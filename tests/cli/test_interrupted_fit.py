"""Ctrl-C and kill in the middle of the work, in processes of their own; and the fit that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app

SCRIPT = Path(sys.executable).with_name("quasiratio")
FIT = [
    "fit",
    "reference.npz",
    "target.npz",
    "--weight",
    "w",
    "--steps",
    "600",
    "--batch-size",
    "256",
    "-o",
    "new",
]
TIME_LIMIT = 120.0


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def stop_when(process: subprocess.Popen[str], pattern: str, number: signal.Signals) -> tuple[int, str]:
    """Send a signal as soon as a file of this pattern appears."""
    limit = time.monotonic() + TIME_LIMIT
    while not list(Path.cwd().glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=TIME_LIMIT)
    return process.returncode, err


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def ratios(path: str) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    return np.asarray(qr.load(path).predict_ratio(X))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_an_interrupted_fit_goes_on_to_the_same_model(workspace: Path, number: signal.Signals) -> None:
    code, err = stop_when(start(*FIT), "new.partial/stage-*", number)
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert code == 130
        (line,) = [line for line in err.splitlines() if line.startswith("Error: ")]
        assert "is in 'new.partial'" in line
        assert "with --resume" in line
    assert not (workspace / "new").exists()
    assert [path.name for path in (workspace / "new.partial").glob("stage-*")] == ["stage-001.safetensors"]

    code, _, err = run(*FIT, "--resume", "--seed", "5")
    assert code == 2
    assert "which had other data, features or options" in err
    assert (workspace / "new.partial" / "stage-001.safetensors").is_file()

    assert run(*FIT, "--resume")[0] == 0
    assert not (workspace / "new.partial").exists()
    assert run(*FIT[:-1], "whole")[0] == 0
    assert np.array_equal(ratios("new"), ratios("whole"))


def test_without_resume_the_old_state_is_dropped_and_with_it_nothing_is_needed(workspace: Path) -> None:
    code, out, _ = run(*FIT, "--steps", "20", "--resume")
    assert (code, "There is no interrupted fit to continue" in out) == (0, True)
    (workspace / "new.partial").mkdir()
    (workspace / "new.partial" / "stage-001.safetensors").write_text("old")
    assert run(*FIT, "--steps", "20", "--force")[0] == 0
    assert not (workspace / "new.partial").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_apply_leaves_nothing(workspace: Path, number: signal.Signals) -> None:
    rng = np.random.default_rng(0)
    pt, eta = rng.normal(size=(2, 2_000_000))
    np.savez("large.npz", pt=pt, eta=eta)
    before = sorted(path.name for path in workspace.iterdir())
    process = start("apply", "model", "large.npz", "-o", "out.root", "--weight", "1")
    code, err = stop_when(process, ".quasiratio-*/part*", number)
    assert code == (130 if number == signal.SIGINT else 143)
    assert "Traceback" not in err
    assert sorted(path.name for path in workspace.iterdir()) == before


def test_two_fits_into_one_directory(workspace: Path) -> None:
    first = start(*FIT, "--steps", "1000000")
    limit = time.monotonic() + TIME_LIMIT
    while not (workspace / "new.partial" / "lock").exists():
        assert first.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.01)
    code, _, err = run(*FIT)
    first.kill()
    first.communicate(timeout=TIME_LIMIT)
    assert code == 2
    assert f"process {first.pid} on" in err
    assert run(*FIT, "--steps", "20")[0] == 0  # the lock of a process that has ended is no lock
    assert ratios("new").shape == (50,)
