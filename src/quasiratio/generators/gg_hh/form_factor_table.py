r"""A spline table of the form factors, for samples of millions of events.

The form factors have a square-root branch point at $m_{hh} = 2 m_t$. In the angle $\varphi$ below it,
$m_{hh} = 2 m_t \cos\varphi$, and in the rapidity $\eta$ above it, $m_{hh} = 2 m_t \cosh\eta$, they are smooth: equal
steps in these variables are dense around the threshold and logarithmic far above it. The second
variable is the scattering angle, in which the forward peak of high energies stays resolved. $G_\Box$,
which vanishes like $p_T^2$, is stored as $G_\Box/p_T^2$.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RectBivariateSpline

from quasiratio.generators.gg_hh.amplitudes import FormFactors
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS, TOP_MASS, form_factors, triangle_form_factor

__all__ = ["FormFactorTable", "form_factor_table"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

_STEP = 0.025  # in the angle below and in the rapidity above the top threshold
_N_ANGLES = 51
_SMALLEST_P = 1e-3  # T U - rho^2 below which the ratio G/pT^2 has lost too many digits


class FormFactorTable:
    """Form factors at any point with $2 m_h < m_{hh} <$ `max_mass`; squared amplitudes to about 1e-5.

    Args:
        max_mass: Largest invariant mass in GeV.
        mt: Top mass in GeV.
        mh: Higgs mass in GeV.
    """

    def __init__(self, max_mass: float, mt: float = TOP_MASS, mh: float = HIGGS_MASS) -> None:
        self._mt, self._mh = mt, mh
        angle = np.arccos(min(1.0, mh / mt))
        rapidity = np.arccosh(max(1.0 + _STEP, max_mass / (2.0 * mt)))
        self._below = self._splines(np.linspace(0.0, angle, _n_nodes(angle)), above=False)
        self._above = self._splines(np.linspace(0.0, rapidity, _n_nodes(rapidity)), above=True)

    def __call__(self, m_hh: FloatArray, cos_theta: FloatArray) -> FormFactors:
        """Return the form factors at invariant masses and scattering angles of the same shape."""
        ratio = m_hh / (2.0 * self._mt)
        theta = np.arccos(np.minimum(np.abs(cos_theta), 1.0))
        values = np.zeros((4, *m_hh.shape))
        above = ratio >= 1.0
        for chosen, splines, inverse in ((~above, self._below, np.arccos), (above, self._above, np.arccosh)):
            if chosen.any():
                variable, angle = inverse(ratio[chosen]), theta[chosen]
                for part, spline in zip(values, splines, strict=True):
                    if spline is not None:
                        part[chosen] = spline.ev(variable, angle)
        momentum2 = 0.25 * np.square(m_hh) - self._mh**2
        pt2 = np.maximum(momentum2, 0.0) * (1.0 - np.square(cos_theta))
        box, spin_two = values[0] + 1j * values[1], (values[2] + 1j * values[3]) * pt2
        return FormFactors(triangle_form_factor(np.square(m_hh), self._mt), box, spin_two)

    def _splines(self, variable: FloatArray, *, above: bool) -> tuple[RectBivariateSpline | None, ...]:
        """Return the splines of Re F, Im F, Re G/pT^2 and Im G/pT^2; no imaginary parts below threshold."""
        m_hh = 2.0 * self._mt * (np.cosh(variable) if above else np.cos(variable))
        theta = np.linspace(0.0, 0.5 * np.pi, _N_ANGLES)
        m_grid, theta_grid = np.meshgrid(np.maximum(m_hh, 2.0 * self._mh), theta, indexing="ij")
        box, spin_two = self._nodes(m_grid, theta_grid)
        parts = (box.real, box.imag, spin_two.real, spin_two.imag)
        return tuple(
            None if i % 2 and not above else RectBivariateSpline(variable, theta, part)
            for i, part in enumerate(parts)
        )

    def _nodes(self, m_hh: FloatArray, theta: FloatArray) -> tuple[ComplexArray, ComplexArray]:
        """Return F and G/pT^2; where pT is too small for the latter it is taken at the smallest safe pT."""
        h = self._mh**2
        s = np.square(m_hh)
        _, box, _ = form_factors(s, _transfer(s, np.sin(theta), h), self._mt, self._mh)
        safe_s = np.maximum(s, 4.0 * h / (1.0 - 0.05**2))
        momentum2 = 0.25 * safe_s - h
        smallest = _SMALLEST_P * self._mt**4 / safe_s
        pt2 = np.minimum(np.maximum(momentum2 * np.square(np.sin(theta)), smallest), momentum2)
        transfer = _transfer(safe_s, np.sqrt(pt2 / momentum2), h)
        _, _, spin_two = form_factors(safe_s, transfer, self._mt, self._mh)
        return box, spin_two / pt2


def _transfer(s: FloatArray, sine: FloatArray, h: float) -> FloatArray:
    r"""Return $t = m_h^2 - s(1 - \beta\cos\theta)/2$ in the forward hemisphere."""
    velocity = np.sqrt(np.maximum(1.0 - 4.0 * h / s, 0.0))
    cosine = np.sqrt(np.maximum(1.0 - np.square(sine), 0.0))
    result: FloatArray = h - 0.5 * s * (1.0 - velocity * cosine)
    return result


def _n_nodes(length: float) -> int:
    return max(8, int(np.ceil(length / _STEP)) + 1)


@lru_cache(maxsize=4)
def form_factor_table(max_mass: float) -> FormFactorTable:
    """Return the table for the default masses, built once per process in under two seconds."""
    return FormFactorTable(max_mass)
