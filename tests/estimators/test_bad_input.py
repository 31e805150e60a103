"""Bad data and bad options: each ends in `InvalidInputError` with a sentence that names the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import quasiratio as qr
from quasiratio.errors import InvalidInputError

N_EVENTS = 40
QUICK: dict[str, Any] = {
    "max_steps": 2,
    "hidden_layers": (4,),
    "random_state": 0,
    "verbose": False,
    "normalize": False,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "direct": lambda **options: qr.DirectRatio(**{"loss": "lsif", **QUICK, **options}),
    "signed mixture": lambda **options: qr.SignedMixtureRatio(**{**QUICK, **options}),
    "sign resolved": lambda **options: qr.SignResolvedRatio(**{**QUICK, **options}),
}
every_estimator = pytest.mark.parametrize("kind", MAKERS)
LABELS = np.arange(N_EVENTS) % 2
FEATURES = np.random.default_rng(0).uniform(size=(N_EVENTS, 2))
ONES = np.ones(N_EVENTS)


def with_value(row: int, column: int, value: float, dtype: type = np.float64) -> npt.NDArray[Any]:
    features: npt.NDArray[Any] = FEATURES.astype(dtype)
    features[row, column] = value
    return features


def two_infinities() -> npt.NDArray[np.float64]:
    features = with_value(3, 1, np.inf)
    features[4, 1] = -np.inf
    return features


def weights(reference: float, target: float) -> npt.NDArray[np.float64]:
    """Weights of both signs whose class sums are the given ones."""
    w = np.where(np.arange(N_EVENTS) % 4 < 2, 1.0, -1.0)
    w[0] += reference
    w[1] += target
    return w


BAD_DATA: dict[str, tuple[Any, Any, Any, str]] = {
    "nan": (with_value(3, 1, np.nan), LABELS, None, r"NaN, infinite or beyond float32 in 'x1' \(1 events\)"),
    "infinity": (with_value(3, 0, np.inf), LABELS, None, r"NaN, infinite or beyond float32 in 'x0' \(1 events\)"),
    "both infinities": (two_infinities(), LABELS, None, r"NaN, infinite or beyond float32 in 'x1' \(2 events\)"),
    "beyond float32": (with_value(3, 1, 1e39), LABELS, None, r"NaN, infinite or beyond float32 in 'x1' \(1 events\)"),
    "nan in a frame": (
        pd.DataFrame(with_value(3, 1, np.nan), columns=["pt", "mass"]), LABELS, None, r"in 'mass' \(1 events\)",
    ),
    "strings": (FEATURES.astype(str).astype(object) + "x", LABELS, None, "could not convert string|expected numbers"),
    "a column of strings": (
        pd.DataFrame({"pt": FEATURES[:, 0], "kind": ["a"] * N_EVENTS}), LABELS, None, "could not convert string|'kind'",
    ),
    "empty": (FEATURES[:0], LABELS[:0], None, "0 sample"),
    "no features": (FEATURES[:, :0], LABELS, None, "0 feature"),
    "one dimension": (FEATURES[:, 0], LABELS, None, "Expected 2D array"),
    "three dimensions": (FEATURES[None], LABELS, None, "dim 3|expected <= 2"),
    "sparse": (scipy.sparse.csr_array(FEATURES), LABELS, None, "sparse input is not supported"),
    "reference only": (FEATURES, 0 * LABELS, None, r"one class only, none of the target \(y = 1\)"),
    "target only": (FEATURES, 0 * LABELS + 1, None, r"one class only, none of the reference \(y = 0\)"),
    "labels missing": (FEATURES, None, None, "requires y to be passed"),
    "labels of another length": (FEATURES, LABELS[:-1], None, r"labels of shape \(39,\) for 40 events"),
    "labels in two columns": (FEATURES, np.column_stack([LABELS, LABELS]), None, r"labels of shape \(40, 2\)"),
    "labels -1 and 1": (FEATURES, 2 * LABELS - 1, None, r"Got 20 labels other than 0 and 1 \(such as -1\)"),
    "labels 1 and 2": (FEATURES, LABELS + 1, None, r"Got 20 labels other than 0 and 1 \(such as 2\)"),
    "labels between": (FEATURES, LABELS * 0.5, None, r"Got 20 labels other than 0 and 1 \(such as 0.5\)"),
    "nan labels": (FEATURES, np.where(LABELS, np.nan, 0.0), None, r"Got 20 labels other than 0 and 1 \(such as nan\)"),
    "string labels": (FEATURES, np.where(LABELS, "sig", "bkg"), None, "Got labels of type <U3; expected 0"),
    "weights of another length": (FEATURES, LABELS, ONES[:-1], r"weights of shape \(39,\) for 40 events"),
    "weights in two dimensions": (FEATURES, LABELS, ONES[:, None], r"weights of shape \(40, 1\) for 40 events"),
    "nan weights": (FEATURES, LABELS, np.where(LABELS, 1.0, np.nan), "Got 20 weights that are NaN or infinite"),
    "infinite weights": (FEATURES, LABELS, np.where(LABELS, 1.0, np.inf), "Got 20 weights that are NaN or infinite"),
    "string weights": (FEATURES, LABELS, ["heavy"] * N_EVENTS, "weights of type <U5; expected numbers"),
    "zero reference": (FEATURES, LABELS, weights(0, 5), r"weights of the reference \(y = 0\) sum to zero"),
    "negative reference": (FEATURES, LABELS, weights(-3, 5), r"weights of the reference \(y = 0\) sum to -3"),
    "zero target": (FEATURES, LABELS, weights(5, 0), r"weights of the target \(y = 1\) sum to zero"),
    "negative target": (FEATURES, LABELS, weights(5, -2.5), r"weights of the target \(y = 1\) sum to -2.5"),
    "all weights zero": (FEATURES, LABELS, 0 * ONES, r"weights of the reference \(y = 0\) sum to zero"),
}  # fmt: skip


@every_estimator
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_by_fit(kind: str, case: str) -> None:
    X, y, w, message = BAD_DATA[case]
    with pytest.raises(InvalidInputError, match=message):
        MAKERS[kind]().fit(X, y, sample_weight=w)


@pytest.mark.parametrize("case", [case for case in BAD_DATA if case != "one dimension"])
def test_bad_data_are_refused_as_validation(case: str) -> None:
    X, y, w, message = BAD_DATA[case]
    if "no features" in case:
        message = "0 feature|is expecting 2 features"
    with pytest.raises(InvalidInputError, match=message):
        MAKERS["sign resolved"]().fit(FEATURES, LABELS, validation=(X, y, w))


@every_estimator
@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ("everything", "validation of type str; expected the tuple"),
        ((FEATURES, LABELS), "validation of type tuple; expected the tuple"),
        (FEATURES, "validation of type ndarray; expected the tuple"),
        ((FEATURES[:, :1], LABELS, None), "1 features, but .* is expecting 2 features"),
        ((FEATURES, LABELS, ONES[:-1]), r"weights of shape \(39,\) for 40 events"),
        ((FEATURES, 0 * LABELS, None), "none of the target .* in the validation data"),
    ],
)
def test_bad_validation_is_refused(kind: str, validation: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MAKERS[kind]().fit(FEATURES, LABELS, validation=validation)


@every_estimator
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "linear"}, "schedule = 'linear'; expected one of cosine, constant"),
        ({"on_divergence": "stop"}, "on_divergence = 'stop'; expected one of warn, raise, ignore"),
        ({"device": "abacus"}, "device 'abacus', which is not available here; use 'auto' or 'cpu'"),
        ({"activation": "swish"}, "activation 'swish'; expected one of silu"),
        ({"batch_size": 0}, "batch_size = 0; expected a positive whole number"),
        ({"batch_size": 2.5}, "batch_size = 2.5; expected a positive whole number"),
        ({"n_threads": 0}, "n_threads = 0; expected a positive whole number"),
        ({"periodic": "phi"}, "periodic = 'phi'; expected a sequence of features"),
        ({"periodic": [7]}, "7 among the periodic features; expected one of x0, x1"),
        (
            {"reference_density": "negative"},
            "reference_density = 'negative'; expected one of auto, positive, any",
        ),
        ({"n_members": 0}, "n_members = 0; expected a positive whole number"),
        ({"max_steps": 0}, "max_steps = 0; expected a positive whole number"),
        ({"max_steps": -1}, "max_steps = -1; expected a positive whole number"),
        ({"patience": 0}, "patience = 0; expected a positive whole number"),
        ({"epoch_size": "all"}, "epoch_size = 'all'; expected a positive whole number"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0; expected a positive number"),
        ({"learning_rate": -1.0}, "learning_rate = -1.0; expected a positive number"),
        ({"learning_rate": np.nan}, "learning_rate = nan; expected a positive number"),
        ({"validation_fraction": 0.0}, "validation_fraction = 0.0; expected a number between 0 and 1"),
        ({"validation_fraction": 1.0}, "validation_fraction = 1.0; expected a number between 0 and 1"),
        ({"hidden_layers": 64}, "hidden_layers = 64; expected"),
        ({"hidden_layers": (0,)}, r"hidden_layers = \(0,\); expected"),
        ({"hidden_layers": "64"}, "hidden_layers = '64'; expected"),
        ({"weight_decay": -0.1}, "weight_decay = -0.1; expected"),
    ],
)
def test_bad_options_are_refused_by_fit(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MAKERS[kind](**options).fit(FEATURES, LABELS)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (qr.DirectRatio(loss="hinge", **QUICK), "loss 'hinge'; expected one of bce, mse"),
        (
            MAKERS["signed mixture"](tune="some"),
            "tune = 'some'; expected one of none, coefficients, all",
        ),
        (
            MAKERS["sign resolved"](tune="coefficients"),
            "tune = 'coefficients'; expected one of none, all",
        ),
        (
            qr.SignedMixtureRatio(tune="all", tune_loss="hinge", **QUICK),
            "loss 'hinge'; expected one of bce, mse",
        ),
        (
            qr.SignedMixtureRatio(tune="all", tune_loss="bce", **QUICK),
            "tune_loss = 'bce', which has no negative ratios",
        ),
        (
            qr.SignResolvedRatio(tune="all", tune_loss="mlc", **QUICK),
            "tune_loss = 'mlc', which has no negative ratios",
        ),
    ],
)
def test_unknown_losses_and_tunings_are_refused(estimator: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        estimator.fit(FEATURES, LABELS)


@every_estimator
def test_bad_data_are_refused_by_prediction(kind: str) -> None:
    estimator = MAKERS[kind]().fit(FEATURES, LABELS)
    for X, message in (
        (FEATURES[:, :1], "1 features, but .* is expecting 2 features"),
        (np.column_stack([FEATURES, FEATURES]), "4 features, but .* is expecting 2 features"),
        (with_value(0, 1, np.nan), r"in 'x1' \(1 events\)"),
        (with_value(0, 1, -np.inf), r"in 'x1' \(1 events\)"),
        (FEATURES[:, 0], "Expected 2D array"),
        (FEATURES.astype(str).astype(object) + "x", "could not convert string|expected numbers"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            estimator.predict_ratio(X)


@every_estimator
def test_prediction_needs_a_fit(kind: str) -> None:
    with pytest.raises(NotFittedError):
        MAKERS[kind]().predict_ratio(FEATURES)
    with pytest.raises(NotFittedError):
        MAKERS[kind]().score(FEATURES, LABELS)


@every_estimator
def test_a_std_of_one_member_is_refused(kind: str) -> None:
    estimator = MAKERS[kind]().fit(FEATURES, LABELS)
    with pytest.raises(InvalidInputError, match="needs an ensemble; refit with n_members of at least 2"):
        estimator.predict_ratio(FEATURES, return_std=True)


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_a_split_that_leaves_no_positive_sum_says_what_to_do() -> None:
    """Five events of weight 1 carry the reference; a tenth of forty is one event of either sign."""
    w = np.where(LABELS == 1, 1.0, np.where(np.arange(N_EVENTS) % 4 == 0, 1.05, -1.0))
    with pytest.raises(
        InvalidInputError, match=r"after the random split: give more events, or validation=\(X, y, w\)"
    ):
        MAKERS["direct"](validation_fraction=0.2).fit(FEATURES, LABELS, sample_weight=_one_heavy(w))


def _one_heavy(w: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """One reference event carries the sum, so training and validation cannot both have a positive one."""
    heavy = np.where((w == 1.05), 0.5, w)
    heavy[0] = 30.0
    return heavy


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_validation_without_a_sign_of_the_training_is_named() -> None:
    """The sub-ratios of the negative parts have nothing to be validated on."""
    w = np.where(np.arange(N_EVENTS) % 8 == 1, -0.5, 1.0)
    with pytest.raises(InvalidInputError, match="both signs where the validation data have one only"):
        MAKERS["signed mixture"]().fit(FEATURES, LABELS, w, validation=(FEATURES, LABELS, None))


@every_estimator
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_threads": 10**9}, "Got n_threads = 1000000000; expected at most 1024"),  # ended the process
        ({"random_state": -1}, "Got random_state = -1; expected a whole number from 0 to"),
        ({"random_state": 2**40}, "expected a whole number from 0 to"),
        ({"random_state": "x" * 1000}, "expected a whole number from 0 to"),
        ({"device": "cpu:7"}, "Got the device 'cpu:7'"),
    ],
)
def test_options_beyond_their_limits(kind: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence) as raised:
        MAKERS[kind](**options).fit(FEATURES, LABELS)
    assert len(str(raised.value)) < 300
