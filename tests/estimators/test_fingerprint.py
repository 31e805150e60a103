"""The fingerprint of the training data: any change shows, and every estimator has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quasiratio.estimators.fingerprint import DataFingerprint, data_fingerprint


def fingerprint(**changes: Any) -> DataFingerprint:
    rng = np.random.default_rng(0)
    given = {
        "names": ["a", "b"],
        "features": rng.normal(size=(100, 2)).astype(np.float32),
        "labels": rng.random(100) < 0.5,
        "weights": rng.normal(1.0, 1.0, 100),
    }
    return data_fingerprint(**{name: changes.get(name, lambda v: v)(value) for name, value in given.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"features": lambda X: np.nextafter(X, np.float32(9))},
        {"features": lambda X: X[::-1]},
        {"features": lambda X: X[:, ::-1]},
        {"labels": lambda y: ~y},
        {"labels": lambda _: None},
        {"weights": lambda w: np.nextafter(w, 9)},
    ],
)
def test_any_change_of_the_data_shows(changes: dict[str, Any]) -> None:
    assert fingerprint(**changes).sha256 != fingerprint().sha256


def test_the_shape_shows_where_the_bytes_are_the_same() -> None:
    def unlabelled(**changes: Any) -> str:
        return fingerprint(labels=lambda _: None, **changes).sha256

    reshaped = unlabelled(features=lambda X: X.reshape(50, 4), names=lambda _: list("abcd"))
    assert reshaped != unlabelled()


def test_training_events_are_recognised_and_others_are_not() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 3)).astype(np.float32)
    labels = np.arange(30_000) < 5000
    found = data_fingerprint(["a", "b", "c"], X, labels, np.ones(30_000))
    fresh = rng.normal(size=(30_000, 3)).astype(np.float32)
    assert found.share_seen(X[labels]) == 1.0  # of the target all, though they are few
    assert found.share_seen(X[~labels]) == 1.0
    assert found.share_seen(fresh) == 0.0
    assert found.share_seen(X[::3]) == pytest.approx(1.0, abs=0.15)  # five sixths reference, one sixth target
    mixed = np.concatenate([X[~labels][:10_000], fresh])
    assert found.share_seen(mixed) == pytest.approx(0.25, abs=0.06)  # of about 800 within reach
    in_parts = [found.seen(part) for part in np.array_split(rng.permutation(mixed), 7)]
    assert sum(in_parts[1:], in_parts[0]) == found.seen(mixed)
    assert found.share_seen(X[:3]) == 0.0  # too few to say
    assert found.share_seen(-X[labels] * -1.0) == 1.0


def test_small_samples_are_kept_whole() -> None:
    X = np.random.default_rng(2).normal(size=(600, 1)).astype(np.float32)
    found = data_fingerprint(["a"], X, np.arange(600) < 300, np.ones(600))
    assert [sketch.is_complete for sketch in found.sketches] == [True, True]
    assert found.share_seen(np.concatenate([X[:10], X[:10] + 1.0])) == 0.5


def test_features_that_repeat_recognise_nothing() -> None:
    X = np.random.default_rng(3).integers(0, 5, size=(5000, 2)).astype(np.float32)
    found = data_fingerprint(["a", "b"], X, None, np.ones(5000))
    assert found.sketches[0].hashes == ()
    assert found.share_seen(X) == 0.0


def test_the_same_data_have_the_same_fingerprint() -> None:
    assert fingerprint() == fingerprint()
    assert fingerprint(features=np.asfortranarray) == fingerprint()  # however they lie in memory


def test_it_says_how_many_events_and_where(fitted_estimator: Callable[[str], Any]) -> None:
    for kind in ("resolved", "auto", "reweighter folds", "positive"):
        found = fitted_estimator(kind).fingerprint_
        assert found.n_events == 1200, kind
        assert len(found.ranges) == 2
        assert all(low < high for low, high in found.ranges.values())
    assert list(fitted_estimator("resolved").fingerprint_.ranges) == ["mass", "p_T <b>µ</b>"]
    parts = [ratio.fingerprint_ for ratio in fitted_estimator("reweighter folds").ratios_]
    assert sum(part.n_events for part in parts) == 2 * 1200  # of three folds each event is seen by two
    assert (
        fitted_estimator("auto").candidates_["revert"].fingerprint_ == fitted_estimator("auto").fingerprint_
    )
