"""The band of an ensemble covers: pulls against the exact ratio, pooled over independent data sets.

Eight members and otherwise the default settings, on the data sets of `benchmarks.coverage`. Pulls within one fit are
correlated: on the toys single data sets have quantiles between 0.6 and 1.9, in six dimensions between 0.75 and 1.2, hence
more of the former. At 20,000 events per class the toys have 1.25 and 1.33 (docs/benchmarks.md), which is more than is
asked; no test says otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.coverage import inner_points
from benchmarks.problems import problem

from quasiratio import SignResolvedRatio

ONE_SIGMA = 0.6827


def pulls(name: str, n_events: int, seed: int, n_members: int = 8) -> npt.NDArray[np.float64]:
    """Return (r - r*)/std where 95% of the reference lies, for one data set."""
    posed = problem(name)
    points = inner_points(posed)
    model = SignResolvedRatio(n_members=n_members, random_state=seed, verbose=False)
    model.fit_samples(*posed.samples(n_events, np.random.default_rng(3000 + seed)))
    ratio, std = model.predict_ratio(points, return_std=True)
    return (ratio - posed.exact_ratio(points)) / std


@pytest.mark.slow  # an ensemble of 20,000 events takes more than a quarter of a minute, and few of them decide nothing
@pytest.mark.parametrize(
    ("name", "n_events", "n_data_sets"),
    [("six", 20_000, 6), ("nonnegative", 100_000, 10), ("signed", 100_000, 10)],
)
def test_68_percent_of_the_pulls_are_near_one(name: str, n_events: int, n_data_sets: int) -> None:
    pooled = np.concatenate([pulls(name, n_events, seed) for seed in range(n_data_sets)])
    assert 0.8 < np.quantile(np.abs(pooled), ONE_SIGMA) < 1.25
