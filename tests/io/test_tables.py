"""Tables: what each format holds comes back, in chunks of any size, from one file or many."""

from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from quasiratio.errors import InvalidInputError, OmittedColumnWarning
from quasiratio.io import Column, open_table, parse_expression

N_EVENTS = 25
FLAT = {
    "pt": np.linspace(20, 100, N_EVENTS, dtype="f4"),
    "mass": np.linspace(-1, 1, N_EVENTS),
    "n_jets": np.arange(N_EVENTS, dtype="i8") % 4,
    "charge": (np.arange(N_EVENTS, dtype="i1") % 2) * 2 - 1,
    "is_good": np.arange(N_EVENTS) % 3 == 0,
}
JETS = ak.Array([[float(10 * i + j) for j in range(i % 4)] for i in range(N_EVENTS)])
VECTORS = np.arange(3 * N_EVENTS, dtype="f4").reshape(N_EVENTS, 3)
LABELS = ak.Array([f"event {i}" for i in range(N_EVENTS)])


def save(path: Path, columns: dict[str, Any]) -> Path:
    np.savez(path, **columns)
    return path


def write_tree(path: Path) -> Path:
    with uproot.recreate(path) as file:
        types = {name: values.dtype for name, values in FLAT.items()}
        types |= {"jet_pt": "var * float64", "vector": np.dtype(("f4", (3,))), "label": "string"}
        tree = file.mktree("events", types)
        for part in (slice(0, 10), slice(10, N_EVENTS)):
            chunk = {"jet_pt": JETS[part], "vector": VECTORS[part], "label": LABELS[part]}
            tree.extend({name: values[part] for name, values in FLAT.items()} | chunk)
    return path


def write_ntuple(path: Path) -> Path:
    with uproot.recreate(path) as file:
        file["events"] = {**FLAT, "jet_pt": JETS, "vector": VECTORS, "label": LABELS}
    return path


def write_parquet(path: Path) -> Path:
    lists = {"jet_pt": pa.array(JETS.to_list()), "vector": pa.array(list(VECTORS), pa.list_(pa.float32(), 3))}
    pq.write_table(pa.table({**FLAT, **lists, "label": LABELS.to_list()}), path, row_group_size=7)
    return path


def write_npz(path: Path) -> Path:
    return save(path, FLAT)


def write_compressed_npz(path: Path) -> Path:
    big_endian = {name: values.astype(values.dtype.newbyteorder(">")) for name, values in FLAT.items()}
    np.savez_compressed(path, **big_endian)
    return path


WRITERS = {
    "tree.root": write_tree,
    "ntuple.root": write_ntuple,
    "a.parquet": write_parquet,
    "a.npz": write_npz,
    "compressed.npz": write_compressed_npz,
}
WITH_LISTS = [name for name in WRITERS if not name.endswith(".npz")]


@pytest.fixture(params=WRITERS)
def any_file(request, tmp_path):
    return WRITERS[request.param](tmp_path / request.param)


@pytest.fixture(params=WITH_LISTS)
def file_with_lists(request, tmp_path):
    return WRITERS[request.param](tmp_path / request.param)


def test_columns_have_kinds_and_types(any_file):
    columns = open_table(any_file).columns
    kinds = {"f": "float", "i": "integer", "b": "boolean"}
    for name, values in FLAT.items():
        assert isinstance(columns[name], Column)
        assert (columns[name].kind, columns[name].dtype) == (kinds[values.dtype.kind], values.dtype)


def test_lists_and_text_have_kinds(file_with_lists):
    table = open_table(file_with_lists)
    kinds = {name: table.columns[name].kind for name in ("jet_pt", "vector", "label")}
    assert kinds == {"jet_pt": "jagged", "vector": "jagged", "label": "text"}
    assert set(table.numeric_columns()) - {"njet_pt"} == set(FLAT)


