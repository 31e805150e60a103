"""Positive weights from signed ones: the same expectations, more effective events, an honest report."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone

from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError, NegativeDensityWarning
from quasiratio.estimators import PositiveReweighter

FloatArray = npt.NDArray[np.float64]
Signed = tuple[npt.NDArray[np.float32], FloatArray]
Fitted = tuple[PositiveReweighter, npt.NDArray[np.float32], FloatArray]

N_EVENTS = 50_000


def reweighter(**options: object) -> PositiveReweighter:
    model = PositiveReweighter(random_state=0, verbose=False, max_steps=250, batch_size=4096, n_members=4)
    model.set_params(**options)
    return model


def target(case: str, n: int, seed: int = 0, *, lognormal: bool = False) -> Signed:
    """Return the target sample of a toy, with weights +-1 or of any size."""
    rng = np.random.default_rng(seed)
    sample = signed_gaussian_case(case).target.sample(n, rng)
    sizes = rng.lognormal(0.0, 0.5, n) if lognormal else 1.0
    return np.array(sample.features), sample.weights * sizes


@pytest.fixture(scope="module", params=[False, True], ids=["unit weights", "lognormal weights"])
def nonnegative(request: pytest.FixtureRequest) -> Fitted:
    features, weights = target("nonnegative", N_EVENTS, lognormal=request.param)
    return reweighter().fit(features, weights), features, weights


@pytest.fixture(scope="module")
def signed() -> Fitted:
    features, weights = target("signed", 80_000)
    with pytest.warns(NegativeDensityWarning, match="The density is negative over"):
        fitted = reweighter(max_steps=400).fit(features, weights)
    return fitted, features, weights


def test_no_weight_is_negative_and_the_sum_is_kept(nonnegative: Fitted) -> None:
    fitted, features, weights = nonnegative
    new = fitted.predict_weights(features, weights)
    assert new.min() >= 0
    assert new.sum() == pytest.approx(weights.sum(), rel=1e-12)
    assert fitted.scale_ == pytest.approx(1.0, abs=0.05)


def observables(features: npt.NDArray[np.float32]) -> dict[str, FloatArray]:
    x, y = features.astype(np.float64).T
    radius = np.hypot(x, y)
    return {
        "x": x,
        "x y": x * y,
        "radius": radius,
        "radius squared": radius**2,
        "cosine": np.cos(x - 0.5 * y),
        "centre": (radius < 1.0).astype(np.float64),
        "ring": ((radius > 1.5) & (radius < 3.0)).astype(np.float64),
        "half plane": (x + y > 1.0).astype(np.float64),
        "tail": (radius > 4.0).astype(np.float64),
    }


def test_expectations_are_those_of_the_signed_sample(nonnegative: Fitted) -> None:
    """The two share their events: their difference has the variance of w given x, w^2 (1 - a^2)."""
    fitted, features, weights = nonnegative
    new = fitted.predict_weights(features, weights)
    for name, values in observables(features).items():
        difference = float((weights - new) @ values)
        error = np.sqrt(np.sum((weights**2 - np.minimum(new, np.abs(weights)) ** 2) * values**2))
        assert abs(difference) < 3.5 * error, name


def test_expectations_hold_for_events_the_fit_did_not_see(nonnegative: Fitted) -> None:
    fitted = nonnegative[0]
    case = signed_gaussian_case("nonnegative").target
    fresh = case.sample_unweighted(N_EVENTS, np.random.default_rng(7)).features
    features, signs = target("nonnegative", N_EVENTS, seed=8)
    new = fitted.predict_weights(features, signs)
    assert new.min() >= 0
    total = N_EVENTS / 3  # (2c - 1) = 3 events per unit of weight
    for name, values in observables(fresh).items():
        truth = values.mean()
        got = float(new @ observables(features)[name]) / total
        # The reweighted events, and the sample that the network has learned from.
        error = np.sqrt(values.var() / N_EVENTS + 2 * np.mean(values**2) * 9 / (N_EVENTS * 1.0))
        assert abs(got - truth) < 3.5 * error, name


def test_the_effective_size_gains_at_least_four(nonnegative: Fitted) -> None:
    fitted, features, weights = nonnegative
    report, new = fitted.report_, fitted.predict_weights(features, weights)
    assert report.effective_size_before == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    assert report.effective_size_after == pytest.approx(new.sum() ** 2 / np.sum(new**2))
    assert report.gain == pytest.approx(report.effective_size_after / report.effective_size_before)
    assert 4.0 < report.gain < 6.5  # the exact density gives 5.5


def test_the_report_tells_what_happened(nonnegative: Fitted) -> None:
    fitted, _, weights = nonnegative
    report = fitted.report_
    assert report.negative_fraction_before == np.mean(weights < 0)
    assert report.negative_fraction_after == 0.0
    assert report.negative_density_fraction == 0.0
    assert 0.0 <= report.flattened_fraction < 0.1
    assert f"gain {report.gain:.2f}" in str(report)
    assert f"{report.negative_fraction_before:.2%} -> 0.00%" in str(report)
    assert fitted.history_ is not None


def test_the_estimate_is_the_exact_asymmetry(nonnegative: Fitted) -> None:
    """E[w | x] / E[|w| | x] is known: (2 p_1 - p_2) / (2 p_1 + p_2) for c = 2."""
    fitted, features, _ = nonnegative
    q = signed_gaussian_case("nonnegative").target
    t = np.sum(features.astype(np.float64) ** 2, axis=1) / 2
    positive, negative = (c * np.exp(-t / s**2) / s**2 for c, s in ((q.c, q.sigma_1), (q.c - 1, q.sigma_2)))
    exact = (positive - negative) / (positive + negative)
    estimate = fitted.predict_weights(features, np.ones(len(features))) / fitted.scale_
    assert np.sqrt(np.mean((estimate - exact) ** 2)) < 0.04


@pytest.mark.parametrize("seed", range(3))
def test_small_nonnegative_samples_are_not_called_negative(seed: int) -> None:
    features, weights = target("nonnegative", 3000, seed=seed)
    fitted = reweighter(max_steps=100, batch_size=1024).fit(features, weights)  # a warning would be an error
    assert fitted.report_.negative_density_fraction == 0.0
    new = fitted.predict_weights(*target("nonnegative", 3000, seed=seed + 100))
    assert new.min() >= 0  # nor do unseen events get negative weights


def test_unseen_events_get_no_negative_weight_where_no_negative_density_was_found() -> None:
    """Negative weights become more frequent towards x = 1; beyond the data, and without edges, the estimate is negative."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (8000, 1)).astype(np.float32)
    weights = np.where(rng.random(8000) < 0.1 + 0.3 * x[:, 0], -1.0, 1.0)
    fitted = reweighter(max_steps=150, batch_size=2048).fit(x, weights)
    assert fitted.report_.flattened_fraction == 0.0
    beyond = np.linspace(1.0, 4.0, 50, dtype=np.float32)[:, None]
    assert fitted.model_ is not None
    fitted.model_.scaling.ceiling[:] = np.inf
    assert fitted.model_.predict(beyond).ratio.min() < 1.0  # odds below one
    assert fitted.predict_weights(beyond, np.ones(50)).min() == 0.0


