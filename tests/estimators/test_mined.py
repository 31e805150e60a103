"""Learning from joint coefficients: closed forms of the hidden-variable toys, laws, and input that is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

import quasiratio as qr
from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators.mined_check import check_mined
from quasiratio.estimators.mined_problems import MinedEvents, free_terms
from quasiratio.estimators.sample_mixtures import PointsClasses
from quasiratio.ratios.coefficient_model import AffineTerms

METHODS = ("regression", "sign-resolved", "positive")
QUICK: dict[str, Any] = {"max_steps": 400, "random_state": 0, "weight_decay": 0.03}
CASE = LatentAmplitudeCase()


def _fitted(
    method: Any, case: LatentAmplitudeCase = CASE, n: int = 8000, **options: Any
) -> qr.PolynomialRatio:
    events = case.sample(n, np.random.default_rng(1))
    model = qr.PolynomialRatio(case.basis, method=method, **(QUICK | options))
    return model.fit(events.features, events.mined, events.weights)


@pytest.fixture(scope="module")
def models() -> dict[str, qr.PolynomialRatio]:
    return {method: _fitted(method) for method in METHODS}


@pytest.fixture(scope="module")
def test_events() -> np.ndarray:
    return CASE.sample(4000, np.random.default_rng(2)).features


def _errors(model: qr.PolynomialRatio, X: np.ndarray, case: LatentAmplitudeCase = CASE) -> Any:
    exact = case.exact_coefficients(X)
    return np.sqrt(np.mean((model.predict_coefficients(X) - exact) ** 2, axis=0)) / np.maximum(
        exact.std(axis=0), 0.1
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_closed_form_is_recovered(method: Any, models: dict[str, Any], test_events: np.ndarray) -> None:
    errors = _errors(models[method], test_events)
    assert errors[0] == 0  # the Standard Model's term is the reference
    assert errors.max() < 0.35
    assert errors[1] < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_the_reference_has_the_intensity_one_exactly(
    method: Any, models: dict[str, Any], test_events: np.ndarray
) -> None:
    assert np.all(models[method].predict_intensity(test_events, [0.0, 0.0]) == 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_intensities_are_polynomials_and_ratios_have_the_mean_one(
    method: Any, models: dict[str, Any]
) -> None:
    """Laws: lambda = sum of P_k rho_k at one and at many points; E_ref[ratio] = 1 over the events of the fit."""
    model, events = models[method], CASE.sample(8000, np.random.default_rng(1))
    points = np.array([[0.3, -0.2], [-1.0, 0.5]])
    coefficients = model.predict_coefficients(events.features)
    intensity = model.predict_intensity(events.features, points)
    np.testing.assert_allclose(intensity, CASE.basis(points) @ coefficients.T)
    np.testing.assert_allclose(model.predict_intensity(events.features, points[1]), intensity[1])
    np.testing.assert_allclose(model.predict_ratio(events.features, points).mean(axis=1), 1.0, rtol=1e-9)
    rate = model.rate(points[0])
    np.testing.assert_allclose(rate.value, events.mined.mean(axis=0) @ CASE.basis(points[0]))
    if method != "positive":  # a sum of squares cannot be shifted
        assert intensity[0].mean() == pytest.approx(rate.value, rel=1e-9)


def test_the_error_of_the_rate_is_that_of_the_mean(models: dict[str, Any]) -> None:
    events = CASE.sample(8000, np.random.default_rng(1))
    values = events.mined @ CASE.basis([0.4, 0.1])
    assert models["regression"].rate([0.4, 0.1]).error == pytest.approx(
        values.std() / np.sqrt(8000), rel=1e-3
    )


def test_positive_is_positive_everywhere(models: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    far = rng.normal(scale=20.0, size=(2000, 2))
    points = rng.normal(scale=3.0, size=(50, 2))
    assert models["positive"].predict_intensity(far, points).min() >= -1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_signed_reference(method: Any) -> None:
    case = LatentAmplitudeCase(negative=0.6)
    X = case.sample(4000, np.random.default_rng(2)).features
    signed = _fitted(method, case, n=20_000)
    assert _errors(signed, X, case)[:3].max() < 0.3
    ignored = case.sample(20_000, np.random.default_rng(1))
    absolute = qr.PolynomialRatio(case.basis, method=method, **QUICK).fit(ignored.features, ignored.mined)
    assert _errors(absolute, X, case)[2] > _errors(signed, X, case)[2]
    asymmetry = signed.model_.reference_asymmetry(X.astype(np.float32))
    assert asymmetry is not None
    assert asymmetry.min() > 0.25 * (ignored.weights.mean()) - 1e-6  # capped


def test_another_reference_point_is_exact_as_well() -> None:
    """Where the reference is a point of the polynomial, its intensity is one at every event."""
    events = CASE.sample(6000, np.random.default_rng(3))
    at = {"a": 0.3, "b": -0.2}
    reference = events.mined @ CASE.basis(at)
    for method in METHODS:
        model = qr.PolynomialRatio(CASE.basis, method=method, **QUICK)  # type: ignore[arg-type]
        model.fit(events.features, events.mined / reference[:, None], reference)
        np.testing.assert_allclose(model.predict_intensity(events.features, at), 1.0, atol=1e-6)
        assert model.predict_intensity(events.features, [3.0, -4.0]).std() > 0.1  # and something was learned


def test_positive_with_another_reference_is_a_square_and_learns_the_same(test_events: np.ndarray) -> None:
    events = CASE.sample(8000, np.random.default_rng(3))
    at = {"a": 0.1, "b": 0.05}
    reference = events.mined @ CASE.basis(at)
    model = qr.PolynomialRatio(CASE.basis, method="positive", **QUICK)
    model.fit(events.features, events.mined / reference[:, None], reference)
    points = np.random.default_rng(0).normal(scale=3.0, size=(50, 2))
    assert model.predict_intensity(test_events, points).min() >= -1e-9
    exact = CASE.exact_coefficients(test_events)
    exact /= (exact @ CASE.basis(at))[:, None]
    error = np.sqrt(np.mean((model.predict_coefficients(test_events) - exact) ** 2, axis=0))
    assert (error / exact.std(axis=0)).max() < 0.3


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
def test_a_linear_truncation_is_learned_and_positive_refuses_it(method: Any, test_events: np.ndarray) -> None:
    linear = LatentAmplitudeCase(linear=True)
    model = _fitted(method, linear)
    assert _errors(model, test_events, linear)[1:].max() < 0.2
    with pytest.raises(InvalidInputError, match="no square can represent"):
        _fitted("positive", linear)


def test_positive_refuses_squares_that_are_not_there() -> None:
    events = CASE.sample(1000, np.random.default_rng(0))
    without = events.mined * [1, 1, 1, 0, 0, 0]
    with pytest.raises(InvalidInputError, match="negative at some parameter values"):
        qr.PolynomialRatio(CASE.basis, method="positive", **QUICK).fit(events.features, without)


def test_positive_with_a_mean_on_the_edge_is_one_sentence_or_a_fit() -> None:
    """A mean matrix that is singular, or negative by less than what counts, has no triangular root as it is."""
    basis, rng = qr.PolynomialBasis(["a"]), np.random.default_rng(0)
    X, noise = rng.normal(size=(500, 1)), 0.02 * rng.normal(size=500)
    for middle in (2.0, 2.0016):
        c = np.column_stack([np.ones(500), np.full(500, middle) + noise - noise.mean(), np.ones(500)])
        model = qr.PolynomialRatio(basis, method="positive", max_steps=5, random_state=0).fit(X, c)
        assert np.isfinite(model.predict_coefficients(X)).all()


def test_members_and_their_spread(test_events: np.ndarray) -> None:
    model = _fitted("regression", n=3000, n_members=3)
    ratio, std = model.predict_ratio(test_events, [[0.5, 0.0], [0.0, 0.2]], return_std=True)
    assert ratio.shape == std.shape == (2, 4000)
    assert 0.001 < std.mean() < 0.3
    assert model.predict_member_coefficients(test_events).shape == (3, 4000, 6)
    with pytest.raises(InvalidInputError, match="ensemble"):
        _fitted("regression", n=1000, max_steps=20).predict_ratio(test_events, [0.5, 0.0], return_std=True)


def test_the_same_seed_gives_the_same_bits_and_a_clone_is_unfitted(test_events: np.ndarray) -> None:
    first, second = (_fitted("sign-resolved", n=3000, max_steps=100) for _ in range(2))
    np.testing.assert_array_equal(
        first.predict_coefficients(test_events), second.predict_coefficients(test_events)
    )
    copied = clone(first)
    assert copied.basis == first.basis
    assert not hasattr(copied, "model_")


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
@pytest.mark.parametrize("negative", [0.0, 0.4])
def test_points_from_separate_samples(method: Any, negative: float, test_events: np.ndarray) -> None:
    """Samples at points, and interference alone, whose weights sum to zero."""
    case, rng = LatentAmplitudeCase(negative=negative), np.random.default_rng(5)
    basis = qr.PolynomialBasis(["a", "b"], order=1)
    reference, others = case.sample(15_000, rng), [case.sample(15_000, rng) for _ in range(2)]
    samples = [
        qr.WeightedSample(events.features, events.weights * events.mined[:, number])
        for number, events in enumerate(others, start=1)
    ]
    model = qr.PolynomialRatio(basis, method=method, **(QUICK | {"max_steps": 600}))
    given = qr.WeightedSample(reference.features, reference.weights)
    model.fit_points(given, samples, [[0, 1, 0], [0, 0, 1]], reference_mixing=[1, 0, 0])
    exact = case.exact_coefficients(test_events)[:, :3]
    learned = model.predict_coefficients(test_events)
    assert np.all(learned[:, 0] == 1)
    errors = np.sqrt(np.mean((learned - exact) ** 2, axis=0))[1:] / exact.std(axis=0)[1:]
    assert errors.max() < 0.35
    assert model.rate([1.0, 0.0]).value == pytest.approx(
        1.0 + samples[0].sum_of_weights / given.sum_of_weights
    )
    assert model.fit_check_.status == "good"
    assert len(model.fit_check_.explained) == 2
    mixed = [samples[0], samples[1]]
    with pytest.raises(InvalidInputError, match="determine 2 of the 3"):
        model.fit_points(given, mixed, [[0, 1, 0], [0, 0, 1]])


def test_a_check_says_of_which_terms_it_sees_nothing() -> None:
    rng = np.random.default_rng(0)
    known = np.column_stack([rng.normal(size=(400, 2)), np.ones(400)])
    learned = known * [0.0, 0.9, 1.0] + [[0.02, 0.0, 0.0]] * rng.normal(size=(400, 1))
    check = check_mined(learned, known, np.ones(400), ["a", "b", "c"])
    assert check.status == "good"
    assert re.search(r"cannot tell from a constant: a \(-?\d% ± \d% explained\)\.$", str(check))
    assert "passed its check" in str(check)
    assert check_mined(known, known, np.ones(400), ["a", "b", "c"]).reasons == ()
    nothing = check_mined(learned[:, ::2], known[:, ::2], np.ones(400), ["a", "c"])
    assert nothing.status == "good"
    assert str(nothing).startswith("The fit is no better than constants on 400 events kept aside")


def test_functions_that_cannot_be_learned_do_not_fail_by_their_number() -> None:
    """The chance of a false alarm is that of one function, however many there are; one that is wrong is still found."""
    rng, n_failed = np.random.default_rng(0), 0
    names = [f"c{k}" for k in range(135)]
    for _ in range(20):
        known = rng.normal(size=(1000, 135))
        n_failed += check_mined(0.003 * known[::-1], known, np.ones(1000), names).status == "failed"
    assert n_failed <= 2
    spoiled = 0.003 * known[::-1] + np.where(np.arange(135) == 7, 0.4, 0.0) * rng.normal(size=(1000, 1))
    check = check_mined(spoiled, known, np.ones(1000), names)
    assert check.status == "failed"
    assert "Worse than a constant: c7." in str(check)
    assert "and 127 more." in str(check_mined(0.0 * known, known, np.ones(1000), names))


def test_samples_at_points_count_alike_whatever_their_weights() -> None:
    """The classifier sees equal sums of |w|; a factor would be a factor of the learned shape."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 4, 1000)
    weights = rng.normal(size=1000) * 3.0**numbers
    events = MinedEvents(
        np.zeros((1000, 1), np.float32), numbers > 0, weights, numbers[:, None].astype(float)
    )
    nothing = AffineTerms(np.eye(3), np.zeros(3))
    problem = PointsClasses(np.abs(weights[numbers == 0]), True, np.ones(3), np.full(3, 0.5), nothing)
    drawn = problem.pool_weights(events, torch.from_numpy(weights)[None])[0].numpy()
    sums = np.bincount(numbers, weights=drawn)
    np.testing.assert_allclose(sums, 250.0, rtol=1e-5)
    assert events.effective_share < 0.7


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
def test_the_joint_ratio(method: Any) -> None:
    case = LatentExponentialCase(slopes=(0.7, -0.7))
    events = case.sample(8000, np.random.default_rng(0))
    model = qr.JointRatio(method=method, n_members=2, **QUICK).fit(events.features, events.mined)
    X = case.sample(3000, np.random.default_rng(1)).features
    exact = case.exact_ratio(X)
    ratio, std = model.predict_ratio(X, return_std=True)
    assert np.sqrt(np.mean((ratio - exact) ** 2)) < 0.15 * exact.std()
    assert (ratio < 0).any()
    assert std.min() > 0
    assert model.predict_ratio(events.features).mean() == pytest.approx(1.0)
    plain = qr.JointRatio(method=method, normalize=False, **QUICK).fit(events.features, 3.0 * events.mined)
    assert plain.predict_ratio(events.features).mean() == pytest.approx(3.0 * events.mined.mean())
    bad = qr.JointRatio(method=method, **QUICK)
    with pytest.raises(InvalidInputError, match="positive one"):
        bad.fit(events.features, -events.mined)
    assert not hasattr(bad, "model_")  # refused before it was trained