@pytest.mark.parametrize("chunk_events", [1, 4, 10, 1000])
def test_chunks_join_to_the_whole(any_file, chunk_events):
    table = open_table(any_file)
    chunks = list(table.chunks(["mass", "pt", "is_good"], chunk_events=chunk_events))
    assert table.n_events == N_EVENTS
    assert all(list(chunk) == ["mass", "pt", "is_good"] for chunk in chunks)
    assert max(len(chunk["pt"]) for chunk in chunks) <= chunk_events
    for name in chunks[0]:
        joined = np.concatenate([chunk[name] for chunk in chunks])
        assert joined.dtype == FLAT[name].dtype
        assert np.array_equal(joined, FLAT[name])


def test_all_columns_with_lists_and_text(file_with_lists):
    chunks = list(open_table(file_with_lists).chunks(chunk_events=6))
    assert ak.to_list(ak.concatenate([chunk["jet_pt"] for chunk in chunks])) == JETS.to_list()
    assert ak.to_list(ak.concatenate([chunk["label"] for chunk in chunks])) == LABELS.to_list()
    assert np.array_equal(np.concatenate([chunk["vector"] for chunk in chunks]), VECTORS)
    assert np.array_equal(np.concatenate([chunk["pt"] for chunk in chunks]), FLAT["pt"])


def test_elements_of_lists(file_with_lists):
    names = ["vector[2]", "jet_pt[1]", "pt"]
    selection = parse_expression("n_jets > 1 and mass < 0.5")
    chunks = list(open_table(file_with_lists).chunks(names, chunk_events=7, selection=selection))
    kept = (FLAT["n_jets"] > 1) & (FLAT["mass"] < 0.5)
    assert np.array_equal(np.concatenate([chunk["vector[2]"] for chunk in chunks]), VECTORS[kept, 2])
    assert np.array_equal(np.concatenate([chunk["jet_pt[1]"] for chunk in chunks]), JETS[kept][:, 1])
    assert np.array_equal(np.concatenate([chunk["pt"] for chunk in chunks]), FLAT["pt"][kept])


def test_events_without_the_element_are_counted(file_with_lists):
    n_short = int(np.sum(FLAT["n_jets"] < 2))
    with pytest.raises(InvalidInputError, match=rf"'jet_pt\[1\]', but {n_short} of 25 events"):
        list(open_table(file_with_lists).chunks(["jet_pt[1]"]))


def test_an_element_that_is_missing_does_not_pass_a_selection(file_with_lists):
    selection = parse_expression("jet_pt[1] > -1e9")
    (chunk,) = open_table(file_with_lists).chunks(["n_jets"], selection=selection)
    assert np.array_equal(chunk["n_jets"], FLAT["n_jets"][FLAT["n_jets"] >= 2])


def test_several_files_are_one_table(tmp_path):
    for index in range(3):
        write_tree(tmp_path / f"part{index}.root")
    by_glob = open_table(f"{tmp_path}/part*.root:events")
    by_list = open_table([tmp_path / f"part{index}.root" for index in range(3)], tree="events")
    assert by_glob.n_events == by_list.n_events == 3 * N_EVENTS
    assert by_glob.sources == by_list.sources == tuple(f"{tmp_path}/part{i}.root:events" for i in range(3))
    values = np.concatenate([chunk["pt"] for chunk in by_glob.chunks(["pt"], chunk_events=10)])
    assert np.array_equal(values, np.tile(FLAT["pt"], 3))
    mixed = open_table([write_npz(tmp_path / "a.npz"), write_compressed_npz(tmp_path / "b.npz")])
    assert mixed.n_events == 2 * N_EVENTS


def test_files_without_events_may_stand_among_others(tmp_path):
    save(tmp_path / "a.npz", {name: values[:0] for name, values in FLAT.items()})
    table = open_table([tmp_path / "a.npz", write_npz(tmp_path / "b.npz")])
    assert table.n_events == sum(len(chunk["pt"]) for chunk in table.chunks(["pt"])) == N_EVENTS


