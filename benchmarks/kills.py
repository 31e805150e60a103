"""Commands killed at random moments: is anything damaged or lost, and does the same command then complete?

`python -m benchmarks.kills [--kills 50] [--commands fit,apply]`. Each command is first run to the end twice, in a
directory of its own: with other options, which makes the older result, and as it will be killed, which says what the
result is, which files belong to it and how long it takes. Then it is started again and again over the older result
(a study: in an empty place), and killed (SIGKILL) after a random part of that time, until it has been killed as often as
asked; runs that end before are not counted. After each kill

- the inputs and a file of the user beside the output must be untouched, and rows that a study had stored must still be
  there, unchanged, when it has gone on (else: lost),
- what stands at the place of the output must be whole: the older result or the new one (else: damaged),
- the same command, with `--resume` where there is one, must complete (else: not completed) with the result of the run
  that was not killed, to the bit (else: different), and with no file anywhere that this had not left (else: left behind).

`with a state` counts the kills after which there was something to go on from.
"""

from __future__ import annotations

import argparse
import hashlib
import json
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

_EVENTS = 3000
_MOST_TRIES = 4


@dataclass(frozen=True)
class Command:
    """A command to kill.

    Args:
        arguments: What comes after `quasiratio`.
        output: Name of the output.
        content: Digest of what stands there, `None` where it cannot be used.
        older: Options of the older result over which it is started; none for a command that starts in an empty place.
        again: Options with which it is started after a kill.
    """

    arguments: list[str]
    output: str
    content: Callable[[Path], str | None]
    older: tuple[str, ...] = ()
    again: tuple[str, ...] = ("--force",)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _model(path: Path) -> str | None:
    try:
        if not np.all(np.isfinite(load(path).predict_ratio(np.zeros((3, 2))))):
            return None
        return _digest(*((path / name).read_bytes() for name in ("model.json", "weights.safetensors")))
    except (QuasiratioError, OSError):
        return None


def _table(path: Path) -> str | None:
    """Digest of all values; the bytes of a ROOT file have the date of its writing among them."""
    try:
        return _digest(
            *(
                name.encode() + np.ascontiguousarray(values).tobytes()
                for chunk in open_table(path).chunks()
                for name, values in chunk.items()
            )
        )
    except (QuasiratioError, OSError):
        return None


def _report(path: Path) -> str | None:
    """Digest of the numbers. Files appear one by one where an older report is replaced; each must be whole."""
    try:
        pages = [
            (path / name).read_text(encoding="utf-8").rstrip() for name in ("report.html", "results.json")
        ]
        figures = [figure.read_bytes()[-32:] for figure in sorted(path.glob("closure-*.pdf"))]
        numbers = json.dumps(json.loads(pages[1]))
    except (OSError, ValueError):
        return None
    is_whole = pages[0].endswith("</html>") and figures and all(b"%%EOF" in end for end in figures)
    return _digest(numbers.encode()) if is_whole else None


def _rows(path: Path) -> dict[str, tuple[str, int]] | None:
    """Results in the store of a study, and the runs that made them; `None` where it cannot be read."""
    if not (path / "results.sqlite").exists():
        return {}
    connection = sqlite3.connect(path / "results.sqlite")
    try:
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            return None
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'points'").fetchone():
            return {}
        found = connection.execute("SELECT key, result, run FROM points").fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.close()
    return {key: (result, run) for key, result, run in found}


def _study(path: Path) -> str | None:
    rows = _rows(path)
    return (
        None if rows is None else _digest(json.dumps(sorted((k, r) for k, (r, _) in rows.items())).encode())
    )


