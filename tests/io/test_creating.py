"""Writing tables: types and values survive, copies of copies are the same, and nothing is ever half-written."""

import os
import resource
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow.parquet as pq
import pytest
import uproot

from quasiratio.errors import InvalidInputError, OmittedColumnWarning
from quasiratio.io import create_table, open_table, read_metadata

FLAT = {
    "pt": np.array([10.0, 20.0, 30.0, 40.0], "f4"),
    "mass": np.array([1.0, -2.0, np.nan, 4.0]),
    "n": np.array([1, 2, 3, 2**40], "i8"),
    "flag": np.array([True, False, True, True]),
    "byte": np.array([0, 255, 7, 8], "u1"),
    "<b>é 漢</b>/..": np.array([1, 2, 3, 4], "u4"),
}
METADATA = {"model": "müller", "features": ["pt", "mass"], "nested": {"n": 1.5}, "long": "x" * 100_000}
SUFFIXES = (".root", ".parquet", ".npz")


def copy(source, target, *, chunk_events=2):
    table = open_table(source)
    with create_table(target, inputs=[table]) as writer:
        for chunk in table.chunks(chunk_events=chunk_events):
            writer.append(chunk)
    return open_table(target)


def write(path: Path, *chunks: dict[str, Any], stop: type[BaseException] | None = None) -> None:
    """Write without compression, then raise if asked to."""
    with create_table(path, compression=None) as writer:
        for chunk in chunks:
            writer.append(chunk)
        if stop is not None:
            raise stop


def whole(table):
    chunks = list(table.chunks(chunk_events=3))
    return {name: ak.to_list(ak.concatenate([chunk[name] for chunk in chunks])) for name in chunks[0]}


