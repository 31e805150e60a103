"""The risk of a ratio: its meaning on the Gaussian case, its errors' coverage, and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import RatioRisk, ratio_risk, ratio_risk_difference

CASE = signed_gaussian_case("signed")


def wrong_ratio(X: Any) -> Any:
    """A smooth model that is off by about a tenth."""
    x = np.asarray(X, dtype=float)
    return CASE.exact_ratio(X) + 0.1 * np.cos(x[:, 0]) + 0.05


def half_squared_distance() -> float:
    """Half the integral of q_ref (r - r*)^2 on a grid."""
    axis = np.linspace(-16, 16, 641)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    error = wrong_ratio(grid) - CASE.exact_ratio(grid)
    return float(0.5 * np.sum(CASE.reference.density(grid) * error**2) * (axis[1] - axis[0]) ** 2)


def risks(seed: int, n: int = 4000) -> tuple[RatioRisk, RatioRisk]:
    """The risk of the wrong model, and its difference to the exact one, on signed samples."""
    reference, target = CASE.samples(n, np.random.default_rng(seed))
    weights = {"weights_reference": reference.weights, "weights_target": target.weights}
    wrong = wrong_ratio(reference.features), wrong_ratio(target.features)
    exact = CASE.exact_ratio(reference.features), CASE.exact_ratio(target.features)
    single = ratio_risk(wrong[0], reference.weights, wrong[1], target.weights)
    return single, ratio_risk_difference(wrong, exact, **weights)


def test_the_difference_to_the_exact_ratio_is_half_the_squared_distance() -> None:
    expected = half_squared_distance()
    single, difference = risks(seed=1, n=300_000)
    assert difference.value == pytest.approx(expected, abs=4 * difference.error)
    assert difference.error < 0.35 * expected  # the test has power
    assert difference.error < 0.2 * single.error  # and pairing is what gives it


def test_errors_cover() -> None:
    results = [risks(seed) for seed in range(300)]
    expected = half_squared_distance()
    for position, truth in ((0, np.mean([r[0].value for r in results])), (1, expected)):
        pulls = np.array([(r[position].value - truth) / r[position].error for r in results])
        assert np.std(pulls) == pytest.approx(1.0, abs=0.15)
        assert np.mean(np.abs(pulls) < 1) == pytest.approx(0.683, abs=0.1)
        assert abs(np.mean(pulls)) < 4 / np.sqrt(300)


def random_inputs(seed: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    r0, r1 = rng.normal(1, 1, 30), rng.normal(1, 1, 20)
    return r0, np.where(rng.random(30) < 0.2, -1.0, 1.3), r1, np.where(rng.random(20) < 0.2, -1.0, 1.3)


@given(seed=st.integers(0, 1000), k0=st.floats(0.1, 10), k1=st.floats(0.1, 10))
def test_laws_of_the_weights(seed: int, k0: float, k1: float) -> None:
    r0, w0, r1, w1 = random_inputs(seed)
    risk = ratio_risk(r0, w0, r1, w1)
    by_hand = np.sum(w0 * r0**2) / w0.sum() / 2 - np.sum(w1 * r1) / w1.sum()
    assert risk.value == pytest.approx(by_hand)
    scaled = ratio_risk(r0, k0 * w0, r1, k1 * w1)
    assert (scaled.value, scaled.error) == pytest.approx((risk.value, risk.error))
    constant = ratio_risk(np.full_like(r0, k0), w0, np.full_like(r1, k0), w1)  # known without error
    assert (constant.value, constant.error) == pytest.approx((k0**2 / 2 - k0, 0.0), abs=1e-9)
    absent = ratio_risk(np.append(r0, 9.0), np.append(w0, 0.0), r1, w1)
    assert (absent.value, absent.error) == pytest.approx((risk.value, risk.error))
    twice = [np.repeat(a, 2) for a in (r0, w0, r1, w1)]
    duplicated = ratio_risk(*twice)
    assert duplicated.value == pytest.approx(risk.value)
    assert duplicated.error == pytest.approx(risk.error / np.sqrt(2))  # the error must differ


@given(seed=st.integers(0, 1000))
def test_the_difference_is_a_difference(seed: int) -> None:
    r0, w0, r1, w1 = random_inputs(seed)
    first, second = (r0, r1), (r0 + 0.1 * r0**2, r1 - 0.2)
    weights = {"weights_reference": w0, "weights_target": w1}
    difference = ratio_risk_difference(first, second, **weights)
    singles = [ratio_risk(r[0], w0, r[1], w1).value for r in (first, second)]
    assert difference.value == pytest.approx(singles[0] - singles[1])
    opposite = ratio_risk_difference(second, first, **weights)
    assert (opposite.value, opposite.error) == pytest.approx((-difference.value, difference.error))
    same = ratio_risk_difference(first, first, **weights)
    assert (same.value, same.error, same.significance) == (0.0, 0.0, 0.0)
    assert difference.significance == pytest.approx(difference.value / difference.error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ratio_risk([np.nan], None, [1.0], None), "1 of 1 ratios at the reference that are NaN"),
        (lambda: ratio_risk([1.0], None, [np.inf], None), "1 of 1 ratios at the target"),
        (lambda: ratio_risk([1.0], [-1.0], [1.0], None), "weights of the reference sum to -1"),
        (lambda: ratio_risk([1.0], None, [1.0], [1.0, 2.0]), "2 weights of the target for 1 events"),
        (lambda: ratio_risk([], None, [1.0], None), "positive sum"),
        (lambda: ratio_risk_difference(([1.0], [1.0]), ([1.0, 2.0], [1.0])), "second model at the reference"),
        (lambda: ratio_risk_difference(([1.0], [1.0]), ([1.0], [1.0, 2.0])), "second model at the target"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
