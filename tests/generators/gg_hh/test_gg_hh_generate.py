"""`generate`: the same events however the work is shared, resumed runs, and refused options."""

import json
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import PARTON_FEATURES, Couplings, GeneratedSample, generate, parton_density


def same(one: GeneratedSample, other: GeneratedSample) -> bool:
    assert one.columns.keys() == other.columns.keys()
    return all(np.array_equal(values, other.columns[name]) for name, values in one.columns.items())


class Backwards(Executor):
    """Runs what it is given only when the first result is asked for, last task first."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, fn, args, kwargs))
        if len(self.tasks) == 3:
            for task, function, arguments, options in reversed(self.tasks):
                task.set_result(function(*arguments, **options))
        return future


def test_parton_sample() -> None:
    sample = generate("linear", 2500, seed=3, parton_level=True, chunk_size=1000)
    assert len(sample) == 2500
    assert sample.features == PARTON_FEATURES
    assert sample.to_sample().names == PARTON_FEATURES
    assert all(name.startswith("truth_") for name in set(sample.columns) - {*PARTON_FEATURES, "weight"})
    assert json.loads(json.dumps(sample.metadata, allow_nan=False)) == sample.metadata
    assert sample.metadata["cross_section_fb"] == pytest.approx(16.07, rel=0.01)


def test_events_do_not_depend_on_the_order_of_the_chunks() -> None:
    options: dict[str, Any] = {"parton_level": True, "chunk_size": 100}
    assert same(generate("sm", 250, 4, **options), generate("sm", 250, 4, executor=Backwards(), **options))


def test_particle_level_events_do_not_depend_on_the_number_of_processes() -> None:
    one = generate("linear", 240, seed=11, chunk_size=80)
    with ProcessPoolExecutor(2) as pool:
        two = generate("linear", 240, seed=11, chunk_size=80, executor=pool)
    assert same(one, two)
    assert one.metadata == two.metadata


def test_a_longer_run_starts_with_the_events_of_a_shorter_one() -> None:
    short, long = (generate("sm", n, 7, parton_level=True, chunk_size=200) for n in (400, 900))
    for name, values in short.columns.items():
        np.testing.assert_array_equal(values, long.columns[name][:400])


def test_samples_and_seeds_are_independent() -> None:
    a, b, c = (
        generate(*args, parton_level=True).columns["phi"]
        for args in (("sm", 50, 1), ("sm", 50, 2), ("linear", 50, 1))
    )
    assert not np.intersect1d(a, b).size
    assert not np.intersect1d(a, c).size


class Interrupted(Exception):
    pass


def test_an_interrupted_run_resumes(tmp_path: Path) -> None:
    options: dict[str, Any] = {"parton_level": True, "chunk_size": 100}
    seen = []

    def stop(done: int, wanted: int, seconds: float) -> None:
        seen.append((done, wanted, seconds))
        if done == 300:
            raise Interrupted

    with pytest.raises(Interrupted):
        generate("linear", 550, 9, chunk_dir=tmp_path / "run", progress=stop, **options)
    files = sorted((tmp_path / "run").iterdir())
    assert [file.name for file in files] == [f"chunk-00000{i}.npz" for i in range(3)]
    written = {file: file.stat().st_mtime_ns for file in files}

    calls = []
    resumed = generate(
        "linear", 550, 9, chunk_dir=tmp_path / "run", progress=lambda *args: calls.append(args), **options
    )
    assert [done for done, _, _ in calls] == [300, 400, 500, 550]
    assert all(wanted == 550 for _, wanted, _ in calls)
    assert {file: file.stat().st_mtime_ns for file in files} == written
    assert same(resumed, generate("linear", 550, 9, **options))


def test_particle_level_chunks_resume(tmp_path: Path) -> None:
    first = generate("sm", 60, 2, chunk_dir=tmp_path, chunk_size=30)
    again = generate("sm", 60, 2, chunk_dir=tmp_path, chunk_size=30)
    assert same(first, again)
    assert first.metadata == again.metadata


def test_the_last_chunk_of_a_shorter_run_and_damaged_files_are_made_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"parton_level": True, "chunk_size": 100}
    generate("sm", 150, 2, chunk_dir=tmp_path, **options)
    (tmp_path / "chunk-000000.npz").write_bytes(b"PK not a chunk")
    longer = generate("sm", 220, 2, chunk_dir=tmp_path, **options)
    assert same(longer, generate("sm", 220, 2, **options))
    assert not list(tmp_path.glob(".quasiratio-*"))


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 3},
        {"couplings": Couplings(c_hhh=2.0)},
        {"ecm": 14000.0},
        {"sample": "linear"},
        {"chunk_size": 50},
    ],
    ids=["seed", "couplings", "energy", "sample", "chunk"],
)
def test_chunks_of_other_settings_are_not_mixed_in(tmp_path: Path, change: dict[str, Any]) -> None:
    settings: dict[str, Any] = {
        "sample": "sm",
        "n_events": 100,
        "seed": 2,
        "parton_level": True,
        "chunk_dir": tmp_path,
    }
    generate(**settings)
    with pytest.raises(InvalidInputError, match="made with other settings"):
        generate(**(settings | change))


def test_couplings_and_density_reach_the_events(tmp_path: Path) -> None:
    sm_like = generate("linear", 200, 1, parton_level=True, couplings=Couplings())
    np.testing.assert_allclose(sm_like.columns["truth_ratio_linear"], 1.0, rtol=1e-9)
    assert np.all(sm_like.columns["weight"] == 1.0)
    copy = tmp_path / "copy.dat"
    copy.write_bytes(parton_density.bundled_grid_path().read_bytes())
    assert same(
        generate("sm", 100, 1, parton_level=True), generate("sm", 100, 1, parton_level=True, pdf=copy)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_events": 0}, "n_events = 0; expected a positive whole number"),
        ({"n_events": -5}, "n_events = -5"),
        ({"n_events": 1.5}, "n_events = 1.5"),
        ({"seed": -1}, "seed = -1"),
        ({"chunk_size": 0}, "chunk_size = 0"),
        ({"sample": "cubic"}, "'cubic'; expected one of sm, linear, quadratic"),
        ({"sample": "full"}, "'full'; expected one of sm, linear, quadratic"),
        ({"ecm": -13000.0}, "collider energy -13000"),
        ({"pdf": "no/such/file.dat"}, "does not exist"),
    ],
    ids=["zero", "negative", "fraction", "seed", "chunk", "unknown", "full", "energy", "pdf"],
)
def test_bad_options_are_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    options: dict[str, Any] = {
        "sample": "sm",
        "n_events": 10,
        "seed": 1,
        "parton_level": True,
        "chunk_dir": tmp_path / "new",
    }
    with pytest.raises(InvalidInputError, match=message):
        generate(**(options | change))
    assert not (tmp_path / "new").exists()