def test_negative_density_is_reported_with_its_fraction(signed: Fitted) -> None:
    fitted, features, weights = signed
    q = signed_gaussian_case("signed").target
    is_negative = q.density(features) < 0
    true_fraction = float(np.abs(weights)[is_negative].sum() / np.abs(weights).sum())
    assert true_fraction == pytest.approx(0.246, abs=0.01)  # in closed form
    report = fitted.report_
    assert report.negative_density_fraction == pytest.approx(true_fraction, abs=0.05)
    assert report.flattened_fraction == 0.0
    assert 0 < report.negative_fraction_after < report.negative_fraction_before
    assert report.negative_fraction_after == pytest.approx(report.negative_density_fraction)
    assert f"{report.negative_density_fraction:.2%}" in str(report)


def test_keep_sign_leaves_negative_weights_where_the_density_is_negative(signed: Fitted) -> None:
    fitted, features, weights = signed
    new = fitted.predict_weights(features, weights)
    q = signed_gaussian_case("signed").target
    is_negative = q.density(features) < 0
    agree = (new < 0) == is_negative
    assert agree.mean() > 0.95
    # Where they do not agree, the density is close to zero, and so are the new weights.
    assert np.abs(new[~agree]).max() < 0.25
    assert new.sum() == pytest.approx(weights.sum(), rel=1e-12)
    for name, values in observables(features).items():
        error = np.sqrt(np.sum(np.maximum(weights**2 - new**2, 0.0) * values**2))
        training = np.std(fitted.predict_member_weights(features, weights) @ values, ddof=1)
        assert abs(float((weights - new) @ values)) < 3.5 * np.hypot(error, training), name


