"""Cross-sections against published numbers."""

from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import (
    PAPER_POINT,
    Couplings,
    Expansion,
    HardProcess,
    cross_section,
    load_parton_density,
)

FIXED = Couplings.from_smeft(13.5, 2.64, 12.6, 0.0387, 1000.0, alpha_s="fixed")
# G. Buchalla et al., arXiv:1806.05162, leading order at 14 TeV
HEFT = {
    "ct^4": 2.08059, "ctt^2": 10.2011, "ct^2 chhh^2": 0.27814, "cggh^2 chhh^2": 0.314043, "cgghh^2": 12.2731,
    "ctt ct^2": -8.49307, "ct^3 chhh": -1.35873, "ctt ct chhh": 2.80251, "ctt cggh chhh": 2.48018,
    "ctt cgghh": 14.6908, "ct^2 cggh chhh": -1.15916, "ct^2 cgghh": -5.51183, "ct chhh^2 cggh": 0.560503,
    "ct chhh cgghh": 2.47982, "cggh chhh cgghh": 2.89431,
}  # fmt: skip


def process(expansion: Expansion, couplings: Couplings = PAPER_POINT, ecm: float = 13000.0) -> HardProcess:
    return HardProcess(expansion, couplings, ecm, load_parton_density())


@pytest.mark.parametrize(("ecm", "expected"), [(13000.0, 16.57), (14000.0, 19.68)])
def test_standard_model_total(ecm: float, expected: float) -> None:
    assert cross_section("sm", ecm=ecm) == pytest.approx(expected, rel=0.01)


def test_mass_spectrum_peaks_between_380_and_400() -> None:
    m_hh = np.linspace(300.0, 600.0, 601)
    peak = m_hh[np.argmax(process("sm").mass_spectrum(m_hh))]
    assert 380.0 < peak < 400.0


def monomials(couplings: Couplings) -> list[Any]:
    values = {
        "ct": couplings.c_t, "ctt": couplings.c_tt, "chhh": couplings.c_hhh,
        "cggh": couplings.c_ggh, "cgghh": couplings.c_gghh,
    }  # fmt: skip
    powers = [[factor.partition("^") for factor in name.split()] for name in HEFT]
    return [np.prod([values[base] ** int(power or 1) for base, _, power in factors]) for factors in powers]


def test_fifteen_heft_coefficients() -> None:
    rng = np.random.default_rng(8)
    points = [
        Couplings(c_hhh=a, c_t=b, c_tt=c, c_ggh=d, c_gghh=e)
        for a, b, c, d, e in rng.uniform(-1.5, 1.5, (24, 5))
    ]
    sm = process("sm", ecm=14000.0).signed_total
    totals = [process("full", point, 14000.0).signed_total / sm for point in points]
    fitted, residual, rank, _ = np.linalg.lstsq(np.array([monomials(p) for p in points]), np.array(totals))
    assert rank == 15
    assert residual[0] < 1e-18  # there are no other terms
    np.testing.assert_allclose(fitted, list(HEFT.values()), rtol=0.01)


@pytest.mark.parametrize(
    ("couplings", "total", "crossing", "negative", "coefficient"),
    [(PAPER_POINT, 16.07, 368.0, 0.177, 1.273), (FIXED, 17.93, 361.0, 0.148, 1.210)],
)
def test_linear_target(
    couplings: Couplings, total: float, crossing: float, negative: float, coefficient: float
) -> None:
    linear = process("linear", couplings)
    assert linear.signed_total == pytest.approx(total, rel=0.01)
    assert linear.negative_fraction == pytest.approx(negative, abs=0.002)
    assert linear.mixture_coefficient == pytest.approx(coefficient, abs=0.004)
    m_hh = np.linspace(255.0, 700.0, 891)
    spectrum = linear.mass_spectrum(m_hh)
    signs = np.flatnonzero(np.diff(np.sign(spectrum)))
    assert len(signs) == 1
    assert m_hh[signs[0]] == pytest.approx(crossing, abs=2.0)


def test_linear_ratio_at_the_production_threshold() -> None:
    m_hh = np.linspace(250.5, 260.0, 40)
    ratio = process("linear").mass_spectrum(m_hh).sum() / process("sm").mass_spectrum(m_hh).sum()
    assert ratio == pytest.approx(-21.0, abs=1.0)


def test_absolute_spectrum_bounds_the_signed_one_and_differs_near_the_crossing() -> None:
    m_hh = np.linspace(366.0, 369.0, 301)
    signed = process("linear").mass_spectrum(m_hh)
    absolute = process("linear").mass_spectrum(m_hh, absolute=True)
    assert np.all(absolute >= np.abs(signed) * (1 - 1e-12))
    assert np.any(absolute > np.abs(signed) * 1.01)


def test_total_is_the_integral_of_the_spectrum() -> None:
    sm = process("sm")
    v = np.linspace(0.0, 1.0, 4001)
    m_hh = 250.0 + 3000.0 * v**2
    assert np.trapezoid(sm.mass_spectrum(m_hh) * 6000.0 * v, v) == pytest.approx(sm.signed_total, rel=1e-4)


@pytest.mark.parametrize("ecm", [-13000.0, 0.0, 240.0, 13e6, float("nan")])
def test_impossible_collider_energy_is_refused(ecm: float) -> None:
    with pytest.raises(InvalidInputError, match="collider energy"):
        process("sm", ecm=ecm)
