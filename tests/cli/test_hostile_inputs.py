"""Hostile inputs: exit code 2, one sentence, no traceback, and nothing damaged or left behind."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot
from typer.testing import CliRunner

from quasiratio.cli.main import app

Columns = Callable[[int, int], dict[str, Any]]
Prepare = Callable[[Path, Columns], object]


def changed(**changes: Any) -> Prepare:
    """Write bad.npz: a good sample with some columns replaced, or removed where they are `None`."""

    def prepare(d: Path, columns: Columns) -> None:
        new = columns(200, 0) | {
            name: value(200) if callable(value) else value for name, value in changes.items()
        }
        np.savez(d / "bad.npz", **{name: values for name, values in new.items() if values is not None})

    return prepare


def text(name: str, content: str | bytes) -> Prepare:
    return lambda d, _: (d / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def trees(**numbers: int) -> Prepare:
    def prepare(d: Path, columns: Columns) -> None:
        with uproot.recreate(d / "bad.root") as file:
            for tree, n_events in numbers.items():
                lists = ak.Array([[1.0, 2.0]] * n_events)
                file.mktree(tree, {"pt": "f8", "eta": "f4", "event": "i8", "w": "f8", "ws": "var * float64"})
                if n_events:
                    file[tree].extend({**columns(n_events, 0), "ws": lists})

    return prepare


def cut(prepare: Prepare | None, name: str, new_name: str) -> Prepare:
    """Keep the first part of a file."""

    def truncate(d: Path, columns: Columns) -> None:
        if prepare is not None:
            prepare(d, columns)
        content = (d / name).read_bytes()
        (d / new_name).write_bytes(content[: int(0.6 * len(content))])

    return truncate


def edited(change: Callable[[dict[str, Any]], object]) -> Prepare:
    def prepare(d: Path, _: Columns) -> None:
        document = json.loads((d / "model" / "model.json").read_text())
        change(document)
        (d / "model" / "model.json").write_text(json.dumps(document))

    return prepare


def parquet(d: Path, columns: Columns) -> None:
    pq.write_table(pa.table(columns(2000, 0)), d / "bad.parquet")


def foreign_lock(d: Path, _: Columns) -> None:
    (d / "new.partial").mkdir()
    (d / "new.partial" / "lock").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))


def huge_weights(d: Path, _: Columns) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    (d / "model" / "weights.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)


def thesis(d: Path, _: Columns) -> None:
    (d / "thesis").mkdir()
    (d / "thesis" / "thesis.tex").write_text("years of work")


SAMPLES = "reference: reference.npz\ntarget: target.npz\noutput: new\n"
BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
FIT = ["fit", "reference.npz", "target.npz", "--weight", "w", "--steps", "5", "-o", "new"]
BAD_FIT = ["fit", "bad.npz", "target.npz", "--weight", "w", "--steps", "5", "-o", "new"]
APPLY = ["apply", "model", "reference.npz", "-o", "out.npz"]
BAD_APPLY = ["apply", "model", "bad.npz", "-o", "out.npz"]
EVALUATE = ["evaluate", "model", "reference.npz", "target.npz", "-o", "report"]
POSITIVE = ["positive", "reference.npz", "--weight", "w", "--steps", "5", "-o", "out.npz"]


@dataclass(frozen=True)
class Case:
    name: str
    arguments: list[str]
    sentence: str
    prepare: Prepare | None = None


CASES = [
    # files
    Case("truncated ROOT", ["inspect", "cut.root"], "truncated", cut(trees(events=5000), "bad.root", "cut.root")),
    Case("truncated ROOT in fit", ["fit", "cut.root", "target.npz", "-o", "new"], "truncated",
         cut(trees(events=5000), "bad.root", "cut.root")),
    Case("text as ROOT", ["inspect", "bad.root"], "not a ROOT file", text("bad.root", "pt, eta")),
    Case("wrong tree", ["inspect", "bad.root:evnts"], "expected 'events'", trees(events=10)),
    Case("several trees", ["inspect", "bad.root"], "expected one to be named", trees(nominal=10, shifted=10)),
    Case("empty tree", ["inspect", "bad.root"], "has no events", trees(events=0)),
    Case("empty tree in apply", ["apply", "model", "bad.root", "-o", "out.root"], "no events", trees(events=0)),
    Case("truncated parquet", ["inspect", "cut.parquet"], "Parquet", cut(parquet, "bad.parquet", "cut.parquet")),
    Case("truncated npz", ["inspect", "cut.npz"], "NPZ", cut(None, "reference.npz", "cut.npz")),
    Case("empty file", ["inspect", "bad.npz"], "cannot be read as NPZ", text("bad.npz", b"")),
    Case("pickled objects", ["inspect", "bad.npz"], "bad.npz",
         lambda d, _: np.savez(d / "bad.npz", pt=np.array([{1: 2}, None], dtype=object))),
    Case("unknown suffix", ["inspect", "bad.csv"], "suffix '.csv'", text("bad.csv", "pt\n1\n")),
    Case("no such file", ["inspect", "nothing.root"], "no such file"),
    Case("a directory", ["inspect", "model"], "Got the directory 'model'"),
    Case("an address", ["inspect", "root://server//file.root"], "needs a package that is not installed"),
    Case("a null character", ["inspect", "a\0.root"], "null character"),
    Case("the same file twice", ["inspect", "reference.npz,reference.npz"], "twice"),
    Case("nothing in common", ["fit", "reference.npz", "bad.npz", "--weight", "1", "-o", "new"], "share no column",
         lambda d, _: np.savez(d / "bad.npz", other=np.arange(5.0))),
    # weights, features, selections
    Case("NaN weights", BAD_FIT, "3 weights that are NaN", changed(w=lambda n: np.where(np.arange(n) < 3, np.nan, 1))),
    Case("NaN features", BAD_FIT, "'pt' (3 events)", changed(pt=lambda n: np.where(np.arange(n) < 3, np.nan, 1))),
    Case("features beyond float32", BAD_FIT, "beyond float32 in 'pt'", changed(pt=lambda n: np.where(np.arange(n) < 3, 1e300, 1))),
    Case("all weights negative", BAD_FIT, "reference sum to -200", changed(w=lambda n: -np.ones(n))),
    Case("all weights negative, positive", [*POSITIVE[:1], "bad.npz", *POSITIVE[2:]], "sum to -200",
         changed(w=lambda n: -np.ones(n))),
    Case("weights that sum to zero", ["inspect", "bad.npz", "--weight", "w"], "sum to 0",
         changed(w=lambda n: np.tile([1.0, -1.0], n // 2))),
    Case("one event", BAD_FIT, "expected", lambda d, columns: np.savez(d / "bad.npz", **columns(1, 0))),
    Case("code as a weight", [*FIT[:4], "__import__('os').system('touch pwned')", *FIT[5:]], "__import__"),
    Case("attributes as a weight", [*FIT[:4], "w.__class__.__base__", *FIT[5:]], "w.__class__"),
    Case("a power as a weight", [*FIT[:4], "9**9**9**9**9**9", *FIT[5:]], "expected"),
    Case("unknown weight", [*FIT[:4], "weigth", *FIT[5:]], "'weigth'"),
    Case("a jagged weight", ["inspect", "bad.root", "--weight", "ws"], "'ws[0]'", trees(events=20)),
    Case("unfinished weight", [*FIT[:4], "w *", *FIT[5:]], "'w *'"),
    Case("selection of nothing", [*FIT, "--selection", "pt > 1e9"], "keeps none"),
    Case("selection that is a number", [*FIT, "--selection", "pt"], "expected a condition"),
    Case("unknown feature", [*FIT, "--features", "pt,etaa"], "the nearest is 'eta'"),
    Case("pattern without a match", [*FIT, "--features", "jet_*"], "matches no numeric column"),
    Case("text as a feature", [*BAD_FIT, "--features", "pt"], "holds text", changed(pt=lambda n: np.full(n, "high"))),
    # options and configurations
    Case("unknown option", ["fit", "--wieght", "w"], "the nearest is '--weight'"),
    Case("unknown command", ["aply"], "'aply'"),
    Case("no arguments", ["apply"], "Missing"),
    Case("one sample", ["fit", "reference.npz", "-o", "new"], "expected REF and TARGET"),
    Case("no output", FIT[:-2], "Got no -o OUTPUT"),
    Case("a number that is none", [*FIT, "--members", "many"], "--members"),
    Case("a number out of range", [*FIT, "--members", "0"], "Got --members 0; expected"),
    Case("unknown method", [*FIT, "--method", "magic"], "expected one of sign-resolved"),
    Case("a loss without its method", [*FIT, "--loss", "lsif"], "expected the method 'direct'"),
    Case("unknown device", [*FIT, "--device", "abacus"], "abacus"),
    Case("config: unknown key", ["fit", "bad.yaml"], "'membrs' in line 4", text("bad.yaml", SAMPLES + "membrs: 3")),
    Case("config: wrong type", ["fit", "bad.yaml"], "line 4", text("bad.yaml", SAMPLES + "members: many")),
    Case("config: syntax", ["fit", "bad.yaml"], "line 4", text("bad.yaml", SAMPLES + "members: [")),
    Case("config: bomb", ["fit", "bad.yaml"], "an alias (*)", text("bad.yaml", BOMB)),
    Case("config: code", ["fit", "bad.yaml"], "a tag (!)",
         text("bad.yaml", SAMPLES + "weight: !!python/object/apply:os.system [touch pwned]")),
    Case("config: binary", ["fit", "bad.yaml"], "UTF-8", text("bad.yaml", b"\x80\xff\x00")),
    Case("config: no such file", ["fit", "bad.yaml"], "cannot be read"),
    # outputs
    Case("output below a file", [*FIT[:-1], "taken/new"], "'taken' is a file", text("taken", "mine")),
    Case("output nobody can write", [*FIT[:-1], "/proc/new"], "cannot be written"),
    Case("output over a link to nowhere", [*FIT[:-1], "nowhere"], "'nowhere' is a link that leads nowhere",
         lambda d, _: (d / "nowhere").symlink_to("missing")),
    Case("report below a file", [*EVALUATE[:-1], "taken/new"], "'taken' is a file", text("taken", "mine")),
    Case("output among other files", [*FIT[:-1], "thesis", "--force"], "something else than a model", thesis),
    Case("output that is a model", [*FIT[:-1], "model"], "--force"),
    Case("a fit that is running", FIT, f"process {os.getpid()}", foreign_lock),
    Case("nothing but a directory", [*FIT[:-1], ".."], "expected the name of a directory"),
    Case("output of an unknown suffix", [*APPLY[:-1], "out.csv"], "suffix '.csv'"),
    Case("output in no directory", [*APPLY[:-1], "none/out.npz"], "no directory 'none'"),
    Case("output that exists", APPLY, "--force", text("out.npz", "mine")),
    Case("output that is the input", [*APPLY[:-1], "reference.npz", "--force"], "as output and as input"),
    Case("a column that exists", BAD_APPLY, "'ratio'", changed(ratio=np.ones(200))),
    Case("two columns of one name", [*APPLY, "--ratio-name", "a", "--weight-name", "a"], "are the same"),
    Case("unknown compression", [*APPLY, "--compression", "zip"], "compression='zip'"),
    Case("a report into the model", [*EVALUATE[:-1], "model"], "which is a model"),
    Case("bins of nothing", [*EVALUATE, "--bins", "0"], "Got --bins 0"),
    Case("code as an observable", [*EVALUATE, "--observables", "open('pwned', 'w')"], "open"),
    Case("an observable that is infinite", [*EVALUATE, "--observables", "1 / (w - w)"], "infinite"),
    # models
    Case("no model", ["apply", "nothing", "reference.npz", "-o", "out.npz"], "'nothing'"),
    Case("a model edited by hand", APPLY, "edited", edited(lambda m: m["estimator"].update(seed=12345))),
    Case("a newer model", APPLY, "newer", edited(lambda m: m.update(format_version=999))),
    Case("a model without weights", APPLY, "weights.safetensors",
         lambda d, _: (d / "model" / "weights.safetensors").unlink()),
    Case("a model with half its weights", APPLY, "weights.safetensors",
         cut(None, "model/weights.safetensors", "model/weights.safetensors")),
    Case("a model with huge weights", EVALUATE, "weights.safetensors", huge_weights),
    Case("a model without json", ["models", "show", "model"], "model.json", text("model/model.json", "")),
    Case("export of an edited model", ["export", "model", "-o", "m.onnx"], "edited",
         edited(lambda m: m["estimator"].update(seed=12345))),
    Case("export to nowhere", ["export", "model", "-o", "none/m.onnx"], "none"),
    Case("a feature is missing", BAD_APPLY, "'etta'", changed(eta=None, etta=np.zeros(200))),
    Case("a feature of another type", BAD_APPLY, "as integer", changed(pt=np.arange(200))),
    Case("a feature of text", BAD_APPLY, "'pt'", changed(pt=np.full(200, "high"))),
    Case("NaN in apply", BAD_APPLY, "'pt' (200 events)", changed(pt=np.full(200, np.nan))),
    Case("refuse with a wrong word", [*POSITIVE, "--on-negative-density", "ignore"], "'refuse'"),
]  # fmt: skip


def snapshot(directory: Path) -> dict[str, str]:
    """Return every file below a directory with a hash of its content."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "/"
        for path in sorted(directory.rglob("*"))
    }


