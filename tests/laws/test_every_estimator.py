"""Laws of every registered estimator: storage, ONNX, members, pickles and seeds, from one table by registry name."""

from __future__ import annotations

import functools
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone

import quasiratio as qr
from quasiratio.errors import QuasiratioWarning
from quasiratio.estimators import SingleModelRatio
from quasiratio.registry import ESTIMATORS

QUICK: dict[str, Any] = {
    "max_steps": 20, "hidden_layers": (4,), "batch_size": 128, "n_members": 2, "random_state": 0, "verbose": False,
}  # fmt: skip
N_EVENTS = 800
LATENT = qr.distributions.LatentAmplitudeCase()
JOINT = qr.distributions.LatentExponentialCase(slopes=(0.5, -0.5))


POINT = np.array([[0.3, -0.2]], dtype=np.float32)


class Law(NamedTuple):
    """How an estimator of another kind is made, fitted and asked.

    Attributes:
        make: Unfitted, with two members.
        fit: Fits it to a few events, and returns their features.
        predict: One value per event, or several.
        spread: The same for each member, or their standard deviation.
        onnx: The output of the graph that is the same as `predict`.
        point: Values of the parameters, where the graph has them as an input.
    """

    make: Callable[[], Any]
    fit: Callable[[Any], Any]
    predict: Callable[[Any, Any], Any]
    spread: Callable[[Any, Any], Any]
    onnx: str = "ratio"
    point: Any = None


def two_classes() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(N_EVENTS) % 2
    X = (rng.normal(size=(N_EVENTS, 2)) + 0.4 * y[:, None]).astype(np.float32)
    return X, y, np.where((y == 1) & (rng.random(N_EVENTS) < 0.1), -0.5, 1.0)


def fit_two_classes(model: Any) -> Any:
    X, y, w = two_classes()
    model.fit(X, y, sample_weight=w)
    return X


def fit_two_samples(model: Any) -> Any:
    X, y, w = two_classes()
    model.fit(X[y == 0], X[y == 1], w[y == 0], w[y == 1])
    return X


def fit_several_weights(model: Any) -> Any:
    X, y, _ = two_classes()
    target = X[y == 1]
    model.fit(
        X[y == 0],
        target,
        target_weight={"nominal": np.ones(len(target)), "up": 1.0 + 0.2 * (target[:, 0] > 0)},
    )
    return X


def fit_one_sample(model: Any) -> Any:
    X, _, w = two_classes()
    model.fit(X, w)
    return X


def fit_mined(model: Any, case: Any) -> Any:
    events = case.sample(N_EVENTS, np.random.default_rng(0))
    features = events.features.astype(np.float32)
    model.fit(features, events.mined, events.weights)
    return features


LAWS = {
    name: Law(
        functools.partial(ESTIMATORS[name], **QUICK, **({"loss": "lsif"} if name == "direct" else {})),
        fit_two_classes,
        lambda model, X: model.predict_ratio(X),
        lambda model, X: model.predict_members(X),
    )
    for name in ESTIMATORS.methods()
} | {
    "reweighter": Law(
        lambda: qr.Reweighter(qr.SignResolvedRatio(**QUICK), n_folds=2),
        fit_two_samples,
        lambda model, X: model.predict_weights(X),
        lambda model, X: model.predict_members(X),
        "weight_factor",
    ),
    "variations": Law(
        lambda: qr.VariationReweighter(qr.SignResolvedRatio(**QUICK)),
        fit_several_weights,
        lambda model, X: model.predict_weights(X)["up"],
        lambda model, X: model.predict_members(X),
        "weight_factor_up",
    ),
    "positive": Law(
        lambda: qr.PositiveReweighter(**QUICK),
        fit_one_sample,
        lambda model, X: model.predict_weights(X, np.ones(len(X))),
        lambda model, X: model.predict_member_weights(X, np.ones(len(X))),
        "weight_factor",
    ),
    "joint": Law(
        lambda: qr.JointRatio(**QUICK),
        lambda model: fit_mined(model, JOINT),
        lambda model, X: model.predict_ratio(X),
        lambda model, X: model.predict_ratio(X, return_std=True)[1],
    ),
    "polynomial": Law(
        lambda: qr.PolynomialRatio(LATENT.basis, **QUICK),
        lambda model: fit_mined(model, LATENT),
        lambda model, X: model.predict_ratio(X, POINT[0]),
        lambda model, X: model.predict_member_coefficients(X),
        point=POINT,
    ),
}
every = pytest.mark.parametrize("name", LAWS)


@functools.cache
def fitted(name: str) -> tuple[Any, Any]:
    model = LAWS[name].make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)  # so few steps may fit badly
        X = LAWS[name].fit(model)
    return model, X


@pytest.fixture(autouse=True)
def few_steps_may_fit_badly() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        yield


def test_the_table_has_every_registered_estimator() -> None:
    """One of another kind of `fit` needs a line above; the methods come by themselves."""
    assert set(LAWS) == set(ESTIMATORS)


@every
def test_a_stored_one_predicts_the_same_bits_and_is_written_the_same_again(name: str, tmp_path: Path) -> None:
    (model, X), law = fitted(name), LAWS[name]
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model", expected=type(model))
    np.testing.assert_array_equal(law.predict(again, X), law.predict(model, X))
    np.testing.assert_array_equal(law.spread(again, X), law.spread(model, X))
    again.save(tmp_path / "again")
    for file in ("model.json", "weights.safetensors"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "model" / file).read_bytes()


@every
def test_a_graph_predicts_the_same(name: str, tmp_path: Path) -> None:
    (model, X), law = fitted(name), LAWS[name]
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    inputs = {"features": X} | ({} if law.point is None else {"theta": law.point})
    (result,) = session.run([law.onnx], inputs)
    np.testing.assert_allclose(result, law.predict(model, X), rtol=1e-4, atol=1e-5)


@every
def test_members_differ_and_a_pickle_has_them(name: str) -> None:
    (model, X), law = fitted(name), LAWS[name]
    spread = np.asarray(law.spread(model, X))
    per_event = spread.std(axis=0) if spread.shape[0] == 2 else spread
    per_event = (
        per_event.max(axis=-1) if per_event.ndim > 1 else per_event
    )  # not all coefficients are learned
    assert np.mean(per_event > 0) > 0.9
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(law.spread(again, X), spread)


@every
def test_the_same_seed_gives_the_same_bits_and_a_clone_is_unfitted(name: str) -> None:
    (model, X), law = fitted(name), LAWS[name]
    copy = clone(model)
    assert not hasattr(copy, "fingerprint_")
    law.fit(copy)
    np.testing.assert_array_equal(law.predict(copy, X), law.predict(model, X))


def test_single_models_are_among_them() -> None:
    assert sum(issubclass(ESTIMATORS[name], SingleModelRatio) for name in LAWS) >= 3
