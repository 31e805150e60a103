"""Files and expressions are read as they were meant, or refused with a sentence: never something else instead."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from quasiratio.errors import InvalidInputError, OmittedColumnWarning
from quasiratio.io import create_table, open_table, parse_expression, read_sample


def two_cycles(path: Path) -> Path:
    """A tree that was written twice: cycle 1 holds ones, cycle 2 holds twos, and cycle 2 has another branch."""
    with uproot.recreate(path) as file:
        file.mktree("events", {"x": "f8"}).extend({"x": np.ones(5)})
        file.mktree("events", {"x": "f8", "y": "f8"}).extend({"x": np.full(4, 2.0), "y": np.zeros(4)})
    return path


@pytest.mark.parametrize(
    ("tree", "expected"), [("events", 2.0), ("events;2", 2.0), ("events;1", 1.0), ("/events;1", 1.0)]
)
@pytest.mark.parametrize("in_path", [True, False])
def test_the_cycle_of_a_tree_is_honoured(tmp_path: Path, tree: str, expected: float, in_path: bool) -> None:
    path = two_cycles(tmp_path / "a.root")
    table = open_table(f"{path}:{tree}") if in_path else open_table(path, tree=tree)
    values = np.concatenate([chunk["x"] for chunk in table.chunks(["x"])])
    assert set(values.tolist()) == {expected}
    assert len(values) == table.n_events == (5 if expected == 1.0 else 4)
    assert ("y" in table.columns) == (expected == 2.0)


@pytest.mark.parametrize("tree", ["events;3", "events;0", "events;", "events;x", "events;-1", "events;1;1"])
def test_a_cycle_that_is_not_there_is_refused(tmp_path: Path, tree: str) -> None:
    path = two_cycles(tmp_path / "a.root")
    with pytest.raises(InvalidInputError, match=r"Got the tree 'events;.*'events;1', 'events;2'"):
        open_table(f"{path}:{tree}")


def test_one_tree_by_two_names_is_not_counted_twice(tmp_path: Path) -> None:
    path = two_cycles(tmp_path / "a.root")
    with pytest.raises(InvalidInputError, match="twice"):
        open_table([f"{path}:events", f"{path}:events;2"])


HASHES = ["w#up", "w # up", "w\n#up", "w # up\n* 2", "`w` # up\n* 2", "(w\n# up\n)", "w\x0b#", "`a`#`b`"]


@pytest.mark.parametrize("text", HASHES)
def test_nothing_after_a_hash_is_lost(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"with an error at character \d+ \('#.*backticks"):
        parse_expression(text)


def test_line_breaks_are_blanks_and_quoted_names_may_hold_anything() -> None:
    assert parse_expression("`w#up` * `a\nb`").names == ("w#up", "a\nb")
    assert parse_expression(" w_gen *\n w_pu\n").names == ("w_gen", "w_pu")
    several_lines = parse_expression("(`aa` +\n`bb`\r\n- `cc`)")
    assert several_lines.names == ("aa", "bb", "cc")
    assert several_lines.evaluate({"aa": [5.0], "bb": [3.0], "cc": [1.0]}).tolist() == [7.0]


def test_errors_show_the_neighbourhood_of_a_long_expression_not_all_of_it() -> None:
    text = "+".join(["alpha"] * 400) + " # beta"
    with pytest.raises(InvalidInputError) as raised:
        parse_expression(text)
    assert len(str(raised.value)) < 400
    assert "character 2401" in str(raised.value)


def test_two_hundred_cuts_of_a_root_file_fail_or_read_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = tmp_path / "whole.root"
    columns = {"x": rng.normal(size=4000), "n": rng.integers(0, 5, 4000)}
    with uproot.recreate(whole) as file:
        file.mktree("events", {"x": "f8", "n": "i8"}).extend(columns)
    content = whole.read_bytes()
    cut = tmp_path / "cut.root"
    n_refused = 0
    for n_bytes in rng.integers(0, len(content), 200):
        cut.write_bytes(content[:n_bytes])
        try:
            read = list(open_table(cut).chunks())
        except InvalidInputError:
            n_refused += 1
        else:
            for name, values in columns.items():
                assert np.array_equal(np.concatenate([chunk[name] for chunk in read]), values)
    assert n_refused > 0
    cut.write_bytes(content[:-1])
    with pytest.raises(InvalidInputError, match=f"{len(content) - 1} bytes.*{len(content)}.*truncated"):
        open_table(cut)


def test_a_root_file_with_more_behind_its_end_is_read(tmp_path: Path) -> None:
    path = two_cycles(tmp_path / "a.root")
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert open_table(path).n_events == 4


@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, suffix: str, kind: str) -> None:
    path = tmp_path / f"a{suffix}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        import socket

        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.close()
    with pytest.raises(InvalidInputError, match=r"no regular file.*expected"):
        open_table(path)


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize("shape", ["(-3,)", "(-1,)", "(True,)", "(10**30,)"])
def test_a_header_of_impossible_shape_is_refused(tmp_path: Path, shape: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("x", "y"):
            archive.writestr(f"{name}.npy", header(shape) + b"\0" * 80)
    with pytest.raises(InvalidInputError, match=r"a\.npz"):
        read_sample(tmp_path / "a.npz", features=["x", "y"])


def bomb(path: Path, n_bytes: int = 1_200_000_000) -> Path:
    """A small file that unpacks to more than a gigabyte of zeros."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header(f"({n_bytes // 8},)"))
        for _ in range(n_bytes // 10_000_000):
            member.write(bytes(10_000_000))
    return path


def test_a_file_that_unpacks_to_gigabytes_needs_consent(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.npz")
    with pytest.raises(InvalidInputError, match=r"unpack to 1\.2 GB.*allow_large=True"):
        open_table(path)
    with pytest.raises(InvalidInputError, match=r"1\.2 GB"):
        read_sample(path)
    assert open_table(path, allow_large=True).n_events == 150_000_000


WEIGHT_NAMES = [
    "weight", "Weights", "w", "W", "wgt", "wt", "genWeight", "mcWeight", "eventWeight", "event_weight", "mc_weight",
    "genweight", "EVENTWEIGHT", "weight_nominal", "w_gen", "totalWeight", "LHEWeight_originalXWGTUP", "evt_wgt",
    "w_up", "wDown", "w_scale_up", "weight_scale_down", "w1", "w_pdf_12", "LHEWeight_12", "originalXWGTUP",
]  # fmt: skip
OTHER_NAMES = [
    "width",
    "wide",
    "bodyweighting",
    "w_mass",
    "mw",
    "wjets",
    "nW",
    "m_w",
    "www",
    "w1_pt",
    "pt_weighted_eta",
    "w_phi",
]


@pytest.mark.parametrize("name", WEIGHT_NAMES)
def test_a_column_named_like_a_weight_is_not_ignored(tmp_path: Path, name: str) -> None:
    columns: dict[str, Any] = {"x": np.arange(4.0), name: np.array([1.0, -1.0, 1.0, 2.0])}
    np.savez(tmp_path / "a.npz", **columns)
    sentence = rf"Got no weight.*{name!r}.*weight={name!r}.*weight='1'"
    for features in (None, ["x"]):
        with pytest.raises(InvalidInputError, match=sentence):
            read_sample(tmp_path / "a.npz", features=features)
    assert read_sample(tmp_path / "a.npz", features=["x"], weight="1").weights.tolist() == [1.0] * 4
    assert read_sample(tmp_path / "a.npz", features=["x"], weight=name).sum_of_weights == 3.0


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_names_are_no_weights(tmp_path: Path, name: str) -> None:
    columns: dict[str, Any] = {"x": np.arange(4.0), name: np.ones(4)}
    np.savez(tmp_path / "a.npz", **columns)
    assert len(read_sample(tmp_path / "a.npz", features=["x"])) == 4


def test_lists_and_text_are_no_weights(tmp_path: Path) -> None:
    table = {"x": [1.0, 2.0], "weights": [[1.0, 2.0], [3.0]], "weight": ["up", "down"]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    assert len(read_sample(tmp_path / "a.parquet", features=["x"])) == 2


ODD: dict[str, Any] = {
    "nested": pa.array([[[1.0], [2.0, 3.0]], [[4.0]]]),
    "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "record": pa.array([{"a": 1}, {"a": 2}]),
    "bytes": pa.array([b"\xff", b"ab"]),
    "decimal": pa.array([1, 2], pa.decimal128(5)),
    "date": pa.array([1, 2], pa.date32()),
    "nothing": pa.nulls(2),
}


@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
@pytest.mark.parametrize("name", ODD)
def test_columns_of_any_type_are_copied_or_left_out_with_a_warning(
    tmp_path: Path, name: str, suffix: str
) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0], name: ODD[name]}), tmp_path / "in.parquet")
    _copied(tmp_path / "in.parquet", tmp_path / f"out{suffix}", name)


@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
def test_bytes_are_copied_or_left_out_with_a_warning(tmp_path: Path, suffix: str) -> None:
    np.savez(tmp_path / "in.npz", x=np.arange(3.0), bytes=np.array([b"a", b"\xff", b""]))
    _copied(tmp_path / "in.npz", tmp_path / f"out{suffix}", "bytes")


@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
def test_vectors_of_vectors_in_root_are_copied_or_left_out_with_a_warning(
    tmp_path: Path, suffix: str
) -> None:
    with uproot.recreate(tmp_path / "in.root") as file:
        file.mkrntuple("events", {"x": np.arange(2.0), "nested": ak.Array([[[1.0]], [[2.0], []]])})
    _copied(tmp_path / "in.root", tmp_path / f"out{suffix}", "nested")


def _copied(source: Path, output: Path, name: str) -> None:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = open_table(source)
        with create_table(output, inputs=[table]) as writer:
            for chunk in table.chunks():
                writer.append(chunk)
    said = [str(one.message) for one in caught if issubclass(one.category, OmittedColumnWarning)]
    assert len(caught) == len(said)
    assert (name in open_table(output).columns) != any(repr(name) in message for message in said)
    assert open_table(output).n_events == table.n_events
