"""The positive reweighter on the Nonnegative toy's target: a million events, against independent truth.

`python -m benchmarks.positive [EVENTS [SEED ...]]`; seeds 10 to 14 of 1,000,000 events when left out, of which all are
written. Other numbers are printed only.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import write_rows
from benchmarks.toy import PUBLISHED_SIZES
from quasiratio.distributions import signed_gaussian_case
from quasiratio.metrics import chi_squared, radial_edges, weighted_histogram

N_EVENTS, SEEDS = 1_000_000, range(10, 15)  # 0 to 4 were looked at when the number of members was chosen


def measured(n_events: int, seed: int) -> dict[str, Any]:
    """Fit one sample, and compare its radii with those of an independent one."""
    target = signed_gaussian_case("nonnegative").target
    rng = np.random.default_rng(seed)
    sample = target.sample(n_events, rng)
    independent = target.sample_unweighted(PUBLISHED_SIZES[2], rng)
    start = time.perf_counter()
    positive = qr.PositiveReweighter(random_state=seed, verbose=False)
    positive.fit(sample.features, sample.weights)
    seconds = time.perf_counter() - start
    radius = np.hypot(*sample.features.T.astype(float))
    truth = np.hypot(*independent.features.T.astype(float))
    edges = radial_edges(radius, truth)
    band = positive.band(sample.features, sample.weights, radius, edges=edges)
    expected = weighted_histogram(truth, edges=edges)
    signed = weighted_histogram(radius, sample.weights, edges=edges)
    in_closed_form = np.diff(target.radial_cdf(edges)) * n_events / (2 * target.c - 1)
    pulls = np.abs(band.histogram.values - in_closed_form) / band.total_error
    report = positive.report_
    return {
        "seed": seed,
        "n_events": n_events,
        "n_members": positive.n_members,
        "seconds": round(seconds, 1),
        "negative_fraction_after": report.negative_fraction_after,
        "flattened_fraction": report.flattened_fraction,
        "chi2_to_original": chi_squared(band.histogram, signed).value,
        "chi2_of_signed_weights": chi_squared(signed, expected).value,
        "chi2_without_band": chi_squared(band.histogram, expected).value,
        "chi2_with_band": band.chi_squared(expected).value,
        "pull_68": float(np.quantile(pulls, 0.683)),
        "gain": report.gain,
        "gain_with_training": report.gain_with_training,
    }


def main() -> None:
    torch.set_num_threads(2)
    n_events = int(sys.argv[1]) if len(sys.argv) > 1 else N_EVENTS
    rows = []
    for seed in [int(word) for word in sys.argv[2:]] or SEEDS:
        row = measured(n_events, seed)
        rows.append(row)
        print(" ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
    if len(sys.argv) == 1:
        write_rows("positive", rows)


if __name__ == "__main__":
    main()
