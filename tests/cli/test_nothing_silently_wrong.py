"""Every case in which a command did something else than was asked, crashed or hung: one sentence, nothing lost."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot
from typer.testing import CliRunner

from quasiratio.cli.main import app

Prepare = Callable[[Path], object]
SHORT = ["--steps", "5"]
FIT = ["fit", "reference.npz", "target.npz", "--weight", "w", *SHORT, "-o", "new"]
EVALUATE = ["evaluate", "model", "reference.npz", "target.npz", "-o", "report"]
APPLY = ["apply", "model", "reference.npz", "-o", "out.npz"]
POSITIVE = ["positive", "reference.npz", "--weight", "w", *SHORT, "-o", "out.npz"]
GENERATE = ["generate", "gg-hh", "--parton-level", "--events", "100", "-o", "out.npz"]
STUDY = ["study", "loss-landscapes", "--preset", "smoke", "-o", "study"]
DEMO = ["demo", "--events", "1000", "--steps", "1", "-o", "demo"]
EXPORT = ["export", "model", "-o", "model.onnx"]
LONG = "n" * 250


def text(name: str, content: str = "mine") -> Prepare:
    def prepare(here: Path) -> None:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(content)

    return prepare


def replaced(arguments: list[str], output: str) -> list[str]:
    return [*arguments[: arguments.index("-o") + 1], output]


def cycles(here: Path) -> None:
    data = dict(np.load(here / "reference.npz"))
    with uproot.recreate(here / "two.root") as file:
        for n_events in (300, 200):
            tree = file.mktree("events", {name: values.dtype for name, values in data.items()})
            tree.extend({name: values[:n_events] for name, values in data.items()})


def bomb(here: Path) -> None:
    import struct
    import zipfile

    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (150000000,), }".ljust(117) + "\n"
    with zipfile.ZipFile(here / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("pt", "eta", "w"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
                for _ in range(120 if name == "pt" else 0):
                    member.write(bytes(10_000_000))


@dataclass(frozen=True)
class Case:
    name: str
    arguments: list[str]
    sentence: str
    prepare: Prepare | None = None


CASES = [
    # outputs: one rule for all commands
    Case("the state of a fit among files of the user", FIT, "'thesis.tex'", text("new.partial/thesis.tex")),
    *[
        Case(f"{arguments[0]} to nothing", replaced(arguments, ""), "Got an empty output|Got --output ")
        for arguments in (FIT, EVALUATE, APPLY, POSITIVE, GENERATE, STUDY, DEMO, EXPORT)
    ],
    *[
        Case(f"{arguments[0]} to {place}", replaced(arguments, place), "expected the name of a directory")
        for arguments in (FIT, EVALUATE, STUDY, DEMO)
        for place in ("/", ".", "..", "report/..")
    ],
    *[
        Case(f"{arguments[0]} among other files", replaced(arguments, "thesis"), "--force|something else", text("thesis/t.tex"))
        for arguments in (FIT, EVALUATE, STUDY, DEMO)
    ],
    Case("evaluate over results", EVALUATE, "'results.json'.*--force", text("report/results.json")),
    Case("evaluate over figures", EVALUATE, "'closure-pt.pdf'.*--force", text("report/closure-pt.pdf")),
    *[
        Case(f"{arguments[0]} over a file", replaced(arguments, name), "which exists.*--force", text(name))
        for arguments, name in ((APPLY, "a.npz"), (POSITIVE, "a.npz"), (GENERATE, "a.npz"), (EXPORT, "a.onnx"))
    ],
    *[
        Case(f"{arguments[0]} to a long name{suffix}", replaced(arguments, LONG + suffix), "name of 25[0-9] bytes")
        for arguments, suffix in (
            (FIT, ""), (EVALUATE, ""), (APPLY, ".npz"), (APPLY, ".root"), (POSITIVE, ".npz"), (GENERATE, ".npz"),
            (STUDY, ""), (DEMO, ""), (EXPORT, ".onnx"),
        )
    ],
    Case("positive over its input", [*replaced(POSITIVE, "reference.npz"), "--force", "--steps", "999999"], "as output and as input"),
    Case("positive to a column that exists", [*POSITIVE, "--weight-name", "pt", "--steps", "999999"], "'pt'"),
    Case("positive to an impossible tree", [*replaced(POSITIVE, "a.root:a;1"), "--steps", "999999"], "tree name"),
    # files
    Case("a cycle that is not there", ["apply", "model", "two.root:events;7", "-o", "out.npz"], "'events;1', 'events;2'", cycles),
    Case("a bomb", ["inspect", "bomb.npz", "--weight", "w"], "--allow-large", bomb),
    *[
        Case(f"{name} as input", ["inspect", "pipe.npz", "--weight", "w"], "no regular file", prepare)
        for name, prepare in (
            ("a pipe", lambda here: os.mkfifo(here / "pipe.npz")),
            ("a device", lambda here: (here / "pipe.npz").symlink_to("/dev/zero")),
        )
    ],
    *[
        Case(f"a name of {len(name)} letters as input", ["inspect", name, "--weight", "w"], "no such file")
        for name in ("a" * 5000 + ".npz", "a" * 2500 + ".npz,target.npz")
    ],
    Case("a pipe as configuration", ["fit", "a.yaml"], "no regular file", lambda here: os.mkfifo(here / "a.yaml")),
    Case("a device as configuration", ["fit", "a.yaml"], "no regular file", lambda here: (here / "a.yaml").symlink_to("/dev/zero")),
    # weights
    *[
        Case(f"{command[0]} without a weight", [*command, "-o", "out.npz"] if command[0] == "apply" else command, "--weight w, or --weight 1")
        for command in (
            ["inspect", "reference.npz", "target.npz"],
            ["fit", "reference.npz", "target.npz", "-o", "new"],
        )
    ],
    *[
        Case(f"{command[0]} with weights of {scale}", [*command, "--weight", f"w*{scale}"], f"w\\*{scale}' whose largest")
        for scale in ("1e300", "1e-200")
        for command in (FIT, POSITIVE, EVALUATE, ["inspect", "reference.npz", "target.npz"])
    ],
    Case("a hash in a weight", ["inspect", "reference.npz", "--weight", "w#up"], "'#' may stand in names in backticks"),
    Case("a long formula", ["inspect", "reference.npz", "--weight", "w+" * 1500], r"w\.\.\.w|\.\.\."),
    # devices and sizes
    *[
        Case(f"device {name}", [*FIT, "--device", name], f"Got the device '{name}'")
        for name in ("meta", "privateuseone", "mps", "mkldnn", "cuda:99", "fpga", "cpu:x", "cpu:7")
    ],
    Case("a device before any file", [*FIT, "--device", "cpu:7", "--features", "pt", "--tree", "none"], "Got the device 'cpu:7'", lambda here: (here / "target.npz").unlink()),
    Case("too many threads", [*FIT, "--threads", "100000"], "Got --threads 100000; expected .* at most 1,024"),
    Case("a large batch", [*FIT, "--batch-size", "100000000000"], "at most 100,000,000"),
    Case("wide layers", [*FIT, "--hidden-layers", "200000,200000"], "from 1 to 100,000"),
    Case("a fast rate", [*FIT, "--learning-rate", "1e9"], "at most 1000"),
    Case("a network beyond memory", [*FIT, "--hidden-layers", "100000,100000,100000"], "hidden_layers"),
    Case("a network beyond numbers", [*FIT, "--hidden-layers", "9999999999,9999999999"], "--hidden-layers"),
]  # fmt: skip


def files(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(directory)), hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            yield str(path.relative_to(directory)), "no file"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_sentence_and_nothing_lost(case: Case, workspace: Path) -> None:
    if case.prepare is not None:
        case.prepare(workspace)
    pipes = [path for path in workspace.iterdir() if path.is_fifo() or path.is_symlink()]
    before = None if pipes else dict(files(workspace))
    start = time.perf_counter()
    result = CliRunner().invoke(app, case.arguments, catch_exceptions=False)
    assert result.exit_code == 2, result.output
    import re

    assert re.search(case.sentence, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert len(result.stderr) < 600
    assert time.perf_counter() - start < 20
    if before is not None:
        assert dict(files(workspace)) == before


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quasiratio", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, **options)


def test_a_report_is_replaced_but_nothing_beside_it(workspace: Path) -> None:
    assert CliRunner().invoke(app, EVALUATE).exit_code == 0
    names = {path.name for path in (workspace / "report").iterdir()}
    assert CliRunner().invoke(app, EVALUATE).exit_code == 0
    assert {path.name for path in (workspace / "report").iterdir()} == names
    (workspace / "report" / "closure-notes.pdf").write_text("mine")
    assert CliRunner().invoke(app, EVALUATE).exit_code == 2
    assert CliRunner().invoke(app, [*EVALUATE, "--force"]).exit_code == 0
    assert (workspace / "report" / "closure-notes.pdf").read_text() == "mine"


def test_the_cycle_is_that_of_the_file_and_not_of_the_output(workspace: Path) -> None:
    cycles(workspace)
    for cycle, n_events in (("", 200), (";1", 300), (";2", 200)):
        out = f"out{cycle[1:]}.root"
        result = CliRunner().invoke(app, ["apply", "model", f"two.root:events{cycle}", "-o", out])
        assert result.exit_code == 0, result.output
        with uproot.open(workspace / out) as file:
            assert file["events"].num_entries == n_events


@pytest.mark.usefixtures("workspace")
def test_unweighted_by_choice() -> None:
    result = CliRunner().invoke(
        app, ["inspect", "reference.npz", "--weight", "1", "--features", "pt", "--json"]
    )
    assert json.loads(result.stdout)["reference"]["weights"]["sum_of_weights"] == 1500.0


def odd_columns(workspace: Path) -> None:
    data = dict(np.load(workspace / "reference.npz"))
    n_events = len(data["pt"])
    odd = {
        "nested": pa.array([[[1.0], [2.0]]] * n_events),
        "map": pa.array([[("a", 1)]] * n_events, pa.map_(pa.string(), pa.int64())),
        "decimal": pa.array([1] * n_events, pa.decimal128(5)),
        "bytes": pa.array([b"\xff"] * n_events),
    }
    pq.write_table(pa.table({**data, **odd}), workspace / "odd.parquet")
    np.savez(workspace / "odd.npz", **data, bytes=np.array([b"\xff"] * n_events))


@pytest.mark.parametrize("source", ["odd.parquet", "odd.npz"])
@pytest.mark.parametrize("suffix", [".root", ".parquet", ".npz"])
@pytest.mark.parametrize(
    "command", [["apply", "model"], ["positive", "--weight", "w", "--features", "pt", *SHORT]]
)
def test_columns_of_any_type_are_copied_or_left_out(
    workspace: Path, command: list[str], source: str, suffix: str
) -> None:
    odd_columns(workspace)
    result = CliRunner().invoke(app, [*command, source, "-o", f"out{suffix}"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    from quasiratio.io import open_table

    written = open_table(workspace / f"out{suffix}")
    assert written.n_events == 1500
    for name in open_table(workspace / source).columns:
        assert (name in written.columns) != (repr(name) in result.stderr), name


@pytest.mark.parametrize("redirect", [">/dev/full", ">/dev/full 2>&1", "<&- >&- 2>&-", "2>&-"])
@pytest.mark.parametrize("command", [["models", "show", "model"], APPLY])
def test_a_closed_or_full_output_is_no_traceback(workspace: Path, redirect: str, command: list[str]) -> None:
    line = " ".join([sys.executable, "-m", "quasiratio", *command, redirect])
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    is_full = "full" in redirect
    assert done.returncode == (2 if is_full else 0), done.stderr
    if redirect == ">/dev/full":
        assert "Could not write to standard output (No space left on device)" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    if command is APPLY and (not is_full or (workspace / "out.npz").exists()):  # whole, or not begun
        assert len(np.load(workspace / "out.npz")["ratio"]) == 1500


@pytest.mark.usefixtures("workspace")
def test_a_reader_that_has_enough_is_no_error() -> None:
    line = f"{sys.executable} -m quasiratio models show model | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=100)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("scale", ["1", "1e300", "1e-200"])
def test_the_effective_size_of_applied_weights_has_no_scale(workspace: Path, scale: str) -> None:
    result = CliRunner().invoke(app, [*APPLY, "--weight", f"w*{scale}"], catch_exceptions=False)
    assert result.exit_code == 0
    sizes = next(line for line in result.output.splitlines() if "effective size" in line)
    w = np.load(workspace / "reference.npz")["w"]
    assert float(sizes.split()[2]) == pytest.approx(w.sum() ** 2 / (w @ w), rel=1e-4)


def test_numpy_is_silent_before_our_sentence(workspace: Path) -> None:
    data = dict(np.load(workspace / "reference.npz"))
    np.savez(workspace / "huge.npz", **{**data, "w": np.full(1500, 1e308)})
    done = run("fit", "huge.npz", "target.npz", "--weight", "w", *SHORT, "-o", "new", cwd=workspace)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_names_of_figures_keep_greek_letters_and_reports_no_directions(workspace: Path) -> None:
    hidden = "pt\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe"
    for name in ("reference", "target"):
        data = dict(np.load(workspace / f"{name}.npz"))
        data |= {"Δφ": data["pt"], "ΔR": data["eta"], hidden: data["pt"]}
        np.savez(workspace / f"{name}.npz", **data)
    result = CliRunner().invoke(
        app, [*EVALUATE, "--observables", f"`Δφ`,`ΔR`,`{hidden}`"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    names = {path.name for path in (workspace / "report").iterdir()}
    assert {"closure-Delta_phi.pdf", "closure-Delta_R.pdf"} <= names
    assert not any("observable" in name for name in names)
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in (workspace / "report" / "report.html").read_text(
        encoding="utf-8"
    )
