"""The error of the training in a histogram: what the members' scatter must give, from a model in closed form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import chi_squared, histogram_band, weighted_histogram

EDGES = np.linspace(0.0, 1.0, 11)
FloatArray = npt.NDArray[np.float64]


def signed_events(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Uniform places; signs with the asymmetry 0.3 + 0.4 x."""
    x = rng.random(n)
    return x, np.where(rng.random(n) < 0.5 * (1.3 + 0.4 * x), 1.0, -1.0)


def line(x: FloatArray, w: FloatArray, counts: FloatArray) -> FloatArray:
    """Least squares of the sign against a straight line: an estimate that smooths, as a network does."""
    basis = np.column_stack([np.ones_like(x), x])
    return np.asarray(basis @ np.linalg.solve((basis.T * counts) @ basis, basis.T @ (counts * w)))


def members_of(x: FloatArray, w: FloatArray, n_members: int, rng: np.random.Generator) -> FloatArray:
    return np.array([line(x, w, rng.poisson(1.0, len(x)).astype(float)) for _ in range(n_members)])


def test_pulls_against_the_truth_are_normal_with_the_training_error_and_far_too_wide_without() -> None:
    rng = np.random.default_rng(0)
    middles = 0.5 * (EDGES[1:] + EDGES[:-1])
    pulls, naive = [], []
    for _ in range(150):
        x, w = signed_events(2000, rng)
        band = histogram_band(x, line(x, w, np.ones(2000)), members_of(x, w, 8, rng), edges=EDGES)
        miss = band.histogram.values - 200 * (0.3 + 0.4 * middles)
        pulls.append(miss / band.total_error)
        naive.append(miss / band.statistical_error)
    assert 0.9 < np.quantile(np.abs(pulls), 0.683) < 1.1
    assert np.quantile(np.abs(naive), 0.683) > 1.2


@pytest.mark.parametrize("n_members", [4, 8, 30])
def test_chi_squared_against_independent_truth_is_one_per_bin(n_members: int) -> None:
    rng = np.random.default_rng(1)
    with_band, naive = [], []
    for _ in range(60):
        x, w = signed_events(2000, rng)
        truth = rng.triangular(-0.75, 1.0, 1.0, 60_000)  # its part above zero has the density 0.6 + 0.8 x
        exact = weighted_histogram(truth[truth > 0], edges=EDGES)
        band = histogram_band(x, line(x, w, np.ones(2000)), members_of(x, w, n_members, rng), edges=EDGES)
        with_band.append(band.chi_squared(exact).value)
        naive.append(chi_squared(band.histogram, exact).value)
    assert 0.75 < np.mean(with_band) < 1.15
    assert np.mean(naive) > 1.2 * np.mean(with_band)


def test_errors_add_up() -> None:
    rng = np.random.default_rng(2)
    x, w = signed_events(500, rng)
    members = members_of(x, w, 5, rng)
    band = histogram_band(x, line(x, w, np.ones(500)), members, edges=EDGES)
    inside = x < 0.1
    assert band.n_members == 5
    assert band.training_error[0] == pytest.approx(members[:, inside].sum(axis=1).std(ddof=1))
    np.testing.assert_allclose(np.sqrt(np.diag(band.covariance)), band.total_error)
    np.testing.assert_allclose(band.effective_events, (band.histogram.values / band.total_error) ** 2)
    merged = histogram_band(x, line(x, w, np.ones(500)), members, edges=[0.0, 1.0])
    assert merged.covariance[0, 0] == pytest.approx(band.covariance.sum())


def test_a_weight_of_the_members_in_common_drops_out_of_the_shape() -> None:
    rng = np.random.default_rng(3)
    x, w = signed_events(500, rng)
    fit, members = line(x, w, np.ones(500)), members_of(x, w, 5, rng)
    exact = weighted_histogram(rng.random(1000), edges=EDGES)
    scaled = histogram_band(x, 3 * fit, members * np.arange(1.0, 6.0)[:, None], edges=EDGES)
    plain = histogram_band(x, fit, members, edges=EDGES)
    assert scaled.chi_squared(exact).chi2 == pytest.approx(plain.chi_squared(exact).chi2)


def test_bins_cut_off_at_zero_do_not_explode() -> None:
    """Members say -2 in a bin and the estimate is set to zero: no variance, but an error of that size."""
    x = np.repeat([0.5, 1.5, 2.5], 100)
    members = np.array([np.where(x < 1, step, 1.0) for step in (-0.021, -0.02, -0.019, -0.02)])
    band = histogram_band(x, np.where(x < 1, 0.0, 1.0), members, edges=[0.0, 1.0, 2.0, 3.0])
    many = np.tile(x, 1000)
    exact = weighted_histogram(many, np.where(many < 1, 0.01, 1.0), edges=[0.0, 1.0, 2.0, 3.0])
    assert band.chi_squared(exact).value < 1.0


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least two members"):
        histogram_band([0.5], [1.0], [[1.0]], edges=[0, 1])
    with pytest.raises(InvalidInputError, match="one column per value"):
        histogram_band([0.5], [1.0], [[1.0, 2.0], [1.0, 2.0]], edges=[0, 1])
    band = histogram_band([0.5], [1.0], [[1.0], [2.0]], edges=[0, 1])
    with pytest.raises(InvalidInputError, match="expected the same edges"):
        band.chi_squared(weighted_histogram([0.5], edges=[0, 2]))
    with pytest.raises(InvalidInputError, match="expected at least two"):
        band.chi_squared(weighted_histogram([0.5], edges=[0, 1]))
