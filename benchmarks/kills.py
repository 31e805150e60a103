"""Commands killed at random moments: is anything damaged or lost, and does the same command then complete?

`python -m benchmarks.kills [--kills 50] [--commands fit,apply]`. Each command is first run once to the end, in a
directory of its own; that is what a result looks like, and how long it takes. Then it is started again and again,
over an older result where it can be forced to replace one, and killed (SIGKILL) after a random part of that time.
After each kill

- the inputs and a file of the user beside the output must be untouched (else: lost),
- what stands at the place of the output must be whole: the older result or the new one (else: damaged),
- the same command, with `--resume` where there is one, must complete and leave nothing unfinished behind.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.results import read_rows, write_rows
from quasiratio import load
from quasiratio.errors import QuasiratioError
from quasiratio.io import open_table

_EVENTS = 20_000
_STEPS = "400"


@dataclass(frozen=True)
class Command:
    """A command to kill.

    Args:
        arguments: What comes after `quasiratio`; the output is `out` with a suffix.
        output: Name of the output.
        is_whole: Whether a result at that place can be used.
        again: Options with which it is started while an older result is there, and after a kill.
    """

    arguments: list[str]
    output: str
    is_whole: Callable[[Path], bool]
    again: tuple[str, ...] = ("--force",)
    starts_empty: bool = False


def _is_model(path: Path) -> bool:
    try:
        return bool(np.all(np.isfinite(load(path).predict_ratio(np.zeros((3, 2))))))
    except QuasiratioError:
        return False


def _is_table(path: Path) -> bool:
    try:
        n_events = sum(len(next(iter(chunk.values()))) for chunk in open_table(path).chunks())
    except QuasiratioError:
        return False
    return n_events > 0


def _is_report(path: Path) -> bool:
    """Files appear one by one where an older report is replaced; each must be whole."""
    pages = [(path / name).read_text(encoding="utf-8").rstrip() for name in ("report.html", "results.json")]
    figures = list(path.glob("closure-*.pdf"))
    return (
        pages[0].endswith("</html>")
        and pages[1].endswith("}")
        and all(b"%%EOF" in figure.read_bytes()[-32:] for figure in figures)
    )


def _is_store(path: Path) -> bool:
    """A study may be at any stage; what it has stored must be readable."""
    store = path / "results.sqlite"
    if not store.exists():
        return True
    with sqlite3.connect(store) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return verdict == "ok"


_COMMANDS = {
    "fit": Command(
        ["fit", "reference.npz", "target.npz", "--weight", "w", "--steps", _STEPS, "-o", "out"],
        "out",
        _is_model,
        ("--force", "--resume"),
    ),
    "apply": Command(["apply", "model", "reference.npz", "-o", "out.root"], "out.root", _is_table),
    "positive": Command(
        ["positive", "reference.npz", "--weight", "w", "--steps", _STEPS, "-o", "out.parquet"],
        "out.parquet",
        _is_table,
    ),
    "evaluate": Command(["evaluate", "model", "reference.npz", "target.npz", "-o", "out"], "out", _is_report),
    "generate": Command(
        ["generate", "gg-hh", "--parton-level", "--events", "30000", "-o", "out.npz"], "out.npz", _is_table
    ),
    "study": Command(
        ["study", "loss-landscapes", "--preset", "smoke", "--jobs", "1", "-o", "out"],
        "out",
        _is_store,
        ("--resume",),
        starts_empty=True,
    ),
}


def _prepare(here: Path) -> None:
    rng = np.random.default_rng(0)
    for name, mean in (("reference", 0.0), ("target", 0.3)):
        np.savez(
            here / f"{name}.npz",
            x=rng.normal(mean, 1.0, _EVENTS),
            y=rng.normal(0.0, 1.0, _EVENTS),
            w=rng.choice([1.0, -0.5], _EVENTS, p=[0.8, 0.2]),
        )
    fit = ["fit", "reference.npz", "target.npz", "--weight", "w", "--steps", "50", "-o", "model", "--quiet"]
    _run(fit, here).check_returncode()
    (here / "thesis.tex").write_text("years of work")


def _run(arguments: list[str], here: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "quasiratio", *arguments], cwd=here, capture_output=True, check=False
    )


def _inputs(here: Path) -> dict[str, str]:
    names = ["reference.npz", "target.npz", "thesis.tex", "model/model.json", "model/weights.safetensors"]
    return {name: hashlib.sha256((here / name).read_bytes()).hexdigest() for name in names}


def _kill_after(arguments: list[str], here: Path, seconds: float) -> bool:
    """Start a command, kill it and its children, and return whether it was still running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quasiratio", *arguments],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def _left_behind(here: Path) -> list[str]:
    return [path.name for path in here.iterdir() if path.name.startswith(".") or path.suffix == ".partial"]


def kill(name: str, n_kills: int, rng: random.Random) -> dict[str, object]:
    """Kill one command many times, and count what came of it."""
    command = _COMMANDS[name]
    counts = dict.fromkeys(("killed", "damaged", "lost", "not completed", "left behind"), 0)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        _prepare(here)
        inputs, output = _inputs(here), here / command.output
        start = time.perf_counter()
        _run(command.arguments, here).check_returncode()
        duration = time.perf_counter() - start
        for _ in range(n_kills):
            if command.starts_empty:
                shutil.rmtree(output, ignore_errors=True)
                arguments = command.arguments
            else:
                arguments = [*command.arguments, "--force"]
            counts["killed"] += _kill_after(arguments, here, rng.uniform(0.05, 1.0) * duration)
            counts["lost"] += _inputs(here) != inputs
            there = output.exists()
            counts["damaged"] += not (
                (there or command.starts_empty) and (not there or command.is_whole(output))
            )
            done = _run([*command.arguments, *command.again], here)
            if done.returncode and command.starts_empty:  # killed before there was anything to resume
                done = _run(command.arguments, here)
            counts["not completed"] += done.returncode != 0 or not command.is_whole(output)
            counts["left behind"] += bool(_left_behind(here))
    return {"command": name, "kills": n_kills, **counts, "seconds": round(duration, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--commands", default=",".join(_COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = {row["command"]: row for row in read_rows("kills")}
    for name in options.commands.split(","):
        rows[name] = kill(name, options.kills, random.Random(f"{name} {options.seed}"))  # noqa: S311
        print(rows[name], flush=True)
        write_rows("kills", [rows[known] for known in _COMMANDS if known in rows])


if __name__ == "__main__":
    main()