def nothing_left(directory: Path, *expected: str) -> bool:
    return sorted(path.name for path in directory.iterdir()) == sorted(expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip_of_values_types_and_metadata(tmp_path, suffix):
    target = tmp_path / f"new{suffix}"
    with create_table(target, metadata=METADATA) as writer:
        writer.append({name: values[:1] for name, values in FLAT.items()})
        writer.append({name: values[1:1] for name, values in FLAT.items()})
        writer.append({name: values[1:] for name, values in FLAT.items()})
        assert not target.exists()
    table = open_table(target)
    assert list(table.columns) == list(FLAT)
    (chunk,) = table.chunks(chunk_events=10) if suffix != ".parquet" else [joined(table)]
    for name, values in FLAT.items():
        assert chunk[name].dtype == table.columns[name].dtype == values.dtype
        np.testing.assert_array_equal(chunk[name], values)
    assert read_metadata(target) == METADATA
    assert writer.n_events == table.n_events == 4
    assert nothing_left(tmp_path, target.name)


def joined(table):
    chunks = list(table.chunks())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def test_the_files_are_what_other_tools_expect(tmp_path):
    for suffix in SUFFIXES:
        with create_table(tmp_path / f"a{suffix}", metadata={"a": 1}) as writer:
            writer.append(FLAT)
    with uproot.open(tmp_path / "a.root") as file:
        assert file.classnames(cycle=False) == {"events": "TTree", "quasiratio_metadata": "TObjString"}
        assert file.file.compression == uproot.ZSTD(1)
        assert np.array_equal(file["events"]["n"].array(library="np"), FLAT["n"])
    assert pq.read_table(tmp_path / "a.parquet")["flag"].to_pylist() == FLAT["flag"].tolist()
    with np.load(tmp_path / "a.npz") as file:
        assert np.array_equal(file["pt"], FLAT["pt"])
        assert set(file.files) == {*FLAT, "_metadata"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_metadata_there_is_none(tmp_path, suffix):
    with create_table(tmp_path / f"a{suffix}") as writer:
        writer.append({"x": np.ones(2)})
    assert read_metadata(tmp_path / f"a{suffix}") == {}


@pytest.mark.parametrize(
    ("suffix", "compression"),
    [(".root", "zstd"), (".root", "lz4"), (".root", "zlib"), (".root", None), (".parquet", "zstd"), (".parquet", "lz4"),
     (".parquet", "zlib"), (".parquet", None), (".npz", "zlib"), (".npz", None)],
)  # fmt: skip
def test_compressions(tmp_path, suffix, compression):
    values = np.zeros(100_000)
    with create_table(tmp_path / f"a{suffix}", compression=compression) as writer:
        writer.append({"x": values})
    is_small = (tmp_path / f"a{suffix}").stat().st_size < 0.1 * values.nbytes
    assert is_small == (compression is not None) or suffix == ".parquet"  # which has encodings besides
    assert open_table(tmp_path / f"a{suffix}").n_events == 100_000


@pytest.fixture
def jagged(tmp_path):
    """A tree as ROOT users write them: two jagged branches with one counter, a third with its own."""
    path = tmp_path / "jagged.root"
    counters = {"jet_pt": "njet", "jet_eta": "njet", "mu_pt": "nmu_pt"}
    with uproot.recreate(path) as file:
        types = {
            "pt": "f4",
            "jet_pt": "var * float32",
            "jet_eta": "var * float64",
            "mu_pt": "var * int16",
            "name": "string",
        }
        tree = file.mktree("t", types, counter_name=counters.__getitem__)
        jets = ak.Array([[1.0, 2.0], [], [3.0], [4.0, 5.0, 6.0]])
        columns = {"pt": FLAT["pt"], "jet_pt": ak.values_astype(jets, "f4"), "jet_eta": -jets}
        mu = ak.values_astype(ak.Array([[], [1], [2, 3], []]), "i2")
        tree.extend({**columns, "mu_pt": mu, "name": ak.Array(["a", "", "ü", "long " * 100])})
    return path


def test_copies_of_jagged_branches_keep_their_counters(tmp_path, jagged):
    original = open_table(jagged)
    assert set(original.columns) == {"pt", "njet", "jet_pt", "jet_eta", "nmu_pt", "mu_pt", "name"}
    once = copy(jagged, tmp_path / "once.root")
    twice = copy(tmp_path / "once.root", tmp_path / "twice.root", chunk_events=3)
    assert original.columns == once.columns == twice.columns
    assert whole(original) == whole(once) == whole(twice)
    with uproot.open(f"{tmp_path}/twice.root:events") as tree:
        assert tree["jet_eta"].count_branch.name == tree["jet_pt"].count_branch.name == "njet"


def test_selected_events_keep_their_counters(tmp_path, jagged):
    table = open_table(jagged)
    with create_table(tmp_path / "a.root") as writer:
        for chunk in table.chunks():
            writer.append(
                {name: values[np.array([True, False, True, True])] for name, values in chunk.items()}
            )
    assert set(open_table(tmp_path / "a.root").columns) == set(table.columns)
    assert whole(open_table(tmp_path / "a.root"))["jet_pt"] == [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("through", ["a.parquet", "b.root"])
def test_jagged_branches_pass_through_parquet(tmp_path, jagged, through):
    copied = copy(jagged, tmp_path / through)
    back = copy(tmp_path / through, tmp_path / "back.root")
    expected = whole(open_table(jagged))
    assert whole(copied) == expected
    assert {name: values for name, values in whole(back).items() if name in expected} == expected
    assert all(back.columns[name] == column for name, column in open_table(jagged).columns.items())


def test_new_counters_avoid_columns_that_exist(tmp_path):
    with create_table(tmp_path / "a.root") as writer:
        writer.append({"njet": np.array([7.5, 8.5]), "jet": ak.Array([[1.0], [2.0, 3.0]])})
    assert whole(open_table(tmp_path / "a.root")) == {
        "njet": [7.5, 8.5], "njet_": [1, 2], "jet": [[1.0], [2.0, 3.0]],
    }  # fmt: skip


def test_counters_that_disagree_with_the_lists_are_refused(tmp_path, jagged):
    (chunk,) = open_table(jagged).chunks()
    with (
        pytest.raises(InvalidInputError, match="other lengths than 'njet'"),
        create_table(tmp_path / "a.root") as writer,
    ):
        writer.append({**chunk, "njet": chunk["njet"] + 1})
    with pytest.raises(InvalidInputError, match="other lengths"), create_table(tmp_path / "a.root") as writer:
        writer.append({**chunk, "jet_pt": chunk["jet_pt"][:, :1]})
    assert nothing_left(tmp_path, "jagged.root")


def test_columns_that_a_format_cannot_hold_are_named(tmp_path):
    columns = {
        "x": np.ones(2),
        "deep": ak.Array([[[1.0]], []]),
        "jets": ak.Array([[1.0], []]),
        "t": ak.Array(["a", "b"]),
    }
    with (
        pytest.warns(OmittedColumnWarning, match=r"cannot hold them: 'deep'\."),
        create_table(tmp_path / "a.root") as writer,
    ):
        writer.append(columns)
    with (
        pytest.warns(OmittedColumnWarning, match=r"'deep', 'jets', 't'\."),
        create_table(tmp_path / "a.npz") as writer,
    ):
        writer.append(columns)
    with create_table(tmp_path / "a.parquet") as writer:
        writer.append(columns)
    with pytest.warns(OmittedColumnWarning, match="udcff"), create_table(tmp_path / "b.root") as writer:
        writer.append({"x": np.ones(2), "not utf-8 \udcff": np.ones(2)})
    assert set(open_table(tmp_path / "a.root").columns) == {"x", "njets", "jets", "t"}
    assert set(open_table(tmp_path / "a.npz").columns) == {"x"}
    assert whole(open_table(tmp_path / "a.parquet"))["deep"] == [[[1.0]], []]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, suffix, stop):
    target = tmp_path / f"a{suffix}"
    target.write_bytes(b"what was there before")
    with pytest.raises(stop):
        write(target, FLAT, stop=stop)
    assert target.read_bytes() == b"what was there before"
    assert nothing_left(tmp_path, target.name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, suffix):
    values = np.random.default_rng(0).random(200_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))  # no file may grow beyond: writes fail
    try:
        with pytest.raises(InvalidInputError, match=r"to write, which failed \(.*nothing was left behind"):
            write(tmp_path / f"a{suffix}", *3 * [{"x": values}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_new_file_has_the_usual_permissions(tmp_path, suffix):
    (tmp_path / "usual").touch()
    with create_table(tmp_path / f"a{suffix}") as writer:
        writer.append({"x": np.ones(2)})
    assert (tmp_path / f"a{suffix}").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    with create_table(tmp_path / "a.npz") as first:
        first.append({"x": np.zeros(2)})
        with create_table(tmp_path / "a.npz") as second:
            second.append({"x": np.ones(3)})
        assert open_table(tmp_path / "a.npz").n_events == 3
    assert open_table(tmp_path / "a.npz").n_events == 2
    assert nothing_left(tmp_path, "a.npz")


@pytest.mark.parametrize(
    ("chunks", "part"),
    [
        ([{"x": np.ones(2), "y": np.ones(3)}], "expected arrays of one length"),
        ([{"x": np.float64(2)}], "expected arrays of one length"),
        ([{}], "expected arrays of one length"),
        ([], "expected at least one append"),
        ([{"x": np.ones(2)}, {"y": np.ones(2)}], r"\['x', 'y'\]; expected the same"),
        ([{"x": np.ones(2)}, {"x": np.ones(2, "i4")}], r"as integer \(int32\) after float \(float64\)"),
        ([{"x": np.array([{}, {}], object)}], "expected numbers"),
    ],
)
def test_chunks_that_do_not_fit(tmp_path, chunks, part):
    with pytest.raises(InvalidInputError, match=part):
        write(tmp_path / "a.root", *chunks)
    assert nothing_left(tmp_path)


def test_appending_outside_the_block_is_refused(tmp_path):
    with create_table(tmp_path / "a.npz") as writer:
        writer.append({"x": np.ones(2)})
    with pytest.raises(InvalidInputError, match="not open"):
        writer.append({"x": np.ones(2)})


def test_output_must_not_be_an_input(tmp_path):
    with create_table(tmp_path / "a.npz") as writer:
        writer.append({"x": np.ones(2)})
    os.symlink(tmp_path / "a.npz", tmp_path / "link.npz")  # noqa: PTH211
    for name in ("a.npz", "link.npz", "../" + tmp_path.name + "/a.npz"):
        with pytest.raises(InvalidInputError, match="as output and as input"):
            create_table(tmp_path / name, inputs=[open_table(tmp_path / "a.npz")])


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("compression", ["zlib", None])
def test_the_same_events_give_the_same_file(tmp_path, suffix, compression, monkeypatch):
    for number, seconds in enumerate((1e9, 1.6e9)):
        monkeypatch.setattr("time.time", lambda seconds=seconds: seconds)
        with create_table(
            tmp_path / f"{number}{suffix}", metadata=METADATA, compression=compression
        ) as writer:
            writer.append(FLAT)
    assert (tmp_path / f"0{suffix}").read_bytes() == (tmp_path / f"1{suffix}").read_bytes()
