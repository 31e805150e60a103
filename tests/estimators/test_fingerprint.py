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
        {"features": lambda X: X.reshape(50, 4), "names": lambda _: list("abcd")},
    ],
)
def test_any_change_of_the_data_shows(changes: dict[str, Any]) -> None:
    assert fingerprint(**changes).sha256 != fingerprint().sha256


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
