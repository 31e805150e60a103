"""Reading a ROOT file into a sample, against uproot alone on the same branches; both in one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import uproot

from benchmarks.results import write_rows
from quasiratio.io import read_sample

_EVENTS = 5_000_000
_EVENTS_PER_BASKET = {"small baskets": 10_000, "large baskets": 250_000}
_FEATURES = [f"x{i}" for i in range(6)]
_REPEATS = 12


def _write(path: Path, compression: object, events_per_basket: int) -> None:
    """Write six features and a signed weight, all float32, as a simulation would."""
    rng = np.random.default_rng(0)
    with uproot.recreate(path, compression=compression) as file:
        tree = file.mktree(
            "events", dict.fromkeys([*_FEATURES, "weight"], "f4"), initial_basket_capacity=1000
        )
        for _ in range(0, _EVENTS, events_per_basket):
            chunk = {name: rng.exponential(50.0, events_per_basket).astype("f4") for name in _FEATURES}
            tree.extend(
                {**chunk, "weight": rng.choice(np.array([1.0, -1.0], "f4"), events_per_basket, p=[0.8, 0.2])}
            )


def _plain(path: Path) -> object:
    with uproot.open(f"{path}:events") as tree:
        return tree.arrays([*_FEATURES, "weight"], library="np")


def _ours(path: Path) -> object:
    return read_sample(f"{path}:events", features=_FEATURES, weight="weight")


def _seconds(read: Callable[[Path], object], path: Path) -> float:
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main() -> None:
    rows = []
    compressions = {"none": None, "lz4": uproot.LZ4(1), "zstd": uproot.ZSTD(1), "zlib": uproot.ZLIB(1)}
    for (compression, codec), (baskets, n_events) in product(
        compressions.items(), _EVENTS_PER_BASKET.items()
    ):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "events.root"
            _write(path, codec, n_events)
            pairs = [(_seconds(_ours, path), _seconds(_plain, path)) for _ in range(_REPEATS)]  # interleaved
        ours, plain = (min(timings) for timings in zip(*pairs, strict=True))
        what = f"`read_sample` over uproot alone, compression {compression}, {baskets}"
        row = {"what": what, "compression": compression, "baskets": baskets, "events": _EVENTS}
        rows.append({**row, "seconds": ours, "uproot_seconds": plain, "ratio": ours / plain})
        print(
            f"{compression:5s} {baskets}: read_sample {ours:.2f} s, uproot {plain:.2f} s, ratio {ours / plain:.2f}",
            flush=True,
        )
    print(f"largest ratio {max(row['ratio'] for row in rows):.2f}, to be at most 1.3")
    write_rows("read_root", rows)


if __name__ == "__main__":
    main()
