"""The size of a disagreement: right where it is large, near zero for noise, never below the truth by its limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quasiratio.metrics import Disagreement, disagreement, grade, weighted_histogram

EDGES = np.linspace(-3, 3, 31)


def shifted(shift: float, n_events: int, seed: int, *, signed: bool = False) -> Disagreement:
    rng = np.random.default_rng(seed)
    histograms = []
    for mean in (0.0, shift):
        values = rng.normal(mean, 1.0, n_events)
        weights = rng.choice([1.0, -1.0], n_events, p=[0.8, 0.2]) if signed else np.ones(n_events)
        histograms.append(weighted_histogram(values, weights, edges=EDGES))
    return disagreement(histograms[0], histograms[1])


def total_variation(shift: float) -> float:
    return math.erf(shift / 2 / math.sqrt(2))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shift", [0.05, 0.2, 0.5])
def test_it_is_the_total_variation_or_somewhat_more(shift: float, signed: bool) -> None:
    found = np.array([shifted(shift, 200_000, seed, signed=signed).size for seed in range(10)])
    assert 0.95 * total_variation(shift) < found.mean() < 1.25 * total_variation(shift)


def test_noise_is_no_disagreement_and_the_limit_shrinks_with_the_events() -> None:
    few, many = ([shifted(0.0, n, seed) for seed in range(40)] for n in (2000, 200_000))
    for sample, n_events in ((few, 2000), (many, 200_000)):
        sizes = np.array([found.size for found in sample])
        assert np.mean(sizes == 0) > 0.3
        # half the sum of absolute differences would be about this everywhere
        assert np.median(sizes) < 0.6 * 0.5 * math.sqrt(2 / math.pi) * math.sqrt(2 * 30 / n_events)
    ratio = np.median([found.limit for found in few]) / np.median([found.limit for found in many])
    assert ratio == pytest.approx(10.0, rel=0.2)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_the_limit_is_a_limit(shift: float) -> None:
    below = [shifted(shift, 3000, seed).limit < total_variation(shift) for seed in range(100)]
    assert np.mean(below) <= 0.05


def test_weight_beyond_the_edges_counts() -> None:
    inside = weighted_histogram(np.repeat([0.5, 1.5, 9.0], [50, 50, 0]), edges=[0, 1, 2])
    half_outside = weighted_histogram(np.repeat([0.5, 1.5, 9.0], [25, 25, 50]), edges=[0, 1, 2])
    assert disagreement(inside, half_outside).size == pytest.approx(0.5, abs=0.05)


def test_scales_of_weights_do_not_matter() -> None:
    a = weighted_histogram([0.5] * 70 + [1.5] * 30, edges=[0, 1, 2])
    b = weighted_histogram([0.5] * 40 + [1.5] * 60, edges=[0, 1, 2])
    assert disagreement(a.scaled(7.0), b).size == pytest.approx(disagreement(a, b).size)
    assert disagreement(b, a).limit == pytest.approx(disagreement(a, b).limit)


def test_grades_are_absolute_or_relative_to_what_was_before() -> None:
    assert [grade(size) for size in (0.0, 0.003, 0.0031, 0.01, 0.011, 0.05, 0.051)] == [
        "negligible", "negligible", "small", "small", "moderate", "moderate", "large",
    ]  # fmt: skip
    assert [grade(0.1, before) for before in (0.1, 0.4, 1.0, 4.0)] == [
        "large",
        "moderate",
        "small",
        "negligible",
    ]
