"""`quasiratio apply` on a large ROOT file, against predicting from memory and copying with uproot alone.

Each part runs in a process of its own, one after the other, and reports its time and its peak of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import uproot

from benchmarks.results import append_row

_FEATURES = [f"x{i}" for i in range(6)]
_BRANCHES = [*_FEATURES, "weight"]
_CHUNK = 250_000
_MEMORY_LIMIT = 1024**3


def _events(n_events: int, seed: int) -> dict[str, np.ndarray]:
    """Draw six features and a signed weight, all float32, as a simulation would."""
    rng = np.random.default_rng(seed)
    chunk = {name: rng.exponential(50.0, n_events).astype("f4") for name in _FEATURES}
    return chunk | {"weight": rng.choice(np.array([1.0, -1.0], "f4"), n_events, p=[0.8, 0.2])}


def prepare(directory: Path, n_events: int) -> None:
    """Write the file and a model with the default network for six features."""
    import quasiratio as qr  # noqa: PLC0415 - a part imports what it needs

    with uproot.recreate(directory / "in.root", compression=uproot.ZSTD(1)) as file:
        tree = file.mktree("events", dict.fromkeys(_BRANCHES, "f4"), initial_basket_capacity=1000)
        for start in range(0, n_events, _CHUNK):
            tree.extend(_events(min(_CHUNK, n_events - start), seed=start))
    events = _events(20_000, seed=1)
    X = {name: events[name] * np.repeat([1.0, 1.1], 10_000) for name in _FEATURES}
    model = qr.SignResolvedRatio(max_steps=100, random_state=0)
    model.fit(X, np.repeat([0, 1], 10_000), events["weight"]).save(directory / "model")


def predict(directory: Path) -> None:
    """Read everything, then predict from memory; only the prediction is timed."""
    import quasiratio as qr  # noqa: PLC0415 - a part imports what it needs
    from quasiratio.io import read_sample  # noqa: PLC0415

    model = qr.load(directory / "model")
    sample = read_sample(f"{directory / 'in.root'}:events", features=_FEATURES, weight="weight")
    _report(lambda: model.predict_ratio(sample))


def copy(directory: Path) -> None:
    """Copy the branches with uproot alone, at the same compression and in chunks of the same size."""

    def run() -> None:
        with (
            uproot.open(directory / "in.root") as source,
            uproot.recreate(directory / "copy.root", compression=uproot.ZSTD(1)) as file,
        ):
            tree = file.mktree("events", dict.fromkeys(_BRANCHES, "f4"), initial_basket_capacity=1000)
            for chunk in source["events"].iterate(_BRANCHES, step_size=400_000, library="np"):
                tree.extend(chunk)

    _report(run)


def apply(directory: Path) -> None:
    """What the command does, in one process that has imported everything before."""
    import quasiratio as qr  # noqa: PLC0415 - a part imports what it needs
    from quasiratio.io import open_table  # noqa: PLC0415
    from quasiratio.workflows.apply_files import apply_to_table  # noqa: PLC0415

    model = qr.load(directory / "model")
    model.predict_ratio(np.ones((10, len(_FEATURES)), np.float32))
    table = open_table(f"{directory / 'in.root'}:events")
    ranges = dict.fromkeys(_FEATURES, (0.0, 1000.0))
    _report(
        lambda: apply_to_table(
            model, table, directory / "out.root", features=_FEATURES, weight="weight", ranges=ranges
        )
    )


def _report(run: object) -> None:
    before = _resident()
    start, start_cpu = time.perf_counter(), time.process_time()
    run()  # type: ignore[operator]
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    measured = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "interpreter_bytes": before,
        "peak_bytes": peak,
    }
    print(json.dumps(measured))


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def _measured(part: str, directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.apply_stream", "--part", part, "--directory", str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--part", choices=("predict", "copy", "apply"))
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    if options.part is not None:
        {"predict": predict, "copy": copy, "apply": apply}[options.part](options.directory)
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        prepare(directory, options.events)
        runs: dict[str, list[dict[str, float]]] = {"predict": [], "copy": [], "apply": []}
        for _ in range(options.repeats):  # interleaved, so that all see the same disturbances
            for part, measured in runs.items():
                measured.append(_measured(part, directory))
        size = (directory / "in.root").stat().st_size
    seconds = {part: min(run["seconds"] for run in measured) for part, measured in runs.items()}
    cpu = {part: min(run["cpu_seconds"] for run in measured) for part, measured in runs.items()}
    extra = max(run["peak_bytes"] - run["interpreter_bytes"] for run in runs["apply"])
    ratio, cpu_ratio = (times["apply"] / (times["predict"] + times["copy"]) for times in (seconds, cpu))
    for part, value in seconds.items():
        print(f"{part:8s} {value:8.2f} s, {cpu[part]:8.2f} s of processor")
    print(
        f"apply takes {ratio:.2f} of predicting and copying (must be at most 1.3), {cpu_ratio:.2f} in processor time"
    )
    print(
        f"apply takes {extra / 1024**2:.0f} MiB above the interpreter (must be below {_MEMORY_LIMIT / 1024**2:.0f})"
    )
    append_row(
        "apply_stream",
        {
            "events": options.events,
            "file_bytes": size,
            **seconds,
            "ratio": ratio,
            "cpu_ratio": cpu_ratio,
            "extra_bytes": extra,
        },
    )


if __name__ == "__main__":
    main()
