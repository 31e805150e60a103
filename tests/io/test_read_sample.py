"""Samples from files: the same numbers as reading by hand, and memory that does not follow the file."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot

from quasiratio import WeightedSample
from quasiratio.errors import InvalidInputError
from quasiratio.io import default_features, open_table, read_sample, resolve_features

N_EVENTS = 1000
RNG = np.random.default_rng(1)
COLUMNS = {
    "eventNumber": np.arange(N_EVENTS, dtype="i8"),
    "jet_pt": RNG.exponential(50, N_EVENTS).astype("f4"),
    "jet_eta": RNG.normal(size=N_EVENTS),
    "n_jets": RNG.integers(0, 5, N_EVENTS, dtype="i4"),
    "passed": RNG.random(N_EVENTS) > 0.3,
    "w_gen": RNG.choice([1.0, -1.0], N_EVENTS, p=[0.8, 0.2]),
    "w_pu": RNG.random(N_EVENTS).astype("f4"),
    "truth_pt": RNG.random(N_EVENTS),
}


def save(path: Path, columns: dict[str, Any]) -> None:
    np.savez(path, **columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "events.root"
    with uproot.recreate(path) as file:
        tree = file.mktree("events", {name: values.dtype for name, values in COLUMNS.items()})
        for start in range(0, N_EVENTS, 300):
            tree.extend({name: values[start : start + 300] for name, values in COLUMNS.items()})
    return path


def test_features_weights_and_names(path):
    sample = read_sample(
        f"{path}:events", features=["jet_eta", "jet_pt", "n_jets", "passed"], weight="w_gen*w_pu"
    )
    assert isinstance(sample, WeightedSample)
    assert sample.names == ("jet_eta", "jet_pt", "n_jets", "passed")
    expected = np.column_stack([COLUMNS[name] for name in sample.names]).astype(np.float32)
    assert sample.features.dtype == np.float32
    assert np.array_equal(sample.features, expected)
    assert np.array_equal(sample.weights, COLUMNS["w_gen"] * COLUMNS["w_pu"].astype(np.float64))
    assert not sample.features.flags.writeable


def test_selection_keeps_what_it_says_and_gives_the_rest_of_the_memory_back(path):
    sample = read_sample(
        path, features=["jet_pt"], weight="w_gen", selection="jet_pt > 30 and passed & (n_jets < 4)"
    )
    kept = (COLUMNS["jet_pt"] > 30) & COLUMNS["passed"] & (COLUMNS["n_jets"] < 4)
    assert np.array_equal(sample.features[:, 0], COLUMNS["jet_pt"][kept])
    assert np.array_equal(sample.weights, COLUMNS["w_gen"][kept])
    assert sample.features.base is None
    assert sample.features.nbytes == 4 * kept.sum()


def test_without_a_weight_all_weigh_one_and_a_number_is_a_weight(path):
    assert np.array_equal(read_sample(path, features=["jet_pt"], weight="1").weights, np.ones(N_EVENTS))
    assert np.array_equal(read_sample(path, features=["jet_pt"], weight="2").weights, np.full(N_EVENTS, 2.0))
    passed = read_sample(path, features=["jet_pt"], weight="passed").weights
    assert np.array_equal(passed, COLUMNS["passed"].astype(float))


def test_default_features_leave_out_weights_identifiers_and_truth(path):
    table = open_table(path)
    assert default_features([table], "w_gen*w_pu") == ["jet_pt", "jet_eta", "n_jets", "passed"]
    assert default_features([table], "w_gen*w_pu", "passed and n_jets > 1") == ["jet_pt", "jet_eta", "n_jets"]
    assert read_sample(path, weight="w_gen * w_pu").names == ("jet_pt", "jet_eta", "n_jets", "passed")


@pytest.mark.parametrize(
    ("name", "is_identifier"),
    [("run", True), ("event", True), ("eventNumber", True), ("EventNumber", True), ("luminosityBlock", True),
     ("lumi", True), ("entry", True), ("jet_id", True), ("jetId", True), ("index", True), ("ID", True), ("RunNumber", True),
     ("n_events", False), ("n_run_hits", True), ("width", False), ("n_jets", False), ("nElectrons", False), ("tidy", False)],
)  # fmt: skip
def test_integer_identifiers_go_by_their_words(tmp_path, name, is_identifier):
    values = np.arange(500) % 7
    save(tmp_path / "a.npz", {name: values, "x": np.ones(500)})
    save(tmp_path / "b.npz", {name: values.astype(float), "x": np.ones(500)})
    assert default_features([open_table(tmp_path / "a.npz")]) == (["x"] if is_identifier else [name, "x"])
    assert default_features([open_table(tmp_path / "b.npz")]) == [name, "x"]


def test_integers_that_never_repeat_are_identifiers(tmp_path):
    np.savez(tmp_path / "a.npz", stamp=np.arange(500) * 17, n_hits=np.arange(500) // 2, x=np.arange(500.0))
    np.savez(tmp_path / "few.npz", stamp=np.arange(50), x=np.arange(50.0))
    assert default_features([open_table(tmp_path / "a.npz")]) == ["n_hits", "x"]
    assert default_features([open_table(tmp_path / "few.npz")]) == ["stamp", "x"]


def test_default_features_are_shared_by_all_tables(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3), y=np.ones(3), z=np.ones(3))
    np.savez(tmp_path / "b.npz", z=np.ones(3), x=np.ones(3), t=np.array(["a", "b", "c"]))
    tables = [open_table(tmp_path / "a.npz"), open_table(tmp_path / "b.npz")]
    assert default_features(tables) == ["x", "z"]
    assert resolve_features(["*"], tables) == ["x", "z"]
    with pytest.raises(InvalidInputError, match=r"column 'y', which does not exist in '.*b.npz'"):
        resolve_features(["y"], tables)


def test_patterns_keep_their_order(path):
    table = open_table(path)
    assert resolve_features(["n_*", "jet_*", "jet_pt"], [table]) == ["n_jets", "jet_pt", "jet_eta"]
    assert resolve_features(["jet_[ep]*"], [table]) == ["jet_pt", "jet_eta"]
    with pytest.raises(InvalidInputError, match=r"pattern 'muon_\*', which matches no numeric column"):
        resolve_features(["muon_*"], [table])


@pytest.mark.parametrize(
    ("column", "kept"), [("x", "x < 2"), ("x", "`x` < 2 and `x` == `x`")], ids=["one condition", "two"]
)
def test_values_that_are_not_finite_are_counted_after_the_selection(tmp_path, column, kept):
    x = np.array([1.0, np.nan, np.inf, 1.5, 1e39])
    save(tmp_path / "a.npz", {column: x, "y": np.ones(5)})
    with pytest.raises(InvalidInputError, match=r"in 'x' \(3 events\); expected finite features"):
        read_sample(tmp_path / "a.npz")
    assert len(read_sample(tmp_path / "a.npz", selection=kept)) == 2


def test_weights_that_are_not_finite_are_counted(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(4), w=np.array([1.0, 0.0, -1.0, 0.0]))
    with pytest.raises(
        InvalidInputError, match=r"2 weights that are NaN or infinite from the expression '1 / w'"
    ):
        read_sample(tmp_path / "a.npz", features=["x"], weight="1 / w")


@pytest.mark.parametrize("compress", [np.savez, np.savez_compressed])
def test_memory_is_that_of_the_sample_and_one_chunk(tmp_path, compress):
    n_events, n_columns = 1_000_000, 8  # 64 MB of doubles, of which two columns are asked for
    columns = {f"x{i}": np.arange(n_events, dtype=float) % 1000 for i in range(n_columns)}
    compress(tmp_path / "a.npz", **columns)
    del columns
    table = open_table(tmp_path / "a.npz")
    tracemalloc.start()
    for _ in table.chunks(chunk_events=50_000):
        pass
    assert tracemalloc.get_traced_memory()[1] < 2.5 * 50_000 * 8 * n_columns + 5e6
    tracemalloc.reset_peak()
    sample = read_sample(table, features=["x0", "x1"], weight="x2")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sample.features.nbytes + sample.weights.nbytes + 4 * 400_000 * 8 * 3


def test_columns_named_like_another_weight_are_features_only_where_named(tmp_path):
    columns: dict[str, Any] = {
        "x": np.arange(4.0),
        "w_mass": np.ones(4),
        "w": [1.0, -1, 1, 1],
        "w_up": [2.0, -2, 2, 2],
    }
    np.savez(tmp_path / "a.npz", **columns, LHEWeight_7=[3.0, -3, 3, 3], w_is_good=[True, False, True, True])
    for weight in ("w", "1"):
        assert read_sample(tmp_path / "a.npz", weight=weight).names == ("x", "w_mass", "w_is_good")
    assert read_sample(tmp_path / "a.npz", weight="w", features=["x", "w_up"]).names == ("x", "w_up")
    np.savez(tmp_path / "weights.npz", w=[1.0, 2.0], w_up=[1.0, 2.0])
    with pytest.raises(InvalidInputError, match="without a column to use as a feature by default"):
        read_sample(tmp_path / "weights.npz", weight="w")
    with pytest.raises(InvalidInputError, match="Got no weight"):
        read_sample(tmp_path / "weights.npz")
