"""The signed Gaussian mixture against its own formulae, numerical integration and its samples."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from quasiratio.distributions import SignedGaussianMixture, signed_gaussian_case
from quasiratio.errors import InvalidInputError

NONNEGATIVE = SignedGaussianMixture(2.0, 2.0, 1.42)
SIGNED = SignedGaussianMixture(2.0, 2.0, 1.2)
REFERENCE = SignedGaussianMixture(4 / 3, 2.5, 2.3)
ORDINARY = SignedGaussianMixture(1.0, 1.5, 9.0)
BOUNDARY = SignedGaussianMixture(2.0, 2.0, 2**0.5)  # density zero at the origin


@pytest.mark.parametrize("mixture", [NONNEGATIVE, SIGNED, REFERENCE, ORDINARY, BOUNDARY])
def test_density_radial_density_and_cdf_agree(mixture: SignedGaussianMixture) -> None:
    r = np.linspace(0.01, 9.0, 40)
    points = np.stack([r * 0.6, r * 0.8], axis=1)
    np.testing.assert_allclose(mixture.radial_density(r), 2 * np.pi * r * mixture.density(points), rtol=1e-12)
    for upper in (0.5, 2.0, 6.0):
        area, _ = integrate.quad(lambda s: float(mixture.radial_density(s)), 0, upper, epsabs=1e-12)
        assert float(mixture.radial_cdf(upper)) == pytest.approx(area, abs=1e-10)
    assert float(mixture.radial_cdf(1e3)) == pytest.approx(1.0)
    np.testing.assert_array_equal(mixture.radial_cdf([-1.0, 0.0]), [0.0, 0.0])


def test_density_is_the_signed_sum_of_two_gaussians() -> None:
    x = np.array([[0.3, -1.2], [4.0, 0.0]])
    t = (x**2).sum(axis=1) / 2

    def normal(sigma: float) -> Any:
        return np.exp(-t / sigma**2) / (2 * np.pi * sigma**2)

    np.testing.assert_allclose(SIGNED.density(x), 2.0 * normal(2.0) - 1.0 * normal(1.2), rtol=1e-13)


def test_nonnegativity_of_the_published_cases() -> None:
    assert NONNEGATIVE.is_nonnegative
    assert REFERENCE.is_nonnegative
    assert ORDINARY.is_nonnegative
    assert BOUNDARY.is_nonnegative
    assert not SIGNED.is_nonnegative
    assert not SignedGaussianMixture(1.1, 1.0, 2.0).is_nonnegative  # the subtracted tail wins
    assert not SignedGaussianMixture(2.0, 2.5, 1.42).is_nonnegative  # the misprinted target


@given(c=st.floats(1, 10), sigma_1=st.floats(0.2, 5), sigma_2=st.floats(0.2, 5))
def test_nonnegativity_is_what_the_density_says(c: float, sigma_1: float, sigma_2: float) -> None:
    mixture = SignedGaussianMixture(c, sigma_1, sigma_2)
    r = np.linspace(0, 8 * max(sigma_1, sigma_2), 500)
    density = mixture.density(np.stack([r, np.zeros_like(r)], axis=1))
    if mixture.is_nonnegative:
        assert density.min() >= -1e-12


@pytest.mark.parametrize("mixture", [NONNEGATIVE, REFERENCE, ORDINARY, BOUNDARY])
def test_quantile_inverts_the_cdf(mixture: SignedGaussianMixture) -> None:
    u = np.concatenate([[0.0, 1e-16, 1e-12, 1e-6], np.linspace(1e-3, 0.999, 2001), [1 - 1e-9]])
    np.testing.assert_allclose(mixture.radial_cdf(mixture.radial_quantile(u)), u, rtol=1e-10, atol=1e-18)
    r = np.linspace(0.05, 7, 300)
    np.testing.assert_allclose(mixture.radial_quantile(mixture.radial_cdf(r)), r, rtol=1e-9)
    assert mixture.radial_quantile([[0.0, 1.0]]).tolist() == [[0.0, np.inf]]
    assert mixture.radial_quantile([]).shape == (0,)
    assert mixture.radial_quantile(0.5).shape == ()


@given(c=st.floats(1, 20), sigma_1=st.floats(0.1, 10), share=st.floats(0, 1))
def test_quantile_of_every_nonnegative_mixture(c: float, sigma_1: float, share: float) -> None:
    smallest = sigma_1 * np.sqrt((c - 1) / c)
    mixture = SignedGaussianMixture(c, sigma_1, max(smallest + share * (sigma_1 - smallest), 0.01 * sigma_1))
    if mixture.is_nonnegative:
        u = np.linspace(1e-4, 0.9999, 200)
        np.testing.assert_allclose(mixture.radial_cdf(mixture.radial_quantile(u)), u, rtol=1e-9)


def test_quantile_is_fast() -> None:
    u = np.random.default_rng(0).random(1_000_000)
    start = time.perf_counter()
    NONNEGATIVE.radial_quantile(u)
    assert time.perf_counter() - start < 5.0  # 0.4 s on an idle core


@pytest.mark.parametrize("mixture", [SIGNED, REFERENCE, ORDINARY])
def test_signed_sampling_has_the_moments_of_the_density(mixture: SignedGaussianMixture) -> None:
    n = 200_000
    sample = mixture.sample(n, np.random.default_rng(3))
    assert sample.names == ("x", "y")
    assert set(np.unique(sample.weights)) <= {-1.0, 1.0}
    share = mixture.c / (2 * mixture.c - 1)
    assert np.mean(sample.weights > 0) == pytest.approx(share, abs=5 * np.sqrt(0.25 / n))
    w, r2 = sample.weights, (sample.features.astype(float) ** 2).sum(axis=1)
    mean = (w @ r2) / w.sum()
    error = np.sqrt(np.sum((w * (r2 - mean)) ** 2)) / w.sum()
    expected = 2 * (mixture.c * mixture.sigma_1**2 - (mixture.c - 1) * mixture.sigma_2**2)
    assert abs(mean - expected) < 5 * error
    if mixture.c > 1:
        assert sample.mixture_coefficient == pytest.approx(mixture.c, rel=0.03)


def test_unweighted_sampling_follows_the_cdf_and_has_no_direction() -> None:
    n = 100_000
    sample = NONNEGATIVE.sample_unweighted(n, np.random.default_rng(4))
    np.testing.assert_array_equal(sample.weights, np.ones(n))
    x = sample.features.astype(float)
    u = np.sort(NONNEGATIVE.radial_cdf(np.hypot(x[:, 0], x[:, 1])))
    assert np.max(np.abs(u - (np.arange(n) + 0.5) / n)) < 2.5 / np.sqrt(n)  # Kolmogorov-Smirnov
    phi = (np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi)) % 1.0
    assert np.max(np.abs(np.sort(phi) - (np.arange(n) + 0.5) / n)) < 2.5 / np.sqrt(n)


def test_the_seed_decides() -> None:
    for draw in (SIGNED.sample, NONNEGATIVE.sample_unweighted):
        one, two = draw(10, np.random.default_rng(1)), draw(10, np.random.default_rng(1))
        np.testing.assert_array_equal(one.features, two.features)
    assert len(SIGNED.sample(0, np.random.default_rng(1))) == 0


def test_a_signed_density_cannot_be_sampled_without_signs() -> None:
    with pytest.raises(
        InvalidInputError, match=r"Unweighted sampling needs a nonnegative density.*Use sample"
    ):
        SIGNED.sample_unweighted(10, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="radial quantile needs a nonnegative density"):
        SIGNED.radial_quantile(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.9, 1.0, 1.0), r"c = 0\.9; expected a finite number, at least one"),
        ((np.nan, 1.0, 1.0), "c = nan"),
        ((np.inf, 1.0, 1.0), "c = inf"),
        (("2", 1.0, 1.0), "c = '2'"),
        ((2.0, 0.0, 1.0), r"sigma_1 = 0\.0; expected a finite number, positive"),
        ((2.0, 1.0, -1.0), r"sigma_2 = -1\.0"),
        ((2.0, [1.0], 1.0), "sigma_1"),
    ],
)
def test_parameters_are_checked(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SignedGaussianMixture(*arguments)


def test_arguments_are_checked() -> None:
    rng = np.random.default_rng(0)
    for n in (-1, 2.5, "3"):
        with pytest.raises(InvalidInputError, match="nonnegative integer"):
            SIGNED.sample(n, rng)  # type: ignore[arg-type]
    for points in ([1.0, 2.0], np.zeros((3, 3)), [["a", "b"]]):
        with pytest.raises(InvalidInputError, match=r"expected numbers of shape \(n, 2\)"):
            SIGNED.density(points)
    for u in (-0.1, 1.1, np.nan):
        with pytest.raises(InvalidInputError, match=r"outside \[0, 1\]"):
            NONNEGATIVE.radial_quantile(u)
    with pytest.raises(dataclasses.FrozenInstanceError):
        SIGNED.c = 3.0  # type: ignore[misc]


def test_published_cases() -> None:
    nonnegative, signed = signed_gaussian_case("nonnegative"), signed_gaussian_case("signed")
    assert nonnegative.reference == signed.reference == REFERENCE
    assert nonnegative.target == NONNEGATIVE
    assert signed.target == SIGNED
    rng = np.random.default_rng(0)
    assert all(np.all(s.weights == 1) for s in nonnegative.test_samples(100, rng))
    assert all(np.any(s.weights < 0) for s in signed.test_samples(100, rng))
    assert all(np.any(s.weights < 0) for s in nonnegative.samples(100, rng))
    with pytest.raises(InvalidInputError, match=r"expected one of \['nonnegative', 'signed'\]"):
        signed_gaussian_case("sign")


def test_exact_ratio_is_the_quotient_and_survives_underflow() -> None:
    case = signed_gaussian_case("signed")
    x = np.random.default_rng(0).normal(0, 3, (1000, 2))
    ratio = case.exact_ratio(x)
    assert ratio.dtype == np.float64
    np.testing.assert_allclose(ratio, case.target.density(x) / case.reference.density(x), rtol=1e-10)
    assert case.exact_ratio(np.float32(x)).dtype == np.float64
    assert np.all(np.isfinite(case.exact_ratio([[500.0, 0.0]])))
    assert case.exact_ratio([[0.0, 0.0]])[0] < 0


def test_exact_ratio_integrates_to_one_over_the_reference() -> None:
    case = signed_gaussian_case("signed")
    reference = case.reference.sample(400_000, np.random.default_rng(5))
    w, r = reference.weights, case.exact_ratio(reference.features)
    mean = (w @ r) / w.sum()
    assert abs(mean - 1) < 5 * np.sqrt(np.sum((w * (r - mean)) ** 2)) / w.sum()
