"""Samples that stay in their files: the numbers of one merged file in memory, whatever the files and the workers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.io import open_table
from quasiratio.metrics import duplicates
from quasiratio.workflows import evaluate_files, evaluate_parts, file_parts, fit_files, inspect_files


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Name the numbers that differ by more than 1e-12 of their size, and all else that differs."""
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return differences(dataclasses.asdict(first), dataclasses.asdict(second), path)
    if isinstance(first, Mapping):
        assert first.keys() == second.keys()
        return [found for key in first for found in differences(first[key], second[key], f"{path}.{key}")]
    if isinstance(first, np.ndarray) or (isinstance(first, Sequence) and not isinstance(first, str)):
        assert len(first) == len(second)
        pairs = enumerate(zip(first, second, strict=True))
        return [found for i, pair in pairs for found in differences(*pair, f"{path}[{i}]")]
    if isinstance(first, float):
        return (
            [] if math.isclose(first, second, rel_tol=1e-12, abs_tol=1e-12) else [f"{path}: {first} {second}"]
        )
    return [] if first == second else [f"{path}: {first} {second}"]


def write(directory: Path, name: str, shift: float, sizes: Sequence[int]) -> None:
    """Write a sample as one file and as several."""
    rng = np.random.default_rng(int(10 * shift))
    n = sum(sizes)
    columns: dict[str, Any] = {
        "x": rng.normal(shift, 1.0, n).astype("f4"),
        "y": rng.exponential(1.0, n).astype("f4"),
        "n": rng.integers(0, 5, n),
        "w": rng.choice([1.3, -0.7], n, p=[0.8, 0.2]) * rng.exponential(1.0, n),
    }
    for column in columns.values():
        column[n - 50 :] = column[:50]  # repeated events, in another file
    np.savez(directory / f"{name}.npz", **columns)
    start = 0
    for number, size in enumerate(sizes):
        part = {key: column[start : start + size] for key, column in columns.items()}
        np.savez(directory / f"{name}_{number}.npz", **part)
        start += size


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("parts")
    write(directory, "ref", 0.0, [130_000, 20, 70_001])
    write(directory, "tgt", 0.4, [40_000, 90_000])
    return directory


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "available_memory", lambda: 1_000_000)