def assert_one_sentence(code: int, out: str, err: str, sentence: str) -> None:
    assert code == 2, err
    lines = [line for line in err.splitlines() if not line.startswith("Warning: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("Error: ")
    assert sentence in lines[0]
    assert "Traceback" not in err + out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_sentence_and_nothing_damaged(workspace: Path, columns: Columns, case: Case) -> None:
    if case.prepare is not None:
        case.prepare(workspace, columns)
    before = snapshot(workspace)
    result = CliRunner().invoke(app, case.arguments, catch_exceptions=False)
    assert_one_sentence(result.exit_code, result.stdout, result.stderr, case.sentence)
    assert snapshot(workspace) == before


def test_there_are_at_least_thirty() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 30


@pytest.mark.parametrize("name", ["wrong tree", "config: bomb", "a model edited by hand"])
def test_a_process_of_its_own_says_the_same(workspace: Path, columns: Columns, name: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    assert case.prepare is not None
    case.prepare(workspace, columns)
    before = snapshot(workspace)
    script = Path(sys.executable).with_name("quasiratio")
    done = subprocess.run([script, *case.arguments], capture_output=True, text=True, check=False)
    assert_one_sentence(done.returncode, done.stdout, done.stderr, case.sentence)
    assert snapshot(workspace) == before


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """Mount a megabyte, most of which is taken."""
    disk = workspace / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        (disk / "full").write_bytes(b"0" * (1024 - 12) * 1024)
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize(
    "arguments",
    [
        [*FIT[:-1], "disk/new", "--quiet"],
        [*APPLY[:-1], "disk/out.npz"],
        [*APPLY[:-1], "disk/out.root"],
        [*APPLY[:-1], "disk/out.parquet"],
        [*EVALUATE[:-1], "disk/report"],
        [*POSITIVE[:-1], "disk/out.npz", "--quiet"],
        ["export", "model", "-o", "disk/m.onnx"],
    ],
    ids=lambda arguments: " ".join(
        a for a in arguments if a in ("fit", "apply", "evaluate", "positive", "export") or "disk" in a
    ),
)
def test_a_full_disk(workspace: Path, arguments: list[str]) -> None:
    before = snapshot(workspace)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert_one_sentence(result.exit_code, result.stdout, result.stderr, "disk")
    assert snapshot(workspace) == before


@pytest.mark.parametrize(
    "arguments", [[*FIT[:-1], "disk/new"], [*APPLY[:-1], "disk/out.npz"], [*EVALUATE[:-1], "disk/r"]]
)
def test_a_disk_that_is_read_only(workspace: Path, small_disk: Path, arguments: list[str]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)  # noqa: S607
    before = snapshot(workspace)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert_one_sentence(result.exit_code, result.stdout, result.stderr, "disk")
    assert snapshot(workspace) == before


@pytest.mark.usefixtures("workspace")
def test_names_of_any_kind_pass_through_everything(columns: Columns) -> None:
    names = {"pt": "p\N{SUBSCRIPT ONE} <b>&</b>", "eta": r"$\eta$ ../{x}", "w": "w \N{EURO SIGN}"}
    for seed, sample in enumerate(("reference", "target")):
        given = columns(600, seed)
        np.savez(f"odd-{sample}.npz", **{names.get(name, name): values for name, values in given.items()})
    pair = ["odd-reference.npz", "odd-target.npz"]
    weight = ["--weight", f"`{names['w']}`"]
    runner = CliRunner()
    for arguments in (
        ["inspect", *pair, *weight],
        ["fit", *pair, *weight, "--steps", "20", "-o", "odd"],
        ["apply", "odd", pair[0], "-o", "odd.root"],
        ["evaluate", "odd", *pair, "-o", "odd-report"],
        ["models", "show", "odd"],
        ["export", "odd", "-o", "odd.onnx"],
    ):
        result = runner.invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        if arguments[0] in ("inspect", "fit", "models"):
            assert names["pt"] in result.stdout
    with uproot.open("odd.root") as file:
        assert names["pt"] in file["events"]
    assert sorted(path.name for path in Path("odd-report").iterdir()) == [
        ".quasiratio.json",
        "closure-eta_.._x.pdf",
        "closure-eta_.._x.png",
        "closure-p1_b_b.pdf",
        "closure-p1_b_b.png",
        "report.html",
        "results.json",
    ]


@pytest.mark.usefixtures("workspace")
def test_a_name_cannot_command_the_terminal() -> None:
    odd: dict[str, Any] = {"\x1b[2Jx\ny": np.arange(200.0)}
    np.savez("odd.npz", **odd)
    result = CliRunner().invoke(app, ["inspect", "odd.npz"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b[2Jx y" in result.stdout


@pytest.mark.usefixtures("workspace")
def test_no_negative_weights_at_all_is_fine(columns: Columns) -> None:
    for seed, name in enumerate(("positive-reference", "positive-target")):
        np.savez(f"{name}.npz", **(columns(500, seed) | {"w": np.ones(500)}))
    runner = CliRunner()
    pair = ["positive-reference.npz", "positive-target.npz"]
    inspected = runner.invoke(app, ["inspect", *pair, "--weight", "w"], catch_exceptions=False)
    assert "--method direct --loss bce, because no weight is negative" in inspected.stdout
    options = ["--weight", "w", "--steps", "10", "-o", "new", "--method", "direct", "--loss", "bce"]
    assert runner.invoke(app, ["fit", *pair, *options], catch_exceptions=False).exit_code == 0
    made = runner.invoke(app, ["positive", pair[0], "--weight", "w", "-o", "new.npz"], catch_exceptions=False)
    assert made.exit_code == 0
    assert "Gain 1.00 without the error of the training, 1.00 with it" in " ".join(made.stdout.split())
