"""Form factors: heavy-top limits, symmetry, forward limit, the table and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import PAPER_POINT, FormFactors, form_factors, squared_amplitude
from quasiratio.generators.gg_hh.form_factor_table import form_factor_table
from quasiratio.generators.gg_hh.form_factors import triangle_form_factor

H = 125.0**2


def kinematics(m_hh: Any, cosine: Any) -> tuple[Any, Any, Any]:
    s = np.asarray(m_hh, dtype=float) ** 2
    t = H - 0.5 * s * (1.0 - np.sqrt(1.0 - 4.0 * H / s) * cosine)
    return s, t, (t * (2 * H - s - t) - H * H) / s


@pytest.mark.parametrize("mt", [3e3, 1e4, 3e4])
def test_heavy_top_limits(mt: float) -> None:
    s, t, pt2 = kinematics([280.0, 400.0, 600.0], np.array([0.1, -0.4, 0.7]))
    f_tri, f_box, g_box = form_factors(s, t, mt)
    next_order = 10 * (s / mt**2) ** 2
    assert np.all(np.abs(f_tri - (2 / 3 + 7 * s / (180 * mt**2))) < next_order)
    assert np.all(np.abs(f_box - (-2 / 3 - 7 * H / (30 * mt**2))) < next_order)
    np.testing.assert_allclose(g_box.real, -11 * pt2 / (90 * mt**2), rtol=10 * np.max(s) / mt**2 + 1e-3)
    for values in (f_tri, f_box, g_box):
        assert np.all(values.imag == 0.0)


@settings(max_examples=50, deadline=None)
@given(st.floats(251.0, 3000.0), st.floats(-0.999, 0.999))
def test_exchange_of_the_bosons_changes_nothing(m_hh: Any, cosine: Any) -> None:
    s, t, _ = kinematics(m_hh, cosine)
    for one, other in zip(form_factors(s, t), form_factors(s, 2 * H - s - t), strict=True):
        assert complex(one) == pytest.approx(complex(other), rel=1e-6, abs=1e-8)


def test_shapes_broadcast_and_scalars_stay_scalars() -> None:
    s, t, _ = kinematics(400.0, np.linspace(-0.9, 0.9, 6).reshape(2, 3))
    assert [f.shape for f in form_factors(s, t)] == [(2, 3)] * 3
    assert [f.shape for f in form_factors(s, t[0, 0])] == [()] * 3
    np.testing.assert_allclose(form_factors(s, t)[1][1, 2], form_factors(s, t[1, 2])[1])


def test_spin_two_vanishes_like_pt_squared_forward_and_at_threshold() -> None:
    s, t, pt2 = kinematics(500.0, np.array([0.9, 0.999, 0.99999, 1.0]))
    g_box = form_factors(s, t)[2]
    assert abs(g_box[-1]) < 1e-12
    assert (g_box[2] / pt2[2]).real == pytest.approx((g_box[1] / pt2[1]).real, rel=2e-2)
    threshold = form_factors(4 * H, -H)
    assert all(np.isfinite(complex(f)) for f in threshold)
    assert complex(threshold[2]) == 0.0


def test_amplitude_nearly_cancels_at_the_production_threshold() -> None:
    f_tri, f_box, _ = form_factors(4 * H * (1 + 1e-9), -H)
    assert abs(f_tri + f_box) < 0.15 * abs(f_box)  # x = 1 there; exact in the heavy-top limit


def test_table_reproduces_the_form_factors() -> None:
    rng = np.random.default_rng(5)
    m_hh = np.concatenate(
        [rng.uniform(lo, hi, 400) for lo, hi in ((250, 340), (340, 352), (352, 800), (800, 2500))]
    )
    cosine = rng.uniform(-1, 1, m_hh.size)
    s, t, _ = kinematics(m_hh, cosine)
    exact, table = FormFactors(*form_factors(s, t)), form_factor_table(13000.0)(m_hh, cosine)
    sm = squared_amplitude("sm", m_hh, exact, PAPER_POINT)
    np.testing.assert_allclose(squared_amplitude("sm", m_hh, table, PAPER_POINT), sm, rtol=1e-4)
    linear = [squared_amplitude("linear", m_hh, f, PAPER_POINT) / sm for f in (exact, table)]
    np.testing.assert_allclose(linear[1], linear[0], atol=2e-4)


def test_triangle_alone_agrees_with_the_full_calculation() -> None:
    s, t, _ = kinematics([260.0, 350.0, 1000.0], 0.2)
    np.testing.assert_allclose(triangle_form_factor(s), form_factors(s, t)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("s", "t"),
    [(200.0**2, -2e4), (400.0**2, 1e3), (400.0**2, -4e5), (float("nan"), -1e4)],
)
def test_unphysical_points_are_refused(s: float, t: float) -> None:
    with pytest.raises(InvalidInputError, match="expected s >= 4 mh"):
        form_factors(s, t)


def test_a_higgs_above_the_loop_threshold_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="mh < 2 mt"):
        form_factors(1e6, -5e5, mt=50.0, mh=125.0)
