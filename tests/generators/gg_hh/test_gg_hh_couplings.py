"""Couplings, the strong coupling and the expansions of the squared amplitude."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import (
    PAPER_POINT,
    STANDARD_MODEL,
    Couplings,
    FormFactors,
    alpha_s,
    form_factors,
    squared_amplitude,
)

M_HH = np.array([255.0, 320.0, 400.0, 900.0])
S = M_HH**2
FACTORS = FormFactors(*form_factors(S, 125.0**2 - 0.5 * S * (1 - 0.4 * np.sqrt(1 - 4 * 125.0**2 / S))))
numbers = st.floats(-2.0, 2.0)
any_couplings = st.builds(Couplings, c_hhh=numbers, c_t=numbers, c_tt=numbers, c_ggh=numbers, c_gghh=numbers)


def test_the_papers_point() -> None:
    values = (PAPER_POINT.c_hhh, PAPER_POINT.c_t, PAPER_POINT.c_tt, PAPER_POINT.c_ggh, PAPER_POINT.c_gghh)
    assert values == pytest.approx((2.213, 1.050, -0.335, 0.4997, 0.2499), abs=6e-4)
    assert PAPER_POINT.contact_alpha_s == "running"


def test_no_wilson_coefficients_are_the_standard_model() -> None:
    assert Couplings.from_smeft(alpha_s="fixed") == STANDARD_MODEL


def test_smeft_departures_scale_with_the_inverse_square_of_lambda() -> None:
    near, far = (Couplings.from_smeft(1.0, 2.0, 3.0, 0.04, scale) for scale in (1000.0, 3000.0))
    assert (near.c_hhh - 1) == pytest.approx(9 * (far.c_hhh - 1))
    assert near.c_ggh == pytest.approx(9 * far.c_ggh)
    assert near.c_ggh == 2 * near.c_gghh


def test_contact_couplings_run_only_when_asked() -> None:
    running = Couplings(c_ggh=0.1, contact_alpha_s="running")
    np.testing.assert_allclose(running.contact_scale(np.array([0.118, 0.1])), [1.0, 1.18])
    np.testing.assert_array_equal(Couplings(c_ggh=0.1).contact_scale(np.array([0.118, 0.1])), 1.0)


@pytest.mark.parametrize("scale", [1.0, -5.0, 0.0])
def test_a_scale_in_tev_is_refused(scale: float) -> None:
    with pytest.raises(InvalidInputError, match="1 TeV as Lambda=1000"):
        Couplings.from_smeft(1.0, Lambda=scale)


def test_bad_couplings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="finite"):
        Couplings(c_t=float("nan"))
    with pytest.raises(InvalidInputError, match="'running' or 'fixed'"):
        Couplings(contact_alpha_s="sometimes")  # type: ignore[arg-type, unused-ignore]


@given(any_couplings)
def test_quadratic_is_never_negative_and_the_linear_part_is_its_derivative(couplings: Couplings) -> None:
    sm, linear, quadratic = (
        squared_amplitude(e, M_HH, FACTORS, couplings) for e in ("sm", "linear", "quadratic")
    )
    assert np.all(quadratic >= 0)
    assert np.all(quadratic - linear >= -1e-9 * (1 + quadratic))  # |A6|^2 + |G6|^2
    step = 1e-4
    close = Couplings(
        c_hhh=1 + step * (couplings.c_hhh - 1),
        c_t=1 + step * (couplings.c_t - 1),
        c_tt=step * couplings.c_tt,
        c_ggh=step * couplings.c_ggh,
        c_gghh=step * couplings.c_gghh,
    )
    derivative = (squared_amplitude("full", M_HH, FACTORS, close) - sm) / step
    np.testing.assert_allclose(linear - sm, derivative, atol=0.1)


def test_every_expansion_of_the_standard_model_is_the_standard_model() -> None:
    sm = squared_amplitude("sm", M_HH, FACTORS, PAPER_POINT)
    for expansion in ("linear", "quadratic", "full"):
        np.testing.assert_allclose(
            squared_amplitude(expansion, M_HH, FACTORS, STANDARD_MODEL), sm, rtol=1e-13
        )


def test_unknown_expansion_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="one of sm, linear, quadratic, full"):
        squared_amplitude("cubic", M_HH, FACTORS, PAPER_POINT)  # type: ignore[arg-type, unused-ignore]


def test_strong_coupling_solves_its_two_loop_equation() -> None:
    b0, b1 = 23 / (12 * np.pi), 58 / (24 * np.pi**2)
    start, stop = 2 * np.log(91.1876), 2 * np.log(3000.0)
    flow = solve_ivp(lambda _, a: -(a**2) * (b0 + b1 * a), (start, stop), [0.118], rtol=1e-11, atol=1e-13)
    assert float(alpha_s(3000.0)) == pytest.approx(flow.y[0, -1], rel=1e-8)
    assert float(alpha_s(91.1876)) == pytest.approx(0.118, rel=1e-12)
    assert np.all(np.diff(alpha_s(np.geomspace(10, 1e4, 50))) < 0)
