"""A default that can be trusted: no poles, floors that say where they are felt, a fit that checks itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import quasiratio as qr
from quasiratio.distributions import SignedGaussianMixture, signed_jets_case
from quasiratio.errors import InvalidInputError, NegativeDensityWarning, UntrustworthyFitWarning
from quasiratio.estimators.base import RatioEstimator, RatioPrediction
from quasiratio.estimators.checked_ratio import TERMS, CheckedRatio
from quasiratio.estimators.fit_check import check_ratio
from quasiratio.estimators.learned_signs import LearnedSigns
from quasiratio.estimators.training_data import stacked_samples
from quasiratio.sample import WeightedSample

FloatArray = npt.NDArray[np.float64]


def jets(name: str, n: int, seed: int) -> tuple[WeightedSample, WeightedSample]:
    return signed_jets_case(name).samples(n, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def fitted() -> qr.SignResolvedRatio:
    return qr.SignResolvedRatio(random_state=0, verbose=False).fit_samples(
        *jets("different-shares", 20_000, 0)
    )


@pytest.mark.parametrize("estimator", [qr.SignResolvedRatio(), qr.SignedMixtureRatio()])
def test_there_is_no_pole_however_long_it_trains(estimator: RatioEstimator) -> None:
    """Over-trained on purpose: without a floor the asymmetry goes through zero, with it it stays above."""
    case = signed_jets_case("equal-shares")
    reference, target = jets("equal-shares", 4000, 1)
    fresh = case.reference.sample(20_000, np.random.default_rng(2))
    for density in ("positive", "any"):
        model: Any = estimator.set_params(
            max_steps=1500, weight_decay=0.0, reference_density=density, random_state=0, verbose=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Validated on its own training events, it keeps its last state.
            model.fit_samples(reference, target, validation=(reference, target))
            if density == "positive":
                floor = model.reference_density_.floor
                assert floor == pytest.approx(0.25 * 0.534, rel=0.1)
                assert model.model_.reference_asymmetry(fresh.features).min() > floor * (1 - 1e-5)
                assert (model.predict_ratio(fresh) > -np.inf).all()
            else:
                assert model.reference_density_.floor is None
                assert model.model_.reference_asymmetry(fresh.features).min() < 0


def test_the_default_learns_and_stays_within_what_the_data_support(fitted: qr.SignResolvedRatio) -> None:
    case = signed_jets_case("different-shares")
    fresh = case.reference.sample(100_000, np.random.default_rng(3))
    exact, ratio = case.exact_ratio(fresh.features), fitted.predict_ratio(fresh)
    abs_weights = np.abs(fresh.weights)
    error = np.sqrt(
        np.average((ratio - exact) ** 2, weights=abs_weights)
        / np.average((exact - 1) ** 2, weights=abs_weights)
    )
    assert error < 0.75
    assert np.abs(ratio).max() < 3 * exact.max()
    assert fitted.fit_check_.status == "good"
    assert fitted.periodic_features_ == ["z_phi", "jet1_phi", "met_phi"]
    assert fitted.reference_density_.sign == "positive"


def test_the_ratio_has_no_seam(fitted: qr.SignResolvedRatio) -> None:
    reference, _ = jets("different-shares", 500, 4)
    ratios = []
    for edge in (-np.pi, np.pi):
        features = np.array(reference.features)
        features[:, 6] = edge
        ratios.append(fitted.predict_ratio(WeightedSample(features, names=reference.names)))
    assert np.max(np.abs(ratios[0] - ratios[1]) / (1 + np.abs(ratios[0]))) < 1e-6


def test_angles_can_be_declared_and_denied() -> None:
    reference, target = jets("equal-shares", 4000, 5)
    declared = qr.SignResolvedRatio(max_steps=5, periodic=["jet1_eta", 10], random_state=0, verbose=False)
    assert declared.fit_samples(reference, target).periodic_features_ == [
        "z_phi",
        "jet1_eta",
        "jet1_phi",
        "met_phi",
    ]
    denied = qr.SignResolvedRatio(max_steps=5, periodic=(), random_state=0, verbose=False)
    assert denied.fit_samples(reference, target).periodic_features_ == []


def weak_asymmetry(n: int, seed: int) -> tuple[WeightedSample, WeightedSample]:
    """A reference whose sign asymmetry is 0.6 for x < 0 and 0.05 for x > 0; the ratio is one."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (2, n))
    asymmetry = np.where(x[0] < 0, 0.6, 0.05)
    signs = np.where(rng.random(n) < 0.5 * (1 + asymmetry), 1.0, -1.0)
    keep = rng.random(n) < np.where(x[1] < 0, 0.6, 0.05)
    return WeightedSample(x[0], signs), WeightedSample(x[1][keep])


