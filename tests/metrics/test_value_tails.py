"""Ends of the values that parts of a sample can be asked for, and bins for values that many events share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.metrics import natural_edges
from quasiratio.metrics.binning import natural_edges_of
from quasiratio.metrics.value_tails import ValueTails

N_EVENTS = 4000
RNG = np.random.default_rng(0)
SCORES = [RNG.normal(2.0 + shift, 1.0, N_EVENTS) for shift in (0.0, 1.0)]
IS_GONE = RNG.random(N_EVENTS) < 0.1
Array = npt.NDArray[np.float64]


def edges(first: Array, second: Array, n_bins: int = 20) -> list[float]:
    return [float(edge) for edge in natural_edges(first, second, n_bins=n_bins)]


@given(
    values=st.lists(st.sampled_from([-999.0, 0.0, 0.5, 1.0, 2.5, 9.0]), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
def test_parts_in_any_order_tell_what_all_values_do(values: list[float], cuts: list[int]) -> None:
    whole = ValueTails.of(np.array(values))
    parts = [ValueTails.of(part, len(values)) for part in np.split(np.array(values), sorted(cuts))]
    merged, *others = parts[::-1]
    for other in others:
        merged.merge(other)
    for tails in (whole, merged):
        assert tails.bounds == (min(values), max(values))
        assert tails.percentiles == pytest.approx(np.percentile(values, [0.1, 99.9]).tolist())
        for tail, sign in ((tails.lower, 1.0), (tails.upper, -1.0)):
            signed = [sign * value for value in values]
            larger = sorted(value for value in signed if value > min(signed))
            assert (tail.extreme, tail.n_shared) == (min(signed), signed.count(min(signed)))
            assert sorted(tail.others.tolist()) == larger[: tail.n_kept]


@pytest.mark.parametrize("number", [-999.0, 9999.0])
def test_a_number_for_missing_values_leaves_the_bins_to_the_others(number: float) -> None:
    """With -999 among 50 uniform bins all scores were in one of them, and every ratio closed."""
    first, second = (np.where(IS_GONE, number, score) for score in SCORES)
    usual = edges(SCORES[0][~IS_GONE], SCORES[1][~IS_GONE])
    found = edges(first, second)
    assert found[:-1] == usual if number > 0 else found[1:] == usual
    assert min(found[0], number) == found[0]
    assert max(found[-1], number) == found[-1]
    bins = np.histogram(first, found)[0]
    assert bins[-1 if number > 0 else 0] >= IS_GONE.sum()


def test_both_ends_may_be_far() -> None:
    first, second = (np.where(IS_GONE, -999.0, np.where(score > 4.5, 99.0, score)) for score in SCORES)
    found = edges(first, second)
    assert found[0] == -999.0
    assert found[-1] == np.nextafter(99.0, 100.0)
    assert -2.0 < found[1] < found[-2] < 4.5


def test_one_sample_may_have_none_of_it() -> None:
    found = edges(np.where(IS_GONE, -999.0, SCORES[0]), SCORES[1])
    assert found[0] == -999.0
    assert found[1] > -2.0


def test_the_sum_of_no_jets_has_a_bin_up_to_the_first_jet() -> None:
    sums = np.where(IS_GONE, 0.0, RNG.uniform(20.0, 220.0, N_EVENTS))
    found = edges(sums, sums)
    assert found[0] == 0.0
    assert found[1] == pytest.approx(20.0, abs=1.0)


def test_counts_beside_a_far_number_keep_a_bin_each() -> None:
    counts = np.where(IS_GONE, -999.0, RNG.integers(0, 5, N_EVENTS).astype(float))
    assert edges(counts, counts) == [-999.0, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    near = np.where(IS_GONE, -1.0, counts)
    assert edges(near, near) == [-1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize(
    "values",
    [
        SCORES[0],
        np.maximum(SCORES[0], 1.0),  # a shared value, but no gap
        np.where(np.arange(N_EVENTS) < 30, -999.0, SCORES[0]),  # a gap, but few
        np.where(IS_GONE, 2.0, SCORES[0]),
    ],
)
def test_otherwise_bins_are_uniform_between_percentiles(values: Array) -> None:
    low, high = np.percentile(values, [0.1, 99.9])
    assert edges(values, values) == pytest.approx(np.linspace(low, high, 21).tolist())


def test_a_sample_of_nothing_else_does_not_break_it() -> None:
    gone = np.full(100, -999.0)
    tails = ValueTails.of(gone), ValueTails.of(np.where(IS_GONE, -999.0, SCORES[0]))
    with pytest.raises(ValueError, match="share no range"):
        natural_edges_of(*tails, n_bins=20)