def test_refuse_raises_and_names_the_other_option() -> None:
    features, weights = target("signed", 5000)
    with pytest.raises(
        InvalidInputError, match=r"negative over \d+\.\d+% .* on_negative_density='keep-sign'"
    ):
        reweighter(max_steps=100, batch_size=1024, on_negative_density="refuse").fit(features, weights)


def test_refuse_accepts_a_nonnegative_density() -> None:
    features, weights = target("nonnegative", 5000)
    fitted = reweighter(max_steps=100, batch_size=1024, on_negative_density="refuse").fit(features, weights)
    assert fitted.predict_weights(features, weights).min() >= 0


def test_positive_weights_are_left_as_they_are() -> None:
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(500, 2)), rng.lognormal(size=500)
    weights[:10] = 0.0
    fitted = reweighter().fit(features, weights)
    np.testing.assert_array_equal(fitted.predict_weights(features, weights), weights)
    assert (fitted.scale_, fitted.history_, fitted.report_.gain) == (1.0, None, 1.0)
    assert fitted.report_.gain_with_training == pytest.approx(1.0)  # no network, no error
    assert fitted.predict_member_weights(features, weights).std(axis=0).max() == 0.0
    kept, resampled = fitted.resample(features, weights, rng)
    np.testing.assert_array_equal(kept, np.arange(500))
    np.testing.assert_array_equal(resampled, weights)


@pytest.mark.parametrize("n_negative", [1, 2, 3])
def test_a_few_negative_weights_are_enough_to_train(n_negative: int) -> None:
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(500, 2)), np.ones(500)
    weights[:n_negative] = -1.0
    fitted = reweighter(max_steps=20).fit(features, weights)
    new = fitted.predict_weights(features, weights)
    assert new.min() >= 0
    assert new.sum() == pytest.approx(500 - 2 * n_negative)


def test_events_of_zero_weight_change_nothing_but_the_shuffles() -> None:
    features, weights = target("nonnegative", 2000)
    weights[weights < 0] = 0.0
    fitted = reweighter(max_steps=20).fit(features, weights)
    np.testing.assert_array_equal(fitted.predict_weights(features, weights), weights)


REGIONS = ("centre", "ring", "half plane", "tail")