def test_where_the_true_asymmetry_is_below_the_floor_it_is_said_and_by_how_much() -> None:
    model = qr.SignResolvedRatio(random_state=0, verbose=False, reference_density="positive")
    model.fit_samples(*weak_asymmetry(60_000, 0))
    floor = model.reference_density_.floor
    assert floor is not None
    assert 0.05 < floor < 0.1
    check = model.fit_check_
    assert check.near_cap == pytest.approx(0.5, abs=0.1)
    said = " ".join(check.reasons)
    assert "the sign asymmetry is at its floor" in said
    assert "ratios there are too small, by a factor of about" in said
    factor = float(said.split("by a factor of about ")[1].split(". ")[0])
    found = model.predict_ratio([[0.5]])[0] / model.predict_ratio([[-0.5]])[0]
    assert found == pytest.approx(factor, rel=0.35)
    free = qr.SignResolvedRatio(random_state=0, verbose=False, reference_density="any")
    with (
        warnings.catch_warnings()
    ):  # its noise is worse than the exact ratio, which is one: the check is right to say so
        warnings.simplefilter("ignore", UntrustworthyFitWarning)
        warnings.simplefilter("ignore", NegativeDensityWarning)
        free.fit_samples(*weak_asymmetry(60_000, 0))
    assert free.fit_check_.status == "failed"
    assert free.fit_check_.near_cap == 0


def test_one_event_that_carries_everything_fails_the_check() -> None:
    """A ratio with a pole at one of the events kept aside."""
    reference, target = jets("equal-shares", 6000, 6)
    model = qr.SignResolvedRatio(max_steps=60, random_state=0, verbose=False).fit_samples(reference, target)
    assert (
        model.fit_check_.status == "unknown"
    )  # 600 events with such weights tell it from a pole, and not from none
    assert "cannot tell this ratio from none" in str(model.fit_check_)
    number = model.fit_check_.worst_events[0]
    place = reference.features[number]

    class Pole(qr.SignResolvedRatio):
        def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:
            predicted = super().predict_with_members(X, members=members)
            predicted.ratio[np.all(X.features == place, axis=1)] = 1e5
            return predicted

    with pytest.warns(UntrustworthyFitWarning, match=f"One event, number {number}, carries"):
        pole = Pole(max_steps=60, random_state=0, verbose=False).fit_samples(reference, target)
    check = pole.fit_check_
    assert check.status == "failed"
    assert str(check).startswith("DO NOT USE THIS RATIO")
    assert check.worst_events[0] == number
    assert check.largest_share > 0.9


def test_a_ratio_that_is_worse_than_none_fails_the_check() -> None:
    """A memory of the training events, on samples that do not differ."""
    rng = np.random.default_rng(0)
    reference, target = (WeightedSample(rng.normal(size=(600, 30)), names=None) for _ in range(2))
    with pytest.warns(UntrustworthyFitWarning, match="worse than none"):
        qr.DirectRatio(
            loss="lsif",
            max_steps=600,
            weight_decay=0.0,
            validation_fraction=0.3,
            random_state=0,
            verbose=False,
        ).fit_samples(
            reference,
            target,
            validation=(
                WeightedSample(rng.normal(size=(600, 30))),
                WeightedSample(rng.normal(size=(600, 30))),
            ),
        )


