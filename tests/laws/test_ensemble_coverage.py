"""The band of an ensemble covers: pulls against the exact ratio, pooled over independent data sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from quasiratio import SignResolvedRatio
from quasiratio.distributions import signed_gaussian_case

N_EVENTS, N_DATA_SETS = 100_000, 10
ONE_SIGMA = 0.6827


def pulls(case_name: str, seed: int) -> npt.NDArray[np.float64]:
    """Return (r - r*)/std where 95% of the reference lies, for one data set."""
    case, rng = signed_gaussian_case(case_name), np.random.default_rng(seed)
    training, validation = (
        (
            np.concatenate([reference.features, target.features]),
            np.repeat([0, 1], [len(reference), len(target)]),
            np.concatenate([reference.weights, target.weights]),
        )
        for reference, target in (case.samples(N_EVENTS, rng), case.samples(N_EVENTS // 10, rng))
    )
    model = SignResolvedRatio(
        n_members=6,
        hidden_layers=(32, 32),
        max_steps=400,
        batch_size=2048,
        random_state=seed,
        verbose=False,
    ).fit(*training, validation=validation)
    points = case.test_samples(4000, rng)[0].features
    radius = np.hypot(*points.T)
    points = points[radius < np.quantile(radius, 0.95)]
    ratio, std = model.predict_ratio(points, return_std=True)
    return (ratio - case.exact_ratio(points)) / std


@pytest.mark.slow  # twenty ensembles
@pytest.mark.parametrize("case_name", ["nonnegative", "signed"])
def test_68_percent_of_the_pulls_are_near_one(case_name: str) -> None:
    # Pulls within one fit are correlated, hence many data sets.
    pooled = np.concatenate([pulls(case_name, seed) for seed in range(N_DATA_SETS)])
    assert 0.7 < np.quantile(np.abs(pooled), ONE_SIGMA) < 1.4
