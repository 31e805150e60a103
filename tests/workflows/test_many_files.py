"""A model applied to many files: one output each, all of them the same whoever works, and nothing lost when killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import quasiratio as qr
from quasiratio.atomic_files import scratch_path
from quasiratio.errors import InvalidInputError, NegativeDensityWarning, OmittedColumnWarning
from quasiratio.io import open_table
from quasiratio.io.file_format import Location
from quasiratio.tasks import Row, local_workers
from quasiratio.workflows import (
    apply_each_file,
    apply_files,
    evaluate_files,
    inspect_files,
    positive_each_file,
    positive_files,
)
from quasiratio.workflows.file_tasks import FileTasks

ROOT = Path(__file__).parents[2]
FEATURES = ["x", "y"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a model, five ROOT files with a jagged branch each, and three of a target."""
    directory = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    for name, shift, n_files in (("ref", 0.0, 5), ("tgt", 0.4, 3)):
        for number in range(n_files):
            n_events = 300 + 40 * number
            lengths = rng.integers(0, 4, n_events)
            with uproot.recreate(directory / f"{name}{number}.root") as file:
                file.mktree("events", {"x": "f8", "y": "f4", "w": "f8", "jet": "var * float32"})
                file["events"].extend(
                    {
                        "x": rng.normal(shift, 1.0, n_events),
                        "y": rng.normal(size=n_events).astype("f4"),
                        "w": rng.choice([1.0, -0.5], n_events, p=[0.8, 0.2]),
                        "jet": ak.unflatten(rng.exponential(size=lengths.sum()).astype("f4"), lengths),
                    }
                )
    samples = [
        qr.io.read_sample(f"{directory}/{name}*.root", features=FEATURES, weight="w")
        for name in ("ref", "tgt")
    ]
    model = qr.SignResolvedRatio(max_steps=30, n_members=2, random_state=0).fit_samples(
        samples[0], samples[1]
    )
    model.save(directory / "model")
    return directory


def everything(path: Path) -> dict[str, Any]:
    chunks = list(open_table(path).chunks())
    return {name: ak.concatenate([ak.Array(chunk[name]) for chunk in chunks]) for name in chunks[0]}


def same(first: Path, second: Path) -> bool:
    one, two = everything(first), everything(second)
    return list(one) == list(two) and all(ak.array_equal(one[name], two[name]) for name in one)


def test_one_output_each_and_sums_over_all_files(made: Path, tmp_path: Path) -> None:
    merged = apply_files(made / "model", f"{made}/ref*.root", tmp_path / "all.root", weight="w")
    each = apply_each_file(made / "model", f"{made}/ref*.root", tmp_path / "each", weight="w")
    assert [path.name for path in each.outputs] == [f"ref{number}_reweighted.root" for number in range(5)]
    assert each.is_complete
    assert same(tmp_path / "all.root", tmp_path / "each" / "ref*.root")
    assert each.total is not None
    ours, theirs = each.total.as_dict(), merged.as_dict()
    assert ours["n_events"] == 5 * 300 + 400
    for name in ("before", "after"):
        for key, value in theirs[name].items():
            assert ours[name][key] == pytest.approx(value, rel=1e-12), key
    for name in ("ratio_range", "outside_training_range", "share_seen_in_training", "columns"):
        assert ours[name] == theirs[name]


def test_many_processes_write_the_same_one_by_one_and_merged(made: Path, tmp_path: Path) -> None:
    for jobs, name in ((None, "one"), (2, "two")):
        apply_each_file(made / "model", f"{made}/ref*.root", tmp_path / name, weight="w", jobs=jobs)
    for number in range(5):
        output = f"ref{number}_reweighted.root"
        assert same(tmp_path / "one" / output, tmp_path / "two" / output)
    done = [
        apply_files(
            made / "model",
            f"{made}/ref*.root",
            tmp_path / f"{jobs}.root",
            weight="w",
            jobs=jobs,
            selection="x > 0",
            members=True,
        )
        for jobs in (None, 2)
    ]
    assert same(tmp_path / "None.root", tmp_path / "2.root")
    assert done[0].after.total == pytest.approx(done[1].after.total, rel=1e-12)
    assert done[0].ratio_range == done[1].ratio_range


