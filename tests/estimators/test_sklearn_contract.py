"""The scikit-learn contract: its own checks, clone, pipelines, grids, frames and pickles."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.estimator_checks import estimator_checks_generator

import quasiratio as qr
from quasiratio.errors import InvalidInputError, QuasiratioWarning
from quasiratio.estimators import RatioEstimator, SingleModelRatio
from quasiratio.losses import Pare
from quasiratio.registry import ESTIMATORS

QUICK: dict[str, Any] = {"max_steps": 40, "hidden_layers": (8,), "random_state": 0, "verbose": False}
OWN: dict[type[RatioEstimator], dict[str, Any]] = {
    qr.DirectRatio: {"loss": "lsif"},
    qr.AutoRatio: {
        "candidates": {"a": qr.SignResolvedRatio(**QUICK), "b": qr.DirectRatio(loss="lsif", **QUICK)}
    },
}
EVERY: dict[str, Callable[[], Any]] = {
    name: partial(
        ESTIMATORS[name], **QUICK, **({"loss": "lsif"} if ESTIMATORS[name] is qr.DirectRatio else {})
    )
    for name in ESTIMATORS.methods()
}
every_estimator = pytest.mark.parametrize("kind", EVERY)
every_single_model = pytest.mark.parametrize(
    "kind", [name for name in EVERY if issubclass(ESTIMATORS[name], SingleModelRatio)]
)


class _AnyLabels(RatioEstimator):
    """Maps the labels of scikit-learn's checks to our 0 and 1: our contract allows no others."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        return super().fit(X, _zero_one(y), sample_weight, validation)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(X, _zero_one(y), sample_weight)


def _zero_one(y: Any) -> Any:
    values = np.asarray(y)
    return (values != values.min()).astype(int) if values.ndim == 1 and len(values) else y


class _ReweighterOfLabelledEvents(qr.Reweighter):
    """Takes the events and labels of scikit-learn's checks apart into its two samples."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        labels = np.asarray(_zero_one(y))
        parts = [np.flatnonzero(labels == label) for label in (0, 1)]
        weights: list[Any] = [None, None]
        if sample_weight is not None:
            given = np.asarray(sample_weight)
            weights = [given[part] if given.shape == labels.shape else given for part in parts]
        if issparse(X):  # selecting events of it would need another format; it is to be refused anyway
            return super().fit(X, X, *weights)
        if not hasattr(X, "__getitem__"):
            X = np.asarray(X)
        return super().fit(*(_safe_indexing(X, part) for part in parts), *weights)


class _VariationsOfLabelledEvents(qr.VariationReweighter):
    """The same with two weights for the target, one of them a little larger."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        labels = np.asarray(_zero_one(y))
        parts = [np.flatnonzero(labels == label) for label in (0, 1)]
        given = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, float)
        if issparse(X) or given.shape != labels.shape:  # to be refused anyway
            return super().fit(X, X, given, {"nominal": given, "up": given})
        if not hasattr(X, "__getitem__"):
            X = np.asarray(X)
        original, target = (_safe_indexing(X, part) for part in parts)
        weights = {"nominal": given[parts[1]], "up": given[parts[1]] * np.linspace(1.0, 1.2, len(parts[1]))}
        return super().fit(original, target, given[parts[0]], weights)


class _PositiveReweighterOfOneSample(qr.PositiveReweighter):
    """Does without the labels of scikit-learn's checks; one event in ten gets a negative weight, so that it trains."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override] # noqa: ARG002
        if sample_weight is None and hasattr(X, "__len__"):
            sample_weight = np.where(np.arange(len(X)) % 10 == 3, -0.5, 1.0)
        return super().fit(X, sample_weight)


def _between_one_and_two(y: Any) -> Any:
    """Make targets of scikit-learn's checks, which may be anything, joint ratios that are positive."""
    values = np.asarray(y)
    if (
        values.ndim != 1
        or not len(values)
        or values.dtype.kind not in "iufb"
        or not np.all(np.isfinite(values))
    ):
        return _zero_one(y) + 1.0 if values.dtype.kind in "OU" and values.ndim == 1 and len(values) else y
    span = float(values.max()) - float(values.min())
    return 1.0 + (values - values.min()) / (span or 1.0)


