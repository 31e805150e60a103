"""Chi-squared with the error of the training sample, on errors whose covariance is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from quasiratio import WeightedSample
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import (
    TrainingError,
    WeightedHistogram,
    chi_squared,
    closure,
    total_chi_squared,
    weighted_histogram,
)

N_BINS, N_EVENTS = 40, 10_000.0
x = np.linspace(-2.5, 2.5, N_BINS)
CONTENT = np.exp(-0.5 * x**2) / np.sum(np.exp(-0.5 * x**2))


def histogram(values: npt.NDArray[np.float64], n_events: float = N_EVENTS) -> WeightedHistogram:
    return WeightedHistogram(np.arange(N_BINS + 1.0), values, CONTENT / n_events, 0.0, 0.0, 0.0, 0.0)


def test_it_is_the_quadratic_form_of_the_inverse_covariance() -> None:
    rng = np.random.default_rng(0)
    b, t = (
        weighted_histogram(rng.normal(mean, 1.0, 3000), edges=np.linspace(-2, 2, 9)) for mean in (0.0, 0.1)
    )
    error = TrainingError.of_members(0.1 + 0.01 * rng.normal(size=(5, 8)))
    d = t.values / 3000 - b.values / 3000
    statistical = np.diag((t.variances + b.variances) / 3000**2)
    expected = d @ np.linalg.inv(statistical + error.covariance) @ d
    found = total_chi_squared(b, t, error)
    assert found.chi2 == pytest.approx(expected)
    assert (found.n_dof, found.n_bins) == (7, 8)


def test_the_covariance_is_that_of_the_members_and_their_mean_is_no_better() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    members = (root @ rng.normal(size=(6, 20_000))).T
    assert np.allclose(TrainingError.of_members(members).covariance, root @ root.T, atol=0.25)


def test_nothing_known_changes_nothing() -> None:
    b, t = histogram(CONTENT), histogram(CONTENT[::-1] + 0.001 * np.sin(x))
    nothing = TrainingError(np.zeros((0, N_BINS)), np.zeros(N_BINS), "members")
    assert total_chi_squared(b, t, nothing).chi2 == pytest.approx(chi_squared(b, t).chi2)


@pytest.mark.parametrize("source", ["members", "sample sizes"])
def test_a_model_as_right_as_its_training_sample_passes_and_a_wrong_one_does_not(source: str) -> None:
    """A tenth of the test events in the training, and errors that are smooth, as those of networks are."""
    rng = np.random.default_rng(2)
    smooth = np.exp(-0.5 * (x[:, None] - x) ** 2)
    smooth /= smooth.sum(axis=1, keepdims=True)
    root = smooth * np.sqrt(10 * 2 * CONTENT / N_EVENTS)
    noise = np.sqrt(CONTENT / N_EVENTS)
    p_values: dict[str, list[float]] = {"statistics": [], "total": [], "wrong": []}
    for _ in range(300):
        b = histogram(CONTENT + root @ rng.normal(size=N_BINS) + noise * rng.normal(size=N_BINS))
        t = histogram(CONTENT + noise * rng.normal(size=N_BINS))
        wrong = histogram(b.values + 0.15 * CONTENT * np.sign(np.sin(8 * x)))
        error = TrainingError.of_members(CONTENT + (root @ rng.normal(size=(N_BINS, 8))).T)
        if source == "sample sizes":
            error = TrainingError.of_sample_sizes(b, t, (10.0, 10.0))
        p_values["statistics"].append(chi_squared(b, t).p_value)
        p_values["total"].append(total_chi_squared(b, t, error).p_value)
        p_values["wrong"].append(total_chi_squared(wrong, t, error).p_value)
    failed = {name: np.mean(np.array(values) < 0.01) for name, values in p_values.items()}
    assert failed["statistics"] > 0.25
    assert failed["total"] < 0.1
    assert failed["wrong"] > 0.8
    assert 0.25 < np.median(p_values["total"]) < 0.75


def test_rounding_does_not_move_the_total_of_a_steep_histogram() -> None:
    """Sums over files differ from those over all events in their last digit, and nothing may make more of it."""
    rng = np.random.default_rng(5)
    steep, bent = np.exp(-0.8 * np.arange(N_BINS)), 1 + 0.05 * np.sin(np.arange(N_BINS))
    totals = []
    for rounding in (0.0, 1e-15):
        noise = 1 + rounding * rng.choice([-1, 1], (2, N_BINS))
        b, t = (
            replace(histogram(steep * factor), variances=steep * one / N_EVENTS)
            for one, factor in zip(noise, (bent, 1.0), strict=True)
        )
        totals.append(total_chi_squared(b, t, TrainingError.of_sample_sizes(b, t, (1.0, 1.0))).value)
    assert totals[1] == pytest.approx(totals[0], rel=1e-12)


def test_closure_counts_members_else_sizes_else_nothing() -> None:
    rng = np.random.default_rng(3)
    reference, target = (WeightedSample(rng.normal(0, 1, 4000), names=["x"]) for _ in range(2))
    members = 1 + 0.2 * rng.normal(size=(4, 1)) * reference.features[:, 0]
    ratios = {"ensemble": members, "single": np.ones(4000)}
    both = closure(reference, ratios, target, n_bins=15, training_sizes=(400.0, 400.0))["x"]
    alone = closure(reference, ratios, target, n_bins=15)["x"]
    assert both.reference.total_chi_squared is None
    assert alone["single"].training_error is None
    for entry, source in ((both["ensemble"], "members"), (both["single"], "sample sizes")):
        assert entry.training_error is not None
        assert entry.total_chi_squared is not None
        assert entry.training_error.source == source
        assert entry.total_chi_squared.chi2 < entry.chi_squared.chi2
    ensemble = alone["ensemble"].training_error
    assert ensemble is not None
    assert np.array_equal(ensemble.covariance, both["ensemble"].training_error.covariance)  # type: ignore[union-attr]
    # a tenth of the events has ten times the variance, in the modes that a network follows
    error = both["single"].training_error
    assert error is not None
    statistical = both["single"].histogram.variances + both.target.variances
    assert np.trace(error.covariance / statistical[:, None]) == pytest.approx(10 * 10.0)


def test_the_table_has_the_total_where_there_is_one() -> None:
    sample = WeightedSample(np.repeat([0.5, 1.5], 50), names=["x"])
    given = {"edges": {"x": [0, 1, 2]}}
    result = closure(sample, np.ones(100), sample, training_sizes=(100.0, 100.0), **given)  # type: ignore[arg-type]
    assert [row["total_chi2_per_dof"] for row in result.table(include_reference=True)] == [None, 0.0]
    assert "with training" in str(result)
    assert "with training" not in str(closure(sample, np.ones(100), sample, **given))  # type: ignore[arg-type]


def test_bad_sizes_and_shapes_are_refused() -> None:
    sample = WeightedSample(np.repeat([0.5, 1.5], 50), names=["x"])
    with pytest.raises(InvalidInputError, match="training_sizes"):
        closure(sample, np.ones(100), sample, training_sizes=(0.0, 5.0))
    with pytest.raises(InvalidInputError, match="at least two members"):
        TrainingError.of_members([[0.5, 0.5]])
    with pytest.raises(InvalidInputError, match="training error of 2 bins"):
        total_chi_squared(
            histogram(CONTENT), histogram(CONTENT), TrainingError.of_members([[0.4, 0.6], [0.6, 0.4]])
        )
