"""Weight diagnostics, the paper's variance identity on sampled weights, and the VLRC area."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio import WeightedSample
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import excess_gradient_variance, validation_loss_area, weight_diagnostics

signed_weights = hnp.arrays(
    np.float64, st.integers(1, 40), elements=st.floats(-10, 10).map(lambda w: round(w, 3))
).filter(lambda w: w.sum() > 0.1)


@given(w=signed_weights)
def test_agrees_with_the_sample(w: Any) -> None:
    sample = WeightedSample(np.zeros((len(w), 1)), w)
    for given_weights in (w, sample):
        d = weight_diagnostics(given_weights)
        assert d.n_events == len(w)
        assert d.negative_fraction == sample.negative_fraction
        assert d.sum_of_weights == pytest.approx(sample.sum_of_weights)
        assert d.effective_size == pytest.approx(sample.effective_size)
        assert d.mixture_coefficient == pytest.approx(sample.mixture_coefficient)
        scaled = w * len(w) / w.sum()
        assert d.weight_variance == pytest.approx(np.mean(scaled**2 - scaled), abs=1e-9)
        assert d.largest_share == pytest.approx(np.abs(w).max() / np.abs(w).sum())
        assert "negative fraction" in str(d)


@given(w=signed_weights, scale=st.floats(0.01, 100))
def test_scales_do_not_matter_but_duplicates_do(w: Any, scale: float) -> None:
    plain, scaled, twice = (weight_diagnostics(v) for v in (w, scale * w, np.repeat(w, 2)))
    for name in ("effective_size", "mixture_coefficient", "weight_variance", "largest_share"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name), abs=1e-8)
    assert twice.effective_size == pytest.approx(2 * plain.effective_size)
    assert twice.mixture_coefficient == pytest.approx(plain.mixture_coefficient)


def test_unit_weights_cost_nothing() -> None:
    d = weight_diagnostics(np.full(10, 3.0))
    assert d.weight_variance == pytest.approx(0.0)
    assert (d.effective_size, d.mixture_coefficient, d.largest_share) == pytest.approx((10, 1, 0.1))


def test_the_variance_identity_holds_on_sampled_weights() -> None:
    """Weights independent of x, of section 'negative weights': Var W = sigma^2 and P(W < 0) = eta."""
    rng = np.random.default_rng(0)
    n, sigma, eta = 400_000, 2.0, 0.3
    w = 1 + sigma / np.sqrt(eta * (1 - eta)) * (eta - (rng.random(n) < eta))
    x = rng.normal(size=n)
    g = 0.7 + x  # a gradient
    left = np.var(w * g) - np.var(g)
    right = excess_gradient_variance(w, g**2)
    spread = np.std((w * g) ** 2) / np.sqrt(n)
    assert right == pytest.approx(left, abs=5 * spread)
    assert right == pytest.approx(sigma**2 * (1 + 0.49), abs=5 * spread)
    d = weight_diagnostics(w)
    assert d.negative_fraction == pytest.approx(eta, abs=0.005)
    assert d.weight_variance == pytest.approx(sigma**2, rel=0.02)


def test_excess_variance_normalises_unless_told() -> None:
    assert excess_gradient_variance([6.0, -2.0], [1.0, 1.0]) == pytest.approx(4.0)
    assert excess_gradient_variance([6.0, -2.0], [1.0, 1.0], normalize=False) == pytest.approx(18.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weight_diagnostics([1.0, -1.0]), "sum to 0; expected a positive sum"),
        (lambda: weight_diagnostics([]), "expected a positive sum"),
        (lambda: weight_diagnostics([1.0, np.nan]), "1 of 2 weights"),
        (lambda: weight_diagnostics([[1.0]]), "one per event"),
        (lambda: excess_gradient_variance([1.0], [1.0, 2.0]), "2 squared gradients for 1 events"),
        (lambda: excess_gradient_variance([1.0], [-1.0]), "1 negative squared gradients"),
        (lambda: validation_loss_area([]), "at least one epoch"),
        (lambda: validation_loss_area([1.0, np.inf]), "1 of 2 validation losses"),
        (lambda: validation_loss_area([1.0, 2.0], epochs=[1, 1]), "do not increase"),
        (lambda: validation_loss_area([1.0, 2.0], epochs=[1]), "1 epochs"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_validation_loss_area() -> None:
    epochs = np.linspace(0, 30, 3001)
    loss = 0.6 + 0.5 * np.exp(-epochs / 2)
    assert validation_loss_area(loss, epochs=epochs) == pytest.approx(1.0, rel=1e-4)
    assert validation_loss_area([0.7]) == 0.0
    assert validation_loss_area([1.0, 0.5, 0.8]) == pytest.approx(
        0.1 - 0.3
    )  # below its end it counts against


@given(
    loss=hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-5, 5)),
    offset=st.floats(-10, 10),
    scale=st.floats(0.1, 10),
)
def test_area_ignores_offsets_and_is_in_epochs(loss: Any, offset: float, scale: float) -> None:
    area = validation_loss_area(loss)
    assert validation_loss_area(scale * loss + offset) == pytest.approx(scale * area, abs=1e-9)
    stretched = validation_loss_area(loss, epochs=3.0 * np.arange(len(loss)))
    assert stretched == pytest.approx(3 * area, abs=1e-9)
