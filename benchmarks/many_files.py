"""`quasiratio apply` on many ROOT files: two processes against one, and a Dask cluster that loses a worker.

Every run is a command in processes of its own, with one thread each, from start to end: importing is part of it, from
bytecode as in every installed package (a first run on one file makes it). The times mean something on a machine with two idle
cores only. The values of all runs are compared with each other, bit by bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import uproot

from benchmarks.results import append_row
from quasiratio.io import open_table

_FEATURES = [f"x{i}" for i in range(12)]
_BRANCHES = [*_FEATURES, "weight"]
_MUST = 1.8


def _events(n_events: int, seed: int) -> dict[str, np.ndarray]:
    """Draw twelve features and a signed weight, all float32."""
    rng = np.random.default_rng(seed)
    chunk = {name: rng.exponential(50.0, n_events).astype("f4") for name in _FEATURES}
    return chunk | {"weight": rng.choice(np.array([1.0, -1.0], "f4"), n_events, p=[0.8, 0.2])}


def prepare(directory: Path, n_files: int, n_events: int, n_members: int) -> None:
    """Write the files, and a model with the default network for twelve features."""
    import quasiratio as qr  # noqa: PLC0415 - slow to import

    (directory / "in").mkdir()
    for number in range(n_files):
        path = directory / "in" / f"part{number:03d}.root"
        with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
            tree = file.mktree("events", dict.fromkeys(_BRANCHES, "f4"))
            tree.extend(_events(n_events, seed=number))
    events = _events(20_000, seed=10_000)
    X = {name: events[name] * np.repeat([1.0, 1.1], 10_000) for name in _FEATURES}
    model = qr.SignResolvedRatio(max_steps=100, n_members=n_members, random_state=0)
    model.fit(X, np.repeat([0, 1], 10_000), events["weight"]).save(directory / "model")


def _command(directory: Path, name: str, *options: str) -> list[str]:
    command = [sys.executable, "-m", "quasiratio", "apply", str(directory / "model")]
    return [
        *(*command, f"{directory / 'in'}/*.root", "--weight", "weight", "--quiet"),
        *("--output-dir", str(directory / name), *options),
    ]


def _timed(directory: Path, name: str, *options: str) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run(_command(directory, name, *options), check=True, env=environment)
    return time.perf_counter() - start


def _with_a_kill(directory: Path, n_files: int) -> tuple[float, int]:
    """Apply on a Dask cluster of two processes, one of which is killed when a quarter is done; return time and files then."""
    from distributed import LocalCluster  # noqa: PLC0415 - an extra

    os.environ["OMP_NUM_THREADS"] = "1"
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        done_at_kill: list[int] = []
        over = threading.Event()

        def kill_one() -> None:
            while not over.wait(0.05):
                n_done = len(list((directory / "dask").glob("*.root")))
                if n_done >= n_files // 4:
                    done_at_kill.append(n_done)
                    os.kill(pids[0], signal.SIGKILL)
                    return

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        seconds = _timed(directory, "dask", "--scheduler", cluster.scheduler_address)
        over.set()
        killer.join()
    return seconds, done_at_kill[0] if done_at_kill else -1


def _n_different(directory: Path, first: str, second: str) -> int:
    """Count the outputs that are missing, or have other values than those of another run."""
    n_different = 0
    for source in sorted((directory / "in").glob("*.root")):
        paths = [directory / name / f"{source.stem}_reweighted.root" for name in (first, second)]
        if not all(path.exists() for path in paths):
            n_different += 1
            continue
        chunks = [list(open_table(path).chunks()) for path in paths]
        is_same = len(chunks[0]) == len(chunks[1]) and all(
            list(one) == list(two) and all(np.array_equal(one[name], two[name]) for name in one)
            for one, two in zip(*chunks, strict=True)
        )
        n_different += not is_same
    return n_different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--events", type=int, default=250_000, help="events per file")
    parser.add_argument("--members", type=int, default=4, help="networks of the model")
    parser.add_argument("--repeats", type=int, default=2, help="of the times; the shortest counts")
    parser.add_argument("--no-row", action="store_true", help="print only, for a trial")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        prepare(directory, options.files, options.events, options.members)
        for jobs in ("1", "2"):
            _timed(directory, "warm", "--jobs", jobs, "--selection", "x0 < 1", "--force")
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for repeat in range(options.repeats):  # interleaved, so that both see the same disturbances
            for jobs, times in seconds.items():
                more = ["--force"] if repeat else []
                times.append(_timed(directory, f"jobs{jobs}", "--jobs", str(jobs), *more))
        best = {jobs: min(times) for jobs, times in seconds.items()}
        dask_seconds, n_at_kill = _with_a_kill(directory, options.files)
        different = {other: _n_different(directory, "jobs1", other) for other in ("jobs2", "dask")}
    speedup = best[1] / best[2]
    print(
        f"{options.files} files of {options.events} events: one job {best[1]:.1f} s, two jobs {best[2]:.1f} s"
    )
    print(f"two jobs are {speedup:.2f} times as fast (must be at least {_MUST})")
    print(f"Dask, a worker killed after {n_at_kill} files: {dask_seconds:.1f} s")
    print(f"outputs that are missing or differ: {different} (must be 0)")
    row = {
        "files": options.files,
        "events": options.events,
        "members": options.members,
        "one_job_seconds": best[1],
        "two_jobs_seconds": best[2],
        "speedup": speedup,
        "dask_seconds": dask_seconds,
        "files_at_kill": n_at_kill,
        "different_two_jobs": different["jobs2"],
        "different_dask": different["dask"],
    }
    if not options.no_row:
        append_row("many_files", row)


if __name__ == "__main__":
    main()
