"""Parton-level samples: each variable against quadrature, signs, and the exact ratio."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from quasiratio.generators.gg_hh import (
    PAPER_POINT,
    Expansion,
    HardProcess,
    PartonEvents,
    PartonSampler,
    load_parton_density,
)
from quasiratio.generators.gg_hh.les_houches import boson_momenta

N_EVENTS = 150_000
ECM = 13000.0
Samplers = dict[Expansion, PartonSampler]
Samples = dict[Expansion, PartonEvents]


@pytest.fixture(scope="module")
def samplers() -> Samplers:
    density = load_parton_density()
    return {
        e: PartonSampler(HardProcess(e, PAPER_POINT, ECM, density)) for e in ("sm", "linear", "quadratic")
    }


@pytest.fixture(scope="module")
def samples(samplers: Samplers) -> Samples:
    return {e: s.sample(N_EVENTS, np.random.default_rng(i)) for i, (e, s) in enumerate(samplers.items())}


def expected_counts(process: HardProcess, edges: Any, *, absolute: bool) -> Any:
    """Events per mass bin by quadrature that knows nothing of the sampler's grid."""
    x, w = np.polynomial.legendre.leggauss(24)
    v_edges = np.sqrt(edges - 250.0)
    v = 0.5 * (v_edges[1:] + v_edges[:-1])[:, None] + 0.5 * np.diff(v_edges)[:, None] * x
    spectrum = process.mass_spectrum((250.0 + v * v).ravel(), absolute=absolute).reshape(v.shape)
    bins = np.sum(0.5 * np.diff(v_edges)[:, None] * w * 2.0 * v * spectrum, axis=1)
    return N_EVENTS * bins / process.absolute_total


@pytest.mark.parametrize("expansion", ["sm", "linear", "quadratic"])
def test_mass_histogram_agrees_with_quadrature(
    samplers: Samplers, samples: Samples, expansion: Expansion
) -> None:
    process, events = samplers[expansion].process, samples[expansion]
    edges = np.concatenate((np.linspace(250, 700, 46), [750, 800, 900, 1000, 1200, 1600, 3000]))
    for absolute in (True, False):
        expected = expected_counts(process, edges, absolute=absolute)
        weights = np.ones(N_EVENTS) if absolute else events.weights
        observed = np.histogram(events.m_hh, edges, weights=weights)[0]
        variance = expected_counts(process, edges, absolute=True)
        chi2 = np.sum(np.square(observed - expected) / variance)
        assert stats.chi2.sf(chi2, len(expected)) > 1e-3
        assert stats.chi2.cdf(chi2, len(expected)) > 1e-3


def uniformity(density: Any, value: Any, half_range: Any) -> float:
    """Probability that the integral of the density up to each value is uniform (Kolmogorov-Smirnov)."""
    grid = np.linspace(-1.0, 1.0, 401)
    heights = density(grid[None, :] * half_range[:, None])
    cumulative = np.concatenate(
        (np.zeros((len(value), 1)), np.cumsum(0.5 * (heights[:, 1:] + heights[:, :-1]), axis=1)), axis=1
    )
    cumulative /= cumulative[:, -1:]
    quantile = [np.interp(v / h, grid, row) for v, h, row in zip(value, half_range, cumulative, strict=True)]
    return float(stats.kstest(quantile, "uniform").pvalue)


