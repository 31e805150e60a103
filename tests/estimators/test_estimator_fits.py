"""Fits of every sign pattern, seeds, warnings at prediction, divergence and settings, on small samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import quasiratio as qr
from quasiratio.errors import (
    DivergenceError,
    NegativeDensityWarning,
    NegativeWeightWarning,
    SupportWarning,
)
from quasiratio.losses import LOSSES, RatioLoss

QUICK: dict[str, Any] = {
    "max_steps": 60,
    "hidden_layers": (8,),
    "batch_size": 512,
    "random_state": 0,
    "verbose": False,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "direct": lambda **options: qr.DirectRatio(**{"loss": "lsif", **QUICK, **options}),
    "signed mixture": lambda **options: qr.SignedMixtureRatio(**{**QUICK, **options}),
    "sign resolved": lambda **options: qr.SignResolvedRatio(**{**QUICK, **options}),
}
every_estimator = pytest.mark.parametrize("kind", MAKERS)
Events = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]
SIGN_PATTERNS = {
    "none": (False, False),
    "only target": (False, True),
    "only reference": (True, False),
    "both": (True, True),
}


def events(pattern: str = "both", n: int = 6000, seed: int = 1) -> Events:
    """Gaussians shifted by 0.3; a class of both signs has one negative event in twenty, whatever its features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + 0.3 * y[:, None]
    signed = np.array(SIGN_PATTERNS[pattern])[y]
    return X, y, np.where(signed & (rng.random(n) < 0.05), -1.0, 1.0) * rng.uniform(0.5, 1.5, n)


PROBES = np.random.default_rng(9).uniform(-1.3, 1.6, (500, 2))  # where the events are


def off(estimator: Any) -> float:
    """Return the rms distance to the exact ratio; the signs are independent of the features."""
    exact = np.exp(0.3 * PROBES.sum(axis=1) - 0.09)
    return float(np.sqrt(np.mean((estimator.predict_ratio(PROBES) - exact) ** 2)))


@pytest.mark.parametrize("pattern", SIGN_PATTERNS)
@pytest.mark.parametrize("tune", ["none", "coefficients", "all"])
def test_the_mixture_works_for_every_sign_pattern(pattern: str, tune: str) -> None:
    X, y, w = events(pattern)
    estimator = MAKERS["signed mixture"](tune=tune).fit(X, y, sample_weight=w)
    reference_signed, target_signed = SIGN_PATTERNS[pattern]
    assert len(estimator.pairs_) == (1 + reference_signed) * (1 + target_signed)
    c0, c1 = estimator.coefficients_[0]
    expected = [1 + 0.05 / 0.9 * is_signed for is_signed in (reference_signed, target_signed)]
    if tune == "none":
        np.testing.assert_allclose([c0, c1], expected, atol=0.02)
    elif tune == "coefficients":  # those of a class without negative weights stay at one
        assert reference_signed or c0 == 1.0
        assert target_signed or c1 == 1.0
    assert off(estimator) < 0.25


@pytest.mark.parametrize("pattern", SIGN_PATTERNS)
@pytest.mark.parametrize("tune", ["none", "all"])
def test_the_sign_resolved_classifier_works_for_every_sign_pattern(pattern: str, tune: str) -> None:
    X, y, w = events(pattern)
    estimator = MAKERS["sign resolved"](tune=tune, max_steps=250).fit(X, y, sample_weight=w)
    reference_signed, target_signed = SIGN_PATTERNS[pattern]
    assert len(estimator.classes_) == 2 + reference_signed + target_signed
    assert off(estimator) < 0.25


@every_estimator
def test_the_same_seed_gives_the_same_bits(kind: str) -> None:
    X, y, w = events()
    first, again, other = (
        MAKERS[kind](random_state=seed, n_members=2).fit(X, y, sample_weight=w) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.predict_members(X), again.predict_members(X))
    np.testing.assert_array_equal(first.predict_ratio(X), again.predict_ratio(X))
    assert not np.array_equal(first.predict_ratio(X), other.predict_ratio(X))


@every_estimator
def test_fits_neither_read_nor_move_the_global_generators(kind: str) -> None:
    X, y, w = events(n=400)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    MAKERS[kind](max_steps=3).fit(X, y, sample_weight=np.abs(w))
    assert torch.equal(torch.rand(1), expected)


def test_without_a_random_state_fits_differ_and_tell_their_seed() -> None:
    X, y, _ = events()
    first, second = (MAKERS["direct"](random_state=None).fit(X, y) for _ in range(2))
    assert first.seed_ != second.seed_
    assert not np.array_equal(first.predict_ratio(X), second.predict_ratio(X))


