"""What is told apart on events kept aside: a steep ratio, a pole, a ratio that is hardly one, and samples that do not overlap."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import quasiratio as qr
from quasiratio.estimators.checked_ratio import TERMS, CheckedRatio
from quasiratio.estimators.fit_check import FitCheck, check_ratio

N_EVENTS = 2000


def gaussians(shift: float, power: float = 1.0, negative: float = 0.0) -> CheckedRatio:
    """Check a power of the exact ratio of two unit Gaussians that are so far apart, at most with negative weights independent of them."""
    rng = np.random.default_rng(5)
    x0, x1 = rng.normal(0.0, 1.0, N_EVENTS), rng.normal(shift, 1.0, N_EVENTS)
    w0, w1 = (np.where(rng.random(N_EVENTS) < negative, -1.0, 1.0) for _ in range(2))

    def ratio(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.exp(power * (shift * x - 0.5 * power * shift**2)))

    numbers = np.arange(N_EVENTS)
    return CheckedRatio(ratio(x0), ratio(x1), w0, w1, np.full(N_EVENTS, w0.mean()), numbers, numbers)


@pytest.mark.parametrize("negative", [0.0, 0.2])
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0])
def test_the_exact_ratio_passes_however_steep_it_is(shift: float, negative: float) -> None:
    exact = gaussians(shift, negative=negative)
    check = check_ratio(exact)
    assert check.status == "good"
    assert abs(check.removed.value - 1.0) < 3.0 * check.removed.error
    assert check.removed.error < 0.3
    assert exact.decisive_event(TERMS[:2]) is None
    assert exact.carries_much == any("not by mistake" in reason for reason in check.reasons)


def test_a_steep_ratio_is_said_to_be_steep() -> None:
    exact = gaussians(2.5)
    assert exact.carries_much
    assert "One event carries" in str(check_ratio(exact))
    assert not gaussians(0.3).carries_much


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shift", [0.3, 2.0])
def test_a_pole_is_told_from_a_steep_ratio(shift: float, sign: float) -> None:
    exact = gaussians(shift)
    ratio = exact.reference.copy()
    ratio[17] = sign * 3.1 * max(exact.target.max(), 200.0)  # far beyond every ratio of the target
    check = check_ratio(replace(exact, reference=ratio))
    assert check.status == "failed"
    assert check.reasons[0].startswith("One event, number 17, carries")


def test_events_of_a_wrong_region_do_not_support_each_other() -> None:
    exact = gaussians(0.3)
    reference, target = exact.reference.copy(), exact.target.copy()
    reference[:12], target[:12] = 400.0, 400.0  # with a ratio of one there, as both samples have as many
    assert check_ratio(replace(exact, reference=reference, target=target)).status == "failed"


@pytest.mark.parametrize(("power", "is_flat"), [(0.1, True), (0.3, True), (0.8, False)])
def test_a_ratio_that_is_hardly_one_does_not_pass(power: float, is_flat: bool) -> None:
    check = check_ratio(gaussians(2.0, power))
    assert (check.status == "failed") == is_flat
    assert any("hardly more than no reweighting" in reason for reason in check.reasons) == is_flat
    assert FitCheck.stored(check.document()).removed == check.removed


def test_samples_that_hardly_overlap_are_named() -> None:
    check = check_ratio(gaussians(4.0))
    assert check.status == "failed"
    assert "The samples overlap too little" in str(check)
    assert gaussians(1.0).expected_size == pytest.approx(N_EVENTS / math.e, rel=0.15)  # E_1[r] = exp(shift^2)


def test_equal_samples_have_no_distance_to_remove() -> None:
    rng = np.random.default_rng(0)
    flat, numbers = np.ones(N_EVENTS), np.arange(N_EVENTS)
    noisy = CheckedRatio(
        1.0 + 0.01 * rng.normal(size=N_EVENTS),
        flat + 0.01 * rng.normal(size=N_EVENTS),
        *(flat,) * 3,
        *(numbers,) * 2,
    )
    check = check_ratio(noisy)
    assert np.isnan(check.removed.value)
    assert check.status == "good"


def test_a_default_fit_of_a_steep_ratio_is_not_helped_away() -> None:
    rng = np.random.default_rng(1)
    n, shift = 20_000, np.array([2.0, 0.0, 0.0, 0.0])
    signs = [np.where(rng.random(n) < 0.1, -1.0, 1.0) for _ in range(2)]
    reference = qr.WeightedSample(rng.normal(size=(n, 4)), signs[0])
    target = qr.WeightedSample(rng.normal(size=(n, 4)) + shift, signs[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qr.errors.SupportWarning)
        model = qr.SignResolvedRatio(random_state=1, verbose=False).fit_samples(reference, target)
    assert (model.fit_check_.status, model.helped_) == ("good", "")
    x = np.random.default_rng(99).normal(size=(20_000, 4))
    assert np.average(x[:, 0], weights=model.predict_ratio(x)) == pytest.approx(2.0, abs=0.15)
