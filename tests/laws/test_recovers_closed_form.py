"""Trained models against the exact ratio of the toys, within a tolerance derived from the sample size.

Each method is fitted once per case, and all that is asked of the fit stands in one test: tests of one file are shared
out among processes, which would each fit again.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quasiratio as qr
from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import (
    DivergenceError,
    DivergenceWarning,
    NegativeWeightWarning,
    UntrustworthyFitWarning,
)
from quasiratio.estimators.training_data import LabelledEvents, split_indices
from quasiratio.losses import LOSSES, Pare
from quasiratio.metrics import ratio_risk
from quasiratio.registry import ESTIMATORS

N_PER_CLASS = 80_000
EFFECTIVE_PARAMETERS = 250
"""What the tolerance allows a network of this size to spend; about 60 were measured for LSIF, a margin of two in the rms."""

Array = npt.NDArray[np.float64]
Draw = Callable[[str, int, int], tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], Array]]
COMMON: dict[str, Any] = {
    "hidden_layers": (32, 32),
    "batch_size": 2048,
    "max_steps": 300,
    "random_state": 1,
    "verbose": False,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "lsif": functools.partial(qr.DirectRatio, loss="lsif"),
    "revert": functools.partial(qr.DirectRatio, loss="revert"),
    "pare": functools.partial(qr.DirectRatio, loss="pare"),
    "pare auto": functools.partial(qr.DirectRatio, loss=Pare(eps="auto")),
    "mse": functools.partial(qr.DirectRatio, loss="mse"),
    "bce": functools.partial(qr.DirectRatio, loss="bce"),
    "mixture": qr.SignedMixtureRatio,
    "mixture, coefficients tuned": functools.partial(qr.SignedMixtureRatio, tune="coefficients"),
    "mixture, all tuned": functools.partial(qr.SignedMixtureRatio, tune="all"),
    "sign resolved": qr.SignResolvedRatio,
    "sign resolved, tuned": functools.partial(qr.SignResolvedRatio, tune="all"),
}
# What is registered and does not stand there comes with its defaults; `AutoRatio` has laws of its own.
_MADE = {type(make()) for make in MAKERS.values()} | {qr.AutoRatio}
MAKERS |= {name: ESTIMATORS[name] for name in ESTIMATORS.methods() if ESTIMATORS[name] not in _MADE}


def tolerance(case: str, n_per_class: int) -> float:
    r"""Return $\sqrt{p (V_0 + V_1) / n}$ with the relative variance $V = (2c-1)^2$ of weights of $\pm 1$."""
    toy = signed_gaussian_case(case)
    variance = (2 * toy.reference.c - 1) ** 2 + (2 * toy.target.c - 1) ** 2
    return float(np.sqrt(EFFECTIVE_PARAMETERS * variance / n_per_class))


@functools.cache
def probes(case: str) -> tuple[Array, Array]:
    """Points of the reference density, and the exact ratio there."""
    toy = signed_gaussian_case(case)
    at = toy.reference.sample_unweighted(20_000, np.random.default_rng(99)).features.astype(np.float64)
    return at, toy.exact_ratio(at)


def rms(estimator: Any, case: str) -> float:
    at, exact = probes(case)
    return float(np.sqrt(np.mean((estimator.predict_ratio(at) - exact) ** 2)))


@pytest.fixture(scope="module")
def fitted(toy: Draw) -> Callable[[str, str], Any]:
    @functools.cache
    def fit(method: str, case: str) -> Any:
        X, y, w = toy(case, N_PER_CLASS, 1)
        return MAKERS[method](**COMMON).fit(X, y, sample_weight=w, validation=toy(case, 20_000, 2))

    return fit


@pytest.mark.parametrize("case", ["signed", "nonnegative"])
def test_the_tolerance_tells_a_fit_from_no_fit(case: str) -> None:
    _, exact = probes(case)
    assert tolerance(case, N_PER_CLASS) < 0.5 * np.std(exact)


@pytest.mark.parametrize("method", [method for method in MAKERS if method not in {"bce", "mse"}])
def test_the_signed_toy_is_recovered(method: str, fitted: Callable[[str, str], Any], toy: Draw) -> None:
    estimator = fitted(method, "signed")
    assert rms(estimator, "signed") < tolerance("signed", N_PER_CLASS)
    assert not estimator.diverged_
    # The negative region is seen as such: r* = -1.29 at the origin.
    assert estimator.predict_ratio(np.zeros((1, 2)))[0] < -0.6
    X, y, w = toy("signed", N_PER_CLASS, 1)
    mean = np.average(estimator.predict_ratio(X[y == 0]), weights=w[y == 0])
    assert mean == pytest.approx(1.0, abs=1e-6)  # over the training reference
    assert (getattr(estimator, "tuning_history_", None) is not None) == ("tuned" in method)
    require_coefficients(method, estimator, y, w)


def require_coefficients(method: str, estimator: Any, y: npt.NDArray[np.int64], w: Array) -> None:
    """The mixture coefficients are those of the sample; parts and pairs are all there."""
    expected = [w[(y == label) & (w >= 0)].sum() / w[y == label].sum() for label in (0, 1)]
    if method == "mixture":
        np.testing.assert_allclose(estimator.coefficients_, [expected], rtol=1e-5)
        assert len(estimator.pairs_) == 4
    if method == "mixture, coefficients tuned":
        # Tuning moves c0 freely: the two parts of the reference (widths 2.5 and 2.3) are nearly alike, so the
        # ratio hardly depends on it. The target's parts are not alike, and c1 stays.
        assert estimator.coefficients_[0, 1] == pytest.approx(expected[1], rel=0.1)
    if method == "sign resolved":
        assert len(estimator.classes_) == 4


def test_the_methods_are_those_of_the_registries() -> None:
    """A new loss or estimator must be given its law here."""
    tried = [make() for make in MAKERS.values()]
    assert {type(one) for one in tried} == {ESTIMATORS[name] for name in ESTIMATORS.methods()} - {
        qr.AutoRatio
    }  # which has laws of its own
    signed = {one.loss for one in tried if isinstance(one, qr.DirectRatio) and isinstance(one.loss, str)}
    _, exact = probes("signed")
    can_learn = {name for name, make in LOSSES.items() if make().ratio_range[0] < exact.min()}
    assert can_learn | {"bce", "mse"} == signed


@pytest.mark.parametrize("method", ["mse", "lsif", "sign resolved"])
def test_the_nonnegative_toy_is_recovered(method: str, fitted: Callable[[str, str], Any]) -> None:
    margin = 1.5 if method == "mse" else 1.0  # large ratios lie close to its pole in the score, s = 1
    assert rms(fitted(method, "nonnegative"), "nonnegative") < margin * tolerance("nonnegative", N_PER_CLASS)


def test_bce_runs_away_on_the_signed_toy(toy: Draw) -> None:
    X, y, w = toy("signed", 50_000, 1)
    validation = toy("signed", 50_000, 2)
    estimator = MAKERS["bce"](**{**COMMON, "max_steps": 300})
    with (
        pytest.warns(NegativeWeightWarning, match="'bce' can only express positive ratios"),
        pytest.warns(DivergenceWarning, match="'bce' has no lower bound"),
        pytest.warns(UntrustworthyFitWarning, match="DO NOT USE"),
    ):
        estimator.fit(X, y, sample_weight=w, validation=validation)
    assert estimator.diverged_
    at, exact = probes("signed")
    ratio = estimator.predict_ratio(at)
    assert np.all(np.isfinite(ratio))
    assert np.all(ratio >= 0)  # also where the exact ratio is negative
    assert exact.min() < -1
    assert rms(estimator, "signed") > 2 * tolerance("signed", 50_000)
    strict = MAKERS["bce"](**{**COMMON, "max_steps": 300, "on_divergence": "raise"})
    with (
        pytest.warns(NegativeWeightWarning),
        pytest.raises(DivergenceError, match="'bce' has no lower bound"),
    ):
        strict.fit(X, y, sample_weight=w, validation=validation)


@pytest.mark.parametrize("seed", range(2))
def test_bce_is_not_flagged_where_densities_are_positive(seed: int, toy: Draw) -> None:
    quick = {**COMMON, "max_steps": 200, "batch_size": 1024, "random_state": seed}
    X, y, w = toy("nonnegative", 50_000, 10 + seed)
    with pytest.warns(NegativeWeightWarning):  # the weights are signed, the densities are not
        signed = MAKERS["bce"](**quick).fit(
            X, y, sample_weight=w, validation=toy("nonnegative", 50_000, 50 + seed)
        )
    assert not signed.diverged_
    positive = MAKERS["bce"](**quick).fit(X, y, sample_weight=np.abs(w))  # no warning at all
    assert not positive.diverged_


@pytest.mark.parametrize(
    ("base", "methods"),
    [
        ("mixture", ["mixture, coefficients tuned", "mixture, all tuned"]),
        ("sign resolved", ["sign resolved, tuned"]),
    ],
)
@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")  # a short fit
def test_tuning_does_not_raise_the_validation_risk(base: str, methods: list[str], toy: Draw) -> None:
    """With LSIF (the published PARE is its like) as judge, on the validation events themselves.

    The densities are left open: where one is taken to be positive, the fit judges by learned signs instead of weights.
    """
    X, y, w = validation = toy("signed", 20_000, 2)
    options = {**COMMON, "max_steps": 150, "reference_density": "any", "target_density": "any"}

    def risk(method: str) -> float:
        estimator = MAKERS[method](**options).fit(*toy("signed", 20_000, 1), validation=validation)
        # Half of the given events choose the state, the other half checks it.
        parts = split_indices(LabelledEvents(X, y == 1, w), (0.5,), np.random.default_rng(estimator.seed_))
        events, label, weight = X[parts[0]], y[parts[0]], w[parts[0]]
        ratio = estimator.model_.predict(events).ratio
        reference, target = label == 0, label == 1
        return float(ratio_risk(ratio[reference], weight[reference], ratio[target], weight[target]).value)

    before = risk(base)
    for method in methods:
        assert risk(method) <= before + 1e-6, method


def test_class_sizes_and_scales_do_not_move_the_ratio(toy: Draw) -> None:
    """n1 = 5 n0 and the weights of one class times seven: the same ratio within the tolerance."""
    X, y, w = toy("signed", N_PER_CLASS, 3)
    few = (y == 1) | (np.cumsum(y == 0) <= N_PER_CLASS // 5)
    for method in ("lsif", "sign resolved"):
        uneven = MAKERS[method](**COMMON, normalize=False)
        uneven.fit(X[few], y[few], sample_weight=np.where(y[few] == 1, 7.0, 1.0) * w[few])
        assert rms(uneven, "signed") < tolerance("signed", N_PER_CLASS // 5)
        at, _ = probes("signed")
        # Not even the scale moves: the mean ratio is one without normalisation, and not 7, 5 or 35.
        assert np.mean(uneven.predict_ratio(at)) == pytest.approx(1.0, abs=0.1)


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")  # thirty steps fit badly
def test_a_common_factor_of_the_weights_changes_nothing(toy: Draw) -> None:
    X, y, w = toy("signed", 5000, 4)
    w = np.where(y == 0, 1.0, w)  # a short fit of a signed reference could have negative estimates
    quick = {**COMMON, "max_steps": 30}
    for method in ("lsif", "mixture", "sign resolved"):
        plain, scaled = (MAKERS[method](**quick).fit(X, y, sample_weight=f * w) for f in (1.0, 8.0))
        at, _ = probes("signed")
        np.testing.assert_allclose(scaled.predict_ratio(at), plain.predict_ratio(at), rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")  # as it should say
def test_mse_cannot_learn_ratios_below_minus_one(fitted: Callable[[str, str], Any]) -> None:
    """The reason why the signed toy is not asked of it: r* = -1.29 < -1 at the origin."""
    _, exact = probes("signed")
    assert exact.min() < fitted("mse", "nonnegative").loss_.ratio_range[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        model = fitted("mse", "signed")
        # The link ends at -1; the normalisation multiplies it by a constant.
        assert model.predict_ratio(np.zeros((1, 2)))[0] > -1.0 * model.normalization_
