r"""Cross-sections of pp -> hh by quadrature.

$$\frac{d\sigma}{dm\,dy\,d\cos\theta} = \frac{2m}{E^2}\, g(x_1) g(x_2)\, \frac{s\beta}{2}\, \frac{d\hat\sigma}{dt},
\qquad \frac{d\hat\sigma}{dt} = \frac{G_F^2 \alpha_s^2}{512 (2\pi)^3} \left(|A|^2 + |G|^2\right),$$

with $s = m^2$, $x_{1,2} = (m/E) e^{\pm y}$, $\beta = \sqrt{1 - 4m_h^2/s}$, collider energy $E$ and all scales at
$m/2$. The factor for two identical bosons is in $d\hat\sigma/dt$, and $\cos\theta$ runs over its full range.
Given $m$, the rapidity and the angle are independent; the quadrature and the sampler both rely on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.amplitudes import (
    Expansion,
    FormFactors,
    require_expansion,
    squared_amplitude,
)
from quasiratio.generators.gg_hh.couplings import FERMI_CONSTANT, PAPER_POINT, Couplings
from quasiratio.generators.gg_hh.form_factor_table import FormFactorTable, form_factor_table
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS, TOP_MASS
from quasiratio.generators.gg_hh.parton_density import PartonDensity, load_parton_density
from quasiratio.generators.gg_hh.strong_coupling import alpha_s

__all__ = ["HardProcess", "cross_section"]

FloatArray = npt.NDArray[np.float64]

FEMTOBARN_GEV2 = 0.3893793721e12  # (hbar c)^2
_LEGENDRE_X, _LEGENDRE_W = np.polynomial.legendre.leggauss(64)
_HALF_COS, _HALF_COS_WEIGHT = 0.5 * (_LEGENDRE_X + 1.0), 0.5 * _LEGENDRE_W
_RAPIDITY, _RAPIDITY_WEIGHT = _HALF_COS, _HALF_COS_WEIGHT
_MASS_NODE, _MASS_WEIGHT = np.polynomial.legendre.leggauss(16)
_MAX_ECM = 200_000.0


@dataclass(frozen=True, eq=False)
class HardProcess:
    """gg -> hh in one expansion, at one collider energy, with one parton density.

    Attributes:
        expansion: `"sm"`, `"linear"`, `"quadratic"` or `"full"`; see `squared_amplitude`.
        couplings: Couplings of the target.
        ecm: Collider energy in GeV.
        density: Parton density of the proton.
    """

    expansion: Expansion
    couplings: Couplings
    ecm: float
    density: PartonDensity

    def __post_init__(self) -> None:
        require_expansion(self.expansion)
        if not 2.0 * HIGGS_MASS < self.ecm <= _MAX_ECM:
            msg = (
                f"Got the collider energy {self.ecm} GeV; expected more than {2 * HIGGS_MASS:.0f} and at most "
                f"{_MAX_ECM:.0f} GeV. Give it in GeV, as in ecm=13000.0."
            )
            raise InvalidInputError(msg)

    @property
    def table(self) -> FormFactorTable:
        """The form factors over the reachable masses."""
        return form_factor_table(float(self.ecm))

    def form_factors(self, m_hh: FloatArray, cos_theta: FloatArray) -> FormFactors:
        """Return the tabulated form factors."""
        return self.table(m_hh, cos_theta)

    def squared(self, m_hh: FloatArray, factors: FormFactors) -> FloatArray:
        """Return the squared amplitude of this expansion, of either sign."""
        return squared_amplitude(self.expansion, m_hh, factors, self.couplings)

    def angular(self, m_hh: FloatArray) -> FloatArray:
        """Return the squared amplitude at the quadrature nodes in cos(theta) > 0, one row per mass."""
        m_grid, cos_grid = (np.ascontiguousarray(a) for a in np.broadcast_arrays(m_hh[:, None], _HALF_COS))
        return self.squared(m_grid, self.form_factors(m_grid, cos_grid))

    def gluon_pair(self, m_hh: FloatArray, rapidity: FloatArray) -> FloatArray:
        r"""Return $x_1 g(x_1)\, x_2 g(x_2)$ at the scale $m/2$."""
        root = m_hh / self.ecm
        x1, x2 = root * np.exp(rapidity), root * np.exp(-rapidity)
        scale = 0.5 * m_hh
        return self.density.gluon(x1, scale) * self.density.gluon(x2, scale)

    def luminosity(self, m_hh: FloatArray) -> FloatArray:
        r"""Return $\int dy\, x_1 g(x_1)\, x_2 g(x_2)$, by Gauss nodes in $0 < y < \ln(E/m)$."""
        edge = np.log(self.ecm / m_hh)
        pair = self.gluon_pair(np.repeat(m_hh[:, None], _RAPIDITY.size, 1), edge[:, None] * _RAPIDITY)
        result: FloatArray = 2.0 * edge * (pair @ _RAPIDITY_WEIGHT)
        return result

    def mass_spectrum(self, m_hh: npt.ArrayLike, *, absolute: bool = False) -> FloatArray:
        r"""Return $d\sigma/dm_{hh}$ in fb/GeV.

        Args:
            m_hh: Invariant masses in GeV, between twice the Higgs mass and the collider energy.
            absolute: Integrate the absolute value over the angle, as an unweighted sample populates it.
        """
        masses = np.atleast_1d(np.asarray(m_hh, dtype=np.float64))
        squared = self.angular(masses)
        return self.mass_density(masses, np.abs(squared) if absolute else squared)

    def mass_density(self, m_hh: FloatArray, squared: FloatArray) -> FloatArray:
        r"""Return $d\sigma/dm_{hh}$ in fb/GeV from squared amplitudes at the nodes of `angular`."""
        velocity = np.sqrt(np.maximum(1.0 - 4.0 * HIGGS_MASS**2 / np.square(m_hh), 0.0))
        partonic = FERMI_CONSTANT**2 * np.square(alpha_s(0.5 * m_hh)) / (512.0 * (2.0 * np.pi) ** 3)
        # (2m/E^2) g g (s beta/2) with g = (x g)/x and x1 x2 = s/E^2 leaves m beta (x1 g)(x2 g)
        kinematic = FEMTOBARN_GEV2 * m_hh * velocity * self.luminosity(m_hh)
        result: FloatArray = kinematic * partonic * 2.0 * (squared @ _HALF_COS_WEIGHT)
        return result

    def total(self, *, absolute: bool = False) -> float:
        """Return the cross-section in fb, signed or of the absolute value."""
        nodes, weights = _mass_quadrature(self.ecm)
        return float(np.sum(weights * self.mass_spectrum(nodes, absolute=absolute)))

    @cached_property
    def signed_total(self) -> float:
        """Cross-section in fb."""
        return self.total()

    @cached_property
    def absolute_total(self) -> float:
        """Cross-section of the absolute value in fb."""
        return self.total(absolute=True)

    @property
    def negative_fraction(self) -> float:
        """Fraction of negative events in an unweighted sample."""
        return 0.5 * (1.0 - self.signed_total / self.absolute_total)

    @property
    def mixture_coefficient(self) -> float:
        r"""$c = \sigma_+/(\sigma_+ + \sigma_-)$ with the negative part $\sigma_- < 0$; at least one."""
        return 0.5 * (1.0 + self.absolute_total / self.signed_total)


def cross_section(
    expansion: Expansion,
    *,
    couplings: Couplings = PAPER_POINT,
    ecm: float = 13000.0,
    pdf: str | None = None,
) -> float:
    """Return the leading-order cross-section of pp -> hh in fb.

    Args:
        expansion: `"sm"`, `"linear"`, `"quadratic"` or `"full"`; see `squared_amplitude`.
        couplings: Couplings; unused for `"sm"`.
        ecm: Collider energy in GeV.
        pdf: LHAPDF grid text file; the one inside pythia8mc when left out.
    """
    return HardProcess(expansion, couplings, ecm, load_parton_density(pdf)).signed_total


def _mass_quadrature(ecm: float) -> tuple[FloatArray, FloatArray]:
    """Composite Gauss nodes: square-root spacing at the hh threshold, cosh spacing above the top threshold."""
    top = min(2.0 * TOP_MASS, ecm)
    low_edges = np.linspace(0.0, np.sqrt(top - 2.0 * HIGGS_MASS), 9)
    v, dv = _panels(low_edges)
    nodes, weights = [2.0 * HIGGS_MASS + v * v], [2.0 * v * dv]
    if ecm > top:
        r, dr = _panels(np.linspace(0.0, np.arccosh(ecm * (1.0 - 1e-6) / top), 25))
        nodes.append(top * np.cosh(r))
        weights.append(top * np.sinh(r) * dr)
    return np.concatenate(nodes), np.concatenate(weights)


def _panels(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * _MASS_NODE).ravel(), (half * _MASS_WEIGHT).ravel()