def test_resampling_keeps_sums_of_weights_and_of_squares_per_region(nonnegative: Fitted) -> None:
    r"""In expectation, sum w = sum |w| a within the signed sample's own error, and sum w^2 exactly.

    The variance of one resampled sum of w^2 is sum w^4 (1 - a^2)/a^2, since |w|/a is kept with
    probability a^2.
    """
    fitted, features, weights = nonnegative[0], nonnegative[1][:15_000], nonnegative[2][:15_000]
    asymmetry = fitted.predict_weights(features, np.ones(len(features))) / fitted.scale_
    rng, n_repeats = np.random.default_rng(1), 150
    regions = {name: observables(features)[name] > 0 for name in REGIONS}
    sums = np.zeros((n_repeats, len(regions), 2))
    for repeat in range(n_repeats):
        kept, new = fitted.resample(features, weights, rng)
        assert new.min() > 0
        for column, inside in enumerate(regions.values()):
            chosen = new[inside[kept]]
            sums[repeat, column] = chosen.sum(), np.square(chosen).sum()
    means = sums.mean(axis=0)
    for (name, inside), (mean, mean_of_squares) in zip(regions.items(), means, strict=True):
        w, a = weights[inside], asymmetry[inside]
        w, a_kept = (w[a > 0], a[a > 0])
        exact = np.sum(w**2)
        error = np.sqrt(np.sum(w**4 * (1 - a_kept**2) / a_kept**2) / n_repeats)
        assert abs(mean_of_squares - exact) < 4 * error, name
        assert error < 0.15 * exact, name  # the test has power
        assert np.sum(weights[inside] ** 2) - exact <= fitted.report_.flattened_fraction * np.sum(weights**2)
        error = np.sqrt(np.sum(w**2 * (1 - a_kept**2)) * (1 + 1 / n_repeats))
        assert abs(mean - weights[inside].sum()) < 3.5 * error, name


def test_resampling_keeps_the_variance_and_not_only_its_estimate() -> None:
    """Over independent samples, sums of resampled weights scatter as those of signed weights do."""
    fitted = reweighter().fit(*target("nonnegative", 20_000))
    rng, sums = np.random.default_rng(2), []
    for seed in range(300):
        features, weights = target("nonnegative", 500, seed=1000 + seed)
        inside = observables(features)["ring"] > 0
        kept, new = fitted.resample(features, weights, rng)
        sums.append((weights[inside].sum(), new[inside[kept]].sum()))
    before, after = np.var(sums, axis=0)
    assert after / before == pytest.approx(1.0, abs=0.35)  # 4 standard errors of a ratio of variances


def test_resampling_keeps_fewer_events(nonnegative: Fitted) -> None:
    fitted, features, weights = nonnegative
    kept, new = fitted.resample(features, weights, np.random.default_rng(3))
    again, same = fitted.resample(features, weights, np.random.default_rng(3))
    np.testing.assert_array_equal(kept, again)
    np.testing.assert_array_equal(new, same)
    assert len(np.unique(kept)) == len(kept) == len(new) < 0.3 * len(weights)
    assert np.all(new >= np.abs(weights[kept]) * (1 - 1e-12))


