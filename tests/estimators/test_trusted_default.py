"""A default that can be trusted: no poles, floors that say where they are felt, a fit that checks itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quasiratio as qr
from quasiratio.distributions import signed_jets_case
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators.base import RatioEstimator, RatioPrediction
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
    declared = qr.SignResolvedRatio(max_steps=5, periodic=["z_phi", 10], random_state=0, verbose=False)
    assert declared.fit_samples(reference, target).periodic_features_ == ["z_phi", "met_phi"]
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
    free.fit_samples(*weak_asymmetry(60_000, 0))
    assert free.fit_check_.near_cap == 0


def test_one_event_that_carries_everything_fails_the_check() -> None:
    """A ratio with a pole at one of the events kept aside."""
    reference, target = jets("equal-shares", 6000, 6)
    model = qr.SignResolvedRatio(max_steps=60, random_state=0, verbose=False).fit_samples(reference, target)
    assert model.fit_check_.status == "good"
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


def test_the_score_cannot_be_bribed_by_a_pole() -> None:
    """A huge ratio at one event of negative weight lowers the signed risk, and must not raise the score."""
    reference, target = jets("equal-shares", 8000, 7)
    model = qr.SignResolvedRatio(max_steps=60, random_state=0, verbose=False).fit_samples(reference, target)
    X = WeightedSample(
        np.concatenate([reference.features, target.features]),
        np.concatenate([reference.weights, target.weights]),
        reference.names,
    )
    y = np.repeat([0, 1], 8000)
    honest = model.score(X, y)
    exact = signed_jets_case("equal-shares").exact_ratio(X.features)
    negative = int(np.flatnonzero(np.asarray(reference.weights) < 0)[0])

    def score_with(size: float) -> float:
        ratio = exact.copy()
        ratio[negative] = size
        model.predict_ratio = lambda _: ratio  # type: ignore[method-assign, assignment]
        return model.score(X, y)

    without = score_with(1.0)
    assert honest < without + 0.05
    assert score_with(30.0) < without
    assert score_with(1e4) == -np.inf


def test_what_was_tried_is_told(fitted: qr.SignResolvedRatio) -> None:
    report = fitted.trials_
    assert report is not None
    assert [round(t.n_passes, 1) for t in report.trials] == [12.0, 12.0, 12.0, 4.0, 4.0]
    assert report.trials[0].difference == 0
    assert str(report).startswith("Trained for ")
    chosen = report.trials[report.chosen]
    assert chosen.risk == pytest.approx(float(fitted.history_.kept_loss[0]))
    if report.chosen:
        assert chosen.difference < -chosen.error


def test_a_given_length_is_one_training() -> None:
    reference, target = jets("equal-shares", 4000, 8)
    model = qr.SignResolvedRatio(max_steps=7, random_state=0, verbose=False).fit_samples(reference, target)
    assert model.history_.n_steps == 7
    assert model.trials_ is not None
    assert len(model.trials_.trials) == 1


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
