"""Weighted histograms against NumPy, their flow, their conversion, and the paper's binning."""

from __future__ import annotations

import time
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import WeightedHistogram, radial_edges, uniform_edges, weighted_histogram

values_and_weights = st.integers(1, 50).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=st.floats(-5, 5)),
        hnp.arrays(np.float64, n, elements=st.floats(-10, 10)),
    )
)


@given(data=values_and_weights)
def test_agrees_with_numpy_and_loses_nothing(data: tuple[Any, Any]) -> None:
    x, w = data
    edges = np.array([-3.0, -1.0, 0.5, 3.0])
    h = weighted_histogram(x, w, edges=edges)
    inside = x < edges[-1]  # NumPy closes the last bin
    np.testing.assert_allclose(h.values, np.histogram(x[inside], edges, weights=w[inside])[0], atol=1e-12)
    np.testing.assert_allclose(
        h.variances, np.histogram(x[inside], edges, weights=w[inside] ** 2)[0], atol=1e-12
    )
    assert h.underflow == pytest.approx(w[x < -3].sum(), abs=1e-12)
    assert h.overflow == pytest.approx(w[x >= 3].sum(), abs=1e-12)
    assert h.sum_of_weights == pytest.approx(w.sum(), abs=1e-11)


@given(data=values_and_weights)
def test_weight_two_is_a_duplicate_for_sums_only(data: tuple[Any, Any]) -> None:
    x, w = data
    edges = [-3.0, 0.0, 3.0]
    doubled = weighted_histogram(x, 2 * w, edges=edges)
    duplicated = weighted_histogram(np.repeat(x, 2), np.repeat(w, 2), edges=edges)
    np.testing.assert_allclose(doubled.values, duplicated.values, atol=1e-12)
    np.testing.assert_allclose(doubled.variances, 2 * duplicated.variances, atol=1e-12)
    absent = weighted_histogram(np.append(x, 1.0), np.append(w, 0.0), edges=edges)
    np.testing.assert_allclose(2 * absent.values, doubled.values, atol=1e-12)


def test_scaling_and_normalisation_include_the_flow() -> None:
    h = weighted_histogram([-9.0, 0.5, 1.5, 9.0], [1.0, 2.0, -1.0, 2.0], edges=[0, 1, 2]).normalized()
    assert h.sum_of_weights == pytest.approx(1.0)
    np.testing.assert_allclose(h.values, [0.5, -0.25])
    np.testing.assert_allclose(h.variances, [4 / 16, 1 / 16])
    assert (h.underflow, h.overflow) == (0.25, 0.5)
    assert (h.underflow_variance, h.overflow_variance) == (1 / 16, 4 / 16)
    np.testing.assert_allclose(weighted_histogram([0.5], edges=[0, 2]).density, [0.5])


def test_to_hist_keeps_values_variances_and_flow() -> None:
    hist = pytest.importorskip("hist")
    h = weighted_histogram([-9.0, 0.5, 1.5, 9.0], [1.0, 2.0, -1.0, 3.0], edges=[0, 1, 2])
    converted = h.to_hist("pt", label="$p_T$ [GeV]")
    assert isinstance(converted, hist.Hist)
    assert (converted.axes[0].name, converted.axes[0].label) == ("pt", "$p_T$ [GeV]")
    np.testing.assert_array_equal(converted.values(flow=True), [1, 2, -1, 3])
    np.testing.assert_array_equal(converted.variances(flow=True), [1, 4, 1, 9])


def test_histograms_are_read_only() -> None:
    h = weighted_histogram([0.5], edges=[0, 1])
    for array in (h.edges, h.values, h.variances, h.scaled(2.0).values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


def test_ten_million_events_take_seconds() -> None:
    x = np.random.default_rng(0).normal(size=10_000_000)
    start = time.perf_counter()
    assert weighted_histogram(x, x, edges=np.linspace(-3, 3, 100)).n_bins == 99
    assert time.perf_counter() - start < 5.0  # 0.5 s on an idle core


@pytest.mark.parametrize(
    ("values", "weights", "edges", "message"),
    [
        ([np.nan, np.inf, 1.0], None, [0, 1], "2 of 3 values that are NaN or infinite"),
        ([1.0], [np.nan], [0, 1], "1 of 1 weights that are NaN"),
        ([1.0, 2.0], [1.0], [0, 1], "1 weights for 2 events"),
        ([[1.0]], None, [0, 1], "one per event"),
        (["a"], None, [0, 1], "expected numbers"),
        ([1.0], None, [1, 0], "increasing order"),
        ([1.0], None, [1, 1], "increasing order"),
        ([1.0], None, [1], "at least two"),
        ([1.0], None, [0, np.inf], "edges that are NaN or infinite"),
    ],
)
def test_bad_input(values: Any, weights: Any, edges: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        weighted_histogram(values, weights, edges=edges)


def test_a_zero_sum_cannot_be_normalised() -> None:
    h = weighted_histogram([0.5, 0.6], [1.0, -1.0], edges=[0, 1])
    assert isinstance(h, WeightedHistogram)
    with pytest.raises(InvalidInputError, match="sum to zero"):
        h.normalized()


def test_uniform_edges_follow_the_narrower_sample() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 5000), rng.normal(0.5, 2, 7000)
    edges = uniform_edges(a, b)
    assert len(edges) == 100
    assert edges[0] == max(np.percentile(a, 0.1), np.percentile(b, 0.1))
    assert edges[-1] == min(np.percentile(a, 99.9), np.percentile(b, 99.9))
    np.testing.assert_allclose(np.diff(edges), np.diff(edges)[0])
    np.testing.assert_array_equal(edges, uniform_edges(b, a))
    r_edges = radial_edges(np.abs(a), np.abs(b), n_bins=10)
    assert (r_edges[0], len(r_edges)) == (0.0, 11)
    assert r_edges[-1] == np.percentile(np.abs(a), 99.9)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([0.0, 1.0], [5.0, 6.0], {}, "share no range"),
        ([1.0, 1.0], [1.0, 1.0], {}, "share no range"),
        ([], [1.0], {}, "without events"),
        ([0.0, np.nan], [1.0], {}, "1 of 2 values"),
        ([0.0, 1.0], [0.0, 1.0], {"n_bins": 0}, "positive integer"),
        ([0.0, 1.0], [0.0, 1.0], {"n_bins": 2.5}, "positive integer"),
        ([0.0, 1.0], [0.0, 1.0], {"lower_percentile": 60, "upper_percentile": 50}, "lower before the upper"),
    ],
)
def test_edges_refuse_what_has_no_range(a: Any, b: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        uniform_edges(a, b, **options)


def test_radial_edges_check_their_percentile() -> None:
    with pytest.raises(InvalidInputError, match="between 0 and 100"):
        radial_edges([1.0], [2.0], upper_percentile=101)