def test_a_bad_file_is_named_and_the_rest_is_finished(made: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(5):
        content = (made / f"ref{number}.root").read_bytes()
        (tmp_path / "in" / f"f{number}.root").write_bytes(content[: 2000 if number == 0 else None])
    command = (made / "model", f"{tmp_path}/in/*.root", tmp_path / "out")
    done = apply_each_file(*command, weight="w")
    assert len(done.outputs) == 4
    assert not done.is_complete
    ((source, sentence),) = done.failures.items()
    assert source.endswith("f0.root")
    assert "truncated" in sentence
    assert not (tmp_path / "out" / "f0_reweighted.root").exists()
    # Mended, and another one changed: these two are done, the others not again.
    (tmp_path / "in" / "f0.root").write_bytes((made / "ref0.root").read_bytes())
    (tmp_path / "in" / "f1.root").write_bytes((made / "ref2.root").read_bytes())
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.root")}
    again = apply_each_file(*command, weight="w", resume=True)
    assert again.is_complete
    assert again.n_before == 3
    changed = {
        path.name
        for path in (tmp_path / "out").glob("*.root")
        if before.get(path.name) != path.stat().st_mtime_ns
    }
    assert changed == {"f0_reweighted.root", "f1_reweighted.root"}
    assert len(open_table(tmp_path / "out" / "f1_reweighted.root").files) == 1
    assert open_table(tmp_path / "out" / "f1_reweighted.root").n_events == 380


def test_nothing_starts_where_names_collide_or_inputs_would_be_lost(made: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.root").write_bytes((made / "ref0.root").read_bytes())
    files, model = f"{tmp_path}/*/f.root", made / "model"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"output_dir": tmp_path / "new"}, "would both be"),
        ({"output_dir": tmp_path, "name_pattern": "{parent}/{stem}{suffix}"}, "as output and as input"),
        ({"output_dir": tmp_path / "new", "name_pattern": "{stem.__class__}"}, "is not known"),
        ({"output_dir": tmp_path / "new", "name_pattern": "../{parent}{suffix}"}, "stay in their directory"),
        ({"output_dir": tmp_path / "new", "name_pattern": "{stem"}, "for names of outputs"),
        ({"output_dir": tmp_path / "new", "name_pattern": "{parent}.csv"}, "suffix '.csv'"),
        ({"output_dir": tmp_path / "new", "name_pattern": ""}, "Got the pattern '' for names of outputs"),
        ({"output_dir": "."}, "Choose one with `output_dir`."),
        ({"output_dir": tmp_path / "new", "name_pattern": "{parent}{suffix}", "weight": "nope"}, "'nope'"),
        ({"output_dir": tmp_path / "new", "name_pattern": "{parent}{suffix}", "jobs": 0}, "at least 1"),
        (
            {
                "output_dir": tmp_path / "new",
                "name_pattern": "{parent}{suffix}",
                "scheduler": "tcp://x:1",
                "jobs": 2,
            },
            "expected one of them",
        ),
    ]
    for options, expected in cases:
        with pytest.raises(InvalidInputError) as raised:
            apply_each_file(model, files, **{"weight": "w", **options})
        assert expected in str(raised.value)
        assert not list(tmp_path.glob("new/*.root"))
    pattern = "{parent}_{number:02d}.npz"
    with pytest.warns(OmittedColumnWarning, match="'jet'. There are 1 more warnings of this kind"):
        done = apply_each_file(model, files, tmp_path / "new", weight="w", name_pattern=pattern)
    assert [path.name for path in done.outputs] == ["a_01.npz", "b_02.npz"]
    assert (tmp_path / "a" / "f.root").read_bytes() == (made / "ref0.root").read_bytes()


