"""A model judged on samples: closure of its own ratio, bands of its members, the risk against doing nothing."""

from __future__ import annotations

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import SupportWarning
from quasiratio.metrics import total_chi_squared
from quasiratio.report.evaluation import evaluate_model

rng = np.random.default_rng(0)
REFERENCE, TARGET = (
    qr.WeightedSample(
        {"x": rng.normal(mean, 1.0, 3000), "n": rng.poisson(2.0, 3000)},
        rng.choice([1.0, -0.5], 3000, p=[0.9, 0.1]),
    )
    for mean in (0.0, 0.5)
)


@pytest.fixture(scope="module")
def ensemble() -> qr.SignResolvedRatio:
    X = np.concatenate([REFERENCE.features, TARGET.features])
    w = np.concatenate([REFERENCE.weights, TARGET.weights])
    model = qr.SignResolvedRatio(max_steps=80, batch_size=1024, n_members=3, random_state=0)
    return model.fit(qr.WeightedSample(X, w, REFERENCE.names), np.repeat([0, 1], 3000), w)


def test_the_ratio_is_that_of_the_ensemble_and_the_band_that_of_its_members(
    ensemble: qr.SignResolvedRatio,
) -> None:
    result = evaluate_model(ensemble, REFERENCE, TARGET, n_bins=10)
    ratio, members = ensemble.predict_ratio(REFERENCE), ensemble.predict_members(REFERENCE)
    assert np.array_equal(result.ratios, ratio)
    entry = result.closure["x"]["model"]

    def content(weights: np.ndarray) -> np.ndarray:
        counts = np.histogram(REFERENCE.features[:, 0], entry.histogram.edges, weights=weights)[0]
        return np.asarray(counts / weights.sum())

    # a bin edge may take an event from one side to the other
    assert np.allclose(entry.histogram.values, content(REFERENCE.weights * ratio), atol=2e-3)
    rows = [content(REFERENCE.weights * member) for member in members]
    assert entry.member_band is not None
    assert np.allclose(entry.member_band, np.std(rows, axis=0, ddof=1), atol=2e-3)


def test_reweighting_beats_doing_nothing(ensemble: qr.SignResolvedRatio) -> None:
    result = evaluate_model(ensemble, REFERENCE, TARGET)
    assert result.risk_difference.significance < -3
    before, after = result.closure["x"].reference.chi_squared, result.closure["x"]["model"].chi_squared
    assert after.value < 0.3 * before.value
    assert result.reweighted.effective_size < result.reference.effective_size


def test_whole_numbers_have_a_bin_each_and_observables_are_added(ensemble: qr.SignResolvedRatio) -> None:
    radius = tuple(np.hypot(*sample.features.T) for sample in (REFERENCE, TARGET))
    result = evaluate_model(
        ensemble, REFERENCE, TARGET, observables={"radius": (radius[0], radius[1])}, n_bins=12
    )
    assert [entry.name for entry in result.closure.observables] == ["x", "n", "radius"]
    assert np.array_equal(np.diff(result.closure["n"].edges), np.ones(len(result.closure["n"].edges) - 1))
    assert len(result.closure["radius"].edges) == 13


@pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning")  # five steps are no fit
def test_a_feature_with_one_value_is_left_out() -> None:
    flat = [
        qr.WeightedSample({"x": s.features[:, 0], "one": np.ones(len(s))}) for s in (REFERENCE, REFERENCE)
    ]
    X = np.concatenate([sample.features for sample in flat])
    model = qr.DirectRatio(max_steps=5, random_state=0).fit(
        qr.WeightedSample(X, names=["x", "one"]), np.repeat([0, 1], 3000)
    )
    with pytest.warns(SupportWarning, match="one value only: 'one'"):
        result = evaluate_model(model, *flat)
    assert [entry.name for entry in result.closure.observables] == ["x"]


@pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning")  # five steps are no fit
def test_a_copy_is_shown_and_counted_once() -> None:
    """A second axis with the same values would halve the p-value that each must have, and fail or pass with the first."""
    n = REFERENCE.names.index("n")
    samples = [
        qr.WeightedSample(
            {"x": s.features[:, 0], "n": s.features[:, n], "again": s.features[:, 0], "m": s.features[:, n]}
        )
        for s in (REFERENCE, TARGET)
    ]
    model = qr.DirectRatio(max_steps=5, random_state=0).fit_samples(samples[0], samples[1])
    with pytest.warns(SupportWarning, match="as they are copies: 'again' of 'x', 'm' of 'n'"):
        result = evaluate_model(
            model, *samples, n_bins=10, edges={"again": np.linspace(-1, 1, 5)}, omnibus=False
        )
    assert [entry.name for entry in result.closure.observables] == ["x", "n"]
    shifted = qr.WeightedSample(
        samples[1].features + np.array([0, 0, 0.5, 0], np.float32), names=samples[1].names
    )
    with pytest.warns(SupportWarning, match="copies: 'm' of 'n'"):
        result = evaluate_model(model, samples[0], shifted, n_bins=10, omnibus=False)
    assert [entry.name for entry in result.closure.observables] == ["x", "n", "again"]


def test_members_enter_chi_squared_of_the_ensemble_s_own_ratio(ensemble: qr.SignResolvedRatio) -> None:
    result = evaluate_model(ensemble, REFERENCE, TARGET, n_bins=10, training_sizes=(5.0, 5.0))
    entry = result.closure["x"]["model"]
    error = entry.training_error
    assert error is not None
    assert error.source == "members"  # measured, so that the sizes are not needed
    assert entry.member_band is not None
    assert np.allclose(np.square(error.deviations).sum(axis=0), entry.member_band**2)
    total = total_chi_squared(entry.histogram, result.closure["x"].target, error)
    assert entry.total_chi_squared == total
    assert 0 < total.chi2 < entry.chi_squared.chi2


@pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning")  # five steps are no fit
def test_one_network_has_the_sizes_it_was_trained_on() -> None:
    X = np.concatenate([REFERENCE.features, TARGET.features])
    model = qr.DirectRatio(max_steps=5, random_state=0).fit(X, np.repeat([0, 1], 3000))
    samples = [qr.WeightedSample(sample.features, names=["x0", "x1"]) for sample in (REFERENCE, TARGET)]

    def total(training_sizes: tuple[float, float] | None) -> float | None:
        result = evaluate_model(model, *samples, n_bins=10, training_sizes=training_sizes, omnibus=False)
        assert result.omnibus is None
        found = result.closure["x0"]["model"].total_chi_squared
        return None if found is None else found.chi2

    if hasattr(model, "training_sizes_"):
        del model.training_sizes_
    assert total(None) is None
    few, many = total((300.0, 300.0)), total((30_000.0, 30_000.0))
    assert few is not None
    assert many is not None
    assert few < many
    model.training_sizes_ = (300.0, 300.0)
    assert total((30_000.0, 30_000.0)) == few  # what the model knows comes first


def test_the_omnibus_test_is_made_where_there_are_events(ensemble: qr.SignResolvedRatio) -> None:
    result = evaluate_model(ensemble, REFERENCE, TARGET, n_bins=10)
    assert result.omnibus is not None
    assert result.omnibus.training_share > 0
    few = evaluate_model(ensemble, *(s.select(np.arange(3000) < 60) for s in (REFERENCE, TARGET)), n_bins=3)
    assert few.omnibus is None