class _JointRatioOfAnyTargets(qr.JointRatio):
    """Takes targets for joint ratios."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return super().fit(X, _between_one_and_two(y), sample_weight)


class _PolynomialRatioOfAnyTargets(qr.PolynomialRatio):
    """Takes targets for the coefficient of one parameter; its ratio needs a point, and a pipeline gives none."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        joint = _between_one_and_two(y)
        is_plain = isinstance(joint, np.ndarray) and joint.ndim == 1 and joint.dtype.kind == "f"
        return super().fit(
            X, np.column_stack([np.ones(len(joint)), joint]) if is_plain else joint, sample_weight
        )

    def predict(self, X: Any) -> Any:
        return self.predict_ratio(X, [0.5])


def _made_for_the_checks(name: str) -> Any:
    """Return an estimator of the registry in a form that takes what scikit-learn's checks give."""
    kind = ESTIMATORS[name]
    if name in OTHER_FITS:
        return OTHER_FITS[name]()
    wrapped = type(f"{kind.__name__}OfAnyLabels", (_AnyLabels, kind), {"__module__": __name__})
    globals()[wrapped.__name__] = wrapped  # where pickle looks for it
    return wrapped(**QUICK, **OWN.get(kind, {}))


OTHER_FITS: dict[str, Callable[[], Any]] = {
    "reweighter": lambda: _ReweighterOfLabelledEvents(qr.SignResolvedRatio(**QUICK)),
    "variations": lambda: _VariationsOfLabelledEvents(qr.SignResolvedRatio(**QUICK)),
    "positive": lambda: _PositiveReweighterOfOneSample(**QUICK, n_members=2),
    "joint": lambda: _JointRatioOfAnyTargets(**QUICK),
    "polynomial": lambda: _PolynomialRatioOfAnyTargets(qr.PolynomialBasis(["a"], order=1), **QUICK),
}


def test_every_estimator_of_the_registry_is_checked() -> None:
    """Those whose `fit` takes something else need a wrapper here; the others come by themselves."""
    assert set(OTHER_FITS) == set(ESTIMATORS) - set(ESTIMATORS.methods())


def expected_failures(estimator: Any) -> dict[str, str]:
    random_order = (
        "a weight of two equals a duplicate in the risk (tests/losses, tests/training), but the random "
        "validation split and the mini-batches differ between the two fits"
    )
    if isinstance(estimator, qr.PositiveReweighter):
        return {"check_all_zero_sample_weights_error": "refused: 'The weights of the sample sum to 0'"}
    if isinstance(estimator, qr.JointRatio | qr.PolynomialRatio):
        keeps = {
            "check_estimators_overwrite_params": "the frozen basis keeps its terms once they were asked for"
        }
        return (keeps if isinstance(estimator, qr.PolynomialRatio) else {}) | {
            "check_all_zero_sample_weights_error": "refused: 'The weights of the reference sum to 0'",
            "check_fit2d_1sample": "refused: 'coefficients that are all constant', as those of one event are",
            "check_sample_weight_equivalence_on_dense_data": random_order,
            "check_sample_weight_equivalence_on_sparse_data": "sparse input is refused; scikit-learn 1.6 asks all the same",
        }
    if isinstance(estimator, qr.Reweighter):
        one_class = "refused: 'The weights of the target, with 'nominal', sum to 0'"
        own = {"check_all_zero_sample_weights_error": one_class, "check_fit2d_1sample": one_class}
        return (own if isinstance(estimator, qr.VariationReweighter) else {}) | {
            "check_complex_data": "refused by WeightedSample in its own words",
            "check_dtype_object": "refused by WeightedSample in its own words",
            "check_estimators_empty_data_messages": "refused by WeightedSample in its own words",
            "check_fit1d": "WeightedSample takes one dimension as one feature",
            "check_sample_weight_equivalence_on_dense_data": random_order,
            "check_sample_weight_equivalence_on_sparse_data": "sparse input is refused; scikit-learn 1.6 asks all the same",
        }
    return {
        "check_sample_weight_equivalence_on_dense_data": random_order,
        "check_sample_weight_equivalence_on_sparse_data": "sparse input is refused; scikit-learn 1.6 asks all the same",
        # We call ourselves classifiers so that the default folds of scikit-learn are stratified; predict returns
        # ratios all the same, and the labels are 0 and 1 by contract.
        "check_classifiers_one_label_sample_weights": "one class has no ratio, and is refused",
        "check_classifiers_classes": "predict returns ratios, not labels",
        "check_classifiers_train": "predict returns ratios, not labels",
        "check_classifiers_regression_target": "the wrapper of these checks maps any labels to 0 and 1",
        "check_supervised_y_2d": "labels of shape (n, 1) are taken as they are meant, without a warning",
        "check_classifier_not_supporting_multiclass": "the wrapper of these checks maps any labels to 0 and 1",
    }