def test_other_files_and_other_options_are_refused(made: Path, tmp_path: Path) -> None:
    command = (made / "model", f"{made}/ref[01].root", tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ref1_reweighted.root").write_bytes(b"mine")
    with pytest.raises(InvalidInputError, match="which exists"):
        apply_each_file(*command, weight="w")
    assert (tmp_path / "out" / "ref1_reweighted.root").read_bytes() == b"mine"
    (tmp_path / "out" / "ref1_reweighted.root").unlink()
    apply_each_file(*command, weight="w")
    with pytest.raises(InvalidInputError, match="of an earlier run"):
        apply_each_file(*command, weight="w")
    with pytest.raises(InvalidInputError, match="other settings"):
        apply_each_file(*command, weight="2*w", resume=True)
    with pytest.raises(InvalidInputError, match="'nope'"):
        apply_each_file(*command, weight="nope", overwrite=True)
    # What was refused has forgotten nothing.
    assert apply_each_file(*command, weight="w", resume=True).n_before == 2
    (tmp_path / "out" / "ref2_reweighted.root").write_bytes(b"mine")
    with pytest.raises(InvalidInputError, match="of no earlier run"):
        apply_each_file(made / "model", f"{made}/ref[012].root", tmp_path / "out", weight="w", resume=True)
    done = apply_each_file(
        made / "model", f"{made}/ref[01].root", tmp_path / "out", weight="2*w", overwrite=True
    )
    assert done.total is not None
    assert done.total.weight == "2*w"


def test_files_without_events_are_no_failure(made: Path, tmp_path: Path) -> None:
    """Nor are those of which the selection keeps none; their outputs are there, and empty."""
    for number, values in enumerate(([], [1.0, 2.0], [-5.0])):
        x = np.array(values)
        np.savez(tmp_path / f"e{number}.npz", x=x, y=x.astype("f4"), w=np.ones(len(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NegativeDensityWarning)
        done = apply_each_file(
            made / "model", f"{tmp_path}/e*.npz", tmp_path / "out", weight="w", selection="x > 0"
        )
    assert done.is_complete
    assert [Path(one).name for one in done.empty] == ["e0.npz"]
    assert [open_table(path).n_events for path in done.outputs] == [2, 0]


def writing_for_long(arguments: dict[str, Any]) -> Iterator[Row]:
    """Begin a file in a worker, and never come to its end."""
    scratch_path(Path(arguments["output"]).parent).write_text("half")
    time.sleep(600.0)
    yield Row(arguments["key"], {})


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_nothing_half_written_and_says_how_to_go_on(
    kind: type[BaseException], tmp_path: Path
) -> None:
    tasks = FileTasks("apply", tmp_path / "out", {}, {})
    planned = tasks.planned([Location(tmp_path / "a.npz")], "{stem}.npz", resume=False, overwrite=False)

    def interrupt(_done: float, _total: float) -> None:
        if list((tmp_path / "out").glob(".quasiratio-*")):
            raise kind

    with pytest.raises(kind) as raised, tasks.tidied(planned), local_workers(1) as pool:
        tasks.run(writing_for_long, planned, pool, show=interrupt)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quasiratio-apply.sqlite"]
    assert str(raised.value).endswith("`resume=True` to go on.") == (kind is KeyboardInterrupt)


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed(made: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(12):
        (tmp_path / "in" / f"f{number:02d}.root").write_bytes((made / f"ref{number % 5}.root").read_bytes())
    command = [
        *(
            sys.executable,
            "-m",
            "quasiratio",
            "apply",
            str(made / "model"),
            f"{tmp_path}/in/*.root",
            "--jobs",
            "2",
        ),
        *("--weight", "w", "--output-dir", str(tmp_path / "out")),
    ]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        deadline = time.monotonic() + 240
        while not list((tmp_path / "out").glob("*.root")) and run.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    for output in (tmp_path / "out").glob("*.root"):
        assert open_table(output).n_events > 0  # whole, or not there
    done = apply_each_file(made / "model", f"{tmp_path}/in/*.root", tmp_path / "out", weight="w", resume=True)
    assert done.is_complete
    assert len(done.outputs) == 12
    apply_each_file(made / "model", f"{made}/ref[0-4].root", tmp_path / "alone", weight="w")
    for number in range(12):
        alone = tmp_path / "alone" / f"ref{number % 5}_reweighted.root"
        assert same(tmp_path / "out" / f"f{number:02d}_reweighted.root", alone)
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_loses_a_worker_writes_the_same(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}")
    monkeypatch.chdir(made)  # workers get absolute paths
    (tmp_path / "in").mkdir()
    for number in range(10):
        (tmp_path / "in" / f"f{number}.root").write_bytes((made / f"ref{number % 5}.root").read_bytes())
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        pid = next(iter(cluster.workers.values())).pid
        killed_at: list[float] = []

        def kill_once(done: float, _total: float) -> None:
            if done >= 2 and not killed_at:
                killed_at.append(done)
                os.kill(pid, signal.SIGKILL)

        done = apply_each_file(
            "model", f"{tmp_path}/in/*.root", tmp_path / "out", weight="w",
            scheduler=cluster.scheduler_address, progress=kill_once,
        )  # fmt: skip
    assert killed_at
    assert killed_at[0] < 10
    assert done.is_complete
    assert len(done.outputs) == 10
    apply_each_file(made / "model", f"{made}/ref*.root", tmp_path / "alone", weight="w")
    for number in range(10):
        alone = tmp_path / "alone" / f"ref{number % 5}_reweighted.root"
        assert same(tmp_path / "out" / f"f{number}_reweighted.root", alone)


def test_a_scheduler_that_does_not_answer(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("quasiratio.tasks.executors._CONNECT_SECONDS", "1s")
    with pytest.raises(InvalidInputError, match="does not answer"):
        apply_each_file(
            made / "model", f"{made}/ref*.root", tmp_path / "out", weight="w", scheduler="tcp://127.0.0.1:9"
        )
    assert not list(tmp_path.glob("out/*.root"))


def test_inspect_and_evaluate_give_the_numbers_of_one_file(made: Path, tmp_path: Path) -> None:
    """Read in many pieces by two processes, or as one file by one: the same to the last digit."""
    for name in ("ref", "tgt"):
        chunks = list(open_table(f"{made}/{name}*.root").chunks(["x", "y", "w"]))
        columns: dict[str, Any] = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        np.savez(tmp_path / f"{name}.npz", **columns)
    (tmp_path / "ref.txt").write_text(f"{made}/ref*.root\n")
    many, one = (f"@{tmp_path}/ref.txt", f"{made}/tgt*.root"), (tmp_path / "ref.npz", tmp_path / "tgt.npz")
    found = [
        inspect_files(files[0], files[1], features=["x", "y"], weight="w", jobs=jobs).inspection.as_dict()
        for files, jobs in ((many, 2), (one, None))
    ]
    assert found[0] == found[1]
    values = []
    for files, jobs in ((many, 2), (one, None)):
        report = tmp_path / f"report{jobs}"
        done = evaluate_files(made / "model", files[0], files[1], report, weight="w", n_bins=10, jobs=jobs)
        values.append(
            {key: done.values[key] for key in ("closure", "omnibus", "risk_difference", "histograms")}
        )
    np.testing.assert_equal(values[0], values[1])


def test_one_file_that_needs_double_precision_makes_all_double(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(3):
        np.savez(tmp_path / f"t{number}.npz", t=rng.normal(size=200) + (1e9 if number == 1 else 0.0))

    alone = qr.io.read_sample(f"{tmp_path}/t*.npz")
    with local_workers(1) as pool:
        together = qr.io.read_sample(f"{tmp_path}/t*.npz", pool=pool)
    assert alone.features.dtype == together.features.dtype == np.float64
    np.testing.assert_array_equal(alone.features, together.features)


def test_positive_weights_file_by_file_are_those_of_one_output(made: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"weight": "w", "features": FEATURES, "selection": "x > -1", "resample": True}
    files = f"{made}/ref*.root"

    def small() -> qr.PositiveReweighter:
        return qr.PositiveReweighter(max_steps=20, n_members=2, random_state=0)

    merged = positive_files(files, tmp_path / "all.root", reweighter=small(), **options)
    each = positive_each_file(files, tmp_path / "each", reweighter=small(), **options)
    assert each.total.report == merged.report
    assert each.total.n_written == merged.n_written
    assert same(tmp_path / "all.root", tmp_path / "each" / "ref*.root")
    (tmp_path / "each" / "ref3_positive.root").unlink()
    again = positive_each_file(files, tmp_path / "each", reweighter=small(), resume=True, **options)
    assert len(again.outputs) == 5
    assert same(tmp_path / "all.root", tmp_path / "each" / "ref*.root")
    with pytest.raises(InvalidInputError, match="other settings"):
        positive_each_file(
            f"{made}/ref[01].root", tmp_path / "each", reweighter=small(), resume=True, **options
        )
    longer = small().set_params(max_steps=30)
    merged = positive_files(files, tmp_path / "longer.root", reweighter=longer, **options)
    each = positive_each_file(files, tmp_path / "each", reweighter=longer, overwrite=True, **options)
    assert each.total.report == merged.report
    assert same(tmp_path / "longer.root", tmp_path / "each" / "ref*.root")
    # A command that was killed before it had trained anew: the model is of other options than the store.
    for path in (tmp_path / "each").glob("*.*"):
        path.unlink()
    each = positive_each_file(files, tmp_path / "each", reweighter=small(), resume=True, **options)
    assert same(tmp_path / "all.root", tmp_path / "each" / "ref*.root")
