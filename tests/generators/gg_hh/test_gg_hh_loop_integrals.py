"""Scalar integrals against direct Feynman-parameter integration, unitarity cuts and a dispersion relation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from quasiratio.generators.gg_hh.loop_integrals import (
    ScalarIntegrals,
    scalar_integrals,
    two_point_kernel,
    zero_mass_triangle,
)

M2, H = 173.0**2, 125.0**2
BELOW = [(251.0, 0.2), (280.0, -0.7), (320.0, 0.95), (340.0, 0.0)]
ABOVE = [(347.0, 0.1), (360.0, -0.6), (420.0, 0.4), (900.0, 0.8), (3000.0, -0.3)]


def transfer(m_hh: Any, cosine: Any) -> tuple[Any, Any]:
    s = m_hh**2
    return s, H - 0.5 * s * (1.0 - np.sqrt(1.0 - 4.0 * H / s) * cosine)


def integrals(m_hh: Any, cosine: Any) -> ScalarIntegrals:
    s, t = transfer(m_hh, cosine)
    return scalar_integrals(np.array([s]), np.array([t]), M2, H)


def simplex(n_parameters: int, n_nodes: int = 90) -> tuple[list[Any], Any]:
    """Gauss nodes on the simplex of Feynman parameters, by collapsed coordinates."""
    x, w = np.polynomial.legendre.leggauss(n_nodes)
    x, w = 0.5 * (x + 1.0), 0.5 * w
    grids = np.meshgrid(*[x] * (n_parameters - 1), indexing="ij")
    weights = np.prod(np.meshgrid(*[w] * (n_parameters - 1), indexing="ij"), axis=0)
    parameters, rest = [], np.ones_like(grids[0])
    for depth, grid in enumerate(grids):
        parameters.append(rest * grid)
        weights = weights * rest if depth else weights
        rest = rest * (1.0 - grid)
    return [*parameters, rest], weights


def brute_triangle(p12: Any, p23: Any, p31: Any) -> Any:
    (x1, x2, x3), w = simplex(3)
    return -np.sum(w / (M2 - x1 * x2 * p12 - x2 * x3 * p23 - x3 * x1 * p31))


def brute_box(p12: Any, p23: Any, p34: Any, p41: Any, p13: Any, p24: Any) -> Any:
    (x1, x2, x3, x4), w = simplex(4)
    line = x1 * x2 * p12 + x2 * x3 * p23 + x3 * x4 * p34 + x4 * x1 * p41 + x1 * x3 * p13 + x2 * x4 * p24
    return np.sum(w / np.square(M2 - line))


@pytest.mark.parametrize(("m_hh", "cosine"), BELOW)
def test_triangles_and_boxes_match_feynman_parameters_below_threshold(m_hh: Any, cosine: Any) -> None:
    s, t = transfer(m_hh, cosine)
    u = 2 * H - s - t
    loops = integrals(m_hh, cosine)
    brute = {
        "c_ab": brute_triangle(0, 0, s),
        "c_cd": brute_triangle(H, H, s),
        "c_t": brute_triangle(0, H, t),
        "c_u": brute_triangle(0, H, u),
        "d_st": brute_box(0, 0, H, H, s, t),
        "d_su": brute_box(0, 0, H, H, s, u),
        "d_tu": brute_box(0, H, 0, H, t, u),
    }
    for name, expected in brute.items():
        value = complex(getattr(loops, name)[0])
        assert value.imag == 0.0, name
        assert value.real == pytest.approx(expected, rel=1e-8), name


@pytest.mark.parametrize(("m_hh", "cosine"), ABOVE)
def test_imaginary_parts_obey_the_unitarity_cut(m_hh: Any, cosine: Any) -> None:
    """2 Im of a loop is the phase-space integral of the two tree amplitudes on either side of its cut."""
    s, _ = transfer(m_hh, cosine)
    top, higgs = np.sqrt(1 - 4 * M2 / s), np.sqrt(1 - 4 * H / s)
    x, w = np.polynomial.legendre.leggauss(200)
    phi = np.pi * (np.arange(256) + 0.5) / 256
    loops = integrals(m_hh, cosine)
    massive = H - 0.5 * s * (1 - top * higgs * x)
    assert loops.c_cd[0].imag == pytest.approx(0.5 * np.pi * top * np.sum(w / massive), rel=1e-9)
    gluon = -0.5 * s * (1 - top * x)
    assert loops.c_ab[0].imag == pytest.approx(0.5 * np.pi * top * np.sum(w / gluon), rel=1e-9)
    for name, angle in (("d_st", cosine), ("d_su", -cosine)):
        between = angle * x[:, None] + np.sqrt(1 - angle**2) * np.sqrt(1 - x[:, None] ** 2) * np.cos(phi)
        higgs_line = H - 0.5 * s * (1 - top * higgs * between)
        cut = 0.5 * np.pi * top * np.sum(w * np.mean(1.0 / higgs_line, axis=1) / gluon)
        assert getattr(loops, name)[0].imag == pytest.approx(cut, rel=1e-7), name
    assert np.isrealobj(loops.d_tu)


def test_real_part_above_threshold_obeys_the_dispersion_relation() -> None:
    def imaginary(s: float) -> float:
        return float(integrals(np.sqrt(s), 0.0).c_cd[0].imag)

    s, start, far = 420.0**2, 4 * M2 * (1 + 1e-12), 4e6
    near = integrate.quad(imaginary, start, far, weight="cauchy", wvar=s, limit=200)[0]
    tail = integrate.quad(lambda v: imaginary(far / v) / (far / v - s) * far / v**2, 1e-3, 1)[0]
    rest = integrate.quad(lambda v: imaginary(far / v) / (far / v - s) * far / v**2, 1e-6, 1e-3)[0]
    assert (near + tail + rest) / np.pi == pytest.approx(integrals(420.0, 0.0).c_cd[0].real, rel=2e-5)


def test_boxes_do_not_jump_at_the_top_threshold() -> None:
    below, above = integrals(346.0 - 1e-6, 0.3), integrals(346.0 + 1e-6, 0.3)
    for name, left, right in zip(below._fields, below, above, strict=True):
        assert complex(left[0]) == pytest.approx(complex(right[0]), rel=3e-3), name


@given(
    q=st.floats(-1e6, 1e5),
    a=st.floats(1e3, 1e5),
    b=st.floats(1e3, 1e5),
)
def test_kernel_is_the_integral_below_its_threshold(q: float, a: float, b: float) -> None:
    if q > 0.98 * (np.sqrt(a) + np.sqrt(b)) ** 2:
        q = 0.5 * (np.sqrt(a) + np.sqrt(b)) ** 2
    expected = integrate.quad(
        lambda z: 1.0 / (z * a + (1 - z) * b - z * (1 - z) * q), 0, 1, epsabs=0, epsrel=1e-11, limit=200
    )
    value = two_point_kernel(np.array([q]), np.array([a]), np.array([b]))[0]
    assert value.imag == 0.0
    assert value.real == pytest.approx(expected[0], rel=1e-9)


@pytest.mark.parametrize("q", [2.5e5, 1e6])
def test_kernel_above_threshold_is_the_limit_of_a_complex_mass(q: float) -> None:
    a, b = 3e4, 2e4
    z = (np.arange(400_000) + 0.5) / 400_000
    line = z * a + (1 - z) * b - z * (1 - z) * q
    brute, half = (np.mean(1.0 / (line - 1j * eps * a)) for eps in (1e-3, 5e-4))
    assert two_point_kernel(np.array([q]), np.array([a]), np.array([b]))[0] == pytest.approx(
        2 * half - brute, rel=1e-4
    )


def test_zero_mass_triangle_is_continuous_and_vanishes_at_zero() -> None:
    assert abs(zero_mass_triangle(np.array([0.0]), M2)[0]) == 0.0
    near = zero_mass_triangle(4 * M2 * np.array([1 - 1e-12, 1.0, 1 + 1e-12]), M2)
    np.testing.assert_allclose(near, -0.5 * np.pi**2, rtol=1e-5, atol=1e-5)
    tiny = zero_mass_triangle(np.array([-1.0, 1.0]), M2)
    np.testing.assert_allclose(tiny, [0.5 / M2, -0.5 / M2], rtol=1e-4)


def test_heavy_loop_limits_of_the_integrals() -> None:
    s, t = transfer(400.0, 0.3)
    m2 = 1e10
    loops = scalar_integrals(np.array([s]), np.array([t]), m2, H)
    for name, values in loops._asdict().items():
        expected = -0.5 / m2 if name.startswith("c") else 1.0 / (6.0 * m2**2)
        assert complex(values[0]) == pytest.approx(expected, rel=1e-4), name
