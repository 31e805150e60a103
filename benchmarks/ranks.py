"""Two processes with one thread each against one process with one thread: time of the training loop, and quality.

`python -m benchmarks.ranks [--events 2000000] [--seeds 2]` fits the Signed toy with `torchrun` on 1 and on 2 processes, every fit
from the same events, seeds and global batch, one after the other, and appends to `benchmarks/results/ranks.json`; rows that
are there are not measured again. The time is that of the training loop, `history_.wall_clock`. Two networks: the default of the
toy (2 x 64), whose step takes a few milliseconds, and 3 x 128, as for a dozen features. The processes need a core each: run
it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import append_row, read_rows
from benchmarks.toy import toy_data
from quasiratio.training.ranks import joined_ranks

ROOT = Path(__file__).parents[1]
NETWORKS = ([64, 64], [128, 128, 128])
CASE, N_TEST = "signed", 1_400_000


def fit(n_events: int, seed: int, hidden: Sequence[int]) -> dict[str, Any] | None:
    """Fit what this process has of the events, and judge the ratio in the first one."""
    data = toy_data(CASE, 3000 + seed, (n_events, 1, min(N_TEST, n_events)))
    features, labels, weights = data.training
    with joined_ranks() as ranks:
        own = np.arange(len(labels)) % ranks.size == ranks.rank
        model = qr.SignResolvedRatio(hidden_layers=hidden, random_state=seed, n_threads=1, verbose=False)
        model.fit(features[own], labels[own], sample_weight=weights[own])
        if not ranks.is_first:
            return None
        judged = data.judge(model.predict_ratio(data.reference.features))
        return {
            "seconds": model.history_.wall_clock,
            "n_steps": model.history_.n_steps,
            "chi2": judged["chi2"],
            "exact_chi2": judged["exact_chi2"],
        }


def launched(n_ranks: int, n_events: int, seed: int, hidden: Sequence[int]) -> dict[str, Any]:
    """Run a fit in so many processes, and return what the first of them printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_ranks),
        "-m", "benchmarks.ranks", "--events", str(n_events), "--fit", str(seed), "--hidden", *map(str, hidden),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(n_events: int, n_seeds: int) -> None:
    """Compare, print and keep."""
    for hidden in NETWORKS:
        for seed in range(n_seeds):
            for n_ranks in (1, 2):
                row: dict[str, Any] = {
                    "hidden_layers": hidden,
                    "n_events": n_events,
                    "seed": seed,
                    "n_ranks": n_ranks,
                }
                if any(row.items() <= done.items() for done in read_rows("ranks")):
                    continue
                row |= launched(n_ranks, n_events, seed, hidden)
                append_row("ranks", row)
                print(row, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000, help="events per class")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--fit", type=int, help="seed of one fit, as started by this script itself")
    parser.add_argument("--hidden", type=int, nargs="+", help="hidden layers of that fit")
    options = parser.parse_args()
    if options.fit is None:
        main(options.events, options.seeds)
    else:
        torch.set_num_threads(1)
        found = fit(options.events, options.fit, options.hidden)
        if found is not None:
            print(json.dumps(found), flush=True)