def test_a_tree_is_named_where_there_are_several(tmp_path):
    with uproot.recreate(tmp_path / "two.root") as file:
        file.mktree("nominal", {"x": "f4"}).extend({"x": np.ones(3, "f4")})
        file.mktree("deep/syst", {"x": "f4"}).extend({"x": np.ones(2, "f4")})
    assert open_table(f"{tmp_path}/two.root:deep/syst").n_events == 2
    assert open_table(tmp_path / "two.root", tree="nominal").n_events == 3
    assert open_table(f"{tmp_path}/two.root:nominal;1").n_events == 3
    with pytest.raises(InvalidInputError, match=r"'nominal', 'deep/syst'; expected one to be named"):
        open_table(tmp_path / "two.root")


def test_paths_may_contain_what_patterns_and_trees_are_written_with(tmp_path):
    directory = tmp_path / "a[1] #?*:b.root:c"
    directory.mkdir()
    write_tree(directory / "x.root")
    assert open_table(directory / "x.root").n_events == N_EVENTS
    assert open_table(f"{directory}/x.root:events").n_events == N_EVENTS


def test_a_column_may_be_called_like_an_element(tmp_path):
    save(tmp_path / "a.npz", {"jet[0]": np.arange(3.0), "<b>pt</b> é/..": np.ones(3)})
    table = open_table(tmp_path / "a.npz")
    (chunk,) = table.chunks(["jet[0]", "<b>pt</b> é/.."])
    assert chunk["jet[0]"].tolist() == [0, 1, 2]
    assert parse_expression("jet[0] * `<b>pt</b> é/..`").evaluate(chunk).tolist() == [0, 1, 2]


def test_branches_that_cannot_be_read_are_left_out_with_a_warning(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        tree = file.mktree("t", {"x": "f4", "tracks": "var * 3 * float32"})
        tree.extend(
            {"x": np.ones(2, "f4"), "tracks": ak.to_regular(ak.Array([[[1, 2, 3]], [[4, 5, 6]]]), axis=2)}
        )
    table = open_table(tmp_path / "a.root")
    assert table.columns["tracks"].kind == "other"
    with pytest.warns(OmittedColumnWarning, match="'tracks'"):
        (chunk,) = table.chunks()
    assert set(chunk) == {"x", "ntracks"}


def test_missing_floats_are_nan_and_other_missing_values_are_refused(tmp_path):
    pq.write_table(pa.table({"x": [1.0, None], "n": [1, None], "j": [[1], None]}), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    (chunk,) = table.chunks(["x"])
    assert np.isnan(chunk["x"]).tolist() == [False, True]
    for name in ("n", "j"):
        with pytest.raises(InvalidInputError, match=f"1 missing values in the .* column '{name}'"):
            list(table.chunks([name]))


def test_categories_and_nested_values_pass_through_parquet(tmp_path):
    columns = {
        "tag": pa.array(["a", "b", "a"]).dictionary_encode(),
        "deep": pa.array([[[1.0]], [], [[2.0], []]]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    assert {name: column.kind for name, column in table.columns.items()} == {"tag": "text", "deep": "other"}
    (chunk,) = table.chunks()
    assert ak.to_list(chunk["tag"]) == ["a", "b", "a"]
    assert ak.to_list(chunk["deep"]) == [[[1.0]], [], [[2.0], []]]


def test_the_default_chunk_follows_the_size_of_an_event(tmp_path):
    save(tmp_path / "a.npz", {f"x{i}": np.zeros(10) for i in range(40)})
    table = open_table(tmp_path / "a.npz")
    assert table.chunk_events(["x0"]) == 400_000
    assert table.chunk_events() == 50_000_000 // (40 * 8)
    with pytest.raises(InvalidInputError, match="chunk_events=0"):
        table.chunks(chunk_events=0)
