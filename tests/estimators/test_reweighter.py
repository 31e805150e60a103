"""hep_ml's interface on any estimator: sums, closure, and folds that keep models from their own events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError
from quasiratio.estimators import (
    DirectRatio,
    RatioEstimator,
    Reweighter,
    SignedMixtureRatio,
    SignResolvedRatio,
)
from quasiratio.estimators.reweighter import fold_of_events
from quasiratio.sample import WeightedSample

FloatArray = npt.NDArray[np.float64]
QUICK: dict[str, Any] = {
    "max_steps": 40,
    "batch_size": 512,
    "hidden_layers": (16, 16),
    "verbose": False,
    "random_state": 0,
}


class Pair:
    """An original and a target, of different sizes and with weights of either sign."""

    def __init__(self, n: int = 1500, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.original = rng.normal(0.0, 1.0, (n, 2)).astype(np.float32)
        self.target = rng.normal([0.4, -0.2], 1.0, (2 * n, 2)).astype(np.float32)
        self.original_weight = rng.choice([1.3, -0.4], size=n, p=[0.9, 0.1])
        self.target_weight = rng.choice([0.7, -0.2], size=2 * n, p=[0.9, 0.1])

    def fit(self, reweighter: Reweighter) -> Reweighter:
        return reweighter.fit(self.original, self.target, self.original_weight, self.target_weight)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


@pytest.mark.parametrize("n_folds", [1, 2])
@pytest.mark.parametrize("total", ["target", "original"])
def test_the_new_weights_of_the_fitted_sample_sum_to_the_total(pair: Pair, total: Any, n_folds: int) -> None:
    reweighter = pair.fit(Reweighter(SignResolvedRatio(**QUICK), total=total, n_folds=n_folds))
    new = reweighter.predict_weights(pair.original, pair.original_weight)
    expected = pair.target_weight if total == "target" else pair.original_weight
    assert new.sum() == pytest.approx(expected.sum(), rel=1e-12)


def test_what_comes_out_is_the_new_weight_with_the_original_in_it(pair: Pair) -> None:
    reweighter = pair.fit(Reweighter(SignResolvedRatio(**QUICK)))
    ratio = reweighter.predict_ratio(pair.original)
    np.testing.assert_allclose(
        reweighter.predict_weights(pair.original, pair.original_weight),
        reweighter.scale_ * pair.original_weight * ratio,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        reweighter.predict_weights(pair.original), reweighter.scale_ * ratio, rtol=1e-12
    )
    sample = WeightedSample(pair.original, pair.original_weight)
    np.testing.assert_array_equal(
        reweighter.predict_weights(sample), reweighter.predict_weights(pair.original, pair.original_weight)
    )
    # Normalised ratios leave the sum alone but for the held-out events: the scale is the ratio of totals.
    assert reweighter.scale_ == pytest.approx(pair.target_weight.sum() / pair.original_weight.sum(), rel=0.05)


def test_the_first_estimator_is_the_sign_resolved_one(pair: Pair) -> None:
    assert Reweighter().ratio is None
    base = SignResolvedRatio(**QUICK)
    reweighter = pair.fit(Reweighter(base))
    assert isinstance(reweighter.ratios_[0], SignResolvedRatio)
    assert not hasattr(base, "model_")


@pytest.mark.parametrize(
    "ratio",
    [
        SignResolvedRatio(),
        SignedMixtureRatio(),
        DirectRatio(loss="lsif"),
        DirectRatio(loss="revert"),
    ],
    ids=["sign-resolved", "rosmm", "lsif", "revert"],
)
@pytest.mark.parametrize("n_folds", [1, 2])
def test_the_reweighted_sample_is_closer_to_the_target(
    pair: Pair, ratio: RatioEstimator, n_folds: int
) -> None:
    ratio = clone(ratio).set_params(**{**QUICK, "max_steps": 150})
    reweighter = pair.fit(Reweighter(ratio, n_folds=n_folds))
    fresh = Pair(20_000, seed=1)
    new = reweighter.predict_weights(fresh.original, fresh.original_weight)
    for column, expected in ((0, 0.4), (1, -0.2)):
        before = np.average(fresh.original[:, column], weights=fresh.original_weight)
        after = np.average(fresh.original[:, column], weights=new)
        assert abs(after - expected) < 0.5 * abs(before - expected)


def test_closure_on_a_signed_toy(toy: Callable[..., Any]) -> None:
    """The share within a radius of two is 26% in the reference and 4% in the signed target."""
    features, labels, weights = toy("signed", 10_000, 0)
    is_target = labels == 1
    reweighter = Reweighter(
        SignResolvedRatio(max_steps=200, batch_size=2048, random_state=0, verbose=False), n_folds=2
    ).fit(features[~is_target], features[is_target], weights[~is_target], weights[is_target])
    new = reweighter.predict_weights(features[~is_target], weights[~is_target])
    is_central = np.hypot(*features[~is_target].T) < 2.0
    exact = float(signed_gaussian_case("signed").target.radial_cdf(2.0))
    before = np.average(is_central, weights=weights[~is_target])
    after = np.average(is_central, weights=new)
    assert abs(after - exact) < 0.2 * abs(before - exact)


FOLDS = 3


def test_the_fold_is_a_pure_function_of_the_event() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2000, 3)).astype(np.float32)
    folds = fold_of_events(features, FOLDS)
    order = rng.permutation(2000)
    np.testing.assert_array_equal(fold_of_events(features[order], FOLDS), folds[order])
    np.testing.assert_array_equal(fold_of_events(features[::7], FOLDS), folds[::7])
    np.testing.assert_array_equal(fold_of_events(np.repeat(features, 2, axis=0), FOLDS), np.repeat(folds, 2))
    np.testing.assert_array_equal(fold_of_events(np.asfortranarray(features), FOLDS), folds)
    for row in (0, 17):
        assert fold_of_events(features[row : row + 1], FOLDS)[0] == folds[row]


def test_the_two_zeros_are_one() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 2)).astype(np.float32)
    features[:, 1] = 0.0
    negative = features.copy()
    negative[:, 1] = -0.0
    assert np.signbit(negative[:, 1]).all()
    np.testing.assert_array_equal(fold_of_events(negative, FOLDS), fold_of_events(features, FOLDS))


@pytest.mark.parametrize("n_folds", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("kind", ["continuous", "rounded", "counts", "one varies"])
def test_folds_are_of_equal_size(kind: str, n_folds: int) -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    features = rng.normal(size=(n, 3)).astype(np.float32)
    if kind == "rounded":
        features = np.round(features, 2).astype(np.float32)
    elif kind == "counts":
        features = rng.integers(0, 1000, (n, 3)).astype(np.float32)
    elif kind == "one varies":
        features[:, :2] = 1.0
    sizes = np.bincount(fold_of_events(features, n_folds), minlength=n_folds)
    assert len(sizes) == n_folds
    spread = np.sqrt(n / n_folds)
    np.testing.assert_allclose(sizes, n / n_folds, atol=5 * spread)


def test_folds_do_not_depend_on_where_an_event_lies() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30_000, 2)).astype(np.float32)
    folds = fold_of_events(features, FOLDS)
    for fold in range(FOLDS):
        chosen = features[folds == fold]
        assert np.all(np.abs(chosen.mean(axis=0)) < 4 / np.sqrt(len(chosen)))
        assert np.mean(chosen[:, 0] > 1.0) == pytest.approx(np.mean(features[:, 0] > 1.0), abs=0.015)


def test_one_fold_holds_everything() -> None:
    assert fold_of_events(np.ones((5, 2), dtype=np.float32), 1).tolist() == [0] * 5


@pytest.fixture(scope="module")
def crossed(pair: Pair) -> Reweighter:
    return pair.fit(Reweighter(SignResolvedRatio(**QUICK), n_folds=FOLDS))


def test_every_event_is_predicted_by_the_model_that_did_not_see_it(pair: Pair, crossed: Reweighter) -> None:
    """Refitting by hand on the other folds, with the same seed, gives the same bits."""
    features = np.concatenate([pair.original, pair.target])
    weights = np.concatenate([pair.original_weight, pair.target_weight])
    labels = np.repeat([0, 1], [len(pair.original), len(pair.target)])
    folds = fold_of_events(features, FOLDS)
    ratio = crossed.predict_ratio(features)
    assert len(crossed.ratios_) == FOLDS
    for fold in range(FOLDS):
        unseen = folds == fold
        by_hand = SignResolvedRatio(**QUICK).fit(
            features[~unseen], labels[~unseen], sample_weight=weights[~unseen]
        )
        np.testing.assert_array_equal(ratio[unseen], by_hand.predict_ratio(features[unseen]))
        assert not np.allclose(ratio[~unseen], by_hand.predict_ratio(features[~unseen]), rtol=1e-3)


def test_what_an_event_gets_does_not_depend_on_its_company(pair: Pair, crossed: Reweighter) -> None:
    whole = crossed.predict_ratio(pair.original)
    order = np.random.default_rng(1).permutation(len(whole))[:200]
    np.testing.assert_allclose(crossed.predict_ratio(pair.original[order]), whole[order], rtol=1e-5)
    np.testing.assert_allclose(crossed.predict_ratio(pair.original[3:4]), whole[3:4], rtol=1e-5)


def test_an_event_does_not_change_its_own_weight(pair: Pair) -> None:
    """Multiplying the weight of one fold's events leaves their ratio as it was, but for other folds."""
    other = Pair()
    fold = fold_of_events(other.original, FOLDS)
    other.original_weight = np.where(fold == 1, 3.0, 1.0) * other.original_weight
    before, after = (p.fit(Reweighter(SignResolvedRatio(**QUICK), n_folds=FOLDS)) for p in (pair, other))
    unseen = pair.original[fold == 1]
    np.testing.assert_array_equal(before.predict_ratio(unseen), after.predict_ratio(unseen))
    seen = pair.original[fold != 1]
    assert not np.allclose(before.predict_ratio(seen), after.predict_ratio(seen))