@pytest.mark.parametrize("jobs", [None, 2])
@pytest.mark.parametrize("selection", [None, "x > -0.5"])
@pytest.mark.usefixtures("little_memory")
def test_inspection_of_files_is_that_of_one_merged_sample(
    samples: Path, selection: str | None, jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    pair = f"{samples}/ref_*.npz", f"{samples}/tgt_*.npz"
    found = inspect_files(*pair, weight="w", selection=selection, say=lines.append, jobs=jobs)
    assert any("stay in their files" in line for line in lines)
    monkeypatch.setattr(file_parts, "available_memory", lambda: None)
    whole = inspect_files(f"{samples}/ref.npz", f"{samples}/tgt.npz", weight="w", selection=selection)
    assert whole.inspection.reference.n_duplicates > 20
    assert differences(found.inspection, whole.inspection) == []


@pytest.mark.usefixtures("little_memory")
def test_repeated_events_are_estimated_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    n = 20_000
    x, y = np.random.default_rng(0).normal(size=(2, n))
    for number in range(4):  # half of each file is in the next one again
        here = slice(number * n // 8, number * n // 8 + n // 4)
        np.savez(tmp_path / f"{number}.npz", x=x[here], y=y[here])
    exact = inspect_files(f"{tmp_path}/*.npz").inspection
    assert (exact.reference.n_duplicates, exact.share_compared) == (3 * n // 8, 1.0)
    monkeypatch.setattr("quasiratio.metrics.inspection.MOST_HASHES", 5000)
    some = inspect_files(f"{tmp_path}/*.npz").inspection
    assert some.share_compared == 0.25
    n_found = some.reference.n_duplicates
    assert n_found % 4 == 0
    assert abs(n_found - 3 * n // 8) < 5 * math.sqrt(4 * 3 * n // 8)
    assert duplicates.MOST_HASHES > 1e7


@pytest.mark.usefixtures("little_memory")
def test_what_is_wrong_with_events_is_said_as_in_memory(tmp_path: Path) -> None:
    np.savez(tmp_path / "0.npz", x=np.arange(5.0), w=np.ones(5))
    np.savez(tmp_path / "1.npz", x=np.array([1.0, np.nan]), w=np.ones(2))
    with pytest.raises(InvalidInputError, match=r"NaN, .* in 'x' \(1 events\)"):
        inspect_files(f"{tmp_path}/*.npz", weight="w")
    with pytest.raises(InvalidInputError, match="keeps none of the 7 events"):
        inspect_files(f"{tmp_path}/*.npz", weight="w", selection="x > 100")
    np.savez(tmp_path / "1.npz", x=np.array([1.0, 2.0]), w=-np.full(2, 10.0))
    with pytest.raises(InvalidInputError, match="sample sum to -15"):
        inspect_files(f"{tmp_path}/*.npz", weight="w")


@pytest.mark.usefixtures("little_memory")
def test_a_feature_that_needs_double_precision_gets_it(tmp_path: Path) -> None:
    for number in range(2):
        np.savez(tmp_path / f"{number}.npz", x=1e9 + np.arange(1000.0) + 1000 * number)
    found = inspect_files(f"{tmp_path}/*.npz").inspection.reference
    assert found.ranges["x"] == (1e9, 1e9 + 1999)
    assert found.n_duplicates == 0


def test_the_rule_of_memory(samples: Path) -> None:
    table = open_table(f"{samples}/ref.npz")
    assert file_parts.beyond_memory([table], 10.0, available=5_000_000) is None
    assert file_parts.beyond_memory([table], 10.0, available=4_000_000) is not None


@pytest.fixture(scope="module", params=[1, 3])
def model(request: pytest.FixtureRequest, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    pair = f"{samples}/ref_2.npz", f"{samples}/tgt_0.npz"
    options: dict[str, Any] = {"weight": "w", "n_members": request.param, "max_steps": 60, "random_state": 0}
    fit_files(*pair, directory / "model", features=["x", "y", "n", "copy=x+0"], **options)
    return directory / "model"


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
def test_evaluation_of_files_is_that_of_one_merged_sample(
    samples: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {
        "weight": "w",
        "observables": ["r=sqrt(x**2+y**2)"],
        "binning": ["y=30:0:4"],
        "selection": "x > -2",
    }
    lines: list[str] = []
    pair = f"{samples}/ref_*.npz", f"{samples}/tgt_*.npz"
    parts = evaluate_files(model, *pair, tmp_path / "parts", say=lines.append, jobs=2, **options).evaluation
    assert any("stay in their files" in line for line in lines)
    assert parts.n_judged == (parts.reference.n_events, parts.target.n_events)  # there are few enough
    monkeypatch.setattr(file_parts, "available_memory", lambda: None)
    merged = f"{samples}/ref.npz", f"{samples}/tgt.npz"
    whole = evaluate_files(model, *merged, tmp_path / "whole", **options).evaluation
    assert [entry.name for entry in whole.closure.observables] == ["x", "y", "n", "r"]
    for name in ("closure", "reference", "reweighted", "target", "seen", "risk_difference", "training_sizes"):
        assert differences(getattr(parts, name), getattr(whole, name), name) == []

    monkeypatch.setattr(file_parts, "available_memory", lambda: 1_000_000)
    monkeypatch.setattr(evaluate_parts, "MOST_JUDGED", 20_000)
    few = evaluate_files(model, *pair, tmp_path / "few", **options)
    for name in ("closure", "reference", "reweighted", "target", "seen"):
        assert differences(getattr(few.evaluation, name), getattr(whole, name), name) == []
    n_judged = few.evaluation.n_judged
    assert n_judged is not None
    assert all(15_000 < n < 20_500 for n in n_judged)
    assert len(few.evaluation.ratios) == n_judged[0]
    said = f"are of {n_judged[0]} reference and {n_judged[1]} target events, chosen at random"
    assert said in (tmp_path / "few" / "report.html").read_text()
    assert few.values["events_judged"] == n_judged
    assert few.values["samples"]["reference"]["weights"]["n_events"] == whole.reference.n_events
