"""PARE: the reduced form against the printed one, its limits, its pole, its precision, and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from quasiratio.errors import InvalidInputError
from quasiratio.losses import Lsif, Mse, Pare
from quasiratio.losses.pare import PUBLISHED_T0, PUBLISHED_T1

PAIRS = [(25619.0, 58.0), (2.0, 1.0), (100.0, 7.0), (3.0, 4.0)]
Array = npt.NDArray[np.float64]


def magnitudes(n: int = 400) -> Array:
    """Ratios of both signs with 0.01 <= |r| <= 20."""
    positive = np.geomspace(0.01, 20.0, n)
    return np.concatenate([-positive[::-1], positive])


def printed_score(ratio: Tensor, t0: float, t1: float) -> Tensor:
    """The optimum s(r) as the paper prints it."""
    return (t0 + t1 * ratio) / (t0**2 + t1**2 * ratio)


def printed(ratio: Tensor, label: int, t0: float, t1: float) -> Tensor:
    return (1.0 - (t1 if label else t0) * printed_score(ratio, t0, t1)).square()


def reduced(ratio: Tensor, label: int, loss: Pare) -> Tensor:
    raw = loss.link.raw(ratio)
    return loss.target(raw) if label else loss.reference(raw)


def gradient(values: Any, ratio: Tensor) -> Array:
    (grad,) = torch.autograd.grad(values.sum(), ratio)
    return grad.double().numpy()


def exact_gradient(ratio: Array, label: int, eps: float) -> Array:
    """Derivative of the reduced loss by r, in closed form: 2r/(1+eps^2 r)^3 and -2/(1+eps^2 r)^3."""
    return (-2.0 if label else 2.0 * ratio) / (1.0 + eps**2 * ratio) ** 3


@pytest.mark.parametrize(("t0", "t1"), PAIRS)
@pytest.mark.parametrize("label", [0, 1])
def test_both_forms_agree_in_float64_up_to_a_factor_and_a_constant(t0: float, t1: float, label: int) -> None:
    loss = Pare(t0, t1)
    eps = t1 / t0
    ratio = torch.from_numpy(magnitudes())
    ratio = ratio[(ratio - loss.pole).abs() > 0.1]
    factor = eps**2 * (1.0 - eps) ** 2
    constant = label * (1.0 - eps) ** 2
    there = printed(ratio, label, t0, t1)
    here = factor * reduced(ratio, label, loss) + constant
    tolerance = 1e-10 * float(there.abs().max())
    torch.testing.assert_close(here, there, rtol=1e-9, atol=tolerance)


@pytest.mark.parametrize("label", [0, 1])
def test_gradients_have_their_closed_form(label: int) -> None:
    loss = Pare(2, 1)
    ratio = torch.linspace(-3.0, 20.0, 300, dtype=torch.float64, requires_grad=True)
    found = gradient(reduced(ratio, label, loss), ratio)
    np.testing.assert_allclose(found, exact_gradient(ratio.detach().numpy(), label, 0.5), rtol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_the_reduced_form_keeps_its_precision_in_float32(label: int) -> None:
    loss = Pare()
    values = magnitudes().astype(np.float32)
    ratio = torch.from_numpy(values).requires_grad_(True)
    found = gradient(reduced(ratio, label, loss), ratio)
    expected = exact_gradient(values.astype(np.float64), label, PUBLISHED_T1 / PUBLISHED_T0)
    assert np.max(np.abs(found / expected - 1.0)) < 1e-6


@pytest.mark.parametrize("label", [0, 1])
def test_the_network_sees_gradients_of_full_precision_in_float32(label: int) -> None:
    """What training uses: the derivative by the raw output u, against float64."""
    loss = Pare()
    exact_raw = loss.link.raw(torch.from_numpy(magnitudes())).float().requires_grad_(True)
    branch = loss.target if label else loss.reference
    found = gradient(branch(exact_raw), exact_raw)
    twin = exact_raw.detach().double().requires_grad_(True)
    np.testing.assert_allclose(found, gradient(branch(twin), twin), rtol=1e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_printed_form_loses_the_gradient_of_the_reference_in_float32(sign: float) -> None:
    t0, t1 = PUBLISHED_T0, PUBLISHED_T1
    eps = t1 / t0
    factor = eps**2 * (1.0 - eps) ** 2
    # A neighbourhood of |r| = 0.01, so that no lucky rounding of a single number decides.
    values = (sign * np.linspace(0.0098, 0.0102, 101)).astype(np.float32)
    ratio = torch.from_numpy(values).requires_grad_(True)
    found = gradient(printed(ratio, 0, t0, t1), ratio) / factor
    expected = exact_gradient(values.astype(np.float64), 0, eps)
    off = np.abs(found / expected - 1.0)
    assert np.median(off) > 1e-3


def test_the_printed_form_loses_the_value_of_the_target_in_float32() -> None:
    t0, t1 = PUBLISHED_T0, PUBLISHED_T1
    eps = t1 / t0
    factor = eps**2 * (1.0 - eps) ** 2
    values = magnitudes().astype(np.float32)
    found = (printed(torch.from_numpy(values), 1, t0, t1).double().numpy() - (1.0 - eps) ** 2) / factor
    exact = reduced(torch.from_numpy(values.astype(np.float64)), 1, Pare()).numpy()
    off = np.abs(found / exact - 1.0)
    assert np.mean(off > 1e-3) > 0.5


@pytest.mark.parametrize("label", [0, 1])
def test_eps_zero_is_twice_lsif(label: int) -> None:
    raw = torch.linspace(-30.0, 30.0, 101, dtype=torch.float64)
    labels = torch.full_like(raw, label)
    torch.testing.assert_close(Pare(eps=0).per_event(raw, labels), 2.0 * Lsif().per_event(raw, labels))
    torch.testing.assert_close(Pare(eps=0).link.ratio(raw), Lsif().link.ratio(raw))


@pytest.mark.parametrize("label", [0, 1])
def test_eps_one_is_mse_up_to_a_constant(label: int) -> None:
    raw = torch.linspace(-30.0, 30.0, 101, dtype=torch.float64)
    labels = torch.full_like(raw, label)
    constant = Mse().per_event(raw, labels) - Pare(eps=1).per_event(raw, labels)
    torch.testing.assert_close(constant, torch.full_like(raw, float(label)))
    torch.testing.assert_close(Pare(eps=1).link.ratio(raw[raw != 1]), Mse().link.ratio(raw[raw != 1]))


def test_the_published_pair_and_its_pole() -> None:
    assert Pare() == Pare(25619, 58) == Pare(eps=58 / 25619)
    assert Pare().eps == pytest.approx(0.0022639, abs=5e-8)
    assert Pare().pole == pytest.approx(-195105, abs=0.5)
    assert Pare().ratio_range == (Pare().pole, np.inf)


def test_only_the_quotient_matters() -> None:
    assert Pare(4, 2) == Pare(2, 1) == Pare(eps=0.5)
    assert Pare(2, 1) != Pare(2, 1.5)
    assert Pare(eps=0).pole == -np.inf


@pytest.mark.parametrize(
    "estimate", [[-12.0, 0.5, 3.0], [0.2, 0.9], [40.0], np.linspace(-300, 5, 50), [], [0.0]]
)
def test_auto_puts_the_scale_of_the_loss_beyond_every_ratio(estimate: Any) -> None:
    chosen = Pare(eps="auto").resolved(estimate)
    assert isinstance(chosen.eps, float)
    extent = max(1.0, float(np.max(np.abs(estimate), initial=0.0)))
    assert 1.0 / chosen.eps == pytest.approx(4.0 * extent)  # -1/eps < inf r, with a margin of four
    assert chosen.pole < -extent


def test_auto_refuses_estimates_that_are_not_finite() -> None:
    for bad in ([1.0, np.nan], [np.inf]):
        with pytest.raises(InvalidInputError, match="NaN or infinite ratios"):
            Pare(eps="auto").resolved(bad)


def test_auto_has_no_value_before_a_first_estimate() -> None:
    loss = Pare(eps="auto")
    for use in (lambda: loss.link, lambda: loss.pole, lambda: loss.target(torch.zeros(1))):
        with pytest.raises(InvalidInputError, match="has no value yet"):
            use()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t0": 2.0}, "t0 = 2.0, t1 = None; expected two positive numbers"),
        ({"t1": 2.0}, "t0 = None, t1 = 2.0; expected two positive numbers"),
        ({"t0": 0.0, "t1": 1.0}, "expected two positive numbers"),
        ({"t0": 2.0, "t1": -1.0}, "expected two positive numbers"),
        ({"t0": np.nan, "t1": 1.0}, "expected two positive numbers"),
        ({"t0": np.inf, "t1": 1.0}, "expected two positive numbers"),
        ({"t0": 2.0, "t1": 1.0, "eps": 0.5}, "expected either eps or the pair"),
        ({"eps": -0.1}, "eps = -0.1; expected a finite nonnegative number or 'auto'"),
        ({"eps": np.nan}, "expected a finite nonnegative number or 'auto'"),
        ({"eps": np.inf}, "expected a finite nonnegative number or 'auto'"),
        ({"eps": "automatic"}, "eps = 'automatic'; expected a finite nonnegative number or 'auto'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Pare(**options)
