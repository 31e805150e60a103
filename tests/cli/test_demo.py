"""`quasiratio demo`: a small run from end to end, and every way to refuse."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quasiratio.cli.main import app
from quasiratio.errors import DivergenceWarning, NegativeDensityWarning, NegativeWeightWarning
from quasiratio.workflows.demo import DemoResult, run_demo, short_notes

METHODS = ["MLP, BCE", "RoSMM", "REVERT", "sign-resolved", "exact ratio"]
FIGURES = ["closure.pdf", "closure.png", "ratio.pdf", "ratio.png"]
WRITTEN = sorted([".quasiratio.json", *FIGURES, "report.html"])
SMALL = ["demo", "--events", "2000", "--steps", "20"]


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(50_000, random_state=1, max_steps=250)


def test_the_result_holds_every_method_and_the_exact_ratio_last(result: DemoResult) -> None:
    assert [entry.method for entry in result.closure.methods] == METHODS
    assert [curve.name for curve in result.curves] == METHODS[:-1]
    assert list(result.seconds) == METHODS[:-1]
    assert result.closure.target.n_bins == 99
    assert result.exact_curve.values[0] == pytest.approx(-1.2935, abs=1e-4)


def test_only_cross_entropy_misses_the_negative_region(result: DemoResult) -> None:
    middle = {curve.name: curve.values[:10].mean() for curve in result.curves}
    assert middle.pop("MLP, BCE") > 0
    for name, value in middle.items():
        assert value == pytest.approx(-1.27, abs=0.6), name
    quality = {entry.method: entry.chi_squared.value for entry in result.closure.methods}
    assert quality["MLP, BCE"] > 2 * quality["sign-resolved"]
    assert 0.6 < quality["exact ratio"] < 1.5


def test_cross_entropy_gets_one_note(result: DemoResult) -> None:
    (note,) = [note for note in result.notes if note.startswith("MLP, BCE")]
    assert "cannot express a negative ratio" in note


def test_warnings_become_shortshort_notes() -> None:
    def caught(*categories: type[Warning]) -> list[warnings.WarningMessage]:
        return [warnings.WarningMessage(category("long"), category, "f", 1) for category in categories]

    assert short_notes("m", caught()) == []
    assert "ran away" in short_notes("m", caught(NegativeWeightWarning, DivergenceWarning))[0]
    assert len(short_notes("m", caught(NegativeWeightWarning, DivergenceWarning))) == 1
    assert "in the middle" in short_notes("m", caught(NegativeWeightWarning))[0]
    assert short_notes("m", caught(NegativeDensityWarning, NegativeDensityWarning)) == ["m: long"]


def test_the_same_seed_gives_the_same_numbers(result: DemoResult) -> None:
    again, other = (run_demo(2000, random_state=seed, max_steps=5) for seed in (4, 5))
    once = run_demo(2000, random_state=4, max_steps=5)
    assert np.array_equal(once.curves[1].values, again.curves[1].values)
    assert not np.array_equal(once.curves[1].values, other.curves[1].values)
    assert len(result.notes) >= 1


def test_prints_the_table_and_writes_the_figures(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "demo"
    outcome = CliRunner().invoke(app, [*SMALL, "-o", str(directory)], catch_exceptions=False)
    assert outcome.exit_code == 0
    positions = [outcome.stdout.index(f" {method} ") for method in METHODS]
    assert positions == sorted(positions)
    for heading in ("chi2/ndof", "D_S2", "time (s)"):
        assert heading in outcome.stdout
    assert "Note: MLP, BCE" in outcome.stdout
    assert sorted(path.name for path in directory.iterdir()) == WRITTEN
    for name in WRITTEN[1:]:  # the first is our list of them
        assert str(directory / name) in outcome.stdout.replace("\n", "")
    assert [line.split(" in ")[0] for line in outcome.stderr.splitlines()] == [
        f"fitted {method}" for method in METHODS[:-1]
    ]


def test_real_process_writes_plain_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("quasiratio"), *SMALL, "-o", "out", "--seed", "3"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Warning" in done.stderr, "\x1b" in done.stdout + done.stderr) == (
        0,
        False,
        False,
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == WRITTEN
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    command = " ".join(["quasiratio", *SMALL, "--output out --seed 3"])
    for part in ("Demo: a ratio with a sign", "sign-resolved"):
        assert part in page
    assert all(word in page for word in command.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--events", "0"], "Got --events 0; expected a whole number from 1000"),
        (["--events", "-5"], "Got --events -5; expected"),
        (["--events", "999999999999"], "Got --events 999999999999; expected"),
        (["--seed", "-1"], "Got --seed -1; expected"),
        (["--steps", "0"], "Got --steps 0; expected"),
        (["--events", "many"], "'--events'"),
        (["-o", "taken"], "'taken' is a file; expected a directory"),
        (["-o", "taken/below"], "'taken' is a file; expected a directory"),
    ],
)
def test_refuses_in_one_sentence_and_writes_nothing(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    outcome = CliRunner().invoke(app, ["demo", *arguments])
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("Error: ")
    assert outcome.stderr.count("\n") == 1
    assert sentence in outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory that nobody can write")
def test_refuses_an_unwritable_directory_before_the_work() -> None:
    outcome = CliRunner().invoke(app, ["demo", "-o", "/proc/quasiratio-demo"])
    assert outcome.exit_code == 2
    assert "cannot be written" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_refuses_a_read_only_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    outcome = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "demo")])
    tmp_path.chmod(0o700)
    assert outcome.exit_code == 2
    assert "cannot be written" in outcome.stderr
