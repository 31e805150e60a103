"""Tuning starts from a good state and is judged by validation, so that it must not lose: both toys, several seeds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import QuasiratioWarning

STEPS = {"max_steps": 600, "batch_size": 2048, "verbose": False}


def tuned_and_untuned(case_name: str, kind: str, n_events: int, seed: int, **options) -> tuple[float, float]:
    """Return the root mean squared errors of the tuned and of the untuned ratio."""
    case, rng = signed_gaussian_case(case_name), np.random.default_rng(4000 + seed)
    reference, target = case.samples(n_events, rng)
    test, _ = case.test_samples(100_000, rng)
    exact = case.exact_ratio(test.features)
    make = {"rosmm": qr.SignedMixtureRatio, "sign-resolved": qr.SignResolvedRatio}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        squares = [
            (
                make(tune=tune, random_state=seed, **options)
                .fit_samples(reference, target)
                .predict_ratio(test.features)
                - exact
            )
            ** 2
            for tune in ("all", "none")
        ]
    return float(np.sqrt(squares[0].mean())), float(np.sqrt(squares[1].mean()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rosmm", "sign-resolved"])
@pytest.mark.parametrize("case", ["nonnegative", "signed"])
def test_a_tuned_ratio_is_not_worse_than_what_it_began_from(case: str, kind: str) -> None:
    pairs = np.array([tuned_and_untuned(case, kind, 20_000, seed, **STEPS) for seed in range(3)])
    change = pairs[:, 0] - pairs[:, 1]
    # At a tenth of the rate, with decay, and without the paired test, the sign-resolved ratio of the Nonnegative case was
    # worse by 27% in the mean over these seeds. (RoSMM on the Signed case was not: there this holds no old mistake off.)
    assert change.mean() < 0.1 * pairs[:, 1].mean()
    assert (pairs[:, 0] < 1.3 * pairs[:, 1]).all()