@every_estimator
def test_weight_zero_is_absent_from_what_is_learned(kind: str) -> None:
    X, y, w = events()
    Z, z, _ = events(seed=2)
    padded = (np.vstack([X, Z]), np.append(y, 1 - z), np.append(w, 0 * w))  # and with the wrong labels
    validation = events(seed=3)
    estimator = MAKERS[kind](max_steps=200).fit(*padded, validation=validation)
    assert off(estimator) < 0.25
    if kind == "signed mixture":
        plain = MAKERS[kind](max_steps=1, normalize=False).fit(X, y, w, validation=validation)
        np.testing.assert_allclose(estimator.coefficients_, plain.coefficients_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["signed mixture", "sign resolved"])
def test_a_nonpositive_reference_estimate_is_counted_and_warned_of(kind: str) -> None:
    """A reference that is negative for x0 < 0: half of the events, and nothing is clipped."""
    rng = np.random.default_rng(0)
    n = 8000
    y = np.arange(n) % 2
    X = rng.uniform(-1, 1, (n, 2))
    is_negative = (y == 0) & (X[:, 0] < 0) & (rng.random(n) < 0.7)
    w = np.where(is_negative, -1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = MAKERS[kind](max_steps=300, normalize=False).fit(X, y, sample_weight=w)
    with pytest.warns(
        NegativeDensityWarning, match=r"zero or negative for \d+ of 8000 events \(\d+(\.\d+)?%\)"
    ) as caught:
        ratio = estimator.predict_ratio(X)
    told = int(str(caught[0].message).split("negative for ")[1].split(" of")[0])
    assert told == int(np.sum(ratio < 0))  # the target is positive: these are the negative denominators
    assert 0.3 < told / n < 0.6
    np.testing.assert_array_equal(ratio[X[:, 0] < -0.5] < 0, True)


def test_a_ratio_stays_at_its_edge_beyond_the_training_events() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    X = np.column_stack([rng.lognormal(3.0 + 0.1 * y, 1.0), rng.normal(0.2 * y)])
    estimator = MAKERS["direct"]().fit({"pt": X[:, 0], "eta": X[:, 1]}, y)
    assert estimator.log_features_ == ["pt"]
    scaling = estimator.model_.scaling
    low, high = float(scaling.floor[0]), float(scaling.ceiling[1])
    inside = estimator.predict_ratio({"pt": [low, 20.0], "eta": [0.0, high]})
    with pytest.warns(
        SupportWarning, match=r"of 'pt' \(60\.00%\), 'eta' \(20\.00%\) lie beyond the training data"
    ):
        outside = estimator.predict_ratio(
            {"pt": [low / 2, 20.0, 20.0, 0.0, 0.0], "eta": [0.0, 1e6, 0.0, 0.0, 0.0]}
        )
    np.testing.assert_allclose(outside[:2], inside, rtol=1e-5)
    assert abs(outside[2] - outside[1]) > 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)  # its own extremes are no news
        estimator.predict_ratio({"pt": X[:, 0], "eta": X[:, 1]})


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"lsif", "revert", "pare", "mse"}))
def test_positive_losses_warn_of_negative_weights(loss: str) -> None:
    X, y, w = events("only target")
    with pytest.warns(
        NegativeWeightWarning, match=f"'{loss}' can only express positive ratios.*SignResolvedRatio"
    ):
        MAKERS["direct"](loss=loss, max_steps=5).fit(X, y, sample_weight=w)
    MAKERS["direct"](loss=loss, max_steps=5).fit(X, y, sample_weight=np.abs(w))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_a_positive_ratio(loss: str) -> None:
    X, y, _ = events("none")
    estimator = MAKERS["direct"](loss=loss, max_steps=150).fit(X, y)
    assert off(estimator) < 0.15
    assert estimator.loss_.name == loss
    assert estimator.history_.stage == loss
    assert not estimator.diverged_


