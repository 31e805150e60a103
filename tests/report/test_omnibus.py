"""The omnibus test: uniform p-values under the exact ratio, and small ones where something is wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from quasiratio import WeightedSample
from quasiratio.distributions import signed_gaussian_case
from quasiratio.distributions.signed_jets_case import signed_jets_case
from quasiratio.errors import InvalidInputError
from quasiratio.report.omnibus import _p_value, omnibus_test

Array = npt.NDArray[np.float64]


@pytest.mark.slow  # sixty trainings
@pytest.mark.parametrize(("n_events", "n_sets"), [(1500, 60)])
def test_p_values_are_uniform_under_the_exact_ratio(n_events: int, n_sets: int) -> None:
    case = signed_gaussian_case("signed")
    results = []
    for seed in range(n_sets):
        reference, target = case.samples(n_events, np.random.default_rng(seed))
        results.append(omnibus_test(reference, case.exact_ratio(reference.features), target, seed=seed))
    z = np.array([result.z for result in results])
    assert stats.kstest([result.p_value for result in results], "uniform").pvalue > 0.01
    assert 0.75 < z.std(ddof=1) < 1.25
    assert abs(z.mean()) < 3 / np.sqrt(n_sets)
    # a lower bound of a distance that is zero
    pulls = np.array([result.size / result.size_error for result in results])
    assert abs(pulls.mean()) < 3 / np.sqrt(n_sets)


@pytest.mark.slow  # fifteen trainings
@pytest.mark.parametrize(("n_events", "n_sets"), [(6000, 15)])
def test_heavy_weights_in_twelve_dimensions_do_not_spoil_it(n_events: int, n_sets: int) -> None:
    case = signed_jets_case("different-shares")
    p_values = []
    for seed in range(n_sets):
        reference, target = case.samples(n_events, np.random.default_rng(seed))
        exact = case.exact_ratio(reference.features)
        p_values.append(omnibus_test(reference, exact, target, seed=seed).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_a_classifier_on_absolute_weights_is_found_out() -> None:
    case = signed_jets_case("different-shares")
    reference, target = case.samples(20_000, np.random.default_rng(0))
    wrong, none, right = (
        omnibus_test(reference, ratios, target)
        for ratios in (
            case.abs_ratio(reference.features),
            np.ones(20_000),
            case.exact_ratio(reference.features),
        )
    )
    assert none.p_value < wrong.p_value < 1e-6
    assert right.p_value > 0.001
    assert none.size > wrong.size > 5 * wrong.size_error


def circle(n_events: int, correlation: float, seed: int) -> WeightedSample:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n_events))
    return WeightedSample(np.column_stack([x, correlation * x + np.sqrt(1 - correlation**2) * y]))


def test_it_sees_correlations_that_no_observable_shows() -> None:
    result = omnibus_test(circle(4000, 0.0, 0), np.ones(4000), circle(4000, 0.4, 1))
    assert result.p_value < 1e-4
    truth = 0.128  # total variation, by integration
    assert 0.3 * truth < result.size < truth + 3 * result.size_error


def test_it_looks_behind_numbers_for_missing_values() -> None:
    samples = []
    for seed, mean in ((0, 0.0), (1, 0.3)):
        rng = np.random.default_rng(seed)
        score = rng.normal(mean, 1.0, 4000)
        samples.append(WeightedSample(np.where(rng.random(4000) < 0.1, -999.0, score)))
    assert omnibus_test(samples[0], np.ones(4000), samples[1]).p_value < 1e-4


def test_the_same_seed_gives_the_same_answer_and_scales_do_not_matter() -> None:
    reference, target = circle(1000, 0.0, 0), circle(1000, 0.1, 1)
    one = omnibus_test(reference, np.ones(1000), target)
    assert omnibus_test(reference, np.ones(1000), target) == one
    scaled = omnibus_test(reference, np.full(1000, 2.0), target)
    assert scaled.z == pytest.approx(one.z, abs=1e-3)
    assert one.n_events == 1500
    assert one.training_share == 0.0


def smooth_members(sample: WeightedSample, width: float, n_members: int) -> Array:
    """Ratios that are wrong in the mean of x by so much."""
    shifts = np.random.default_rng(5).normal(0.0, width, n_members)
    return np.exp(shifts[:, None] * sample.features[:, 0].astype(np.float64) - 0.5 * shifts[:, None] ** 2)


def test_the_error_of_the_training_sample_is_counted() -> None:
    """A ratio that is wrong by three times the error of the test, and no more than its training sample explains."""
    n_events = 8000
    reference, target = circle(n_events, 0.0, 0), circle(n_events, 0.0, 1)
    shift = 6 * np.sqrt(2 / n_events)
    ratio = np.exp(shift * reference.features[:, 0].astype(np.float64))
    alone = omnibus_test(reference, ratio, target)
    of_members = omnibus_test(reference, ratio, target, members=smooth_members(reference, shift, 12))
    of_sizes = omnibus_test(reference, ratio, target, training_sizes=(n_events / 36, n_events / 36))
    assert alone.p_value < 1e-3
    for result in (of_members, of_sizes):
        assert result.p_value > 0.02
        assert 0.5 < result.training_share < 1
        assert result.size == alone.size
    many = omnibus_test(reference, ratio, target, training_sizes=(100 * n_events, 100 * n_events))
    assert many.z == pytest.approx(alone.z, abs=0.3)


def test_members_that_sum_to_nothing_leave_no_evidence() -> None:
    reference, target = circle(1000, 0.0, 0), circle(1000, 0.9, 1)
    members = np.vstack([np.zeros(1000), np.ones(1000)])
    result = omnibus_test(reference, np.ones(1000), target, members=members)
    assert result.p_value > 0.5
    assert result.training_share > 0.999


def test_the_p_value_is_that_of_a_normal_and_a_chi_variable() -> None:
    rng = np.random.default_rng(0)
    for share, n_modes in ((0.0, 3), (0.3, 3), (0.9, 13)):
        drawn = np.sqrt(1 - share) * rng.normal(size=10**6) + np.sqrt(share * rng.chisquare(n_modes, 10**6))
        for z in (-0.5, 1.0, 3.0):
            assert _p_value(z, share, n_modes) == pytest.approx(np.mean(drawn > z), abs=0.002)


def test_too_few_events_are_refused() -> None:
    small = circle(60, 0.0, 0)
    with pytest.raises(InvalidInputError, match="too few events"):
        omnibus_test(small, np.ones(60), small.select(np.arange(60) < 30))
    one_heavy = np.ones(2000)
    one_heavy[0] = 1e6
    with pytest.raises(
        InvalidInputError, match="reweighted reference of which a quarter has an effective size"
    ):
        omnibus_test(circle(2000, 0.0, 0), one_heavy, circle(2000, 0.0, 1))