def _checks() -> Iterator[Any]:
    """Every check of every estimator, under a name of its own, which those of scikit-learn 1.6 are not."""
    for estimator in map(_made_for_the_checks, ESTIMATORS):
        reasons = expected_failures(estimator)
        for number, (_, check) in enumerate(estimator_checks_generator(estimator)):
            name = check.func.__name__
            marks = [pytest.mark.xfail(reason=reasons[name])] if name in reasons else []
            yield pytest.param(
                estimator, check, id=f"{type(estimator).__name__}-{number}-{name}", marks=marks
            )


@pytest.mark.parametrize(("estimator", "check"), list(_checks()))
def test_scikit_learn_checks(estimator: RatioEstimator, check: Any) -> None:
    with warnings.catch_warnings():
        # Eight steps on a handful of events may fit badly; that is not what these checks are about.
        warnings.simplefilter("ignore", QuasiratioWarning)
        # Networks run in float32, where an event alone and the same event in a batch may differ in the last bit.
        by_chance = "check_methods_subset_invariance" in str(check)
        with suppress(AssertionError) if by_chance else nullcontext():
            check(estimator)


def events(
    n: int = 1000, n_features: int = 2
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, n_features)) + 0.3 * y[:, None]
    w = rng.choice([1.0, 2.0, -0.5], size=n, p=[0.6, 0.3, 0.1])
    return X, y, np.where(y == 1, w, np.abs(w))


@every_estimator
def test_the_constructor_only_stores_and_clone_copies(kind: str) -> None:
    estimator = EVERY[kind]()
    estimator.set_params(batch_size="nonsense", n_members=-4)  # checked by fit, not before
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert copy.get_params()["batch_size"] == "nonsense"
    assert not hasattr(copy, "model_")
    assert type(copy)(**copy.get_params()).get_params() == copy.get_params()


def test_a_loss_object_survives_clone() -> None:
    estimator = qr.DirectRatio(loss=Pare(eps="auto"), **QUICK)
    assert clone(estimator).loss == Pare(eps="auto")
    X, y, w = events()
    estimator.fit(X, y, sample_weight=w)
    assert estimator.loss == Pare(eps="auto")  # the parameter stays; what was chosen is in loss_
    assert isinstance(estimator.loss_, Pare)
    assert isinstance(estimator.loss_.eps, float)


def test_common_hyperparameters_are_parameters_of_every_estimator() -> None:
    common = {
        "hidden_layers", "activation", "batch_size", "learning_rate", "max_steps", "patience", "schedule",
        "epoch_size", "n_members", "validation_fraction", "device", "normalize", "on_divergence",
        "random_state", "verbose",
    }  # fmt: skip
    for make, own in (
        (qr.DirectRatio, {"loss"}),
        (qr.SignedMixtureRatio, {"tune", "tune_loss"}),
        (qr.SignResolvedRatio, {"tune", "tune_loss"}),
    ):
        assert common | own <= set(make().get_params())


@every_estimator
def test_a_pipeline_with_a_scaler(kind: str) -> None:
    X, y, w = events()
    scaler = StandardScaler()
    estimator = EVERY[kind]()
    pipeline = make_pipeline(scaler, estimator)
    step = pipeline.steps[-1][0]
    pipeline.fit(X, y, **{f"{step}__sample_weight": w})
    ratios = pipeline[-1].predict_ratio(pipeline[:-1].transform(X))
    assert ratios.shape == (1000,)
    assert np.all(np.isfinite(ratios))
    assert np.isfinite(pipeline.score(X, y, **{f"{step}__sample_weight": w}))
    alone = clone(estimator).fit(StandardScaler().fit_transform(X), y, sample_weight=w)
    np.testing.assert_array_equal(ratios, alone.predict_ratio(StandardScaler().fit_transform(X)))