class _TangentLink:
    ratio_range = (-np.inf, np.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        return torch.tan(raw)

    def raw(self, ratio: Tensor) -> Tensor:
        return torch.atan(ratio)


@dataclass(frozen=True)
class Angle(RatioLoss):
    """The loss of the documentation."""

    name, link, requires_positive = "angle", _TangentLink(), ()

    def reference(self, raw: Tensor) -> Tensor:
        return -torch.cos(raw)

    def target(self, raw: Tensor) -> Tensor:
        return -torch.sin(raw)


def test_a_loss_of_the_user_works_as_one_of_ours() -> None:
    X, y, w = events("only target")
    direct = MAKERS["direct"](loss=Angle(), max_steps=200).fit(X, y, sample_weight=w)
    tuned = MAKERS["sign resolved"](tune="all", tune_loss=Angle(), max_steps=200).fit(X, y, sample_weight=w)
    assert tuned.tuning_history_.stage == "tune:angle"
    for estimator in (direct, tuned):
        assert off(estimator) < 0.2


@pytest.mark.parametrize("tune_loss", ["pare", "lsif", "revert", qr.losses.Pare(eps="auto")])
def test_tuning_losses(tune_loss: Any) -> None:
    X, y, w = events()
    for kind, tune in (
        ("signed mixture", "coefficients"),
        ("signed mixture", "all"),
        ("sign resolved", "all"),
    ):
        estimator = MAKERS[kind](tune=tune, tune_loss=tune_loss).fit(X, y, sample_weight=w)
        name = tune_loss if isinstance(tune_loss, str) else tune_loss.name
        assert estimator.tuning_history_.stage.endswith(name)
        assert np.all(np.isfinite(estimator.predict_ratio(X)))


def test_a_rate_that_is_far_too_large_ends_in_an_error_or_fails_the_check() -> None:
    X, y, w = events()
    for make in MAKERS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                estimator = make(learning_rate=1e6).fit(X, y, sample_weight=w)
            except DivergenceError as error:
                assert "No finite state exists" in str(error)  # noqa: PT017 - either outcome is right
            else:
                is_sound = not np.any(np.isnan(estimator.predict_ratio(X)))
                assert is_sound or estimator.fit_check_.status == "failed"


def test_the_published_schedule_runs() -> None:
    X, y, w = events()
    estimator = MAKERS["direct"](
        schedule="constant", max_steps=None, learning_rate=0.01, batch_size=256, epoch_size=1024, patience=3
    ).fit(X, y, sample_weight=w)
    history = estimator.history_
    assert len(history) == int(history.best_epoch[0]) + 3 + 1
    assert set(np.diff(history.steps)) == {4}
    assert set(history.learning_rate) == {0.01}


def test_the_default_fit_has_twelve_passes_and_a_rate_that_knows_the_width() -> None:
    X, y, w = events(n=200)
    estimator = qr.SignResolvedRatio(
        batch_size=16, hidden_layers=(2,), random_state=0, verbose=False, normalize=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y, sample_weight=np.abs(w))
    n_training = 170  # of 200 events, 20 to validate and 10 to check
    assert estimator.trials_ is not None
    taken = estimator.trials_.trials[estimator.trials_.chosen]
    assert estimator.history_.n_steps == round(taken.n_passes * n_training / 16)
    assert estimator.trials_.trials[0].n_passes == pytest.approx(12, abs=0.1)
    assert len(estimator.trials_.trials) == 5
    assert max(estimator.history_.learning_rate) <= 0.02
    usual = MAKERS["direct"](max_steps=1, hidden_layers=(64, 64)).fit(X, y)
    assert usual.history_.learning_rate == [pytest.approx(0.01)]
    wide = MAKERS["direct"](max_steps=1, hidden_layers=(16, 128)).fit(X, y)
    assert wide.history_.learning_rate == [pytest.approx(0.005)]
    mixture = qr.SignedMixtureRatio(max_steps=1, random_state=0, verbose=False).fit(X, y)
    assert mixture.history_.learning_rate == [pytest.approx(0.02)]  # half as wide, twice as fast


def test_the_balanced_draw_uses_equally_many_events_of_both_parts() -> None:
    X, y, w = events()
    drawn = MAKERS["signed mixture"](balanced_draw=True).fit(X, y, sample_weight=w)
    everything = MAKERS["signed mixture"]().fit(X, y, sample_weight=w)
    assert not np.array_equal(drawn.predict_ratio(PROBES), everything.predict_ratio(PROBES))
    np.testing.assert_array_equal(drawn.coefficients_, everything.coefficients_)


def test_normalize_can_be_switched_off() -> None:
    X, y, w = events("only target")
    validation = events("only target", seed=2)
    for make in MAKERS.values():
        on, unscaled = (make(normalize=flag).fit(X, y, w, validation=validation) for flag in (True, False))
        reference = y == 0
        assert np.average(on.predict_ratio(X[reference]), weights=w[reference]) == pytest.approx(
            1.0, abs=1e-6
        )
        assert unscaled.normalization_ == 1.0
        scale = on.predict_ratio(X) / unscaled.predict_ratio(X)
        np.testing.assert_allclose(scale, scale[0], rtol=1e-9)
