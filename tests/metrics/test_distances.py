"""Chi-squared, Tsallis entropies and the sliced Wasserstein distance: values by hand, and laws."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import (
    chi_squared,
    sliced_wasserstein,
    tsallis_entropy,
    tsallis_relative_entropy,
    weighted_histogram,
)

EDGES = np.linspace(-2, 2, 9)


def signed_sample(seed: int, n: int = 400, shift: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1, n), np.where(rng.random(n) < 0.15, -1.0, 1.0) * rng.uniform(0.5, 2, n)


seeds = st.integers(0, 1000)
scales = st.floats(0.01, 100)


# chi-squared


def test_chi_squared_by_hand() -> None:
    b = weighted_histogram([0.5, 0.5, 1.5, 7.0], [1.0, -0.5, 2.0, 1.5], edges=[0, 1, 2, 3])
    t = weighted_histogram([0.5, 1.5, 1.5], edges=[0, 1, 2, 3])
    w_b, w_t = 4.0, 3.0  # the overflow counts
    terms = [(w_b * 1 - w_t * 0.5) ** 2 / (w_b**2 * 1 + w_t**2 * 1.25)]
    terms += [(w_b * 2 - w_t * 2.0) ** 2 / (w_b**2 * 2 + w_t**2 * 4.0)]
    result = chi_squared(b, t)
    assert result.chi2 == pytest.approx(sum(terms))
    assert (result.n_bins, result.n_dof) == (2, 1)  # the third bin is empty in both
    assert result.value == pytest.approx(sum(terms))
    assert float(result) == result.value
    assert result.p_value == pytest.approx(stats.chi2.sf(result.chi2, 1))


@given(seed=seeds, scale_b=scales, scale_t=scales)
def test_chi_squared_is_symmetric_and_ignores_scales(seed: int, scale_b: float, scale_t: float) -> None:
    (x, u), (y, v) = signed_sample(seed), signed_sample(seed + 1, n=900)
    result = chi_squared(x, y, reweighted_weights=u, target_weights=v, edges=EDGES)
    scaled = chi_squared(x, y, reweighted_weights=scale_b * u, target_weights=scale_t * v, edges=EDGES)
    swapped = chi_squared(y, x, reweighted_weights=v, target_weights=u, edges=EDGES)
    assert scaled.chi2 == pytest.approx(result.chi2)
    assert swapped.chi2 == pytest.approx(result.chi2)
    assert chi_squared(x, x, reweighted_weights=u, target_weights=u, edges=EDGES).chi2 == 0


@given(seed=seeds)
def test_chi_squared_tells_a_duplicate_from_weight_two(seed: int) -> None:
    (x, u), (y, _) = signed_sample(seed), signed_sample(seed + 1)
    doubled = chi_squared(x, y, reweighted_weights=2 * u, edges=EDGES)
    duplicated = chi_squared(np.repeat(x, 2), y, reweighted_weights=np.repeat(u, 2), edges=EDGES)
    assert duplicated.chi2 > doubled.chi2  # duplicates pretend to twice the events
    absent = chi_squared(np.append(x, 0.0), y, reweighted_weights=np.append(u, 0.0), edges=EDGES)
    assert absent.chi2 == pytest.approx(doubled.chi2)


def test_chi_squared_of_one_distribution_is_one_on_average() -> None:
    results = []
    for seed in range(40):
        (x, u), (y, v) = signed_sample(seed, 5000), signed_sample(1000 + seed, 15_000)
        results.append(chi_squared(x, y, reweighted_weights=u, target_weights=v))
    n_dof = results[0].n_dof
    assert n_dof == 98
    assert np.mean([r.value for r in results]) == pytest.approx(1.0, abs=4 * np.sqrt(2 / n_dof / 40))
    moved = signed_sample(7, 5000, shift=0.2)
    assert chi_squared(moved[0], signed_sample(8, 5000)[0]).value > 1.5


def test_chi_squared_refuses() -> None:
    h = weighted_histogram([0.5, 1.5], edges=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="histograms together with weights or edges"):
        chi_squared(h, h, edges=[0, 1])
    with pytest.raises(InvalidInputError, match="two histograms or two arrays"):
        chi_squared(h, [1.0])
    with pytest.raises(InvalidInputError, match="edges differ"):
        chi_squared(h, weighted_histogram([0.5], edges=[0, 1, 3]))
    with pytest.raises(InvalidInputError, match="1 bins with events"):
        chi_squared([0.5], [0.6], edges=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="sum to zero"):
        chi_squared([0.5, 0.5], [0.6, 1.6], reweighted_weights=[1, -1], edges=[0, 1, 2])


# Tsallis


def test_tsallis_by_hand_with_negative_bins_and_a_bin_left_out() -> None:
    b = weighted_histogram([0.5, 1.5, 2.5], [2.0, -1.0, 3.0], edges=[0, 1, 2, 3])  # 1/2 -1/4 3/4
    t = weighted_histogram([0.5, 1.5], [3.0, -1.0], edges=[0, 1, 2, 3])  # 3/2 -1/2 0
    result = tsallis_relative_entropy(b, t)
    expected = 0.25 / 1.5 - 0.0625 / 0.5 - 1
    assert result.signed_value == pytest.approx(expected)
    assert result.value == float(result) == pytest.approx(-expected)
    assert result.n_bins_left_out == 1
    assert tsallis_relative_entropy(b, t, alpha=3).signed_value == pytest.approx(
        (0.125 / 1.5**2 - 0.25**3 / 0.25 - 1) / 2
    )
    assert tsallis_entropy(b).value == pytest.approx(1 - (0.25 + 0.0625 + 0.5625))


@given(seed=seeds, alpha=st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]), scale=scales)
def test_relative_entropy_vanishes_for_equal_and_ignores_scales(
    seed: int, alpha: float, scale: float
) -> None:
    x, y = signed_sample(seed)[0], signed_sample(seed + 1, shift=0.3)[0]
    w = np.full(len(x), scale)
    equal = tsallis_relative_entropy(x, x, reweighted_weights=w, alpha=alpha, edges=EDGES)
    assert equal.value == pytest.approx(0.0, abs=1e-12)
    different = tsallis_relative_entropy(x, y, alpha=alpha, edges=EDGES)
    assert different.signed_value > 0 or different.n_bins_left_out
    scaled = tsallis_relative_entropy(x, y, reweighted_weights=w, alpha=alpha, edges=EDGES)
    assert scaled.value == pytest.approx(different.value)


@given(seed=seeds)
def test_relative_entropy_of_equal_signed_histograms_vanishes(seed: int) -> None:
    x, w = signed_sample(seed, n=60)
    h = weighted_histogram(x, w, edges=np.linspace(-2, 2, 40))  # some bins are negative
    assert tsallis_relative_entropy(h, h.scaled(3.0)).value == pytest.approx(0.0, abs=1e-12)


def test_alpha_one_is_the_limit() -> None:
    x, y = signed_sample(1)[0], signed_sample(2, shift=0.3)[0]
    relative = tsallis_relative_entropy(x, y, alpha=1.0, edges=EDGES).value
    entropy = tsallis_entropy(x, alpha=1.0, edges=EDGES).value
    for alpha in (1 - 1e-6, 1 + 1e-6):
        assert tsallis_relative_entropy(x, y, alpha=alpha, edges=EDGES).value == pytest.approx(
            relative, abs=1e-4
        )
        assert tsallis_entropy(x, alpha=alpha, edges=EDGES).value == pytest.approx(entropy, abs=1e-4)
    b = np.histogram(x, EDGES)[0] / np.histogram(x, EDGES)[0].sum()
    assert tsallis_entropy(x, alpha=1, edges=EDGES).value == pytest.approx(stats.entropy(b))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.5])
def test_negative_bins_need_an_integer_alpha(alpha: float) -> None:
    h = weighted_histogram([0.5, 1.5], [2.0, -1.0], edges=[0, 1, 2])
    positive = weighted_histogram([0.5, 1.5], edges=[0, 1, 2])
    for b, t in ((h, positive), (positive, h)):
        with pytest.raises(InvalidInputError, match="1 negative bins with alpha"):
            tsallis_relative_entropy(b, t, alpha=alpha)
    with pytest.raises(InvalidInputError, match="1 negative bins with alpha"):
        tsallis_entropy(h, alpha=alpha)


def test_tsallis_refuses() -> None:
    h = weighted_histogram([0.5, 1.5], [1.0, -1.0], edges=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="bins sum to zero"):
        tsallis_entropy(h)
    for alpha in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInputError, match="expected a positive number"):
            tsallis_entropy([0.5, 1.5], alpha=alpha, edges=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="a histogram alone"):
        tsallis_entropy(h, edges=[0, 1])
    assert tsallis_entropy([0.1, 0.2, 0.9]).n_bins_left_out == 0  # edges from the sample itself


# Wasserstein

samples = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-5, 5))


@given(x=samples, shift=st.floats(-10, 10))
def test_a_shift_is_as_far_as_it_goes(x: Any, shift: float) -> None:
    assert sliced_wasserstein(x, x + shift) == pytest.approx(abs(shift), abs=1e-12)


@given(seed=seeds)
def test_agrees_with_scipy_where_nothing_is_negative(seed: int) -> None:
    (x, u), (y, v) = signed_sample(seed, 50), signed_sample(seed + 1, 70)
    u, v = np.abs(u), np.abs(v)
    expected = stats.wasserstein_distance(x, y, u, v)
    assert sliced_wasserstein(x, y, first_weights=u, second_weights=v) == pytest.approx(expected)


@given(seed=seeds)
def test_negative_parts_change_sides(seed: int) -> None:
    (x, u), (y, v) = signed_sample(seed, 50), signed_sample(seed + 1, 70, shift=0.4)
    u, v = u / u.sum(), v / v.sum()
    left = np.concatenate([x[u > 0], y[v < 0]]), np.concatenate([u[u > 0], -v[v < 0]])
    right = np.concatenate([y[v > 0], x[u < 0]]), np.concatenate([v[v > 0], -u[u < 0]])
    expected = left[1].sum() * stats.wasserstein_distance(left[0], right[0], left[1], right[1])
    assert sliced_wasserstein(x, y, first_weights=u, second_weights=v) == pytest.approx(expected)


@given(seed=seeds, n_features=st.integers(1, 3), scale=scales)
def test_a_metric_that_ignores_scales(seed: int, n_features: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x, y, z = (rng.normal(k / 2, 1, (30, n_features)) for k in range(3))
    u, v, t = (np.where(rng.random(30) < 0.2, -1.0, 1.5) for _ in range(3))

    def distance(a: Any, b: Any, p: Any, q: Any) -> float:
        rng = np.random.default_rng(seed)
        return sliced_wasserstein(a, b, first_weights=p, second_weights=q, n_projections=5, rng=rng)

    xy = distance(x, y, u, v)
    assert distance(y, x, v, u) == pytest.approx(xy)
    assert distance(x, y, scale * u, v) == pytest.approx(xy)
    assert distance(x, x, u, u) == pytest.approx(0, abs=1e-12)
    assert xy <= distance(x, z, u, t) + distance(z, y, t, v) + 1e-12
    repeated, twice = np.repeat(x, 2, axis=0), np.repeat(u, 2)
    assert distance(repeated, y, twice, v) == pytest.approx(xy)


def test_a_planar_shift_is_sliced() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    sliced = sliced_wasserstein(x, x + np.array([3.0, 4.0]), n_projections=4000, rng=np.random.default_rng(1))
    assert sliced == pytest.approx(5 * 2 / np.pi, rel=0.03)  # mean of |cos| over directions


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (np.zeros((2, 2)), np.zeros((2, 2)), {}, "no rng for more than one feature"),
        (np.zeros((2, 2)), np.zeros((2, 3)), {}, "2 and 3 features"),
        (
            np.zeros((2, 2)),
            np.zeros((2, 2)),
            {"rng": np.random.default_rng(0), "n_projections": 0},
            "at least one",
        ),
        ([0.0, np.inf], [0.0], {}, "1 of 2 coordinates"),
        ([], [0.0], {}, r"shape \(0, 1\)"),
        ([0.0, 1.0], [0.0], {"first_weights": [1.0, -1.0]}, "positive sum"),
        ([0.0, 1.0], [0.0], {"first_weights": [1.0]}, "1 weights for 2 events"),
        (["a"], [0.0], {}, "expected numbers"),
    ],
)
def test_wasserstein_refuses(x: Any, y: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        sliced_wasserstein(x, y, **options)
