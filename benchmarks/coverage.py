"""Does the band of an ensemble cover? Pulls against the exact ratio, pooled over independent data sets.

`python -m benchmarks.coverage` appends one row per data set to `benchmarks/results/coverage.json`, with the quantiles of
its |pulls|, so that an interrupted run goes on where it was and `benchmarks.report` can pool them. The published size of
the toys comes from the ensembles of `benchmarks.accuracy`.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import numpy.typing as npt

import quasiratio as qr
from benchmarks.problems import Problem, problem
from benchmarks.results import append_row, read_rows
from quasiratio.errors import QuasiratioWarning

FloatArray = npt.NDArray[np.float64]
_N_POINTS = 20_000
_INNER = 0.95


def pull_summary(ratio: FloatArray, std: FloatArray, exact: FloatArray) -> dict[str, object]:
    """Return the mean of the pulls and the hundred quantiles of their absolute values."""
    pulls = (ratio - exact) / std
    grid = np.quantile(np.abs(pulls), (np.arange(100) + 0.5) / 100)
    return {"mean_pull": float(pulls.mean()), "abs_pulls": [round(float(value), 4) for value in grid]}


def inner_points(posed: Problem) -> npt.NDArray[np.float32]:
    """Return fresh reference events without the outermost twentieth, where there are hardly any to learn from."""
    features = posed.test_reference().features[:_N_POINTS]
    scaled = (features - np.median(features, axis=0)) / features.std(axis=0)
    distance = np.linalg.norm(scaled, axis=1)
    return np.asarray(features[distance < np.quantile(distance, _INNER)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--sizes", default="20000,100000")
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--problems", default="nonnegative,signed,six,jets equal,jets different")
    arguments = parser.parse_args()
    for size in (int(size) for size in arguments.sizes.split(",")):
        for name in arguments.problems.split(","):
            posed = problem(name)
            points = inner_points(posed)
            exact = posed.exact_ratio(points)
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.data_sets):
                row = {"problem": name, "size": size, "seed": seed, "members": arguments.members}
                if any(row.items() <= done.items() for done in read_rows("coverage")):
                    continue
                model = qr.SignResolvedRatio(n_members=arguments.members, random_state=seed, verbose=False)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", QuasiratioWarning)
                    model.fit_samples(*posed.samples(size, np.random.default_rng(3000 + seed)))
                    row |= pull_summary(*model.predict_ratio(points, return_std=True), exact)
                append_row("coverage", row)
                print(f"{name} {size} seed {seed} 68% quantile {row['abs_pulls'][68]:.2f}", flush=True)


if __name__ == "__main__":
    main()