@pytest.mark.slow
def test_mined_needs_a_third_of_the_events_of_two_samples() -> None:
    case = LatentExponentialCase(slopes=(0.8, -0.5))
    X = case.sample(20_000, np.random.default_rng(9)).features
    exact = case.exact_ratio(X)
    mined, two = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        events = case.sample(6000, rng)
        model = qr.JointRatio(random_state=seed).fit(events.features, events.mined)
        mined.append(np.mean((model.predict_ratio(X) - exact) ** 2))
        reference = qr.WeightedSample(case.sample(9000, rng).features)
        ratio = qr.SignResolvedRatio(random_state=seed).fit_samples(reference, case.target_sample(9000, rng))
        two.append(np.mean((ratio.predict_ratio(X) - exact) ** 2))
    assert np.mean(mined) < np.mean(two)


@pytest.mark.parametrize("negative", [0.0, 0.6])
def test_mean_shares_are_recombined_to_the_means(negative: float) -> None:
    """A network that says the mean share of every class says the weighted means of the coefficients."""
    case = LatentAmplitudeCase(negative=negative)
    events = case.sample(2000, np.random.default_rng(0))
    model = qr.PolynomialRatio(case.basis, method="sign-resolved", **(QUICK | {"max_steps": 1}))
    inner: Any = model.fit(events.features, events.mined, events.weights).model_
    matrix, scales = inner.matrix.numpy(), inner.scales.numpy()
    terms = [
        int(np.flatnonzero((matrix != 0).sum(axis=1) * matrix[:, k] == 1)[0]) for k in range(len(scales))
    ]
    signed = events.mined[:, terms] * events.weights[:, None]
    shares = [
        np.mean(events.weights == sign)
        if function < 0
        else scales[function] * np.maximum(sign * signed[:, function], 0).mean()
        for function, sign in inner.classes
    ]
    functions = inner.member_functions(torch.tensor(shares).log()[None, None])[0, 0].numpy()
    np.testing.assert_allclose(functions, signed.mean(axis=0) / events.weights.mean(), atol=0.01)