def test_a_fit_that_would_fail_helps_itself() -> None:
    """The same with the strength left to the fit: it ends near no reweighting, and says what it did."""
    rng = np.random.default_rng(0)
    reference, target = (WeightedSample(rng.normal(size=(600, 30))) for _ in range(2))
    model = qr.SignResolvedRatio(random_state=0, verbose=False).fit_samples(reference, target)
    assert model.fit_check_.status != "failed"
    assert np.abs(model.predict_ratio(reference) - 1).max() < 1.0


@pytest.mark.parametrize("role", [0, 1])
def test_a_heavy_weight_is_named_before_training(role: int) -> None:
    rng = np.random.default_rng(0)
    samples = [(rng.normal(size=(500, 1)), rng.choice([1.0, -0.5], 500)) for _ in range(2)]
    samples[role][1][123] = 1e12
    number = 123 + 500 * role
    said = f"One event of the {('reference', 'target')[role]}, number {number}, has the weight 1e\\+12"
    reference, target = (WeightedSample(x, w) for x, w in samples)
    with pytest.warns(UntrustworthyFitWarning, match=said):
        qr.SignResolvedRatio(max_steps=3, random_state=0, verbose=False).fit_samples(reference, target)


def test_more_features_than_the_effective_size_supports_are_named() -> None:
    rng = np.random.default_rng(0)
    reference, target = (WeightedSample(rng.normal(size=(100, 30))) for _ in range(2))
    with pytest.warns(UntrustworthyFitWarning, match="effective size of 100 events for 30 features"):
        qr.SignResolvedRatio(max_steps=3, random_state=0, verbose=False).fit_samples(reference, target)


class Given(qr.SignResolvedRatio):
    """A fit whose ratio is the exact one, but for one event."""

    pole: tuple[int, float] = (0, 1.0)

    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:
        del members
        ratio = signed_jets_case("equal-shares").exact_ratio(X.features)
        if self.pole[1] != 1.0:
            ratio[self.pole[0]] = self.pole[1]
        return RatioPrediction(ratio, np.empty((0, len(ratio))))


@pytest.fixture(scope="module", params=["auto", "any"])
def scored(request: pytest.FixtureRequest) -> tuple[Given, WeightedSample, npt.NDArray[np.int64]]:
    samples = jets("equal-shares", 8000, 7)
    model = Given(max_steps=3, reference_density=request.param, random_state=0, verbose=False)
    return model.fit_samples(*samples), *stacked_samples(*samples)


def score_with_pole(scored: Any, number: int, size: float) -> float:
    model, X, y = scored
    model.pole = (number, size)
    return float(model.score(X, y))


def test_the_score_cannot_be_bribed_by_a_pole_on_a_negative_weight(scored: Any) -> None:
    """It lowers the signed risk; whatever the fit was told of the densities, it must not raise the score."""
    _, X, y = scored
    negative = int(np.flatnonzero((np.asarray(X.weights) < 0) & (y == 0))[0])
    without = score_with_pole(scored, negative, 1.0)
    assert without == pytest.approx(0.6, abs=0.1)
    assert all(score_with_pole(scored, negative, size) < without for size in (10.0, 30.0))
    assert all(score_with_pole(scored, negative, size) == -np.inf for size in (300.0, 1e4))


def test_the_score_cannot_be_bribed_by_a_pole_on_a_target_event(scored: Any) -> None:
    """The target term rises with it; one event that carries 5% of it decides alone."""
    _, X, y = scored
    typical = int(np.flatnonzero((y == 1) & (np.asarray(X.weights) > 0.7))[0])
    assert all(score_with_pole(scored, typical, size) == -np.inf for size in (3e3, 1e5))
    assert score_with_pole(scored, typical, 5.0) > 0.4


