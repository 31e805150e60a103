"""Time of a default fit: against commit 5e654ae, of `AutoRatio` in default fits, and on a machine that is shared.

`python -m benchmarks.default_fit [--only threads,busy]` runs every fit in a process of its own, one after the other, and
writes ratios of one run to `benchmarks/results/default_fit.json`. The older commit is checked out into a temporary work tree. `busy` runs
beside one process per core that does nothing but count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.problems import problem
from benchmarks.results import read_rows, write_rows

ROOT = Path(__file__).parents[1]
OLD_COMMIT = "5e654ae"
_FIT = """
import sys, time, warnings
import numpy as np
import quasiratio as qr
warnings.simplefilter("ignore")
name, path, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
data = np.load(path)
start = time.perf_counter()
getattr(qr, name)(random_state=0, verbose=False, **options).fit(data["X"], data["y"], sample_weight=data["w"])
print(time.perf_counter() - start)
"""


def seconds_of_fit(
    events: Path, name: str = "SignResolvedRatio", source: Path = ROOT, **options: int
) -> float:
    """Return the wall-clock seconds of one fit in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = str(source / "src")
    command = [sys.executable, "-c", _FIT, name, str(events), repr(options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


@contextmanager
def busy_processes(n_processes: int) -> Iterator[None]:
    """Keep every core busy."""
    counting = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(counting) for _ in range(n_processes)]
    try:
        time.sleep(1.0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def older_source() -> Iterator[Path]:
    """Check the older commit out beside this one."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "old"
        subprocess.run(["git", "worktree", "add", "--detach", str(path), OLD_COMMIT], cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def stored_events(name: str, size: int, directory: str) -> Path:
    """Write one data set to a file that every version reads."""
    reference, target = problem(name).samples(size, np.random.default_rng(2000))
    path = Path(directory) / f"{name}.npz"
    labels = np.repeat([0, 1], [len(reference), len(target)])
    features = np.concatenate([reference.features, target.features])
    np.savez(path, X=features, y=labels, w=np.concatenate([reference.weights, target.weights]))
    return path


def _jets_over_old(directory: str, repeats: range) -> list[tuple[float, float]]:
    jets = stored_events("jets equal", 100_000, directory)
    with older_source() as old:
        return [(seconds_of_fit(jets), seconds_of_fit(jets, source=old)) for _ in repeats]


def _auto_over_default(directory: str, repeats: range) -> list[tuple[float, float]]:
    jets = stored_events("jets equal", 100_000, directory)
    return [(seconds_of_fit(jets, "AutoRatio"), seconds_of_fit(jets)) for _ in repeats]


def _threads_over_one(directory: str, repeats: range) -> list[tuple[float, float]]:
    toy = stored_events("signed", 200_000, directory)
    return [(seconds_of_fit(toy), seconds_of_fit(toy, n_threads=1)) for _ in repeats]


def _busy_over_alone(directory: str, repeats: range) -> list[tuple[float, float]]:
    toy = stored_events("signed", 200_000, directory)
    pairs = []
    for _ in repeats:
        alone = seconds_of_fit(toy)
        with busy_processes(os.cpu_count() or 1):
            pairs.append((seconds_of_fit(toy), alone))
    return pairs


ROWS: dict[str, tuple[str, str, Callable[[str, range], list[tuple[float, float]]]]] = {
    "old": (
        "default fit, signed jets, 100,000 events per class, 12 features, over commit 5e654ae",
        "at most 0.33",
        _jets_over_old,
    ),
    "auto": ("AutoRatio over the default fit, same events", "at most 3", _auto_over_default),
    "threads": (
        "default threads over one thread, Signed toy, 200,000 events per class, alone",
        "at most 1.1 (noise)",
        _threads_over_one,
    ),
    "busy": ("beside one busy process per core over alone, same fit", "at most 2.5", _busy_over_alone),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(ROWS), help="rows to measure anew, of " + ", ".join(ROWS))
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        what, asked, measured = ROWS[name]
        with tempfile.TemporaryDirectory() as directory:
            pairs = measured(directory, range(arguments.repeats))
        known = {row["what"]: row for row in read_rows("default_fit")}
        ratio = median(a / b for a, b in pairs)
        known[what] = {"what": what, "asked": asked, "ratio": ratio, "seconds": pairs}
        write_rows("default_fit", [known[row[0]] for row in ROWS.values() if row[0] in known])
        print(f"{what}: {ratio:.2f} (asked {asked})", flush=True)


if __name__ == "__main__":
    main()
