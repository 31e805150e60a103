"""The closed forms of the hidden-variable toys against integrals over the hidden variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase
from quasiratio.errors import InvalidInputError

Z = np.linspace(-9, 9, 4001)


def _posterior(x: float, smearing: float) -> Any:
    density = np.exp(-0.5 * Z**2 - 0.5 * ((x - Z) / smearing) ** 2)
    return density / density.sum()


@pytest.mark.parametrize("negative", [0.0, 0.8])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("x", [-2.0, 0.0, 1.3])
def test_the_coefficients_are_conditional_means(negative: float, x: float, *, linear: bool) -> None:
    case = LatentAmplitudeCase(0.6, negative, linear)
    asymmetry = 1.0 - negative * np.exp(-0.5 * Z**2)
    posterior = _posterior(x, 0.6) * asymmetry
    amplitude = np.stack(
        [np.ones_like(Z), 1.2 * Z, Z**2 - 1, 0.36 * Z**2, 0.6 * Z * (Z**2 - 1), 0.25 * (Z**2 - 1) ** 2]
    )
    expected = amplitude[: case.basis.n_terms] @ posterior / posterior.sum()
    np.testing.assert_allclose(case.exact_coefficients([[x, 0.0]])[0], expected, atol=1e-9)


@pytest.mark.parametrize("x", [-2.0, 0.0, 1.3])
def test_the_ratio_is_the_conditional_mean(x: float) -> None:
    case = LatentExponentialCase()
    joint = 1.5 * np.exp(2 * Z - 2) - 0.5 * np.exp(-Z - 0.5)
    assert case.exact_ratio([[x, 0.0]])[0] == pytest.approx(joint @ _posterior(x, 0.7), rel=1e-6)


def test_samples_have_the_means_of_the_closed_forms() -> None:
    rng = np.random.default_rng(0)
    case = LatentAmplitudeCase(negative=0.8)
    events = case.sample(400_000, rng)
    exact = case.exact_coefficients(events.features)
    inside = (events.features[:, 0] > 0.5) & (events.features[:, 0] < 1.0)
    terms = events.weights[inside, None] * (events.mined - exact)[inside]
    assert np.all(np.abs(terms.mean(axis=0)) < 4.5 * terms.std(axis=0) / np.sqrt(inside.sum()) + 1e-12)
    tails = LatentExponentialCase()
    mined, target = tails.sample(100_000, rng), tails.target_sample(100_000, rng)
    assert mined.mined.max() > 500
    weighted = np.average(target.features[:, 0], weights=target.weights)
    assert weighted == pytest.approx(1.5 * 2 + 0.5, abs=0.1)


def test_bad_cases() -> None:
    with pytest.raises(InvalidInputError, match="sum one"):
        LatentExponentialCase(amplitudes=(1.0, 1.0))
    with pytest.raises(InvalidInputError, match=r"\(n, 2\)"):
        LatentExponentialCase().exact_ratio([1.0])