def test_a_search_over_densities_is_judged_alike(scored: Any) -> None:
    """The same ratio has the same score, whatever the fit assumed of the densities."""
    _, X, y = scored
    samples = X.select(y == 0), X.select(y == 1)
    scores = [
        Given(max_steps=3, reference_density=density, random_state=0, verbose=False)
        .fit_samples(*samples)
        .score(X, y)
        for density in ("positive", "any")
    ]
    assert scores[0] == scores[1]


def test_scores_know_which_features_are_angles(monkeypatch: pytest.MonkeyPatch, scored: Any) -> None:
    """Spied upon, not replaced: the signs behind a score are learned with the angles of the fit."""
    seen: list[Any] = []
    learn = LearnedSigns.of.__func__  # type: ignore[attr-defined]

    def spy(cls: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(options.get("periodic"))
        return learn(cls, *arguments, **options)

    monkeypatch.setattr(LearnedSigns, "of", classmethod(spy))
    score_with_pole(scored, 0, 1.0)
    assert seen == [[2, 6, 10]]


def test_a_heavy_weight_is_not_the_fault_of_the_ratio() -> None:
    """An event with a tenth of all weight keeps its share, and is no reason to throw a ratio out."""
    n = 1000
    weights = np.ones(n)
    weights[0] = 0.1 * n
    flat, numbers = np.ones(n), np.arange(n)
    honest = CheckedRatio(flat, flat, weights, weights, weights, numbers, numbers)
    assert honest.decisive_event() is None
    ratio = flat.copy()
    ratio[1] = 60.0
    for pole in (replace(honest, reference=ratio), replace(honest, target=ratio)):
        assert pole.decisive_event() is None  # 5%, but less than what the heavy event may have
    ratio = np.where(numbers == 1, 1e3, 1.0)
    quadratic = replace(honest, reference_weights=flat, judge_weights=flat, target_weights=flat)
    found = replace(quadratic, reference=np.where(numbers == 1, 10.0, 1.0)).decisive_event()
    assert found is not None
    assert (found.term, found.number) == ("the quadratic term of the risk", 1)
    found = replace(quadratic, target=ratio, numbered_in=" of the validation events").decisive_event()
    assert found is not None
    assert str(found).startswith(
        "One event, number 1 of the validation events, carries 50% of the target term"
    )


def test_what_was_tried_is_told(fitted: qr.SignResolvedRatio) -> None:
    report = fitted.trials_
    assert report is not None
    assert [round(t.n_passes, 1) for t in report.trials] == [12.0, 12.0, 12.0, 4.0, 4.0]
    assert report.trials[0].difference == 0
    assert str(report).startswith("Trained for ")
    chosen = report.trials[report.chosen]
    assert chosen.risk == pytest.approx(float(np.mean(fitted.history_.kept_loss)), abs=0.1)  # of other starts
    if report.chosen:
        assert chosen.difference < -chosen.error


def test_a_given_length_is_one_training() -> None:
    reference, target = jets("equal-shares", 4000, 8)
    model = qr.SignResolvedRatio(max_steps=7, random_state=0, verbose=False).fit_samples(reference, target)
    assert model.history_.n_steps == 7
    assert model.trials_ is not None
    assert len(model.trials_.trials) == 1
    assert model.trials_.trials[0].risk == pytest.approx(float(model.history_.kept_loss[0]))


def test_stated_densities_are_taken_and_others_refused() -> None:
    reference, target = jets("negative-reference", 120_000, 9)
    for stated, sign in (("auto", "any"), ("any", "any"), ("positive", "positive")):
        model = qr.SignResolvedRatio(max_steps=5, reference_density=stated, random_state=0, verbose=False)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert model.fit_samples(reference, target).reference_density_.sign == sign
        if stated == "positive":
            assert "as stated, although" in model.reference_density_.reason
    with pytest.raises(InvalidInputError, match="target_density = 'negative'; expected one of"):
        qr.SignResolvedRatio(target_density="negative").fit_samples(reference, target)  # type: ignore[arg-type]


def test_poles_that_are_real_are_not_trained_away() -> None:
    """Helped until it passed, this fit had a median error of 130% and called itself good."""
    densities = [SignedGaussianMixture(2.0, 2.0, 0.8), SignedGaussianMixture(1.0, 2.0, 1.0)]
    rng = np.random.default_rng(1)
    reference, target = (density.sample(4000, rng) for density in densities)
    with pytest.warns(UntrustworthyFitWarning, match="DO NOT REWEIGHT WITH THIS RATIO"):
        model = qr.SignResolvedRatio(random_state=1, verbose=False).fit_samples(reference, target)
    q0, q1 = (density.density(reference.features) for density in densities)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NegativeDensityWarning)
        ratio = model.predict_ratio(reference)
    assert np.median(np.abs(q0 * ratio - q1)) < 0.1 * np.median(q1)
    assert np.mean((ratio < 0) == (q0 < 0)) > 0.95
    assert (model.helped_, model.normalization_, model.reference_density_.sign) == ("", 1.0, "any")
    assert "The reference density changes its sign" in str(model.fit_check_)


