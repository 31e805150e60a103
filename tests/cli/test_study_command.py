"""`quasiratio study`: list, run, resume, compare, and every way to refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quasiratio.cli.main import app
from quasiratio.studies.engine.registry import study_names


def invoke(*arguments: str):
    return CliRunner().invoke(app, ["study", *arguments])


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_every_study_is_listed_with_its_question() -> None:
    result = invoke("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == study_names()
    assert all(line.endswith("?") for line in lines)


@pytest.mark.slow
def test_ctrl_c_while_figures_are_drawn_gets_a_sentence_and_resume_draws_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["weight-variance", "--preset", "smoke", "--method", "mlp", "--jobs", "1", "-o", str(out)]
    command = [sys.executable, "-m", "quasiratio", "study", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (out / "results.md").exists():  # written just before the figures
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.endswith("Error: Interrupted.\n")
    assert "Traceback" not in said
    assert not (out / "report.html").exists()
    again = invoke(*arguments, "--resume")
    assert again.exit_code == 0, again.stderr
    assert (out / "area_sigma.pdf").exists()


def test_a_smoke_run_writes_everything_and_is_not_repeated(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["weight-variance", "--preset", "smoke", "--method", "mlp", "--jobs", "1", "-o", str(out)]
    result = invoke(*command)
    assert result.exit_code == 0, result.stderr
    assert "weight-variance: 7 of 7" in result.stderr
    names = {path.name for path in out.iterdir()}
    assert {
        "report.html",
        "results.sqlite",
        "results.json",
        "results.md",
        "points.md",
        "points.json",
    } <= names
    assert {"area_sigma.pdf", "area_sigma.png", "validation_loss.pdf", "entropy_median.png"} <= names
    before = (out / "results.json").read_text()
    refused = invoke(*command)
    assert refused.exit_code == 2
    assert "holds results of a study" in refused.stderr
    other = invoke(*command, "--seeds", "2", "--resume")
    assert other.exit_code == 2
    assert "seeds = 1 there and 2 now" in other.stderr
    again = invoke(*command, "--resume")
    assert again.exit_code == 0
    assert (out / "results.json").read_text() == before
    same = invoke("weight-variance", "--compare", str(out), str(out))
    assert same.exit_code == 0
    assert "0 of 7 numbers changed beyond noise" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["weight-varience", "-o", "x"], "Perhaps 'weight-variance'?"),
        (["weight-variance"], "Add -o DIRECTORY"),
        (["weight-variance", "-o", "x", "--preset", "enormous"], "expected one of smoke, quick, full"),
        (["weight-variance", "-o", "x", "--jobs", "0"], "--jobs 0"),
        (["weight-variance", "-o", "x", "--scheduler", "node1"], "tcp://node1:8786"),
        (["weight-variance", "-o", "x", "--method", "magic"], "expected some of mlp, rosmm_r"),
        (["weight-variance", "--compare", "a", "b"], "no readable results.json"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


def test_runs_of_another_study_are_not_compared(tmp_path: Path) -> None:
    content = {"study": "smeft-hh", "settings": {}, "commit": "c", "results": []}
    (tmp_path / "results.json").write_text(json.dumps(content))
    result = invoke("weight-variance", "--compare", str(tmp_path), str(tmp_path))
    assert result.exit_code == 2
    assert "a run of 'smeft-hh'" in result.stderr