@every_single_model
def test_a_grid_search_with_signed_weights(kind: str) -> None:
    X, y, w = events()
    grid = GridSearchCV(EVERY[kind](), {"hidden_layers": [(4,), (8, 8)]}, cv=2)
    grid.fit(X, y, sample_weight=w)
    assert grid.best_params_["hidden_layers"] in [(4,), (8, 8)]
    assert np.all(np.isfinite(grid.cv_results_["mean_test_score"]))
    assert grid.best_estimator_.predict_ratio(X).shape == (1000,)
    scores = cross_val_score(EVERY[kind](), X, y, params={"sample_weight": w}, cv=2)
    assert np.all(np.isfinite(scores))


def test_the_score_is_minus_the_ratio_risk() -> None:
    X, y, w = events()
    estimator = EVERY["direct"]().fit(X, y, sample_weight=w)
    ratio = estimator.predict_ratio(X)
    reference, target = y == 0, y == 1
    risk = np.average(ratio[reference] ** 2, weights=w[reference]) / 2 - np.average(
        ratio[target], weights=w[target]
    )
    assert estimator.score(X, y, sample_weight=w) == pytest.approx(-risk, rel=1e-9)


def containers() -> dict[str, Any]:
    X, _, _ = events()
    frame = pd.DataFrame(X, columns=["pt", "mass"])
    return {
        "frame": frame,
        "columns": {name: frame[name].to_numpy() for name in frame},
        "sample": qr.WeightedSample(X, names=["pt", "mass"]),
        "structured": frame.to_records(index=False).view(np.ndarray),
    }


@pytest.mark.parametrize("container", ["frame", "columns", "sample", "structured"])
def test_named_columns_in_and_the_same_ratios_out(container: str) -> None:
    X, y, w = events()
    named = containers()[container]
    estimator = EVERY["sign-resolved"]().fit(named, y, sample_weight=w)
    assert estimator.feature_names_ == ("pt", "mass")
    assert estimator.n_features_in_ == 2
    plain = EVERY["sign-resolved"]().fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(estimator.predict_ratio(named), plain.predict_ratio(X))
    assert estimator.score(named, y, sample_weight=w) == plain.score(X, y, sample_weight=w)
    assert plain.feature_names_ is None


def test_an_explicit_validation_frame_is_accepted() -> None:
    _, y, w = events()
    frame = containers()["frame"]
    estimator = EVERY["sign-resolved"]().fit(frame, y, w, validation=(frame, y, None))
    assert estimator.predict_ratio(frame).shape == (1000,)


@pytest.mark.parametrize("container", ["frame", "columns", "sample", "structured"])
def test_names_are_checked_at_prediction(container: str) -> None:
    _, y, w = events()
    named = containers()[container]
    estimator = EVERY["sign-resolved"]().fit(containers()["frame"], y, sample_weight=w)
    np.testing.assert_array_equal(
        estimator.predict_ratio(named), estimator.predict_ratio(containers()["frame"])
    )
    swapped = containers()["frame"][["mass", "pt"]]
    with pytest.raises(InvalidInputError, match=r"got \['mass', 'pt'\], expected \['pt', 'mass'\]"):
        estimator.predict_ratio(swapped)
    with pytest.raises(InvalidInputError, match="feature names should match"):
        estimator.predict_ratio(containers()["frame"].rename(columns={"pt": "eta"}))


@every_single_model
def test_a_pickle_predicts_the_same(kind: str) -> None:
    X, y, w = events()
    estimator = EVERY[kind]().set_params(n_members=2).fit(X, y, sample_weight=w)
    again = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - our own bytes
    for one, other in zip(
        estimator.predict_ratio(X, return_std=True), again.predict_ratio(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert again.get_params() == estimator.get_params()
    assert again.history_.n_steps == 40


@every_estimator
def test_fitting_again_forgets_the_first_fit(kind: str) -> None:
    X, y, w = events()
    other, _, _ = events(n_features=3)
    estimator = EVERY[kind]().fit(other, y)
    estimator.fit(X, y, sample_weight=w)
    fresh = EVERY[kind]().fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(estimator.predict_ratio(X), fresh.predict_ratio(X))
    assert estimator.n_features_in_ == 2