class Known(qr.SignResolvedRatio):
    """A ratio that is 1e6 for the events above nine, and one elsewhere."""

    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:
        del members
        features = np.asarray(getattr(X, "features", X))
        return RatioPrediction(np.where(features[:, 0] > 9, 1e6, 1.0), np.empty((1, len(features))))


def marked(n: int, seed: int, n_marked: int = 40) -> tuple[FloatArray, set[int]]:
    """Events of which some, known by number, are marked by a feature above nine."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 1))
    chosen = rng.choice(n // 2, n_marked, replace=False)
    features[chosen] += 10.0
    features[chosen] += np.maximum(0.0, 9.1 - features[chosen])
    return features, set(chosen.tolist())


@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
@pytest.mark.parametrize("how", ["split", "validation", "auto", "folds"])
def test_the_worst_events_are_numbered_as_they_were_given(how: str) -> None:
    options: dict[str, Any] = {"max_steps": 2, "batch_size": 256, "random_state": 1, "verbose": False}
    X, places = marked(4000, 0)
    y = np.repeat([0, 1], 2000)
    other, other_places = marked(1200, 1, 12)
    where = ""
    if how == "split":
        checks = [Known(validation_fraction=0.3, **options).fit(X, y).fit_check_]
    elif how == "validation":
        model = Known(**options).fit(X, y, validation=(other, np.repeat([0, 1], 600), None))
        checks, places, where = [model.fit_check_], other_places, " of the validation events"
    elif how == "auto":
        auto = qr.AutoRatio(
            candidates={"a": Known(**options)}, validation_fraction=0.3, random_state=1, verbose=False
        )
        checks = [auto.fit(X, y).candidates_["a"].fit_check_]
    else:
        folded = qr.Reweighter(Known(validation_fraction=0.3, **options), n_folds=2)
        checks = [ratio.fit_check_ for ratio in folded.fit(X[:2000], X[2000:]).ratios_]
    for check in checks:
        assert check.status == "failed"
        said = [reason for reason in check.reasons if reason.startswith("One event")]
        assert int(said[0].split("number ")[1].split()[0].rstrip(",")) in places
        assert f"{where}, carries" in said[0]
        assert check.worst_events[0] in places


class Broken(qr.SignResolvedRatio):
    """A fit that fails, however strongly it is regularised, unless its network is small."""

    def train_model(self, fit: Any, floors: Any) -> Any:
        trained = super().train_model(fit, floors)
        if tuple(fit.hidden_layers) != (8,):
            random = torch.Generator().manual_seed(0)
            with torch.no_grad():
                for weights in trained.model.network.weights:
                    weights.normal_(0.0, 3.0, generator=random)
        return trained


@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
def test_a_failing_fit_ends_with_a_small_network() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 1)) + 0.3 * np.repeat([[0.0], [1.0]], 2000, axis=0), np.repeat([0, 1], 2000)
    options: dict[str, Any] = {"batch_size": 512, "random_state": 0, "verbose": False}
    helped = Broken(**options).fit(X, y)
    assert "in a network of 8 hidden units" in helped.fit_check_.helped
    assert helped.fit_check_.status != "failed"
    assert str(helped.fit_check_).endswith("hidden units.")
    fixed = Broken(hidden_layers=(16,), **options).fit(X, y)  # whose width is not ours to choose
    assert fixed.fit_check_.status == "failed"
    assert "weight decay of" in fixed.helped_
    assert "hidden units" not in fixed.helped_
    given = Broken(max_steps=20, **options).fit(X, y)  # whose length is not
    assert (given.fit_check_.status, given.helped_) == ("failed", "")


@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
@pytest.mark.parametrize("kind", ["positive", "mined", "points"])
def test_heavy_weights_are_named_by_every_estimator(kind: str) -> None:
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(500, 1)), np.ones(500)
    w[123], w[7] = 1000.0, -1.0
    options: dict[str, Any] = {"max_steps": 2, "random_state": 0, "verbose": False}
    said = "number 123, has the weight 1000 and 67%"
    samples = [WeightedSample(X + 0.1), WeightedSample(X - 0.1)]
    polynomial = qr.PolynomialRatio(qr.PolynomialBasis(["c"], 1), **options)
    fits: dict[str, Callable[[], object]] = {
        "positive": lambda: qr.PositiveReweighter(n_members=2, **options).fit(X, w),
        "mined": lambda: qr.JointRatio(**options).fit(X, rng.random(500) + 0.5, sample_weight=w),
        "points": lambda: polynomial.fit_points(WeightedSample(X, w), samples, [[1.0, 1.0], [1.0, -1.0]]),
    }
    with pytest.warns(UntrustworthyFitWarning, match=said):
        fits[kind]()


def test_a_risk_that_one_target_event_makes_is_said_to_be_so() -> None:
    """A pole on it makes any ratio look better than none; alone it is a remark, among candidates it is the end."""
    n = 500
    flat, numbers = np.ones(n), np.arange(n)
    pole = CheckedRatio(flat, np.where(numbers == 3, 300.0, 1.0), flat, flat, flat, numbers, numbers + n)
    check = check_ratio(pole)
    assert check.status == "good"
    assert check.reasons[0].startswith("One event, number 503, carries 38% of the target term of the risk")
    assert check.reasons[0].endswith("What the risk says is its doing.")
    assert check_ratio(pole, terms=TERMS).status == "failed"
    signed = replace(
        pole, judge_weights=np.where(numbers % 3 == 0, -1.0, 1.0)
    )  # a negative reference has poles
    assert check_ratio(signed, terms=TERMS).status == "good"


def test_a_check_on_events_that_are_worth_little_says_so() -> None:
    n = 600
    rng = np.random.default_rng(0)
    x0, x1 = rng.normal(0.0, 1.0, n), rng.normal(1.0, 1.0, n)
    signs = np.where(np.arange(n) % 5 < 2, -1.0, 1.0)  # a fifth of the sum is left, and 24 of the events
    numbers, flat = np.arange(n), np.ones(n)
    exact = CheckedRatio(np.exp(x0 - 0.5), np.exp(x1 - 0.5), flat, flat, flat, numbers, numbers)
    assert check_ratio(exact).reasons == ()
    few = replace(exact, reference_weights=signs, target_weights=signs)
    assert "are worth 24, with which a check sees gross failures only" in str(check_ratio(few))
    none = replace(few, reference=flat + 0.01 * x0, target=flat + 0.01 * x0)
    assert str(check_ratio(none)).endswith("gross failures only, and cannot tell this ratio from none.")
