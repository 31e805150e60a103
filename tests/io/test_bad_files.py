"""Files and requests that cannot be served: one sentence each, which names what was given and how to go on."""

import sys
import zipfile

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.io import create_table, open_table, read_metadata, read_sample


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A directory of good and bad files."""
    here = tmp_path_factory.mktemp("bad")
    x = np.arange(20_000, dtype="f4")
    with uproot.recreate(here / "good.root") as file:
        tree = file.mktree("t", {"pt": "f4", "jets": "var * float32", "label": "string", "w": "f8"})
        jets = ak.unflatten(x, np.where(np.arange(20_000) % 2, 2, 0))
        tree.extend(
            {"pt": x, "jets": jets, "label": ak.Array(["a"] * 20_000), "w": np.where(x < 3, np.nan, 1.0)}
        )
    with uproot.recreate(here / "two.root") as file:
        for name in ("a", "b"):
            file.mktree(name, {"x": "f4"}).extend({"x": x})
    with uproot.recreate(here / "none.root") as file:
        file["note"] = "no trees here"
    with uproot.recreate(here / "empty.root") as file:
        file.mktree("t", {"pt": "f4"})
    good = (here / "good.root").read_bytes()
    (here / "cut.root").write_bytes(good[: len(good) // 3])
    (here / "head.root").write_bytes(good[:50])
    (here / "zero.root").write_bytes(b"")
    (here / "text.root").write_text("<html>404 Not Found</html>")
    pq.write_table(pa.table({"pt": x, "n": [1, None] * 10_000}), here / "good.parquet")
    whole = (here / "good.parquet").read_bytes()
    (here / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (here / "text.parquet").write_text("pt,eta\n1,2\n")
    np.savez(
        here / "good.npz", pt=x, eta=x.astype("f8"), met=np.full(20_000, np.inf), tag=np.full(20_000, "a")
    )
    np.savez(here / "other.npz", pt=x, eta=x)
    np.savez(here / "fewer.npz", pt=x)
    np.savez(here / "unequal.npz", a=np.ones(3), b=np.ones(4))
    np.savez(here / "matrix.npz", a=np.ones((3, 2)))
    np.savez(here / "scalar.npz", a=np.float64(3))
    np.savez(here / "pickle.npz", a=np.array([{}, []], dtype=object))
    np.savez(here / "records.npz", a=np.zeros(2, dtype=[("x", "f4")]))
    np.savez(here / "nothing.npz")
    np.save(here / "array.npy", x)
    (here / "array.npy").rename(here / "array.npz")
    packed = (here / "good.npz").read_bytes()
    (here / "cut.npz").write_bytes(packed[: len(packed) // 2])
    with zipfile.ZipFile(here / "liar.npz", "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
        archive.writestr(
            "x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"12345678"
        )
    with zipfile.ZipFile(here / "foreign.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    (here / "data.csv").write_text("pt\n1\n")
    (here / "folder.root").mkdir()
    return here


def sample(name, **options):
    return lambda here: read_sample(f"{here}/{name}", **{"weight": "1", **options})


def opened(name):
    return lambda here: open_table(f"{here}/{name}")


CASES = {
    "missing file": (opened("absent.root"), "no such file", "Check the path"),
    "missing file with tree": (opened("absent.root:t"), "no such file", "Check the path"),
    "directory": (opened("folder.root"), "the directory", "Name a file in it"),
    "pattern without match": (opened("absent*.root:t"), "matches no file", "Check the directory"),
    "unknown suffix": (opened("data.csv"), "suffix '.csv'", "Rename or convert"),
    "no suffix at all": (opened("."), "the directory", "Name a file in it"),
    "address": (
        lambda _: open_table("eos://host//a.root:t"),
        "the protocol 'eos', which fsspec does not know",
        "https, s3, root or file",
    ),
    "null character": (lambda _: open_table("a\0.root"), "null character", "expected the path"),
    "empty list": (lambda _: open_table([]), "empty list of files", "at least one"),
    "file named twice": (
        lambda here: open_table([here / "good.npz", here / "good.npz"]),
        "good.npz' twice",
        "count double",
    ),
    "truncated ROOT": (
        sample("cut.root", features=["pt"]),
        "cannot be read as ROOT",
        "copy or write it again",
    ),
    "ROOT header only": (opened("head.root"), "cannot be read as ROOT", "copy or write it again"),
    "ROOT of no bytes": (opened("zero.root"), "not a ROOT file", "Check what wrote it"),
    "HTML called ROOT": (opened("text.root"), "not a ROOT file", "Check what wrote it"),
    "missing tree": (opened("good.root:nope"), "tree 'nope'", "good.root:t'"),
    "no tree after the colon": (opened("good.root:"), "without a tree after the colon", "or no colon"),
    "several trees": (opened("two.root"), "with the trees 'a', 'b'", "two.root:a'"),
    "no trees": (opened("none.root"), "contains no tree", "Check what wrote it"),
    "no events": (sample("empty.root"), "which has no events", "Check what wrote it"),
    "truncated Parquet": (opened("cut.parquet"), "cannot be read as Parquet", "copy or write it again"),
    "CSV called Parquet": (opened("text.parquet"), "cannot be read as Parquet", "copy or write it again"),
    "truncated NPZ": (opened("cut.npz"), "cannot be read as NPZ", "copy or write it again"),
    "NPY called NPZ": (opened("array.npz"), "cannot be read as NPZ", "copy or write it again"),
    "NPZ that claims a petabyte": (opened("liar.npz"), "'x' ends early", "copy or write it again"),
    "NPZ of unequal lengths": (opened("unequal.npz"), "'a' (3), 'b' (4)", "Write the file again"),
    "NPZ with a matrix": (opened("matrix.npz"), "'a' of shape (3, 2)", "separate arrays"),
    "NPZ with a scalar": (opened("scalar.npz"), "'a' of shape ()", "separate arrays"),
    "NPZ with objects": (opened("pickle.npz"), "'a' of type object", "pickle"),
    "NPZ with records": (opened("records.npz"), "'a' of type", "array of numbers"),
    "NPZ without arrays": (opened("nothing.npz"), "no columns", "Write the file again"),
    "NPZ with other members": (opened("foreign.npz"), "the member 'readme.txt'", "numpy.savez"),
    "files of other columns": (
        lambda here: open_table([here / "good.npz", here / "fewer.npz"]),
        "'eta' in",
        "Leave that file out",
    ),
    "files of other types": (
        lambda here: open_table([here / "other.npz", here / "good.npz"]),
        "'eta' as float (float32)",
        "Leave that file out",
    ),
    "unknown feature": (sample("good.npz", features=["pf"]), "'pf', which does not exist", "'pt'"),
    "no feature": (sample("good.npz", features=[]), "empty list of features", "at least one name"),
    "unknown column of the weight": (
        sample("good.npz", weight="et * 2"),
        "'et', which does not exist",
        "'eta'",
    ),
    "unknown column of the selection": (sample("good.npz", selection="Eta > 2"), "'Eta'", "'eta'"),
    "text feature": (sample("good.npz", features=["tag"]), "'tag', which holds text", "encode"),
    "text weight": (sample("good.npz", weight="tag"), "'tag', which holds text", "encode"),
    "jagged feature": (sample("good.root", features=["jets"]), "jagged column 'jets'", "'jets[0]'"),
    "jagged weight": (sample("good.root", weight="jets*w"), "jagged column 'jets'", "'jets[0]'"),
    "element of a plain column": (sample("good.root", features=["pt[0]"]), "'pt[0]'", "Write 'pt'"),
    "element of nothing": (sample("good.root", features=["jet[0]"]), "'jet', which does not exist", "'jets'"),
    "element too far": (
        sample("good.root", features=["jets[1]"]),
        "10000 of 20000 events",
        "select the events",
    ),
    "infinite feature": (
        sample("good.npz", features=["pt", "met"]),
        "'met' (20000 events)",
        "Remove these events",
    ),
    "NaN weight": (sample("good.root", features=["pt"], weight="w"), "3 weights", "Remove these events"),
    "missing integers": (sample("good.parquet", features=["n"]), "10000 missing values", "Fill or drop"),
    "selection of nothing": (
        sample("good.npz", features=["pt"], selection="pt < 0"),
        "keeps none of the 20000 events",
        "Loosen it",
    ),
    "selection that is a number": (
        sample("good.npz", features=["pt"], selection="pt"),
        "is a number",
        "Compare it",
    ),
    "metadata of several files": (
        lambda here: read_metadata([here / "two.root:a", here / "two.root:b"]),
        "2 files",
        "expected one",
    ),
    "output in no directory": (
        lambda here: create_table(here / "absent" / "a.root").__enter__(),
        "No such file or directory",
        "Choose another output",
    ),
    "output in a read-only directory": (
        lambda _: create_table("/proc/a.root").__enter__(),
        "'/proc/a.root' to write, which failed",
        "Choose another output",
    ),
    "output under a file": (
        lambda here: create_table(here / "data.csv" / "a.npz").__enter__(),
        "Not a directory",
        "Choose another output",
    ),
    "output of unknown suffix": (
        lambda here: create_table(here / "a.h5"),
        "suffix '.h5'",
        "Rename or convert",
    ),
    "output is a directory": (
        lambda here: create_table(here / "folder.root"),
        "the directory",
        "Choose another",
    ),
    "output is an input": (
        lambda here: create_table(here / "good.npz", inputs=[open_table(here / "good.npz")]),
        "as output and as input",
        "Choose another output",
    ),
    "metadata that is no JSON": (
        lambda here: create_table(here / "a.npz", metadata={"model": object()}),
        "cannot be written as JSON",
        "expected dicts",
    ),
    "tree without a name": (
        lambda here: create_table(here / "a.root", tree="/"),
        "the tree name '/'",
        "'events'",
    ),
    "unknown compression": (
        lambda here: create_table(here / "a.npz", compression="zstd"),
        "compression='zstd' for .npz",
        "'zlib'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence(files, case):
    action, given, fix = CASES[case]
    before = sorted(path.name for path in files.iterdir())
    with pytest.raises(InvalidInputError) as raised:
        action(files)
    message = str(raised.value)
    assert given in message
    assert fix in message
    assert message.startswith("Got ")
    assert "\n" not in message
    assert len(message) < 500
    assert sorted(path.name for path in files.iterdir()) == before


def test_an_empty_tree_can_be_opened_and_has_no_chunks(files):
    table = open_table(files / "empty.root")
    assert (table.n_events, list(table.chunks())) == (0, [])


def test_names_that_are_not_utf8_can_be_shown(tmp_path):
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mktree("t", {"caf\udce9": "f4"}).extend({"caf\udce9": np.ones(2, "f4")})
    table = open_table(tmp_path / "a.root")
    assert list(table.columns) == ["caf\udce9"]
    with pytest.raises(InvalidInputError) as raised:
        read_sample(table, features=["cafe"])
    assert str(raised.value).encode()  # can be printed


@pytest.mark.parametrize(
    ("module", "extra", "suffix"),
    [("uproot", "root", ".root"), ("awkward", "root", ".root"), ("pyarrow.parquet", "parquet", ".parquet")],
)
def test_a_missing_extra_is_named(files, tmp_path, monkeypatch, module, extra, suffix):
    monkeypatch.setitem(sys.modules, module, None)  # what Python does for a module that cannot be imported
    with pytest.raises(MissingExtraError, match=rf"pip install 'quasiratio\[{extra}\]'"):
        open_table(files / f"good{suffix}")
    if module != "awkward":
        with pytest.raises(MissingExtraError, match=extra), create_table(tmp_path / f"a{suffix}"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_cut_while_it_is_read_is_one_sentence(tmp_path):
    """The header is whole, the events are not."""
    for suffix in (".root", ".parquet", ".npz"):
        path = tmp_path / f"a{suffix}"
        with create_table(path, compression=None) as writer:
            for _ in range(3):
                writer.append({"x": np.random.default_rng(0).random(50_000)})
        table = open_table(path)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InvalidInputError, match=r"cannot be read as|which is not"):
            list(table.chunks())
