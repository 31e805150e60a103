"""`quasiratio generate gg-hh`: files of every format, the same events for any number of jobs, and bad options."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quasiratio.cli.main import app
from quasiratio.generators.gg_hh import FEATURES, Couplings, generate
from quasiratio.io import open_table, read_metadata, read_sample

PARTON = ["generate", "gg-hh", "--parton-level"]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == code, result.output
    if code == 2:
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        return line
    return result.stdout


def columns(path: Path) -> dict[str, np.ndarray]:
    chunks = list(open_table(path).chunks())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
def test_the_file_holds_the_events_of_the_library_and_where_they_come_from(
    suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"linear{suffix}"
    printed = run(*PARTON, "--events", "500", "--seed", "4", "-o", str(path))
    assert "500 of 500 generated events" in printed
    expected = generate("linear", 500, seed=4, parton_level=True)
    written = columns(path)
    assert set(written) == set(expected.columns)
    for name, values in expected.columns.items():
        np.testing.assert_array_equal(written[name], values)
    facts = read_metadata(path)
    assert facts["cross_section_fb"] == pytest.approx(16.07, rel=0.01)
    assert facts["settings"]["seed"] == 4
    assert "quasiratio" in facts["versions"]
    sample = read_sample(path, features=list(expected.features), weight="weight")
    assert sample.negative_fraction > 0.1
    assert list(tmp_path.iterdir()) == [path]  # no finished parts left behind


def test_events_with_weights_at_points(tmp_path: Path) -> None:
    points, out = tmp_path / "points.yaml", tmp_path / "sm.npz"
    points.write_text("- {}\n- {C_H: 3}\n- {C_H: -2.5, C_uH: 1}\n")
    command = [*PARTON, "--sample", "sm", "--events", "300", "--points", str(points), "-o", str(out)]
    run(*command)
    written = columns(out)
    assert [name for name in written if name.startswith("rwgt")] == [
        "rwgt0_sm",
        "rwgt1_C_H_3p0",
        "rwgt2_C_H_m2p5_C_uH_1p0",
    ]
    np.testing.assert_allclose(written["rwgt0_sm"], 1.0, rtol=1e-9)
    points.write_text("points: [{}, {C_H: 3}]\ncolumns: [w0, w1]\n")  # would be named otherwise than asked
    assert "expected points alone" in run(*command[:-1], str(tmp_path / "other.npz"), code=2)
    points.write_text("- {C_other: 3}\n")
    assert "expected names out of C_Hkin" in run(*command[:-1], str(tmp_path / "other.npz"), code=2)
    assert not (tmp_path / "other.npz").exists()


def test_showered_events_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    options = ["generate", "gg-hh", "--sample", "linear", "--events", "4400", "--seed", "2"]
    run(*options, "-o", str(one))
    run(*options, "--jobs", "2", "-o", str(two))
    first, second = columns(one), columns(two)
    assert set(FEATURES) <= set(first)
    assert set(first) == set(second)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert 0.7 < len(first["weight"]) / 4400 < 0.8


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_it_has_and_goes_on(tmp_path: Path) -> None:
    path, parts = tmp_path / "a.npz", tmp_path / ".a.npz.parts"
    options = [*PARTON, "--events", "800000", "--seed", "5", "-o", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "quasiratio", *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not list(parts.glob("chunk-*.npz")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"kept in {parts}; repeat the command" in said
    assert "Traceback" not in said
    assert not path.exists()
    kept = {file.name: file.stat().st_mtime_ns for file in parts.glob("chunk-*.npz")}
    assert 0 < len(kept) < 8
    run(*options)
    assert not parts.exists()
    whole = generate("linear", 800_000, seed=5, parton_level=True)
    written = columns(path)
    assert all(np.array_equal(written[name], values) for name, values in whole.columns.items())


def test_json_is_the_only_output_and_holds_the_metadata(tmp_path: Path) -> None:
    facts = json.loads(run(*PARTON, "--events", "100", "-o", str(tmp_path / "a.npz"), "--json"))
    assert facts["n_generated"] == facts["n_selected"] == 100


def test_wilson_coefficients_reach_the_generator(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    run(*PARTON, "--events", "10", "--wilson", "C_H=2.0, Lambda=800", "--alpha-s", "fixed", "-o", str(path))
    expected = Couplings.from_smeft(C_H=2.0, Lambda=800.0, alpha_s="fixed")
    assert read_metadata(path)["settings"]["couplings"] == expected.as_dict()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--wilson", "C_X=1"], "--wilson 'C_X=1'; expected NAME=VALUE pairs"),
        (["--wilson", "C_H=much"], "'much' for --wilson C_H; expected a number"),
        (["--wilson", "Lambda=1"], "Lambda = 1.0; expected a scale in GeV above"),
        (["--pt-cuts", "1,2"], "expected five numbers"),
        (["--events", "0"], "n_events = 0; expected a positive whole number"),
        (["--seed", "-1"], "seed = -1; expected a nonnegative whole number"),
        (["--sample", "cubic"], "'cubic'"),
        (["--jobs", "0"], "'--jobs'"),
        (["--pdf", "missing.dat"], "missing.dat"),
        (["--ecm", "100"], "100"),
    ],
)
def test_bad_options_get_one_sentence_and_leave_nothing(
    options: list[str], expected: str, tmp_path: Path
) -> None:
    assert expected in run(*PARTON, *options, "-o", str(tmp_path / "a.npz"), code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.csv", "missing/a.npz/b.npz"])
def test_a_bad_output_fails_before_the_work(name: str, tmp_path: Path) -> None:
    (tmp_path / "missing").write_text("a file")
    line = run(*PARTON, "--events", "1000000000", "-o", str(tmp_path / name), code=2)
    assert "expected" in line