def test_frames_are_taken_and_their_names_compared(pair: Pair) -> None:
    names = ["pt", "mass"]
    original, target = (pd.DataFrame(x, columns=names) for x in (pair.original, pair.target))
    for n_folds in (1, 2):
        from_frames = Reweighter(SignResolvedRatio(**QUICK), n_folds=n_folds).fit(
            original, target, pair.original_weight, pair.target_weight
        )
        from_arrays = pair.fit(Reweighter(SignResolvedRatio(**QUICK), n_folds=n_folds))
        np.testing.assert_array_equal(
            from_frames.predict_weights(original, pair.original_weight),
            from_arrays.predict_weights(pair.original, pair.original_weight),
        )
        with pytest.raises(InvalidInputError, match="feature names should match"):
            from_frames.predict_weights(original[["mass", "pt"]], pair.original_weight)


def test_different_names_in_original_and_target_raise(pair: Pair) -> None:
    original = pd.DataFrame(pair.original, columns=["pt", "mass"])
    with pytest.raises(InvalidInputError, match="expected the same names in the same order"):
        Reweighter().fit(original, original[["mass", "pt"]])
    with pytest.raises(InvalidInputError, match=r"\['pt', 'mass'\] in the original and \['x0'\]"):
        Reweighter().fit(original, pair.target[:, :1])


