"""What changed between two runs, and what is noise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.studies.output.comparison import Change, compare_runs


def written(directory: Path, results, *, study="toy", settings=None, commit="abc") -> Path:
    directory.mkdir()
    entries = [
        {"name": name, "value": value, "spread": spread, "n_seeds": n, "published": None}
        for name, value, spread, n in results
    ]
    content = {"study": study, "settings": settings or {}, "commit": commit, "results": entries}
    (directory / "results.json").write_text(json.dumps(content))
    return directory


def test_only_differences_beyond_three_standard_errors_count(tmp_path: Path) -> None:
    old = written(
        tmp_path / "old", [("a", 1.0, 0.2, 4), ("b", 1.0, 0.2, 4), ("c", 5.0, None, 1), ("gone", 1, 1, 1)]
    )
    new = written(
        tmp_path / "new", [("a", 1.4, 0.2, 4), ("b", 1.5, 0.2, 4), ("c", 6.0, None, 1), ("new", 1, 1, 1)]
    )
    comparison = compare_runs(old, new / "results.json")
    assert [change.is_beyond_noise for change in comparison.changes] == [False, True, False]
    assert comparison.changes[1].significance == pytest.approx(0.5 / (0.2 / 2 * 2**0.5))
    lines = comparison.lines()
    assert "CHANGED b: 1 -> 1.5 (+3.5 standard errors)." in lines
    assert "GONE gone." in lines
    assert "NEW new." in lines
    assert any(line.startswith("NO SPREAD c") for line in lines)
    assert lines[-1].startswith("1 of 3 numbers changed beyond noise")


def test_one_run_with_a_spread_lends_it_to_the_other(tmp_path: Path) -> None:
    old = written(tmp_path / "old", [("a", 1.0, 0.1, 4)])
    new = written(tmp_path / "new", [("a", 2.0, None, 1)])
    (change,) = compare_runs(old, new).changes
    assert change.error == pytest.approx((0.1**2 / 4 + 0.1**2) ** 0.5)
    assert change.is_beyond_noise


def test_without_any_noise_only_equal_numbers_are_equal() -> None:
    assert not Change("a", 1.0, 1.0, error=0.0).is_beyond_noise
    assert Change("a", 1.0, 1.1, error=0.0).is_beyond_noise


def test_settings_that_differ_are_said(tmp_path: Path) -> None:
    old = written(tmp_path / "old", [], settings={"seeds": 1}, commit="c1")
    new = written(tmp_path / "new", [], settings={"seeds": 5}, commit="c2")
    assert compare_runs(old, new).lines()[:2] == ["Old: commit c1. New: commit c2.", "Setting seeds: 1 -> 5."]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    toy = written(tmp_path / "toy", [])
    with pytest.raises(InvalidInputError, match="expected two runs of one study"):
        compare_runs(toy, written(tmp_path / "other", [], study="other"))
    with pytest.raises(InvalidInputError, match="no readable results"):
        compare_runs(toy, tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InvalidInputError, match=r"no readable results.json \(not what a study writes\)"):
        compare_runs(toy, tmp_path / "pipe.json")
