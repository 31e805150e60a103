"""Weights come back as the kind of array that the events came in."""

from __future__ import annotations

from typing import Any

import awkward as ak
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import quasiratio as qr

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2)).astype(np.float32)
WEIGHTS = rng.choice([1.0, -0.5], 600, p=[0.8, 0.2])
INDEX = rng.permutation(600) + 1000


def as_frame(matrix: npt.NDArray[np.float32]) -> pd.DataFrame:
    return pd.DataFrame(matrix, columns=["a", "b"], index=INDEX[: len(matrix)])


def as_records(matrix: npt.NDArray[np.float32]) -> Any:
    return ak.zip({"a": matrix[:, 0], "b": matrix[:, 1]})


@pytest.mark.parametrize("kind", [as_frame, as_records])
def test_reweighter_returns_the_kind_it_was_given(kind: Any) -> None:
    reweighter = qr.Reweighter(qr.SignResolvedRatio(max_steps=5, random_state=0))
    reweighter.fit(kind(X), kind(X[:500] + 0.3), WEIGHTS)
    check(reweighter.predict_weights(kind(X[:100]), WEIGHTS[:100]), kind(X[:100]))
    weights = np.asarray(reweighter.predict_weights(kind(X[:100]), WEIGHTS[:100]))
    reweighter.fit(X, X[:500] + 0.3, WEIGHTS)
    plain = reweighter.predict_weights(X[:100], WEIGHTS[:100])
    assert type(plain) is np.ndarray
    assert np.array_equal(weights, plain)


@pytest.mark.parametrize("kind", [as_frame, as_records])
def test_positive_reweighter_returns_the_kind_it_was_given(kind: Any) -> None:
    positive = qr.PositiveReweighter(max_steps=5, random_state=0).fit(kind(X), WEIGHTS)
    check(positive.predict_weights(kind(X[:100]), WEIGHTS[:100]), kind(X[:100]))
    assert positive.report_.effective_size_after > 0
    plain = qr.PositiveReweighter(max_steps=5, random_state=0).fit(X, WEIGHTS)
    assert type(plain.predict_weights(X, WEIGHTS)) is np.ndarray


def check(weights: Any, events: Any) -> None:
    if isinstance(events, pd.DataFrame):
        assert isinstance(weights, pd.Series)
        assert weights.index.equals(events.index)
        assert weights.name == "weight"
    else:
        assert isinstance(weights, ak.Array)
        assert len(weights) == len(events)