@pytest.mark.parametrize("expansion", ["sm", "linear"])
def test_angle_and_rapidity_follow_their_conditional_densities(
    samplers: Samplers, samples: Samples, expansion: Expansion
) -> None:
    process, events = samplers[expansion].process, samples[expansion]
    few = slice(0, 1500)
    m_hh = events.m_hh[few]

    def angular(cosine: Any) -> Any:
        m_grid = np.repeat(m_hh[:, None], cosine.shape[1], axis=1)
        return np.abs(process.squared(m_grid, process.form_factors(m_grid, cosine)))

    def gluons(rapidity: Any) -> Any:
        return process.gluon_pair(np.repeat(m_hh[:, None], rapidity.shape[1], axis=1), rapidity)

    assert uniformity(angular, events.cos_theta[few], np.ones(1500)) > 1e-3
    assert uniformity(gluons, events.rapidity[few], np.log(ECM / m_hh)) > 1e-3
    assert stats.kstest(events.phi[few], "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3


def test_weights_are_signs(samplers: Samplers, samples: Samples) -> None:
    assert set(np.unique(samples["linear"].weights)) == {-1.0, 1.0}
    for expansion in ("sm", "quadratic"):
        assert np.all(samples[expansion].weights == 1.0)
    negative = samplers["linear"].process.negative_fraction
    spread = np.sqrt(negative * (1 - negative) / N_EVENTS)
    assert np.mean(samples["linear"].weights < 0) == pytest.approx(negative, abs=4 * spread)


def test_exact_ratio_has_the_sign_of_the_weight_and_the_right_mean(
    samplers: Samplers, samples: Samples
) -> None:
    sm, linear = samples["sm"], samples["linear"]
    np.testing.assert_array_equal(np.sign(linear.raw_ratio_linear), linear.weights)
    for name in ("linear", "quadratic"):
        raw, unit = getattr(sm, f"raw_ratio_{name}"), getattr(sm, f"ratio_{name}")
        totals = samplers[name].process.signed_total / samplers["sm"].process.signed_total
        np.testing.assert_allclose(raw, unit * totals, rtol=1e-12)
        assert unit.mean() == pytest.approx(1.0, abs=4 * unit.std() / np.sqrt(N_EVENTS))
    low = (sm.m_hh > 250) & (sm.m_hh < 260)
    assert sm.raw_ratio_linear[low].mean() == pytest.approx(-21.0, abs=3.0)


@pytest.mark.parametrize("target", ["linear", "quadratic"])
def test_reweighted_standard_model_is_the_target(samples: Samples, target: Expansion) -> None:
    sm, other = samples["sm"], samples[target]
    ratio = getattr(sm, f"ratio_{target}")
    edges = {
        "m_hh": np.linspace(270, 900, 22),
        "cos_theta": np.linspace(-1, 1, 11),
        "rapidity": np.linspace(-2.5, 2.5, 11),
    }
    for name, bins in edges.items():
        both = []
        for x, w in ((getattr(sm, name), ratio), (getattr(other, name), other.weights)):
            norm = w.sum()
            both.append(
                (np.histogram(x, bins, weights=w)[0] / norm, np.histogram(x, bins, weights=w**2)[0] / norm**2)
            )
        (p, var_p), (q, var_q) = both
        chi2 = np.sum(np.square(p - q) / (var_p + var_q))
        assert stats.chi2.sf(chi2, len(bins) - 1) > 1e-3, name


def test_reweighting_keeps_a_fifth_of_the_statistics(samples: Samples) -> None:
    ratio = samples["sm"].ratio_linear
    kept = ratio.sum() ** 2 / np.square(ratio).sum() / N_EVENTS
    assert kept == pytest.approx(0.22, abs=0.02)


def test_kinematics_are_consistent(samples: Samples) -> None:
    events = samples["linear"]
    np.testing.assert_allclose(events.x1 * events.x2 * ECM**2, events.m_hh**2, rtol=1e-10)
    assert max(events.x1.max(), events.x2.max()) < 1.0
    assert events.m_hh.min() > 250.0
    first, second = np.moveaxis(boson_momenta(events), 1, 0)
    for boson in (first, second):
        mass2 = boson[:, 3] ** 2 - np.square(boson[:, :3]).sum(axis=1)
        np.testing.assert_allclose(mass2, 125.0**2, rtol=1e-6)
    total = first + second
    gluons = 0.5 * ECM * np.stack((events.x1 - events.x2, events.x1 + events.x2), axis=1)
    np.testing.assert_allclose(total[:, 2:], gluons, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(total[:, :2], 0.0, atol=1e-9)


def test_the_generator_state_decides_the_events(samplers: Samplers) -> None:
    one, same, other = (samplers["linear"].sample(500, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(a, same.columns()[name]) for name, a in one.columns().items())
    assert not np.array_equal(one.m_hh, other.m_hh)


def test_forward_backward_symmetry(samples: Samples) -> None:
    for name in ("cos_theta", "rapidity"):
        values = getattr(samples["sm"], name)
        assert abs(values.mean()) < 4 * values.std() / np.sqrt(N_EVENTS)