def test_shares_stay_below_twice_the_largest() -> None:
    """An exponential that leaves the training events would reach any number."""
    events = CASE.sample(2000, np.random.default_rng(0))
    model = qr.PolynomialRatio(CASE.basis, method="sign-resolved", **(QUICK | {"max_steps": 20}))
    far = np.array([[300.0, 0.0], [-300.0, 0.0]])
    learned = model.fit(events.features, events.mined).predict_coefficients(far)
    largest = np.abs(events.mined).max(axis=0)
    assert np.all(np.abs(learned) < 2.1 * largest)
    assert np.any(np.abs(learned) > 0.5 * largest)


def test_free_terms_hold_for_relations_of_several_terms() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(2000, 2))
    values = np.column_stack([np.full(2000, 2.0), base, base @ [1.0, -2.0] + 0.5, np.zeros(2000)])
    free = free_terms(values, rng.choice([1.0, -0.3], size=2000))
    assert len(free.learned) == 2
    completed = values[:, free.learned] @ free.terms.matrix.T + free.terms.offset
    np.testing.assert_allclose(completed, values, atol=1e-9)


def test_bad_input_is_refused_with_numbers() -> None:
    events = CASE.sample(100, np.random.default_rng(0))
    model = qr.PolynomialRatio(CASE.basis, **QUICK)
    with pytest.raises(InvalidInputError, match=r"shape \(100, 5\)"):
        model.fit(events.features, events.mined[:, :5])
    bad = events.mined.copy()
    bad[[3, 7], 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"2 of 100 events .* number 3, 7"):
        model.fit(events.features, bad)
    with pytest.raises(InvalidInputError, match="nothing to learn"):
        model.fit(events.features, np.ones((100, 6)))
    with pytest.raises(InvalidInputError, match="sum to"):
        model.fit(events.features, events.mined, -np.ones(100))
    with pytest.raises(InvalidInputError, match="expected one of"):
        qr.PolynomialRatio(CASE.basis, method="other").fit(events.features, events.mined)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="PolynomialBasis"):
        qr.PolynomialRatio("C_H").fit(events.features, events.mined)
    with pytest.raises(InvalidInputError, match="expected a positive one"):
        _fitted("regression", LatentAmplitudeCase(linear=True), n=1000, max_steps=20).predict_ratio(
            events.features, [0.0, 1e9]
        )


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
def test_a_quadratic_density_from_samples_at_points(
    method: Any, test_events: np.ndarray, tmp_path: Path
) -> None:
    """Four samples at points of parameters and one of interference alone, whose weights sum to zero to the last bit."""
    rng = np.random.default_rng(6)
    points = [[1.0, 0.0], [0.0, 0.8], [0.7, 0.5], [-0.6, -0.7]]
    draws = [CASE.sample(12_000, rng) for _ in range(len(points) + 2)]
    samples = [
        qr.WeightedSample(events.features, events.mined @ CASE.basis(point))
        for events, point in zip(draws[1:], points, strict=False)
    ]
    interference = np.round(draws[-1].mined[:, 1] * 2**20) / 2**20
    interference[0] -= interference.sum()
    assert interference.sum() == 0
    samples.append(qr.WeightedSample(draws[-1].features, interference))
    model = qr.PolynomialRatio(CASE.basis, method=method, **(QUICK | {"max_steps": 600}))
    mixing = np.vstack([CASE.basis(points), np.eye(6)[1]])
    model.fit_points(qr.WeightedSample(draws[0].features), samples, mixing, reference_mixing=np.eye(6)[0])
    assert model.fit_check_.status == "good"
    assert "of what exact ratios of this size would" in str(model.fit_check_)
    learned, exact = model.predict_intensity(test_events, points), CASE.exact_coefficients(test_events)
    inner = np.abs(test_events[:, 0]) < 2
    for row, point in zip(learned, points, strict=True):
        truth = exact @ CASE.basis(point)
        tolerance = 0.5 if method == "regression" else 0.35  # of a constant it is one
        assert np.sqrt(np.mean((row - truth)[inner] ** 2)) < tolerance * truth[inner].std()
    assert np.all(model.predict_intensity(test_events, [0.0, 0.0]) == pytest.approx(1.0, abs=1e-12))
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model", expected=qr.PolynomialRatio)
    np.testing.assert_array_equal(again.predict_intensity(test_events, points), learned)
    assert again.fit_check_ == model.fit_check_
    runtime = pytest.importorskip("onnxruntime")
    model.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    inputs = {
        "features": test_events[:100].astype(np.float32),
        "theta": np.tile(points[2], (100, 1)),
    }
    kinds = {one.name: one.type for one in session.get_inputs()}
    inputs = {
        name: values.astype(np.float64 if "double" in kinds[name] else np.float32)
        for name, values in inputs.items()
    }
    (intensity,) = session.run(["intensity"], inputs)
    np.testing.assert_allclose(intensity.ravel(), learned[2, :100], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"samples": [1, 0]}, "Got no weight in sample 2"),
        ({"samples": "alone"}, "expected a list of samples"),
        ({"mixing": [[0, "x", 0], [0, 0, 1]]}, "mixing that is no array of finite numbers"),
        ({"reference_mixing": ["x", 0, 0]}, "reference_mixing that is no array of finite numbers"),
        ({"mixing": [[0, 1, 0], [0, 2, 0]]}, r"Nothing is known of the direction a\^2\."),
    ],
    ids=str,
)
def test_samples_that_cannot_be_used_are_one_sentence(changed: dict[str, Any], complaint: str) -> None:
    x = np.random.default_rng(0).normal(size=(200, 1))
    given: dict[str, Any] = {
        "samples": [1, 1],
        "mixing": np.eye(3)[1:],
        "reference_mixing": [1, 0, 0],
    } | changed
    factors = given["samples"]
    given["samples"] = (
        qr.WeightedSample(x)
        if factors == "alone"
        else [qr.WeightedSample(x, factor * np.ones(200)) for factor in factors]
    )
    model = qr.PolynomialRatio(qr.PolynomialBasis(["a"]), **QUICK)
    with pytest.raises(InvalidInputError, match=complaint):
        model.fit_points(qr.WeightedSample(x), **given)


