"""Samples beyond memory: anonymous memory, throughput and quality of a fit from a store on disk.

    python -m benchmarks.beyond_memory --events 40000000 --steps 3000 --work /data/beyond

makes files of `--events` events with 16 features, converts them to a store and trains from it; then trains at a size that
fits (`--compare`) from a store and from memory, with the same steps. Every part runs in a process of its own, so that its
memory is its own, and a part that is done is not done again: repeat the command to go on. Rows go to
`results/beyond_memory.json`.

The problem has a closed form. Class y has Gaussian features around mu_y, and weights +1 and -1 with the asymmetry
a_y(x) = 0.6 + 0.3 tanh(x_(8+y)), so that r* = exp(mu x - mu^2/2) a_1(x) / a_0(x).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import quasiratio as qr
from benchmarks.results import append_row, read_rows

_FEATURES, _FILE_EVENTS = 16, 1_000_000
_SHIFT = np.array([0.25] * 4 + [0.0] * (_FEATURES - 4), dtype=np.float32)
_MOST_MIB, _LEAST_SHARE = 1536, 0.7
_PARTS = ("convert", "disk", "compare-disk", "compare-memory")


def _asymmetry(x: np.ndarray, label: int) -> np.ndarray:
    return 0.6 + 0.3 * np.tanh(x[:, 8 + label])


def exact_ratio(x: np.ndarray) -> np.ndarray:
    points = x.astype(np.float64)
    boost = np.exp(points @ _SHIFT - 0.5 * float(_SHIFT @ _SHIFT))
    return boost * _asymmetry(points, 1) / _asymmetry(points, 0)


def sample(n_events: int, label: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, label])
    x = rng.standard_normal((n_events, _FEATURES), dtype=np.float32) + label * _SHIFT
    return x, np.where(rng.random(n_events) < 0.5 + 0.5 * _asymmetry(x, label), 1.0, -1.0)


def files(work: Path, n_events: int) -> list[list[str]]:
    """Write what is missing of both samples, and return the files."""
    paths: list[list[str]] = []
    for label in (0, 1):
        n_left, number, found = n_events // 2, 0, []
        while n_left:
            n_file = min(n_left, _FILE_EVENTS)
            path = work / f"events-{label}-{number:04d}-{n_file}.npz"
            if not path.exists():
                x, w = sample(n_file, label, number)
                temporary = path.with_suffix(".tmp")
                with temporary.open("wb") as file:
                    np.savez(file, **{f"x{i}": x[:, i] for i in range(_FEATURES)}, w=w)
                temporary.rename(path)
            found.append(str(path))
            n_left, number = n_left - n_file, number + 1
        paths.append(found)
    return paths


def anonymous_mib() -> float:
    """Return RssAnon of this process."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) / 1024


@contextmanager
def measured(row: dict[str, Any]) -> Iterator[None]:
    """Note the seconds of a block, and its largest anonymous memory above what there was before."""
    before, highest, done = anonymous_mib(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            highest[0] = max(highest[0], anonymous_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        yield
    finally:
        row["seconds"] = round(time.perf_counter() - start, 1)
        done.set()
        watcher.join()
        row["rss_anon_mib"] = round(max(highest[0], anonymous_mib()) - before)


def run_part(part: str, work: Path, n_events: int, steps: int) -> dict[str, Any]:
    import torch  # noqa: F401, PLC0415 - belongs to the interpreter, not to the fit

    from quasiratio.training.settings import TrainingSettings  # noqa: PLC0415

    warnings.simplefilter("ignore")
    row: dict[str, Any] = {"part": part, "events": n_events, "steps": steps}
    pair = files(work, n_events)
    place = work / f"store-{n_events}"
    if part == "convert":
        with measured(row):
            qr.io.create_store(place, *pair, weight="w", quiet=False, say=print)
        row["events_per_second"] = round(n_events / row["seconds"])
        return row
    model = qr.SignResolvedRatio(max_steps=steps, random_state=0, n_threads=1)
    said: list[str] = []
    if part == "compare-memory":
        with measured(row):
            model.fit_samples(*(qr.io.read_sample(one, weight="w") for one in pair))
    else:
        store = qr.io.create_store(place, *pair, weight="w", quiet=False)
        with measured(row):
            model.fit_store(store, say=said.append)
    batch = TrainingSettings(batch_size=model.checked_settings(n_events).batch_size, max_steps=steps)
    row["loop_seconds"] = round(model.history_.wall_clock, 1)
    row["events_per_second"] = round(sum(batch.batch_sizes(steps)) / model.history_.wall_clock)
    test, w = sample(200_000, 0, 10**6)
    difference = model.predict_ratio(test) - exact_ratio(test)
    row["rms_error"] = float(np.sqrt(np.average(np.square(difference), weights=np.abs(w))))
    row["check"] = model.fit_check_.status
    if said:
        row["projected"] = said[0]
    return row


def done(part: str, n_events: int, steps: int) -> dict[str, Any] | None:
    wanted = {"part": part, "events": n_events, "steps": steps}
    return next((row for row in read_rows("beyond_memory") if wanted.items() <= row.items()), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=40_000_000, help="events of both samples together")
    parser.add_argument("--compare", type=int, default=2_000_000, help="events that fit into memory")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--work", type=Path, default=Path("beyond-memory"), help="files and stores")
    parser.add_argument("--part", choices=_PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.part is not None:
        print("ROW " + json.dumps(run_part(options.part, options.work, options.events, options.steps)))
        return
    rows = {}
    for part in _PARTS:
        n_events = options.compare if part.startswith("compare") else options.events
        row = done(part, n_events, options.steps)
        if row is None:
            common = ["--work", str(options.work), "--steps", str(options.steps), "--events", str(n_events)]
            command = [sys.executable, "-m", "benchmarks.beyond_memory", "--part", part, *common]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            row = json.loads(output.rpartition("ROW ")[2])
            append_row("beyond_memory", row)
        rows[part] = row
        print(json.dumps(row), flush=True)
    share = rows["compare-disk"]["events_per_second"] / rows["compare-memory"]["events_per_second"]
    memory = rows["disk"]["rss_anon_mib"]
    print(f"{options.events} events from disk: {memory} MiB above the interpreter (at most {_MOST_MIB})")
    print(f"throughput {share:.2f} of that from memory at {options.compare} events (at least {_LEAST_SHARE})")
    errors = ", ".join(f"{part} {rows[part]['rms_error']:.4f}" for part in _PARTS[1:])
    print(f"rms(r - r*): {errors}")


if __name__ == "__main__":
    main()
