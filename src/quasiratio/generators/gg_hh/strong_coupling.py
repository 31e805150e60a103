r"""The strong coupling at two loops.

$$\frac{d a}{d \ln\mu^2} = -a^2 (b_0 + b_1 a), \qquad
b_0 = \frac{33 - 2 n_f}{12\pi}, \quad b_1 = \frac{153 - 19 n_f}{24\pi^2},$$

with five flavours at every scale, as in the parton densities used here. The solution is implicit,
$b_0 \ln(\mu^2/M_Z^2) = \Phi(a(\mu)) - \Phi(a(M_Z))$ with $\Phi(a) = 1/a + c \ln[c a/(1 + c a)]$, $c = b_1/b_0$,
and Newton's method solves it to rounding in a few steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ALPHA_S_MZ", "Z_MASS", "alpha_s"]

FloatArray = npt.NDArray[np.float64]

ALPHA_S_MZ = 0.118
Z_MASS = 91.1876
_N_FLAVOURS = 5
_B0 = (33 - 2 * _N_FLAVOURS) / (12 * np.pi)
_B1 = (153 - 19 * _N_FLAVOURS) / (24 * np.pi**2)
_C = _B1 / _B0


def alpha_s(scale: npt.ArrayLike, *, at_z_mass: float = ALPHA_S_MZ) -> FloatArray:
    """Return the two-loop strong coupling at `scale` in GeV, fixed by its value at the Z mass.

    Example:
        >>> float(alpha_s(91.1876).round(6))
        0.118
    """
    evolution = 2.0 * _B0 * np.log(np.asarray(scale, dtype=np.float64) / Z_MASS)
    wanted = _implicit(np.float64(at_z_mass)) + evolution
    coupling: FloatArray = at_z_mass / (1.0 + at_z_mass * evolution)  # one loop, the starting point
    for _ in range(5):
        slope = -1.0 / np.square(coupling) + _C / (coupling * (1.0 + _C * coupling))
        coupling = coupling - (_implicit(coupling) - wanted) / slope
    return coupling


def _implicit(coupling: FloatArray | np.float64) -> FloatArray:
    result: FloatArray = 1.0 / coupling + _C * np.log(_C * coupling / (1.0 + _C * coupling))
    return result
