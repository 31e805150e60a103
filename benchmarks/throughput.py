"""Prediction throughput: events per second, ensembles against one member, and memory."""

from __future__ import annotations

import resource
import time

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import write_rows
from benchmarks.toy import toy_data

_EVENTS = 4_000_000
_REPEATS = 3


def _seconds(estimator: qr.SignResolvedRatio, features: np.ndarray) -> float:
    """Return the best of a few timings."""
    best = np.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        estimator.predict_ratio(features)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    torch.set_num_threads(2)
    data = toy_data("signed", 0, (50_000, 20_000, 1000))
    features = np.random.default_rng(0).normal(0.0, 2.3, size=(_EVENTS, 2)).astype(np.float32)
    rows = []
    timings = {}
    for n_members in (1, 10):
        estimator = qr.SignResolvedRatio(n_members=n_members, max_steps=50, random_state=0, verbose=False)
        estimator.fit(*data.training, validation=data.validation)
        timings[n_members] = _seconds(estimator, features)
        rate = _EVENTS / timings[n_members]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append({"n_members": n_members, "events_per_second": rate, "peak_mib": peak})
        print(
            f"{n_members:3d} members: {rate / 1e6:.2f} million events/s, peak memory {peak:.0f} MiB",
            flush=True,
        )
    cost = timings[10] / timings[1]
    rows.append({"n_members": 10, "cost_over_one_member": cost})
    print(f"ten members cost {cost:.1f} times one")
    write_rows("throughput", rows)


if __name__ == "__main__":
    main()
