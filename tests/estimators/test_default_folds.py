"""Grids and pipelines of scikit-learn with default arguments, on labels that are sorted as the README has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.quick_ratios import quick_ratios

import quasiratio as qr
from quasiratio.errors import InvalidInputError

QUICK: dict[str, Any] = {
    "max_steps": 10, "batch_size": 200, "hidden_layers": (4,), "random_state": 0, "verbose": False,
}  # fmt: skip
RATIOS = quick_ratios(QUICK, auto={"candidates": {"only": qr.SignResolvedRatio(**QUICK)}})
rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 300)
X = rng.normal(size=(600, 1)) + 0.3 * Y[:, None]
pytestmark = pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")


@pytest.mark.parametrize("kind", RATIOS)
def test_a_grid_with_default_folds_scores_every_fit(kind: str) -> None:
    name = "normalize" if kind == "auto" else "hidden_layers"
    values = [True, False] if kind == "auto" else [(3,), (4,)]
    grid = GridSearchCV(RATIOS[kind](), {name: values}, error_score="raise").fit(X, Y)
    assert np.all(np.isfinite(grid.cv_results_["mean_test_score"]))
    assert np.array_equal(grid.predict(X), grid.best_estimator_.predict_ratio(X))


@pytest.mark.parametrize("kind", RATIOS)
def test_predict_is_predict_ratio_so_that_a_pipeline_can_predict(kind: str) -> None:
    pipeline = make_pipeline(StandardScaler(), RATIOS[kind]()).fit(X, Y)
    expected = pipeline[-1].predict_ratio(pipeline[:-1].transform(X))
    assert np.array_equal(pipeline.predict(X), expected)


def test_a_fold_without_a_class_is_one_sentence() -> None:
    fitted = RATIOS["sign-resolved"]().fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"one class only.*StratifiedKFold\(shuffle=True\)") as raised:
        fitted.score(X[:100], Y[:100])
    assert "\n" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="StratifiedKFold"):
        cross_val_score(RATIOS["sign-resolved"](), X, Y, cv=KFold(5), error_score="raise")
    scores = cross_val_score(
        RATIOS["sign-resolved"](), X, Y, cv=StratifiedKFold(3, shuffle=True, random_state=0)
    )
    assert np.all(np.isfinite(scores))


def test_a_learning_curve_of_sorted_labels_says_how() -> None:
    ratio = RATIOS["sign-resolved"]()
    with pytest.raises(InvalidInputError, match="shuffle=True does in a learning curve"):
        learning_curve(ratio, X, Y, error_score="raise", cv=3, train_sizes=[0.3])
    scores = learning_curve(
        ratio, X, Y, error_score="raise", cv=3, train_sizes=[0.3], shuffle=True, random_state=0
    )
    assert np.all(np.isfinite(scores[2]))


def test_a_sample_in_a_pipeline_or_a_grid_says_how() -> None:
    sample = qr.WeightedSample(X)
    for search in (
        make_pipeline(StandardScaler(), RATIOS["sign-resolved"]()),
        GridSearchCV(RATIOS["sign-resolved"](), {"hidden_layers": [(3,)]}, cv=2, error_score="raise"),
    ):
        with pytest.raises(
            InvalidInputError, match=r"sample\.features, and sample\.weights as sample_weight"
        ):
            search.fit(sample, Y)