def test_a_fit_of_points_that_is_wrong_fails_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    reference, target = CASE.sample(4000, rng), CASE.sample(4000, rng)
    basis = qr.PolynomialBasis(["a"], order=1)
    model = qr.PolynomialRatio(basis, max_steps=20, random_state=0)
    spoil = type(model).calibrate

    def spoiled(self: Any, *arguments: Any) -> None:
        spoil(self, *arguments)
        self.model_.matrix *= -40.0

    monkeypatch.setattr(type(model), "calibrate", spoiled)
    sample = qr.WeightedSample(target.features, target.mined[:, 1])
    with pytest.warns(UntrustworthyFitWarning, match="sample 1"):
        model.fit_points(qr.WeightedSample(reference.features), [sample], [[0, 1]], reference_mixing=[1, 0])
    assert model.fit_check_.status == "failed"


def test_heavy_tails_suit_the_classifier() -> None:
    """Joint ratios that reach thousands: the sign-resolved method is at least as good as regression."""
    case = LatentExponentialCase(slopes=(2.5, -1.0))
    events = case.sample(20_000, np.random.default_rng(0))
    assert events.mined.max() > 1000
    X = case.sample(20_000, np.random.default_rng(1)).features
    exact = case.exact_ratio(X)
    errors = {}
    for method in ("regression", "sign-resolved"):
        model = qr.JointRatio(method=method, **QUICK)
        error = model.fit(events.features, events.mined).predict_ratio(X) - exact
        errors[method] = np.array([np.sqrt(np.mean(error**2)), np.sqrt(np.mean(error**2 / (1 + exact**2)))])
    assert np.all(errors["sign-resolved"] <= errors["regression"])


