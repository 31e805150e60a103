"""The ratio of an event is the same to the last bit, whichever and however many (at least 64) are predicted with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import quasiratio as qr

N_EVENTS = 40_000


@pytest.mark.parametrize(
    "estimator",
    [
        qr.DirectRatio(loss="bce", max_steps=20, random_state=0),
        qr.DirectRatio(loss="pare", hidden_layers=(128, 128), n_members=3, max_steps=20, random_state=0),
        qr.SignResolvedRatio(n_members=2, max_steps=20, random_state=0),
        qr.SignedMixtureRatio(max_steps=20, random_state=0),
    ],
    ids=["one output", "wide", "signs", "mixture"],
)
@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
def test_parts_of_a_sample_have_the_ratios_of_the_whole(estimator: qr.DirectRatio) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], N_EVENTS // 2)
    X = rng.normal(0.3 * y[:, None], 1.0, (N_EVENTS, 3)).astype(np.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        estimator.fit(X, y, rng.choice([1.0, -0.5], N_EVENTS, p=[0.8, 0.2]))
        whole = estimator.predict_ratio(X)
        for cuts in (
            [65],
            [71, 150, 279],
            [95, 1000, 20_021],
            [16_400],
            [N_EVENTS - 67],
            range(1000, N_EVENTS, 2237),
        ):
            parts = [estimator.predict_ratio(part) for part in np.split(X, cuts)]
            np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-14, atol=0)
    finally:
        torch.set_num_threads(before)