_COMMANDS = {
    "fit": Command(
        ["fit", "reference.npz", "target.npz", "--weight", "w", "-o", "out", "--steps", "1500"],
        "out",
        _model,
        ("--seed", "1", "--steps", "20"),
        ("--force", "--resume"),
    ),
    "apply": Command(
        ["apply", "model", "reference.npz", "-o", "out.root"], "out.root", _table, ("--weight", "2*w")
    ),
    "positive": Command(
        ["positive", "reference.npz", "--weight", "w", "-o", "out.parquet", "--steps", "100"],
        "out.parquet",
        _table,
        ("--seed", "1", "--steps", "20"),
    ),
    "evaluate": Command(
        ["evaluate", "model", "reference.npz", "target.npz", "-o", "out"], "out", _report, ("--bins", "10")
    ),
    "generate": Command(
        ["generate", "gg-hh", "--parton-level", "--events", "5000", "-o", "out.npz"],
        "out.npz",
        _table,
        ("--seed", "1", "--events", "1000"),
    ),
    "study": Command(
        ["study", "loss-landscapes", "--preset", "smoke", "--seeds", "1", "--jobs", "1", "-o", "out"],
        "out",
        _study,
        again=("--resume",),
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


def _names(here: Path) -> set[str]:
    return {str(path.relative_to(here)) for path in here.rglob("*")}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def _has_state(output: Path) -> bool:
    """Whether a killed fit or study has left something to go on from."""
    partial = output.with_name(f"{output.name}.partial")
    return any(partial.glob("stage-*")) or bool(output.is_dir() and _rows(output))


class Victim:
    """A command in its directory, with an older result, and what it gives when it is left alone."""

    def __init__(self, command: Command, here: Path, kept: Path) -> None:
        self.command, self.here, self.kept = command, here, kept
        self.output = here / command.output
        _prepare(here)
        self.inputs = _inputs(here)
        if command.older:
            _run([*command.arguments, *command.older], here).check_returncode()
            _copy(self.output, kept)
        start = time.perf_counter()
        _run([*command.arguments, *(("--force",) if command.older else ())], here).check_returncode()
        self.seconds = time.perf_counter() - start
        self.names, self.result = _names(here), command.content(self.output)
        self.wholes = {self.result, command.content(kept)} if command.older else set()
        if None in self.wholes or self.result is None or len(self.wholes) == 1:
            msg = f"{command.arguments[0]}: the older and the new result must be whole, and differ"
            raise RuntimeError(msg)

    def kill(self, seconds: float) -> dict[str, bool] | None:
        """Kill one run, start the command again, and say what came of it; nothing where it had ended before."""
        _remove(self.output)
        if self.command.older:
            _copy(self.kept, self.output)
        first = [*self.command.arguments, *(("--force",) if self.command.older else ())]
        if not _kill_after(first, self.here, seconds):
            return None
        with_state = _has_state(self.output)
        rows = _rows(self.output) if not self.command.older else {}
        if self.command.older:
            is_damaged = self.command.content(self.output) not in self.wholes
        else:
            is_damaged = rows is None
        done = _run([*self.command.arguments, *self.command.again], self.here)
        if done.returncode and not self.command.older:  # killed before there was anything to resume
            done = _run(self.command.arguments, self.here)
        after = _rows(self.output) or {} if not self.command.older else {}
        found = self.command.content(self.output)
        return {
            "with a state": with_state,
            "damaged": is_damaged,
            "lost": _inputs(self.here) != self.inputs
            or any(after.get(k) != v for k, v in (rows or {}).items()),
            "not completed": done.returncode != 0 or found is None,
            "different": found != self.result,
            "left behind": _names(self.here) != self.names,
        }


_COUNTS = ("with a state", "damaged", "lost", "not completed", "different", "left behind")


def kill(name: str, n_kills: int, rng: random.Random) -> dict[str, object]:
    """Kill one command until it was killed `n_kills` times, and count what came of it."""
    counts = dict.fromkeys(("killed", *_COUNTS), 0)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "here").mkdir()
        victim = Victim(
            _COMMANDS[name],
            Path(directory) / "here",
            Path(directory) / f"kept{Path(_COMMANDS[name].output).suffix}",
        )
        n_runs = 0
        while counts["killed"] < n_kills and n_runs < _MOST_TRIES * n_kills:
            n_runs += 1
            outcome = victim.kill(rng.uniform(0.02, 1.0) * victim.seconds)
            if outcome is None:
                continue
            counts["killed"] += 1
            for what, happened in outcome.items():
                counts[what] += happened
            if any(outcome[what] for what in _COUNTS[1:]):
                print(name, outcome, sorted(_names(victim.here) ^ victim.names), flush=True)
    return {"command": name, "runs": n_runs, **counts, "seconds": round(victim.seconds, 1)}


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
