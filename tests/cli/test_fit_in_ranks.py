"""`quasiratio fit` under torchrun: one model, one voice, and one sentence where something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.in_ranks import in_ranks
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app

FIT = ["fit", "reference*.npz", "target*.npz", "--weight", "w", "--features", "pt,eta", "--steps", "40"]


@pytest.fixture
def samples(tmp_path: Path, columns: Any) -> Path:
    """Write three files of each sample."""
    for seed, sample in enumerate(("reference", "target")):
        for number in range(3):
            np.savez(tmp_path / f"{sample}{number}.npz", **columns(500 + 100 * number, 3 * seed + number))
    return tmp_path


def test_torchrun_fits_three_files_in_two_processes(samples: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [*torchrun, "-m", "quasiratio", *FIT, "--json", "-o", "model"],
        cwd=samples, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)  # one object, of one process
    assert (found["reference"]["n_events"], found["target"]["n_events"]) == (1800, 1800)
    assert found["n_steps"] == 40
    model = qr.load(samples / "model")
    assert model.fingerprint_.n_events == 3600
    assert not (samples / "model.partial").exists()


def cached(_rank: int, directory: Path) -> tuple[int, str, str]:
    os.chdir(directory)
    result = CliRunner().invoke(app, [*FIT, "-o", "cached", "--cache", "events"])
    return result.exit_code, result.stdout, result.stderr


def test_processes_share_a_store_of_events(samples: Path) -> None:
    (code, out, _), second = in_ranks(cached, samples, launched=True)
    assert code == 0
    assert "Store of events: events, converted and shuffled now" in out
    assert "Training on 3060 events: at most 40 steps, about " in out
    assert second == (0, "", "")
    assert qr.load(samples / "cached").fingerprint_.n_events == 3600


def said(_rank: int, directory: Path) -> list[tuple[int, str, str]]:
    os.chdir(directory)
    found = []
    for number, options in enumerate(
        (["--steps", "-5"], ["--features", "mass"], ["--n-folds", "2"], ["-o", "made"])
    ):
        result = CliRunner().invoke(app, [*FIT, "-o", f"model{number}", *options])
        found.append((result.exit_code, result.stdout, result.stderr))
    return found


def test_the_first_process_speaks_for_all(samples: Path) -> None:
    first, second = in_ranks(said, samples, launched=True)
    assert [code for code, _, _ in first] == [code for code, _, _ in second] == [2, 2, 2, 0]
    for (_, out, err), text in zip(
        first[:3], ("-5", "'mass'", "several processes for Reweighter"), strict=True
    ):
        assert out in {"", "Features (2): pt, eta\n"}
        assert err.startswith("Error: ")
        assert text in err
        assert len(err.splitlines()) == 1
    assert "Model: made" in first[3][1]
    assert all(out == err == "" for _, out, err in second)
    assert (samples / "made" / "model.json").exists()
