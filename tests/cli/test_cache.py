"""`fit --cache`: events on disk, used again, resumed, and automatic where memory is short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quasiratio as qr
from quasiratio.cli.main import app
from quasiratio.machine import available_memory
from quasiratio.training.checkpoints import StageCheckpoint
from quasiratio.workflows import stored_samples

pytestmark = pytest.mark.usefixtures("workspace")
FIT = ["fit", "reference.npz", "target.npz", "--weight", "w", "--steps", "60", "--seed", "1"]


def run(*arguments: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, [*FIT, *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.stderr
    return result.stdout, result.stderr


def ratios(path: str) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    return np.asarray(qr.load(path).predict_ratio(X))


def test_a_store_is_made_once_and_used_again_and_the_model_applies() -> None:
    first, _ = run("--cache", "events", "-o", "one")
    second, _ = run("--cache", "events", "-o", "two")
    assert "Store of events: events, converted and shuffled now" in first
    assert "Store of events: events, which was made of the same files before" in second
    for text in (first, second):
        assert "Reference: 1500 events of reference.npz, sum of weights" in text
        assert "Training on 2550 events: at most 60 steps, about " in text
    assert np.array_equal(ratios("one"), ratios("two"))
    result = CliRunner().invoke(app, ["apply", "one", "reference.npz", "-o", "out.npz"])
    assert result.exit_code == 0, result.stderr
    assert len(np.load("out.npz")["ratio"]) == 1500
    assert sorted(path.name for path in Path("events").iterdir()) == [
        "features.f32", "labels.u8", "store.json", "weights.f64",
    ]  # fmt: skip


def test_an_interrupted_fit_with_a_cache_goes_on_to_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    run("--cache", "events", "-o", "whole")
    saves: list[str] = []
    save = StageCheckpoint.save

    def interrupted(checkpoint: StageCheckpoint, state: dict[str, Any]) -> None:
        save(checkpoint, state)
        saves.append(checkpoint.path.name)
        if saves.count("stage-005.safetensors") == 7:  # the first four learn the signs of both samples
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StageCheckpoint, "save", interrupted)
        _, err = run("--cache", "events", "-o", "parts", code=130)
    assert "with --resume" in err
    assert not Path("parts").exists()
    # A store that was lost and made again has the same events in the same order.
    for path in Path("events").iterdir():
        path.unlink()
    run("--cache", "events", "-o", "parts", "--resume")
    assert np.array_equal(ratios("whole"), ratios("parts"))


def test_samples_that_need_too_much_memory_get_a_store_that_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_samples, "available_memory", lambda: 500_000)
    text, _ = run("-o", "model-d")
    line = next(line for line in text.splitlines() if "would need about" in line)
    assert line == (
        "3000 events would need about 0.000432 GB of the 0.0005 GB that are available: they are trained from a store on "
        "disk, which is removed afterwards"
    )
    assert "Training on 2550 events" in text
    assert not list(Path.cwd().glob(".quasiratio-*"))
    text, _ = run("-o", "model-e", "--method", "rosmm")
    assert "and SignedMixtureRatio cannot train from disk" in text
    monkeypatch.setattr(stored_samples, "available_memory", lambda: 10**9)
    assert "would need" not in run("-o", "model-f")[0]


@pytest.mark.parametrize(
    ("options", "name"), [(["--method", "rosmm"], "SignedMixtureRatio"), (["--folds", "2"], "Reweighter")]
)
def test_methods_that_cannot_say_so(options: list[str], name: str) -> None:
    _, err = run("--cache", "events", "-o", "no", *options, code=2)
    (line,) = err.splitlines()
    assert line.startswith(
        f"Error: Got the cache for {name}, which needs all events in memory; expected SignResolvedRatio"
    )
    assert not Path("events").exists()
    assert not Path("no").exists()


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ("no", "the cache 'no' and the output 'no', one within the other"),
        ("no/events", "one within the other"),
        ("no.partial", "one within the other"),
        (".", "expected the name of a directory for the store. Choose one with --cache."),
        ("reference.npz/events", "reference.npz' is a file; expected a directory"),
        ("mine", "holds something else ('notes.txt')"),
    ],
)
def test_a_place_that_cannot_be_a_store_is_refused_before_anything_is_written(
    cache: str, expected: str
) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    before = sorted(Path.cwd().rglob("*"))
    out, err = run("--cache", cache, "-o", "no", code=2)
    (line,) = err.splitlines()
    assert expected in line
    assert "--cache" in line
    assert "converted" not in out
    assert sorted(Path.cwd().rglob("*")) == before


def test_a_store_within_which_a_model_would_be_is_refused() -> None:
    _, err = run("--cache", "fits", "-o", "fits/model", code=2)
    assert "'fits' and the output 'fits/model', one within the other" in err
    assert not Path("fits").exists()


def test_samples_that_cannot_be_converted_leave_no_directories() -> None:
    run("--cache", "new/deep/events", "-o", "no", "--selection", "w > 1e9", code=2)
    assert not Path("new").exists()


def test_a_damaged_store_is_one_sentence() -> None:
    run("--cache", "events", "-o", "one")
    path = Path("events/weights.f64")
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    _, err = run("--cache", "events", "-o", "two", code=2)
    (line,) = err.splitlines()
    assert "damaged (weights.f64: block 0 does not have its checksum)" in line
    assert not Path("two").exists()
    path.write_bytes(content[:-1])
    _, err = run("--cache", "events", "-o", "two", code=2)
    assert err.count("damaged") == 1


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/job/step\n", {"job/memory.max": "5000000\n", "job/memory.current": "3000000\n",
                            "job/memory.stat": "anon 7\ninactive_file 500000\n", "job/step/memory.max": "max\n"}, 2_500_000),
        ("0::/\n", {}, 8_192_000),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "4000000", "memory/a/memory.usage_in_bytes": "1000000",
                           "memory/a/memory.stat": "total_inactive_file 0\n"}, 3_000_000),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": str(2**63 - 4096)}, 8_192_000),
    ],
)  # fmt: skip
def test_limits_of_control_groups_are_respected(
    group: str, files: dict[str, str], expected: int, tmp_path: Path
) -> None:
    of_process, of_machine = tmp_path / "cgroup", tmp_path / "meminfo"
    of_process.write_text(group)
    of_machine.write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    for name, content in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(content)
    assert available_memory(tmp_path / "groups", of_process, of_machine) == expected
    assert available_memory(tmp_path / "groups", of_process, tmp_path / "none") == (
        expected if expected != 8_192_000 else None
    )
