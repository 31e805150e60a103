"""What is tried beside the standard length and strength, and from the smallest to the largest samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import quasiratio as qr
from quasiratio.distributions import signed_gaussian_case
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.estimators.trials import Trained, best_of_trials
from quasiratio.training.standard import mined_settings

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
