"""What is tried beside the standard length and strength, and from the smallest to the largest samples."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import quasiratio as qr
from quasiratio.distributions import LatentExponentialCase, signed_gaussian_case
from quasiratio.errors import QuasiratioWarning
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.estimators.trials import Trained, TrialReport, TrialReportDocument, best_of_trials
from quasiratio.training import standard as standard_training
from quasiratio.training.standard import (
    mined_settings,
    single_function_length,
    standard_weight_decay,
    trial_settings,
)

QUICK: dict[str, Any] = {"random_state": 0, "verbose": False}


@pytest.fixture(scope="module")
def fit() -> Fit:
    """A prepared fit of a small sample."""
    seen: list[Fit] = []

    class Spy(qr.SignResolvedRatio):
        def train_model(self, fit: Fit, floors: Any) -> Any:
            seen.append(fit)
            return super().train_model(fit.with_settings(fit.settings), floors)

    rng = np.random.default_rng(0)
    Spy(**QUICK).fit(rng.normal(size=(2000, 1)), np.repeat([0, 1], 1000))
    return seen[0]


def risks_of(risks: dict[tuple[float, float], float], standard: Fit) -> Any:
    """Return a training whose validation losses are known: by passes and decay, in units of the standard."""
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(0))

    def train_once(fit: Fit) -> Trained:
        settings = fit.settings
        key = (
            round(settings.n_passes / standard.settings.n_passes, 2),
            round(settings.weight_decay / standard.settings.weight_decay, 1),
        )
        losses = risks.get(key, 2.0) + 0.1 * noise * (1.0 + settings.n_passes / 100.0)
        return Trained(None, None, losses)  # type: ignore[arg-type]

    return train_once


def mined(fit: Fit) -> Fit:
    """Return the fit with the settings of events that bring their values."""
    standard = fit.with_settings(fit.settings)
    standard.settings, *standard.trials = mined_settings(fit.settings, 2000)
    standard.n_starts = 1
    return standard


def test_every_difference_is_to_the_standard(fit: Fit) -> None:
    """Also that of the longest training."""
    standard = mined(fit)
    risks = {(1.0, 1.0): 1.0, (0.33, 3.0): 1.1, (3.33, 0.0): 0.5}
    best, report = best_of_trials(standard, risks_of(risks, standard))
    assert float(best.losses.mean()) == pytest.approx(0.5, abs=0.02)
    assert report.chosen == len(report.trials) - 1 == 3
    for trial in report.trials:
        assert trial.difference == pytest.approx(trial.risk - report.trials[0].risk, abs=1e-6)
    said = str(report)
    assert "lower by 0.5 ± " in said
    assert "than that of the standard 36" in said


def test_nothing_longer_is_tried_where_shorter_was_better(fit: Fit) -> None:
    standard = mined(fit)
    risks = {(1.0, 1.0): 1.0, (0.33, 3.0): 0.6, (3.33, 0.0): 0.1}
    _, report = best_of_trials(standard, risks_of(risks, standard))
    assert [round(trial.n_passes) for trial in report.trials] == [36, 12, 12]
    assert report.chosen == 1


def test_a_given_decay_or_length_is_kept(fit: Fit) -> None:
    lengths = mined_settings(fit.settings, 2000, fixed_decay=True)
    assert [(one.n_passes, one.weight_decay) for one in lengths] == [
        (passes, fit.settings.weight_decay) for passes in (36.0, 12.0, 120.0)
    ]
    given = replace(fit.settings, max_steps=100)
    assert mined_settings(given, 2000) == [given]


def large(fit: Fit) -> Fit:
    """Return the fit with what is tried beside the standard where there are a million events."""
    standard = fit.with_settings(fit.settings)
    standard.trials, standard.n_starts = trial_settings(fit.settings, 1_000_000), 1
    return standard


@pytest.mark.parametrize("risk", [0.5, 0.99, 1.5])
def test_a_large_sample_is_trained_boldly_where_validation_clearly_prefers_it(fit: Fit, risk: float) -> None:
    """Four times the rate and a quarter of the decay, if that is better by more than five errors, and not by two."""
    standard = large(fit)
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(0))

    def train_once(other: Fit) -> Trained:
        is_bold = other.settings.learning_rate > standard.settings.learning_rate
        losses = risk + 0.1 * noise.flip(0) if is_bold else 1.0 + 0.1 * noise
        return Trained(None, None, losses)  # type: ignore[arg-type]

    best, report = best_of_trials(standard, train_once)
    first, bold = report.trials
    assert (first.rate, bold.rate) == (1.0, 4.0)
    assert bold.weight_decay == pytest.approx(first.weight_decay / 4)
    assert bold.n_passes == first.n_passes
    assert report.chosen == (risk == 0.5)
    assert float(best.losses.mean()) == pytest.approx(0.5 if risk == 0.5 else 1.0, abs=0.02)
    assert ("4 times the standard rate" in str(report)) == (risk == 0.5)
    assert ("none was better by more than five times its error" in str(report)) == (risk != 0.5)
    if risk == 0.99:
        assert -5 * bold.error < bold.difference < -bold.error
    assert TrialReport.stored(TrialReportDocument(**report.document().model_dump())) == report


@pytest.mark.parametrize(
    ("difference", "is_mean"),
    [(-0.001, True), (0.001, True), (0.2, False), (-0.5, False)],
    ids=["hardly lower", "hardly higher", "worse", "better"],
)
def test_the_standard_and_the_bold_training_are_averaged_where_validation_cannot_tell_them_apart(
    fit: Fit, difference: float, is_mean: bool
) -> None:
    standard = large(fit)
    noise = torch.randn(1000, generator=torch.Generator().manual_seed(0))

    def train_once(other: Fit) -> Trained:
        is_bold = other.settings.learning_rate > standard.settings.learning_rate
        losses = 1.0 + difference + 0.1 * noise.flip(0) if is_bold else 1.0 + 0.1 * noise
        return Trained("bold" if is_bold else "standard", None, losses)  # type: ignore[arg-type]

    def mean_of(first: Any, second: Any) -> Any:
        return f"{first} and {second}"

    best, report = best_of_trials(standard, train_once, mean_of)
    kept: Any = best.model
    assert kept == ("standard and bold" if is_mean else "bold" if difference < -0.4 else "standard")
    assert report.is_mean == is_mean
    assert ("averaged with a training of 4 times the rate" in str(report)) == is_mean
    assert TrialReport.stored(TrialReportDocument(**report.document().model_dump())) == report
    without, report = best_of_trials(standard, train_once)
    assert (str(without.model) == "bold") == (difference < -0.4)
    assert not report.is_mean


def test_the_mean_of_two_models_is_one_of_their_log_probabilities() -> None:
    """Of two fits of the same events, in one network twice as wide."""
    reference, target = signed_gaussian_case("signed").samples(2000, np.random.default_rng(0))
    settings: dict[str, Any] = {"max_steps": 30, "reference_density": "any", "target_density": "any"}
    models: list[Any] = []
    for rate in (0.01, 0.03):
        fitted = qr.SignResolvedRatio(learning_rate=rate, **settings, **QUICK)
        models.append(fitted.fit_samples(reference, target).model_)
    mean = models[0].mean_with(models[1])
    assert mean.n_members == 1
    assert mean.network.width == 2 * models[0].network.width
    inputs = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    wanted = torch.stack([torch.log_softmax(model.outputs(inputs), dim=-1) for model in models]).mean(dim=0)
    torch.testing.assert_close(
        torch.log_softmax(mean.outputs(inputs), dim=-1),
        torch.log_softmax(wanted, dim=-1),
        atol=1e-5,
        rtol=1e-5,
    )
    assert not torch.allclose(models[0].outputs(inputs), models[1].outputs(inputs), atol=1e-2)


def test_models_that_know_no_rates_were_trained_with_the_standard_one(fit: Fit) -> None:
    _, report = best_of_trials(large(fit), risks_of({(1.0, 1.0): 1.0}, fit))
    written = report.document().model_dump()
    for trial in written["trials"]:
        del trial["rate"]
    stored = TrialReport.stored(TrialReportDocument(**written))
    assert stored is not None
    assert [trial.rate for trial in stored.trials] == [1.0, 1.0]


def test_what_was_given_is_not_tried_otherwise(fit: Fit) -> None:
    """A given rate or decay stays; with both, or with a given length, nothing is left to try."""
    settings = fit.settings

    def tried(**given: Any) -> list[tuple[float, float]]:
        return [
            (one.learning_rate / settings.learning_rate, one.weight_decay / settings.weight_decay)
            for one in trial_settings(settings, 1_000_000, **given)
        ]

    assert tried() == [(4.0, 0.25)]
    assert tried(fixed_rate=True) == [(1.0, 0.25)]
    assert tried(fixed_decay=True) == [(4.0, 1.0)]
    assert tried(fixed_rate=True, fixed_decay=True) == []
    assert [one.averaged_part for one in trial_settings(settings, 1_000_000)] == [0.15]
    assert trial_settings(replace(settings, max_steps=100), 1_000_000) == []
    assert trial_settings(replace(settings, schedule="constant"), 1_000_000) == []
    assert trial_settings(settings, 5_000_001) == []


@pytest.mark.parametrize(
    ("given", "n_tried"), [({}, 1), ({"learning_rate": 0.01, "weight_decay": 0.1}, 0), ({"max_steps": 9}, 0)]
)
def test_a_fit_of_many_events_is_prepared_with_its_trial(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], n_tried: int
) -> None:
    """The bounds are lowered, as half a million events would take a minute."""
    monkeypatch.setattr("quasiratio.training.standard._MOST_TRIAL_EVENTS", 500)
    model = qr.SignResolvedRatio(**QUICK, **given).fit_samples(*_toy(1500))
    assert model.trials_ is not None
    assert len(model.trials_.trials) == 1 + n_tried


def test_a_classifier_of_one_mined_function_of_few_events_is_trained_longer() -> None:
    """Regression is not, nor are several functions, or one of many events; what is tried beside it stays as it is."""
    events = LatentExponentialCase(slopes=(0.5, -0.5)).sample(1000, np.random.default_rng(0))
    joint = qr.JointRatio(**QUICK).fit(events.features, events.mined)
    regression = qr.JointRatio(method="regression", **QUICK).fit(events.features, events.mined)
    terms = np.column_stack([np.ones(1000), events.mined, events.mined**2])
    polynomial = qr.PolynomialRatio(qr.PolynomialBasis(["a"]), method="sign-resolved", **QUICK)
    polynomial.fit(events.features, terms)
    for model, length in ((joint, 2.0), (regression, 1.0), (polynomial, 1.0)):
        standard, *others = model.trials_.trials
        assert standard.n_passes == pytest.approx(36 * length, rel=0.02)
        assert standard.weight_decay == pytest.approx(length / 3 * standard_weight_decay(850, noisy=False))
        assert [round(trial.n_passes) for trial in others[:2]] == [12, 12]
    assert single_function_length(17_000) == single_function_length(10**7) == 1.0


def test_five_thousand_events_need_no_setting() -> None:
    case = signed_gaussian_case("signed")
    reference, target = case.samples(5000, np.random.default_rng(1))
    model = qr.SignResolvedRatio(**QUICK).fit_samples(reference, target)
    points = case.test_samples(20_000, np.random.default_rng(2))[0].features
    exact = case.exact_ratio(points)
    error = np.sqrt(np.mean((model.predict_ratio(points) - exact) ** 2) / np.mean(exact**2))
    assert error < 0.15
    assert model.fit_check_.status == "good"
    assert model.trials_ is not None
    assert model.trials_.batch_size == 256
    assert len(model.trials_.trials) == 5
    assert model.trials_.n_starts == 4


@pytest.mark.parametrize("make", [qr.SignResolvedRatio, qr.SignedMixtureRatio, qr.DirectRatio])
def test_one_network_of_a_small_sample_is_the_mean_of_its_starts(make: Any) -> None:
    """Not where the length is given, nor for the members of an ensemble."""
    reference, target = (positive.select(positive.weights > 0) for positive in _toy(1500))
    model = make(weight_decay=0.1, **QUICK).fit_samples(reference, target)
    assert model.trials_.n_starts == 4
    assert "as the mean of 4 starts" in str(model.trials_)
    assert model.predict_members(reference).shape == (1, len(reference))
    short = make(max_steps=1, **QUICK).fit_samples(reference, target)
    ensemble = make(n_members=2, max_steps=1, **QUICK).fit_samples(reference, target)
    assert short.trials_.n_starts == ensemble.trials_.n_starts == 1
    widths = [one.model_.network.weights[0].shape[2] for one in (model, short)]
    assert widths[0] == 4 * widths[1]
    assert model.model_.network.n_networks == short.model_.network.n_networks


def _toy(n: int) -> Any:
    return signed_gaussian_case("signed").samples(n, np.random.default_rng(1))


def test_decay_is_for_what_the_events_are_worth() -> None:
    """Eight times fewer effective events have twice the decay; signs and scales of the weights say nothing of it."""
    model = qr.SignResolvedRatio(**QUICK)
    model.n_features_in_ = 2
    full, eighth = (model.checked_settings(200_000, share).weight_decay for share in (1.0, 1 / 8))
    assert eighth == pytest.approx(2.0 * full, rel=1e-9)
    labels = np.repeat([False, True], 4)
    weights = np.array([3.0, -3.0, 3.0, 3.0, 1.0, 1.0, 0.0, 0.0])
    events = LabelledEvents(np.zeros((8, 1), np.float32), labels, weights)
    assert events.effective_share == pytest.approx((4 + 2) / 8)


def test_settings_of_five_million_events_per_class() -> None:
    """Without training: a few thousand steps of large batches, nothing tried, and a network that they can fill."""
    model = qr.SignResolvedRatio(**QUICK)
    model.n_features_in_ = 12
    settings = model.checked_settings(10_000_000)
    assert settings.batch_size == 8192
    assert settings.n_passes == 6.0
    assert 5000 < settings.n_steps(10_000_000) < 10_000
    assert 0.02 < settings.weight_decay < 0.06
    assert 0.01 < model.held_out_fraction(10_000_000) < 0.03
    assert 2 <= len(model.layer_widths(10_000_000)) <= 4


@pytest.mark.parametrize(("given", "share"), [({}, 1 / 3), ({"weight_decay": 0.2}, 1.0)])
def test_members_of_an_ensemble_have_a_third_of_the_decay(given: dict[str, Any], share: float) -> None:
    """But what was given is given: decays of the trainings with all members, with trials and without."""
    trained: list[tuple[int, float]] = []

    class Spy(qr.SignResolvedRatio):
        def train_model(self, fit: Fit, floors: Any) -> Any:
            def train_once(one: Fit) -> Trained:
                trained.append((one.n_members, one.settings.weight_decay / fit.settings.weight_decay))
                return Trained(None, None, torch.zeros(100))  # type: ignore[arg-type]

            for prepared in (fit, fit.with_settings(fit.settings)):
                _, report = best_of_trials(prepared, train_once)
                assert report.member_decay == pytest.approx(share)
                decay = share * report.trials[report.chosen].weight_decay
                assert f"weight decay {decay:.2g}" in str(report)
            return super().train_model(fit, floors)

    rng = np.random.default_rng(0)
    Spy(n_members=2, **given, **QUICK).fit(rng.normal(size=(400, 1)), np.repeat([0, 1], 200))
    of_all = [decay for n_members, decay in trained if n_members == 2]
    assert of_all == pytest.approx([share, share])
    assert trained[0] == (1, 1.0)


@pytest.mark.parametrize(("n_events", "share"), [(400_000, 1.0), (400_001, 0.25)])
def test_direct_losses_have_less_decay_in_large_samples(n_events: int, share: float) -> None:
    standard = qr.SignResolvedRatio().default_decay(n_events, 0.5)
    assert standard == standard_weight_decay(0.5 * n_events)
    assert qr.DirectRatio(loss="revert").default_decay(n_events, 0.5) == pytest.approx(share * standard)


@pytest.mark.parametrize("is_large", [False, True])
def test_a_direct_loss_starts_from_no_reweighting_unless_the_sample_is_large(
    is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bias of the output after one tiny step, for LSIF, whose raw output is the ratio."""
    monkeypatch.setattr(standard_training, "_MOST_TRIAL_EVENTS", 0 if is_large else 400_000)
    reference, target = signed_gaussian_case("signed").samples(1000, np.random.default_rng(0))
    model = qr.DirectRatio(loss="lsif", max_steps=1, learning_rate=1e-6, normalize=False, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        model.fit_samples(reference, target)
    bias = float(model.model_.network.biases[-1].detach())
    assert bias == pytest.approx(0.0 if is_large else 1.0, abs=1e-4)
