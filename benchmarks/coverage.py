"""Does the ensemble's band cover? Pulls on the toys, pooled over independent data sets, at several sizes."""

from __future__ import annotations

import argparse

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import append_row
from benchmarks.toy import toy_data

_QUANTILE = 0.6827


def pulls(case: str, seed: int, n_events: int, **options: int) -> np.ndarray:
    """Return (r - r*)/std over the populated region, for an ensemble fitted to one data set."""
    data = toy_data(case, seed, (n_events, n_events // 10, 20_000))
    model = qr.SignResolvedRatio(random_state=seed, verbose=False, **options)
    model.fit(*data.training, validation=data.validation)
    radius = np.hypot(*data.reference.features.T)
    points = data.reference.features[radius < np.quantile(radius, 0.95)]
    ratio, std = model.predict_ratio(points, return_std=True)
    return (ratio - data.case.exact_ratio(points)) / std


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=10)
    parser.add_argument("--sizes", default="100000")
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--cases", default="nonnegative,signed")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    options = {"n_members": arguments.members} | ({"max_steps": arguments.steps} if arguments.steps else {})
    for size in (int(size) for size in arguments.sizes.split(",")):
        for case in arguments.cases.split(","):
            pooled = np.concatenate(
                [pulls(case, seed, size, **options) for seed in range(arguments.data_sets)]
            )
            row = {
                "case": case,
                "n_events": size,
                "data_sets": arguments.data_sets,
                "members": arguments.members,
                "steps": arguments.steps,
                "quantile_68": float(np.quantile(np.abs(pooled), _QUANTILE)),
                "mean_pull": float(pooled.mean()),
            }
            append_row("coverage", row)
            print(" ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