def test_the_same_seed_gives_the_same_bits() -> None:
    features, weights = target("nonnegative", 2000)
    first, again, other = (
        reweighter(max_steps=20, random_state=seed).fit(features, weights).predict_weights(features, weights)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_ensemble_of_networks_may_learn_the_sign() -> None:
    features, weights = target("nonnegative", 3000)
    fitted = reweighter(max_steps=60, n_members=2, batch_size=1024).fit(features, weights)
    assert fitted.predict_weights(features, weights).sum() == pytest.approx(weights.sum())


def radial_truth(edges: FloatArray, n: int) -> FloatArray:
    """Return the expected contents for n signed events: (2c - 1) = 3 of them per unit of weight."""
    return np.diff(signed_gaussian_case("nonnegative").target.radial_cdf(edges)) * n / 3


def test_pulls_of_bins_against_the_truth_are_one_with_the_band() -> None:
    """For the events of the fit and for others; with the squares of the weights alone they are much larger."""
    n, edges = 10_000, np.linspace(0.0, 6.0, 16)
    pulls: dict[str, list[FloatArray]] = {"trained on": [], "others": [], "without training": []}
    for seed in range(12):
        features, weights = target("nonnegative", n, seed=seed)
        fitted = reweighter(max_steps=270, batch_size=200, random_state=seed).fit(features, weights)
        for name, (X, w) in (
            ("trained on", (features, weights)),
            ("others", target("nonnegative", n, seed=seed + 100)),
        ):
            band = fitted.band(X, w, np.hypot(*X.T.astype(float)), edges=edges)
            miss = band.histogram.values - radial_truth(edges, n)
            pulls[name].append(miss / band.total_error)
            pulls["without training"].append(miss / np.maximum(band.statistical_error, 1e-9))
    quantiles = {name: float(np.quantile(np.abs(values), 0.683)) for name, values in pulls.items()}
    assert 0.8 < quantiles["trained on"] < 1.25, quantiles
    assert 0.8 < quantiles["others"] < 1.25, quantiles
    assert quantiles["without training"] > 1.4, quantiles


def test_the_report_states_the_gain_with_and_without_the_training(nonnegative: Fitted) -> None:
    fitted, features, weights = nonnegative
    report = fitted.report_
    assert 1.0 < report.gain_with_training < 0.9 * report.gain
    assert f"{report.gain_with_training:.2f} with it" in str(report)
    variances = [
        np.sum(fitted.band(features, weights, column, edges=bounds).total_error ** 2)
        for column in features.T
        for bounds in [np.append(np.quantile(column, np.arange(20) / 20), 1e3)]
    ]
    assert report.effective_size_with_training == pytest.approx(
        weights.sum() ** 2 / np.mean(variances), rel=0.01
    )


def test_members_weigh_as_the_ensemble_does_on_average(nonnegative: Fitted) -> None:
    fitted, features, weights = nonnegative
    members = fitted.predict_member_weights(features, weights)
    assert members.shape == (4, len(weights))
    new = fitted.predict_weights(features, weights)
    assert np.sqrt(np.mean((members.mean(axis=0) - new) ** 2)) < 0.3 * members.std(axis=0, ddof=1).mean()


def test_one_network_says_that_it_does_not_know_its_error() -> None:
    features, weights = target("nonnegative", 3000)
    fitted = reweighter(max_steps=60, n_members=1, batch_size=1024).fit(features, weights)
    assert np.isnan(fitted.report_.gain_with_training)
    assert "between 1.00 and" in str(fitted.report_)
    assert "which one network does not know" in str(fitted.report_)
    assert fitted.predict_member_weights(features, weights).shape == (1, 3000)
    with pytest.raises(InvalidInputError, match="fit with n_members=8"):
        fitted.band(features, weights, features[:, 0], edges=[0.0, 1.0])


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0, -1.0], [1.0, -2.0, 0.5, -1.0], [0.0, 0.0, 0.0, 0.0]])
def test_a_sum_that_is_not_positive_raises(weights: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="expected a positive, finite sum"):
        reweighter().fit(np.arange(4.0)[:, None], weights)


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")  # so small an effective size
def test_new_weights_that_sum_to_nothing_raise_and_do_not_flip() -> None:
    """A sum of two in 2000 events, and nothing to tell them apart: the estimate may well be negative."""
    features, weights = np.zeros((2000, 1)), np.repeat([1.0, -1.0], 1000)
    weights[-1] = 1.0
    n_raised = 0
    for seed in range(6):
        model = reweighter(max_steps=2, random_state=seed)
        try:
            model.fit(features, weights)
        except InvalidInputError:
            n_raised += 1
            with pytest.raises(InvalidInputError, match="give more events"):
                model.fit(features, weights)
        else:
            assert model.predict_weights(features, weights).sum() == pytest.approx(2.0)
    assert 0 < n_raised < 6


def test_a_wrong_option_raises() -> None:
    features, weights = target("nonnegative", 100)
    with pytest.raises(InvalidInputError, match="expected 'keep-sign' or 'refuse'"):
        reweighter(on_negative_density="clip").fit(features, weights)
    with pytest.raises(InvalidInputError, match="one weight per event"):
        reweighter().fit(features, weights[:-1])


def test_parameters_survive_a_clone() -> None:
    original = reweighter(on_negative_density="refuse", max_steps=7)
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    assert copy.on_negative_density == "refuse"
