"""The positive reweighter on the Nonnegative toy's target sample, at the published size."""

from __future__ import annotations

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import write_rows
from benchmarks.toy import PUBLISHED_SIZES
from quasiratio.distributions import signed_gaussian_case
from quasiratio.metrics import chi_squared, radial_edges


def main() -> None:
    torch.set_num_threads(2)
    target = signed_gaussian_case("nonnegative").target
    rows = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sample = target.sample(PUBLISHED_SIZES[0], rng)
        independent = target.sample_unweighted(PUBLISHED_SIZES[2], rng)
        positive = qr.PositiveReweighter(random_state=seed, verbose=False)
        positive.fit(sample.features, sample.weights)
        weights = positive.predict_weights(sample.features, sample.weights)
        radius = np.hypot(*sample.features.T.astype(float))
        truth = np.hypot(*independent.features.T.astype(float))
        to_original = chi_squared(
            radius,
            radius,
            reweighted_weights=weights,
            target_weights=sample.weights,
            edges=radial_edges(radius, radius),
        ).value
        to_truth = chi_squared(
            radius, truth, reweighted_weights=weights, edges=radial_edges(radius, truth)
        ).value
        report = positive.report_
        row = {
            "seed": seed,
            "negative_fraction_after": report.negative_fraction_after,
            "flattened_fraction": report.flattened_fraction,
            "chi2_to_original": to_original,
            "chi2_to_independent_truth": to_truth,
            "gain": report.gain,
        }
        rows.append(row)
        print(" ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
    write_rows("positive", rows)


if __name__ == "__main__":
    main()
