"""`fit_files` in several processes: each reads its part, one writes, and what ends one of them ends all."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.in_ranks import in_ranks

import quasiratio as qr
from quasiratio.errors import LostRankError, QuasiratioError
from quasiratio.io import EventStore, open_table
from quasiratio.io.table_part import table_part
from quasiratio.training import Ranks
from quasiratio.workflows import fit_files, stored_samples

QUICK: dict[str, Any] = {
    "weight": "w", "max_steps": 60, "batch_size": 256, "hidden_layers": (8, 8), "random_state": 4,
}  # fmt: skip
N_EVENTS = (900, 1300, 500)


def write_events(directory: Path) -> None:
    """Write three files of each sample; the last events of the target have negative weights."""
    rng = np.random.default_rng(0)
    for sample, mean in (("reference", 0.0), ("target", 0.4)):
        for number, n in enumerate(N_EVENTS):
            weights = np.where(rng.random(n) < 0.1, -0.5, 1.0)
            if sample == "target" and number == 2:
                weights = np.full(n, -0.1)
            np.savez(
                directory / f"{sample}{number}.npz",
                pt=rng.normal(mean, size=n),
                eta=rng.normal(size=n),
                part=np.full(n, number),
                w=weights,
            )


def options(directory: Path) -> dict[str, Any]:
    return {
        "reference": str(directory / "reference*.npz"),
        "target": str(directory / "target*.npz"),
        "features": ["pt", "eta"],
        **QUICK,
    }


def fitted(rank: int, directory: Path, kind: str = "memory") -> dict[str, Any]:
    output = directory / "model" if rank == 0 else directory / "nowhere" / "model"
    lines: list[str] = []
    if kind != "memory":  # half of it is enough for half of the events, and for none on a small machine
        available = 500_000 if "small" in kind else 1_000_000
        vars(stored_samples)["available_memory"] = lambda: available
    if "two" in kind:
        vars(stored_samples)["socket"] = SimpleNamespace(gethostname=lambda: f"node{rank}")
    cache = directory / "store" if kind == "cache" else None
    found = fit_files(output=output, say=lines.append, cache=cache, **options(directory))
    events = np.random.default_rng(1).normal(size=(200, 2))
    return {
        "ratio": found.estimator.predict_ratio({"pt": events[:, 0], "eta": events[:, 1]}),
        "notes": found.notes.model_dump(),
        "lines": lines,
        "ranges": found.estimator.fingerprint_.ranges,
    }


def test_parts_of_three_files_make_one_model_that_is_written_once(tmp_path: Path) -> None:
    write_events(tmp_path)
    first, second = in_ranks(fitted, tmp_path)
    alone = fit_files(output=tmp_path / "alone", **options(tmp_path))
    np.testing.assert_array_equal(first["ratio"], second["ratio"])
    notes = alone.notes.model_dump()
    for role in ("reference", "target"):
        for name, value in notes[role].items():
            expected = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            assert first["notes"][role][name] == expected
    assert first["ranges"] == alone.estimator.fingerprint_.ranges
    assert any(line.startswith("Target: 2700 events") for line in first["lines"])
    assert second["lines"] == []
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "model.partial").exists()
    loaded = qr.load(tmp_path / "model")
    events = np.random.default_rng(1).normal(size=(200, 2))
    np.testing.assert_array_equal(
        loaded.predict_ratio({"pt": events[:, 0], "eta": events[:, 1]}), first["ratio"]
    )


@pytest.mark.parametrize("kind", ["cache", "short of memory"])
def test_a_store_is_made_by_the_first_and_shared_by_all(kind: str, tmp_path: Path) -> None:
    write_events(tmp_path)
    first, second = in_ranks(fitted, tmp_path, kind)
    np.testing.assert_array_equal(first["ratio"], second["ratio"])
    alone = fit_files(output=tmp_path / "alone", cache=tmp_path / "own", **options(tmp_path))
    assert first["notes"] == alone.notes.model_dump()
    assert first["ranges"] == alone.estimator.fingerprint_.ranges
    text = "\n".join(first["lines"])
    assert text.count("converted and shuffled now") == text.count("Training on ") == 1
    assert ("5400 events would need about 0.000778 GB of the 0.001 GB" in text) == (kind != "cache")
    assert second["lines"] == []
    made = {"store", "own"} if kind == "cache" else {"own"}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"model", "alone", *made}
    if kind == "cache":
        assert EventStore(tmp_path / "store").sha256 == EventStore(tmp_path / "own").sha256


@pytest.mark.parametrize("kind", ["two machines", "two small machines"])
def test_machines_that_may_share_no_disk_hold_their_events_in_memory(kind: str, tmp_path: Path) -> None:
    write_events(tmp_path)
    first, _ = in_ranks(fitted, tmp_path, kind)
    told = [line for line in first["lines"] if "would need" in line]
    expected = (
        "5400 events would need about 0.000389 GB of the 0.0005 GB that are available on one of the machines; a cache on a "
        "disk that all of them see needs less"
    )
    assert told == ([expected] if kind == "two small machines" else [])
    assert (tmp_path / "model").exists()


def refused(rank: int, directory: Path) -> list[str]:
    bad = np.load(directory / "target2.npz")
    if rank == 1:  # in a part that the second process reads
        np.savez(
            directory / "bad2.npz",
            **{**bad, "pt": np.where(np.arange(len(bad["pt"])) == 7, np.nan, bad["pt"])},
        )
        (directory / "bad0.npz").write_bytes((directory / "target0.npz").read_bytes())
        (directory / "bad1.npz").write_bytes((directory / "target1.npz").read_bytes())
    Ranks.present().gathered(rank)
    changed: list[dict[str, Any]] = [
        {"target": str(directory / "bad*.npz")},
        {"features": ["pt", "mass"]},
        {"output": directory / "target0.npz"},
        {"selection": "part > 5"},
        {"selection": "part < 1"},
        {"n_folds": 2},
        {"method": "auto"},
        {"cache": str(directory)},
        {"cache": str(directory / "reference0.npz")},
        {"target": str(directory / "target2.npz")},
    ]
    sentences: list[str] = []
    for change in changed:
        try:
            fit_files(**{"output": directory / f"model{len(sentences)}", **options(directory), **change})
            sentences.append("fitted")
        except QuasiratioError as error:
            sentences.append(f"{error.is_told} {error}")
    return sentences


def test_what_one_process_meets_is_said_once_by_the_first(tmp_path: Path) -> None:
    write_events(tmp_path)
    first, second = in_ranks(refused, tmp_path)
    expected = [
        "Got values that are NaN, infinite or beyond float32 in 'pt' (1 events)",
        "Got the column 'mass'",
        "Got the output",
        "Got the selection 'part > 5', which keeps none",
        "Got no events for process 1 of 2",
        "Got several processes for Reweighter",
        "Got several processes for AutoRatio",
        "one within the other; expected two directories",
        "reference0.npz' for a store of events, which holds something else ('a file')",
        "The weights of the target sum to -50",
    ]
    for one, other, text in zip(first, second, expected, strict=True):
        assert text in one
        assert one.startswith("False ")
        assert other.startswith("True ")


def interrupted(rank: int, directory: Path, kills: bool, cache: Path | None = None) -> Any:
    """Fit for long; the second process kills itself once there is a state to go on from."""
    output = directory / "model"

    def kill_when_there_is_a_state() -> None:
        while not list(directory.glob("model.partial/stage-*.safetensors")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

    if kills and rank == 1:
        threading.Thread(target=kill_when_there_is_a_state, daemon=True).start()
    try:
        found = fit_files(
            output=output, resume=True, **options(directory) | {"max_steps": 1500, "cache": cache}
        )
    except LostRankError as error:
        return str(error)
    return found.estimator.predict_ratio({"pt": np.linspace(-2, 2, 50), "eta": np.zeros(50)})


@pytest.mark.slow
@pytest.mark.parametrize("store", [None, "store"])
def test_a_killed_process_ends_the_others_and_the_fit_goes_on(store: str | None, tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        write_events(tmp_path / name)
    cache = None if store is None else tmp_path / store
    whole = in_ranks(interrupted, tmp_path / "whole", False, cache)[0]
    sentence = in_ranks(interrupted, tmp_path / "killed", True, cache)[0]
    assert "lost the others: one of them has ended" in sentence
    assert sentence.endswith("model.partial'. Repeat the command with `resume=True` to continue.")
    assert not (tmp_path / "killed" / "model").exists()
    resumed = in_ranks(interrupted, tmp_path / "killed", False, cache)
    np.testing.assert_array_equal(resumed[0], whole)
    np.testing.assert_array_equal(resumed[1], whole)


def test_parts_of_a_table_are_all_of_its_events_once(tmp_path: Path) -> None:
    write_events(tmp_path)
    table = open_table(str(tmp_path / "reference*.npz"))
    everything = np.concatenate([chunk["pt"] for chunk in table.chunks(["pt"])])
    for n_parts in (1, 2, 5, 4000):
        parts = [
            table_part(table, number, n_parts)
            for number in (range(n_parts) if n_parts < 9 else range(3990, 4000))
        ]
        values = [[chunk["pt"] for chunk in part.chunks(["pt"], chunk_events=170)] for part in parts]
        joined = np.concatenate([one for part in values for one in part])
        np.testing.assert_array_equal(joined, everything[-len(joined) :] if n_parts > 9 else everything)
        assert [part.n_events for part in parts] == [sum(map(len, part)) for part in values]
    assert table_part(table, 0, 3).sources == table.sources[:1]
