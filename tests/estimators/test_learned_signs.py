"""Where weights are negative: the test of a density, and the weights that judge."""

from __future__ import annotations

import numpy as np
import pytest

from quasiratio.distributions import SignedGaussianMixture, signed_gaussian_case, signed_jets_case
from quasiratio.estimators.learned_signs import LearnedSigns


def signs_of(mixture: SignedGaussianMixture, n: int, seed: int) -> LearnedSigns:
    sample = mixture.sample(n, np.random.default_rng(seed))
    return LearnedSigns.of(np.array(sample.features), np.array(sample.weights), seed=seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1000, 8000])
def test_negative_weights_alone_are_no_negative_density(n: int, seed: int) -> None:
    """The toys' reference has a fifth of its weights negative, and a positive density."""
    test = signs_of(signed_gaussian_case("signed").reference, n, seed).test
    assert test.sign != "negative"
    if n == 8000:
        assert test.sign == "positive"


@pytest.mark.parametrize("seed", range(2))
def test_a_density_that_touches_zero_is_not_called_negative(seed: int) -> None:
    """The Nonnegative toy's target: at the origin its density is nearly zero."""
    assert signs_of(signed_gaussian_case("nonnegative").target, 8000, seed).test.sign != "negative"


@pytest.mark.parametrize("seed", range(2))
def test_the_signed_target_is_called_negative(seed: int) -> None:
    """A quarter of its |w| lies where the density is negative, by a tenth of |w| only."""
    assert signs_of(signed_gaussian_case("signed").target, 30_000, seed).test.sign == "negative"


@pytest.mark.parametrize(
    ("case", "expected"), [("equal-shares", "positive"), ("negative-reference", "negative")]
)
def test_the_signed_jets(case: str, expected: str) -> None:
    sample = signed_jets_case(case).reference.sample(60_000, np.random.default_rng(0))
    signs = LearnedSigns.of(np.array(sample.features), np.array(sample.weights))
    assert signs.test.sign == expected


def test_an_undecided_test_says_what_size_it_needs() -> None:
    signs = signs_of(signed_gaussian_case("signed").target, 2000, 0)
    assert signs.test.sign == "undecided"
    assert "needs four times the events" in str(signs.test)
    seen_from = -4 * signs.test.error
    assert f"seen from {seen_from:.2f} on" in str(signs.test)


@pytest.mark.parametrize("n_negative", [0, 1, 16])
def test_a_handful_of_negative_weights_needs_no_networks(n_negative: int) -> None:
    rng = np.random.default_rng(0)
    weights = np.ones(500)
    weights[:n_negative] = -1.0
    signs = LearnedSigns.of(rng.normal(size=(500, 1)).astype(np.float32), weights)
    assert signs.networks == ()
    assert signs.test.sign == ("undecided" if n_negative else "positive")


def test_positive_weights_keep_the_expectations() -> None:
    """Means of the features agree with those of the signed weights, within the errors of both."""
    sample = signed_jets_case("equal-shares").reference.sample(60_000, np.random.default_rng(1))
    features, weights = np.array(sample.features), np.array(sample.weights)
    signs = LearnedSigns.of(features, weights)
    positive = signs.positive_weights(signs.cross_log_odds, weights, 0.13)
    assert positive.min() > 0
    assert positive.sum() == pytest.approx(weights.sum())
    assert np.square(positive).sum() < 0.5 * np.square(weights).sum()
    for column in (0, 1, 4, 11):
        x = np.log1p(features[:, column]) if column in (0, 4) else features[:, column].astype(float)
        means = [float(x @ w / w.sum()) for w in (weights, positive)]
        error = float(np.sqrt(np.square((weights - positive) * (x - means[0])).sum()) / weights.sum())
        assert abs(means[0] - means[1]) < 3.5 * error


def test_positive_weights_are_those_of_the_exact_asymmetry() -> None:
    """The learned asymmetry is within a tenth of the exact one, by rms over |w|."""
    jets = signed_jets_case("equal-shares").reference
    sample = jets.sample(100_000, np.random.default_rng(2))
    features, weights = np.array(sample.features), np.array(sample.weights)
    signs = LearnedSigns.of(features, weights)
    learned = np.tanh(-0.5 * signs.cross_log_odds)
    exact = jets.sign_asymmetry(features)
    error = np.sqrt(np.average((learned - exact) ** 2, weights=np.abs(weights)))
    assert error < 0.06
    constant = np.sqrt(np.average((jets.mean_asymmetry - exact) ** 2, weights=np.abs(weights)))
    assert error < 0.6 * constant
