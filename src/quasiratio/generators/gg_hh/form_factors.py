r"""Form factors of gg -> hh at one loop with the full top-mass dependence.

The triangle (one Higgs boson that splits into two) has one form factor, the box two: equal gluon
helicities ($F$, spin 0) and opposite ones ($G$, spin 2). Formulae of T. Plehn, M. Spira and P. Zerwas,
Nucl. Phys. B 479 (1996) 46, hep-ph/9603205, with everything in units of the top mass:
$S, T, U = s, t, u / m_t^2$, $\rho = m_h^2/m_t^2$, $T_1 = T - \rho$, $U_1 = U - \rho$,
$P = TU - \rho^2 = S\,p_T^2/m_t^2$, $C \to m_t^2 C$, $D \to m_t^4 D$, $\Sigma D = D_{st} + D_{su} + D_{tu}$.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.loop_integrals import scalar_integrals, zero_mass_triangle

__all__ = ["HIGGS_MASS", "TOP_MASS", "form_factors", "triangle_form_factor"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

TOP_MASS = 173.0
HIGGS_MASS = 125.0
_POINTS_AT_ONCE = 1024
_SMALLEST_PT2 = 1e-4  # in units of s: below it G is continued linearly in pT^2


def form_factors(
    s: npt.ArrayLike, t: npt.ArrayLike, mt: float = TOP_MASS, mh: float = HIGGS_MASS
) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    r"""Return the form factors $F_\triangle$, $F_\Box$, $G_\Box$ at physical points.

    $$F_\triangle = \frac{2}{S}\left[2 + (4-S) C_{ab}\right]$$
    $$F_\Box = \frac{1}{S^2}\left\{4S + 8S C_{ab} - 2S(S + 2\rho - 8)\,\Sigma D
        + (2\rho - 8)\left[2T_1 C_t + 2U_1 C_u - P D_{tu}\right]\right\}$$
    $$G_\Box = \frac{1}{SP}\left\{(T^2 + \rho^2 - 8T)\left[S C_{ab} + 2T_1 C_t - S T D_{st}\right]
        + (t \leftrightarrow u) - (T^2 + U^2 - 2\rho^2)(T + U - 8) C_{cd}
        - 2(T + U - 8) P\,\Sigma D\right\}$$

    A heavy top gives $F_\triangle \to 2/3$, $F_\Box \to -2/3$, $G_\Box \to 0$.

    Args:
        s: Squared partonic energies in GeV^2, at least `4 * mh**2`.
        t: Squared momentum transfers in GeV^2, in the physical range; broadcast against `s`.
        mt: Top mass in GeV.
        mh: Higgs mass in GeV, below `2 * mt`.

    Example:
        >>> f_tri, f_box, g_box = form_factors(400.0**2, -64375.0)
        >>> abs(complex(f_tri).real) > 0.5
        True
    """
    if not 0.0 < mh < 2.0 * mt:
        msg = f"Got mt = {mt} and mh = {mh}; expected positive masses with mh < 2 mt. Change one of them."
        raise InvalidInputError(msg)
    s_all, t_all = np.broadcast_arrays(np.asarray(s, dtype=np.float64), np.asarray(t, dtype=np.float64))
    shape = s_all.shape
    s_flat, t_flat = s_all.ravel(), t_all.ravel()
    _require_physical(s_flat, t_flat, mh * mh)
    results = np.empty((3, s_flat.size), dtype=np.complex128)
    for start in range(0, s_flat.size, _POINTS_AT_ONCE):
        part = slice(start, start + _POINTS_AT_ONCE)
        results[:, part] = _form_factors(s_flat[part], t_flat[part], mt * mt, mh * mh)
    f_tri, f_box, g_box = (result.reshape(shape) for result in results)
    return f_tri, f_box, g_box


def triangle_form_factor(s: npt.ArrayLike, mt: float = TOP_MASS) -> ComplexArray:
    r"""Return $F_\triangle = 2[2 + (4-S) C_{ab}]/S$, which depends on $s > 0$ alone."""
    scaled = np.asarray(s, dtype=np.float64) / (mt * mt)
    result: ComplexArray = 2.0 / scaled * (2.0 + (4.0 - scaled) * zero_mass_triangle(scaled, 1.0) / scaled)
    return result


def _require_physical(s: FloatArray, t: FloatArray, h: float) -> None:
    """Refuse points outside gg -> hh; a relative 1e-9 is left for rounding at the edges."""
    excess = t * (2.0 * h - s - t) - h * h  # = s pT^2
    bad = ~((s >= 4.0 * h * (1.0 - 1e-9)) & (excess >= -1e-9 * s * s) & (t < 0))
    if bad.any():
        first = int(np.argmax(bad))
        msg = (
            f"Got s = {s[first]:.6g} GeV^2 and t = {t[first]:.6g} GeV^2; expected s >= 4 mh^2 and "
            "t u >= mh^4 with t, u < 0. Compute t = mh^2 - s (1 - beta cos(theta))/2."
        )
        raise InvalidInputError(msg)


def _form_factors(s: FloatArray, t: FloatArray, m2: float, h: float) -> tuple[ComplexArray, ...]:
    """Evaluate in units of the top mass; points at vanishing pT borrow G/pT^2 from a point nearby."""
    pt2 = (t * (2.0 * h - s - t) - h * h) / s
    velocity2 = np.maximum(1.0 - 4.0 * h / s, 0.0)
    nudged_pt2 = np.maximum(pt2, np.minimum(_SMALLEST_PT2 * s, 0.125 * s * velocity2))
    nudged_t = h - 0.5 * s * (1.0 - np.sqrt(np.maximum(velocity2 - 4.0 * nudged_pt2 / s, 0.0)))
    forward = (pt2 < nudged_pt2) | (pt2 <= 0)
    f_tri, f_box, g_box = _scaled(s / m2, t / m2, h / m2)
    g_box[forward] = 0.0
    forward &= pt2 > 0
    if forward.any():
        borrowed = _scaled(s[forward] / m2, nudged_t[forward] / m2, h / m2)[2]
        g_box[forward] = borrowed * pt2[forward] / nudged_pt2[forward]
    return f_tri, f_box, g_box


def _scaled(s: FloatArray, t: FloatArray, rho: float) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    u = 2.0 * rho - s - t
    loops = scalar_integrals(s, t, 1.0, rho)
    p = t * u - rho * rho
    t_triangle, u_triangle = 2.0 * (t - rho) * loops.c_t, 2.0 * (u - rho) * loops.c_u
    s_triangle = s * loops.c_ab
    box_sum = loops.d_st + loops.d_su + loops.d_tu
    f_tri = 2.0 / s * (2.0 + (4.0 - s) * loops.c_ab)
    f_box = (
        4.0 * s
        + 8.0 * s_triangle
        - 2.0 * s * (s + 2.0 * rho - 8.0) * box_sum
        + (2.0 * rho - 8.0) * (t_triangle + u_triangle - p * loops.d_tu)
    ) / (s * s)
    numerator = (
        (t * t + rho * rho - 8.0 * t) * (s_triangle + t_triangle - s * t * loops.d_st)
        + (u * u + rho * rho - 8.0 * u) * (s_triangle + u_triangle - s * u * loops.d_su)
        - (t * t + u * u - 2.0 * rho * rho) * (t + u - 8.0) * loops.c_cd
        - 2.0 * (t + u - 8.0) * p * box_sum
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # replaced by the caller where pT vanishes
        g_box = numerator / (s * p)
    return f_tri, f_box, g_box
