r"""Couplings of the Higgs boson in gg -> hh, and what the SMEFT makes of them.

The chiral (HEFT) Lagrangian of G. Buchalla et al., arXiv:1806.05162, has five of them: the
self-coupling $c_{hhh}$, the top Yukawa coupling $c_t$, the top-top-h-h coupling $c_{tt}$ and the contact
couplings of one and two Higgs bosons to two gluons, $c_{ggh}$ and $c_{gghh}$. The Standard Model is
$(1, 1, 0, 0, 0)$.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS, TOP_MASS
from quasiratio.generators.gg_hh.strong_coupling import ALPHA_S_MZ

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "FERMI_CONSTANT",
    "PAPER_POINT",
    "PAPER_WILSON_COEFFICIENTS",
    "STANDARD_MODEL",
    "VACUUM_EXPECTATION_VALUE",
    "Couplings",
]

FloatArray = npt.NDArray[np.float64]

FERMI_CONSTANT = 1.1663787e-5  # GeV^-2
VACUUM_EXPECTATION_VALUE = float((np.sqrt(2.0) * FERMI_CONSTANT) ** -0.5)


@dataclass(frozen=True, kw_only=True)
class Couplings:
    r"""Couplings of gg -> hh in HEFT; the default is the Standard Model.

    Attributes:
        c_hhh: Higgs self-coupling relative to the Standard Model.
        c_t: Top Yukawa coupling relative to the Standard Model.
        c_tt: Coupling of two top quarks to two Higgs bosons.
        c_ggh: Contact coupling of two gluons to one Higgs boson.
        c_gghh: Contact coupling of two gluons to two Higgs bosons.
        contact_alpha_s: What the contact couplings are normalised to. `"fixed"`: they are the numbers
            given. `"running"`: the numbers given hold at $\alpha_s = 0.118$ and the couplings in the
            amplitude are larger by $0.118/\alpha_s(m_{hh}/2)$, because the SMEFT operator, which does not
            carry a factor of $\alpha_s$, is what stays constant.
    """

    c_hhh: float = 1.0
    c_t: float = 1.0
    c_tt: float = 0.0
    c_ggh: float = 0.0
    c_gghh: float = 0.0
    contact_alpha_s: Literal["running", "fixed"] = "fixed"

    def __post_init__(self) -> None:
        values = (self.c_hhh, self.c_t, self.c_tt, self.c_ggh, self.c_gghh)
        if not np.all(np.isfinite(values)):
            msg = (
                f"Got the couplings {values}; expected finite numbers. Replace the infinite or missing ones."
            )
            raise InvalidInputError(msg)
        if self.contact_alpha_s not in ("running", "fixed"):
            msg = (
                f"Got contact_alpha_s = {self.contact_alpha_s!r}; expected 'running' or 'fixed'. "
                "Use 'running' for SMEFT coefficients and 'fixed' for HEFT couplings."
            )
            raise InvalidInputError(msg)

    @classmethod
    def from_smeft(
        cls,
        C_Hkin: float = 0.0,
        C_H: float = 0.0,
        C_uH: float = 0.0,
        C_HG: float = 0.0,
        Lambda: float = 1000.0,
        *,
        alpha_s: Literal["running", "fixed"] = "running",
        mt: float = TOP_MASS,
        mh: float = HIGGS_MASS,
    ) -> Self:
        r"""Translate Warsaw-basis coefficients, to first order in $1/\Lambda^2$.

        $$c_{hhh} = 1 - \frac{2 v^4 C_H}{m_h^2 \Lambda^2} + \frac{3 v^2 C_{Hkin}}{\Lambda^2}, \quad
        c_t = 1 + \frac{v^2 C_{Hkin}}{\Lambda^2} - \frac{v^3 C_{uH}}{\sqrt2 m_t \Lambda^2},$$
        $$c_{tt} = \frac{v^2 C_{Hkin}}{\Lambda^2} - \frac{3 v^3 C_{uH}}{2\sqrt2 m_t \Lambda^2}, \quad
        c_{ggh} = 2 c_{gghh} = \frac{8\pi v^2 C_{HG}}{\alpha_s \Lambda^2}.$$

        Args:
            C_Hkin: Coefficient of the kinetic operators, $C_{H\Box} - C_{HD}/4$.
            C_H: Coefficient of the sixth power of the Higgs doublet.
            C_uH: Coefficient of the top-Higgs operator.
            C_HG: Coefficient of the gluon-Higgs operator.
            Lambda: New-physics scale in GeV.
            alpha_s: Which strong coupling enters the contact couplings: `"running"`, taken at half the
                invariant mass of each event, or `"fixed"`, 0.118.
            mt: Top mass in GeV.
            mh: Higgs mass in GeV.

        Example:
            >>> point = Couplings.from_smeft(C_Hkin=13.5, C_H=2.64, C_uH=12.6, C_HG=0.0387, Lambda=1000.0)
            >>> round(point.c_hhh, 3), round(point.c_t, 3), round(point.c_tt, 3)
            (2.213, 1.05, -0.335)
        """
        v = VACUUM_EXPECTATION_VALUE
        if not Lambda > v:
            msg = (
                f"Got Lambda = {Lambda}; expected a scale in GeV above the electroweak {v:.1f} GeV. "
                "Write 1 TeV as Lambda=1000.0."
            )
            raise InvalidInputError(msg)
        kinetic = v**2 * C_Hkin / Lambda**2
        yukawa = v**3 * C_uH / (np.sqrt(2.0) * mt * Lambda**2)
        contact = 8.0 * np.pi * v**2 * C_HG / (ALPHA_S_MZ * Lambda**2)
        return cls(
            c_hhh=float(1.0 - 2.0 * v**4 * C_H / (mh**2 * Lambda**2) + 3.0 * kinetic),
            c_t=float(1.0 + kinetic - yukawa),
            c_tt=float(kinetic - 1.5 * yukawa),
            c_ggh=float(contact),
            c_gghh=float(0.5 * contact),
            contact_alpha_s=alpha_s,
        )

    def contact_scale(self, coupling: FloatArray) -> FloatArray:
        """Return the factor on both contact couplings where the strong coupling is `coupling`."""
        if self.contact_alpha_s == "fixed":
            return np.ones_like(coupling)
        return ALPHA_S_MZ / coupling

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for metadata."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


STANDARD_MODEL = Couplings()
PAPER_WILSON_COEFFICIENTS: dict[str, Any] = {
    "C_Hkin": 13.5,
    "C_H": 2.64,
    "C_uH": 12.6,
    "C_HG": 0.0387,
    "Lambda": 1000.0,
}
PAPER_POINT = Couplings.from_smeft(**PAPER_WILSON_COEFFICIENTS)