@pytest.mark.parametrize("n_folds", [0, -1, 2.5, "3", None])
def test_a_wrong_number_of_folds_raises(pair: Pair, n_folds: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected a positive whole number"):
        pair.fit(Reweighter(n_folds=n_folds))


def test_a_wrong_total_raises(pair: Pair) -> None:
    with pytest.raises(InvalidInputError, match="expected 'target' or 'original'"):
        pair.fit(Reweighter(total="both"))  # type: ignore[arg-type]


def test_parameters_survive_a_clone_and_reach_the_ratio() -> None:
    reweighter = Reweighter(DirectRatio(loss="lsif", max_steps=7), total="original", n_folds=4)
    copy = clone(reweighter)
    assert (copy.total, copy.n_folds) == ("original", 4)
    assert copy.ratio is not reweighter.ratio
    assert copy.get_params()["ratio__max_steps"] == 7
    copy.set_params(ratio__max_steps=9)
    assert copy.ratio.max_steps == 9
    assert reweighter.get_params()["ratio__max_steps"] == 7


def test_the_same_seed_gives_the_same_bits(pair: Pair, crossed: Reweighter) -> None:
    again = pair.fit(clone(crossed))
    np.testing.assert_array_equal(
        again.predict_weights(pair.original), crossed.predict_weights(pair.original)
    )


def test_another_network_in_one_fold_changes_the_events_of_that_fold_only(pair: Pair) -> None:
    reweighter = pair.fit(Reweighter(SignResolvedRatio(**QUICK), total="original", n_folds=3))
    before = reweighter.predict_ratio(pair.original)
    with torch.no_grad():
        reweighter.ratios_[1].model_.network.biases[-1].add_(
            torch.linspace(0, 1, reweighter.ratios_[1].model_.network.biases[-1].shape[-1])
        )
    changed = reweighter.predict_ratio(pair.original) != before
    np.testing.assert_array_equal(changed, fold_of_events(pair.original, 3) == 1)


def test_members_of_the_folds(pair: Pair) -> None:
    reweighter = pair.fit(Reweighter(SignResolvedRatio(**QUICK, n_members=2), n_folds=2))
    members = reweighter.predict_members(pair.original)
    assert members.shape == (2, len(pair.original))
    first = fold_of_events(pair.original, 2) == 0
    np.testing.assert_allclose(
        members[:, first], reweighter.ratios_[0].predict_members(pair.original[first]), rtol=1e-6
    )
    assert Reweighter().n_members == 1
