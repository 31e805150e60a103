"""Recombining sub-ratios: exact parts give the exact ratio, in every sign pattern and at every scale."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from quasiratio.distributions import SignedGaussianMixture, signed_gaussian_case
from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.ratios import SIGN_CLASSES, SignClass, SignedMixtureModel, recombine, sign_classes
from quasiratio.ratios.sign_resolved import signed_ratio
from quasiratio.ratios.signed_mixture import SignPair, sign_pairs

Array = npt.NDArray[np.float64]
SIGNED_REFERENCE = SignedGaussianMixture(c=1.5, sigma_1=2.0, sigma_2=1.0)  # negative at the origin
PATTERNS = {
    "both signed": (signed_gaussian_case("signed").reference, signed_gaussian_case("signed").target),
    "nonnegative case": (
        signed_gaussian_case("nonnegative").reference,
        signed_gaussian_case("nonnegative").target,
    ),
    "only target": (SignedGaussianMixture(1.0, 2.5, 1.0), signed_gaussian_case("signed").target),
    "only reference": (signed_gaussian_case("signed").reference, SignedGaussianMixture(1.0, 2.0, 1.0)),
    "none": (SignedGaussianMixture(1.0, 2.5, 1.0), SignedGaussianMixture(1.0, 2.0, 1.0)),
    "negative reference density": (SIGNED_REFERENCE, signed_gaussian_case("signed").target),
}
every_pattern = pytest.mark.parametrize("pattern", PATTERNS)


def points() -> Array:
    return np.random.default_rng(0).normal(0.0, 2.5, (500, 2))


def log_part(mixture: SignedGaussianMixture, sign: int, at: Array) -> Array:
    """Log-density of the part of one sign: N(0, sigma_1) of the positive, N(0, sigma_2) of the negative."""
    sigma = mixture.sigma_1 if sign > 0 else mixture.sigma_2
    result: Array = -0.5 * np.sum(at**2, axis=1) / sigma**2 - math.log(2 * math.pi * sigma**2)
    return result


def present(reference: SignedGaussianMixture, target: SignedGaussianMixture) -> list[SignClass]:
    coefficients = (reference.c, target.c)
    return [part for part in SIGN_CLASSES if part.sign > 0 or coefficients[part.label] > 1]


def exact_log_ratios(
    reference: SignedGaussianMixture, target: SignedGaussianMixture, at: Array
) -> dict[SignPair, Tensor]:
    return {
        (a, b): torch.from_numpy(log_part(target, b, at) - log_part(reference, a, at))
        for a, b in sign_pairs(present(reference, target))
    }


@every_pattern
def test_exact_sub_ratios_recombine_to_the_exact_ratio(pattern: str) -> None:
    reference, target = PATTERNS[pattern]
    at = points()
    values = recombine(exact_log_ratios(reference, target, at), reference.c, target.c)
    exact = target.density(at) / reference.density(at)
    # Cancellation near zeros of either density costs digits in the direct quotient too: scale by its terms.
    scale = (target.c + (target.c - 1)) * np.abs(exact).clip(min=1.0)
    assert np.max(np.abs(values.ratio.numpy() - exact) / scale) < 1e-12
    if reference.c == 1:
        assert values.nonpositive_reference is None
    else:
        assert values.nonpositive_reference is not None
        np.testing.assert_array_equal(values.nonpositive_reference.numpy(), reference.density(at) <= 0)


@every_pattern
def test_exact_class_probabilities_give_the_exact_ratio(pattern: str) -> None:
    reference, target = PATTERNS[pattern]
    at = points()
    classes = present(reference, target)
    mixtures = (reference, target)
    logits = np.stack(
        [
            log_part(mixtures[part.label], part.sign, at)
            + math.log(mixtures[part.label].c if part.sign > 0 else mixtures[part.label].c - 1)
            for part in classes
        ],
        axis=1,
    )
    # Any common shift of the logits leaves the probabilities, and the ratio, as they are.
    shifts = np.random.default_rng(1).normal(0.0, 300.0, (len(at), 1))
    values = signed_ratio(torch.from_numpy(logits), classes)
    shifted = signed_ratio(torch.from_numpy(logits + shifts), classes)
    exact = target.density(at) / reference.density(at)
    scale = (target.c + (target.c - 1)) * np.abs(exact).clip(min=1.0)
    assert np.max(np.abs(values.ratio.numpy() - exact) / scale) < 1e-12
    assert np.max(np.abs(shifted.ratio.numpy() - exact) / scale) < 1e-9
    if reference.c == 1:
        assert values.nonpositive_reference is None
    else:
        assert values.nonpositive_reference is not None
        np.testing.assert_array_equal(values.nonpositive_reference.numpy(), reference.density(at) <= 0)


def test_limits_where_a_coefficient_is_one() -> None:
    at = points()
    reference, target = PATTERNS["both signed"]
    logs = exact_log_ratios(reference, target, at)
    c0, c1 = 4 / 3, 2.0
    plus_plus, plus_minus = logs[1, 1].exp(), logs[1, -1].exp()
    only_target = recombine({(1, 1): logs[1, 1], (1, -1): logs[1, -1]}, 1.0, c1)
    torch.testing.assert_close(only_target.ratio, c1 * plus_plus + (1 - c1) * plus_minus)
    only_reference = recombine({(1, 1): logs[1, 1], (-1, 1): logs[-1, 1]}, c0, 1.0)
    torch.testing.assert_close(only_reference.ratio, 1 / (c0 / plus_plus + (1 - c0) / logs[-1, 1].exp()))
    torch.testing.assert_close(recombine({(1, 1): logs[1, 1]}, 1.0, 1.0).ratio, plus_plus)
    # The general formula tends to each limit.
    nearly = recombine(logs, 1.0 + 1e-12, c1).ratio
    torch.testing.assert_close(nearly, only_target.ratio, rtol=1e-8, atol=1e-8)
    nearly = recombine(logs, c0, 1.0 + 1e-12).ratio
    torch.testing.assert_close(nearly, only_reference.ratio, rtol=1e-8, atol=1e-8)


def test_parts_without_weight_are_left_out_not_multiplied_by_zero() -> None:
    """An infinite sub-ratio of an absent part would turn 0 * inf into NaN."""
    logs = {(1, 1): torch.tensor([0.3], dtype=torch.float64)}
    assert float(recombine(logs, 1.0, 1.0).ratio) == pytest.approx(math.exp(0.3))
    with pytest.raises(ValueError, match="positive parts"):
        recombine({}, 1.0, 1.0)


@given(
    logs=st.tuples(*[st.floats(-5000.0, 5000.0)] * 4),
    c0=st.floats(1.01, 5.0),
    c1=st.floats(1.01, 5.0),
)
def test_huge_log_ratios_do_not_become_nan(logs: tuple[float, ...], c0: float, c1: float) -> None:
    pairs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    values = recombine(
        {p: torch.tensor([x], dtype=torch.float64) for p, x in zip(pairs, logs, strict=True)}, c0, c1
    )
    plus_plus, plus_minus, minus_plus, minus_minus = logs
    # Each term is at most exp(min l) / distance of the denominator from zero: finite below the float range.
    if max(min(plus_plus, minus_plus), min(plus_minus, minus_minus)) < 600:
        gap = min(
            abs(c0 * math.exp(min(0.0, b - a)) + (1 - c0) * math.exp(min(0.0, a - b)))
            for a, b in ((plus_plus, minus_plus), (plus_minus, minus_minus))
        )
        if gap > 1e-6:
            assert bool(torch.isfinite(values.ratio).all())


def test_a_huge_common_scale_cancels_in_the_denominator() -> None:
    """With float32 exponentials exp(-l) of -200 would overflow; the quotient is exp(-200), fine in float64."""
    logs = {
        pair: torch.tensor([-800.0], dtype=torch.float64) for pair in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    }
    assert float(recombine(logs, 1.5, 2.0).ratio) == pytest.approx(0.0, abs=1e-300)
    logs = {pair: torch.tensor([600.0], dtype=torch.float64) for pair in logs}
    assert float(recombine(logs, 1.5, 2.0).ratio) == pytest.approx(math.exp(600.0), rel=1e-9)


@pytest.mark.parametrize("shift", [-3000.0, 3000.0])
def test_huge_logits_do_not_overflow(shift: float) -> None:
    logits = torch.tensor([[0.0, -1.0, 0.5, -2.0]], dtype=torch.float64)
    expected = signed_ratio(logits, SIGN_CLASSES).ratio
    torch.testing.assert_close(signed_ratio(logits + shift, SIGN_CLASSES).ratio, expected, rtol=1e-10, atol=0)


def test_vanishing_denominators_are_counted() -> None:
    equal = torch.zeros(4, dtype=torch.float64)
    # c0 e^{-l} + (1 - c0) e^{-m} with l = 0: zero at m = -log(c0 / (c0 - 1)), negative below.
    crossing = -math.log(1.5 / 0.5)
    minus = torch.tensor([0.0, crossing, crossing - 1.0, crossing + 1.0], dtype=torch.float64)
    values = recombine({(1, 1): equal, (-1, 1): minus}, 1.5, 1.0)
    assert values.nonpositive_reference is not None
    flags = values.nonpositive_reference.tolist()
    assert flags[0] is False
    assert flags[2] is True
    assert flags[3] is False
    assert float(values.ratio[2]) < 0  # returned as it comes out, not clipped
    assert abs(float(values.ratio[1])) > 1e10


def test_pairs_follow_from_the_parts_that_carry_weight() -> None:
    by_name = {str(part): part for part in SIGN_CLASSES}
    everything = sign_pairs(SIGN_CLASSES)
    assert set(everything) == {(1, 1), (1, -1), (-1, 1), (-1, -1)}
    assert set(sign_pairs([by_name["reference+"], by_name["target+"], by_name["target-"]])) == {
        (1, 1),
        (1, -1),
    }
    assert set(sign_pairs([by_name["reference+"], by_name["reference-"], by_name["target+"]])) == {
        (1, 1),
        (-1, 1),
    }
    assert sign_pairs([by_name["reference+"], by_name["target+"]]) == ((1, 1),)


@given(
    data=st.lists(
        st.tuples(st.booleans(), st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0])), min_size=1, max_size=12
    )
)
def test_sign_classes_number_every_event_that_weighs(data: list[tuple[bool, float]]) -> None:
    labels = np.array([label for label, _ in data])
    weights = np.array([weight for _, weight in data])
    # A label whose events all weigh nothing has no density; `fit` refuses it before.
    for label in (False, True):
        if np.sum(np.abs(weights[labels == label])) == 0:
            labels, weights = np.append(labels, label), np.append(weights, 1.0)
    index, parts = sign_classes(labels, weights)
    assert len(set(parts)) == len(parts)
    for event in np.flatnonzero(weights != 0):
        assert parts[index[event]] == (int(labels[event]), 1 if weights[event] > 0 else -1)
    for event in np.flatnonzero(weights == 0):
        assert parts[index[event]].label == int(labels[event])
    assert set(index[weights != 0]) == set(range(len(parts)))


def test_networks_are_laid_out_member_by_member() -> None:
    """Network k * n_pairs + p is pair p of member k; averaging is over members of one pair."""
    pairs = ((1, 1), (1, -1))
    coefficients = torch.tensor([[1.0, 2.0], [1.0, 3.0]])
    network = StackedMlp(4, 2, (3,), 1, generator=torch.Generator().manual_seed(0))
    model = SignedMixtureModel(FeatureScaling(2), network, 2, pairs, coefficients)
    outputs = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).view(4, 1, 1)
    ratios = model.member_values(outputs).ratio[:, 0].detach()
    expected = [2 * math.exp(0.1) - math.exp(0.2), 3 * math.exp(0.3) - 2 * math.exp(0.4)]
    np.testing.assert_allclose(ratios, expected, rtol=1e-12)
    averaged = model.average(outputs)
    np.testing.assert_allclose(averaged[:, 0, 0], [0.2, 0.3])
    combined = model.combined_values(outputs).ratio.detach()
    assert float(combined[0, 0]) == pytest.approx(2.5 * math.exp(0.2) - 1.5 * math.exp(0.3))