def test_weights_of_14_bits_change_results_by_less_than_a_per_cent(test_events: np.ndarray) -> None:
    points = [[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0]]
    events = CASE.sample(8000, np.random.default_rng(1))
    weights = events.mined @ CASE.basis(points).T
    mantissa, exponent = np.frexp(weights)
    rounded = np.ldexp(np.round(mantissa * 2**15) / 2**15, exponent)
    assert not np.array_equal(rounded, weights)
    learned = []
    for given in (weights, rounded):
        solved = CASE.basis.solve(points, given)
        model = qr.PolynomialRatio(CASE.basis, **QUICK).fit(
            events.features, solved.coefficients, solved.reference_weights
        )
        learned.append(model.predict_coefficients(test_events))
    difference = np.sqrt(np.mean((learned[1] - learned[0]) ** 2, axis=0))
    assert np.all(difference < 0.01 * np.maximum(learned[0].std(axis=0), 0.1))
    error = solved.rounding_error(rounded)
    found = solved.coefficients - CASE.basis.solve(points, weights).coefficients
    share = np.sqrt(np.mean(found[:, 1:] ** 2) / np.mean(error[:, 1:] ** 2))
    assert 0.4 < share < 1  # the stated error is that of the smallest mantissa, one half


@pytest.mark.parametrize("method", ["regression", "sign-resolved"])
def test_a_signed_reference_is_right_within_a_few_per_cent(method: Any) -> None:
    """The first function of a reference with a fifth of negative weights: an error of a tenth would show."""
    case = LatentAmplitudeCase(negative=0.6)
    X = case.sample(4000, np.random.default_rng(2)).features
    exact = case.exact_coefficients(X)[:, 1]
    learned = _fitted(method, case, n=40_000, max_steps=800).predict_coefficients(X)[:, 1]
    slope = float(learned @ exact / (exact @ exact))
    assert slope == pytest.approx(1.0, abs=0.05)
    assert np.sqrt(np.mean((learned - exact) ** 2)) < 0.09 * exact.std()
