r"""Squared amplitudes of gg -> hh: Standard Model, interference with dimension six, and its square.

With $x = 3 m_h^2/(s - m_h^2)$, the spin-0 and spin-2 amplitudes are

$$A = c_t^2 F_\Box + x\,c_{hhh}(c_t F_\triangle + c_{ggh}) + 2 c_{tt} F_\triangle + 2 c_{gghh}, \qquad
G = c_t^2 G_\Box.$$

To first order in the departures $d_t = c_t - 1$, $d_{hhh} = c_{hhh} - 1$, $c_{tt}$, $c_{ggh}$, $c_{gghh}$
from the Standard Model $(A_0, G_0)$ they change by

$$A_6 = x[(d_t + d_{hhh}) F_\triangle + c_{ggh}] + 2 c_{tt} F_\triangle + 2 c_{gghh} + 2 d_t F_\Box, \qquad
G_6 = 2 d_t G_\Box.$$

The interference $2\,\mathrm{Re}(A_0^* A_6 + G_0^* G_6)$ has either sign, and so has the linear sample.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.couplings import Couplings
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS
from quasiratio.generators.gg_hh.strong_coupling import alpha_s

__all__ = ["Expansion", "FormFactors", "require_expansion", "squared_amplitude"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

Expansion = Literal["sm", "linear", "quadratic", "full"]


class FormFactors(NamedTuple):
    """The three form factors at phase-space points."""

    triangle: ComplexArray
    box: ComplexArray
    spin_two: ComplexArray


def require_expansion(expansion: str, allowed: tuple[str, ...] = get_args(Expansion)) -> None:
    """Raise unless the name is one of `allowed`."""
    if expansion not in allowed:
        msg = (
            f"Got the sample {expansion!r}; expected one of {', '.join(allowed)}. Choose one of these names."
        )
        raise InvalidInputError(msg)


def squared_amplitude(
    expansion: Expansion,
    m_hh: FloatArray,
    factors: FormFactors,
    couplings: Couplings,
    mh: float = HIGGS_MASS,
) -> FloatArray:
    r"""Return $|A|^2 + |G|^2$ in the chosen expansion.

    * `"sm"`: $|A_0|^2 + |G_0|^2$
    * `"linear"`: the former $+\,2\,\mathrm{Re}(A_0^* A_6 + G_0^* G_6)$, of either sign
    * `"quadratic"`: $|A_0 + A_6|^2 + |G_0 + G_6|^2$
    * `"full"`: $|A|^2 + |G|^2$ with every power of the couplings (HEFT)

    Args:
        expansion: Which terms to keep.
        m_hh: Invariant masses of the pair in GeV; half of them is the scale of a running contact coupling.
        factors: Form factors at the same points.
        couplings: Couplings; unused for `"sm"`.
        mh: Higgs mass in GeV.
    """
    require_expansion(expansion)
    propagator = 3.0 * mh * mh / (np.square(m_hh) - mh * mh)
    a_sm = factors.box + propagator * factors.triangle
    if expansion == "sm":
        return _modulus2(a_sm) + _modulus2(factors.spin_two)
    contact = couplings.contact_scale(alpha_s(0.5 * m_hh))
    c_ggh, c_gghh = couplings.c_ggh * contact, couplings.c_gghh * contact
    local = 2.0 * couplings.c_tt * factors.triangle + 2.0 * c_gghh
    if expansion == "full":
        one_higgs = couplings.c_hhh * (couplings.c_t * factors.triangle + c_ggh)
        a_full = couplings.c_t**2 * factors.box + propagator * one_higgs + local
        return _modulus2(a_full) + _modulus2(couplings.c_t**2 * factors.spin_two)
    d_t, d_hhh = couplings.c_t - 1.0, couplings.c_hhh - 1.0
    a_six = propagator * ((d_t + d_hhh) * factors.triangle + c_ggh) + local + 2.0 * d_t * factors.box
    g_six = 2.0 * d_t * factors.spin_two
    if expansion == "quadratic":
        return _modulus2(a_sm + a_six) + _modulus2(factors.spin_two + g_six)
    interference = 2.0 * (a_sm.conj() * a_six + factors.spin_two.conj() * g_six).real
    return _modulus2(a_sm) + _modulus2(factors.spin_two) + interference


def _modulus2(z: ComplexArray) -> FloatArray:
    result: FloatArray = np.square(z.real) + np.square(z.imag)
    return result
