r"""One-loop scalar integrals of gg -> hh with one mass $m$ on every internal line.

The two-point kernel that is left after two Feynman parameters are done by hand,

$$K(q; a, b) = \int_0^1 \frac{dz}{z a + (1-z) b - z(1-z) q - i0},$$

is elementary. The triangle with two massive legs and all boxes are one more integral over it, along a
path in $q$ and $b$ that is at most quadratic in $y$, so that Gauss nodes replace dilogarithms:

$$D_0 = \int_0^1 dy\, \frac{K(A; m^2, M^2) - K(B; m^2, M^2)}{A - B}.$$

Above the normal threshold $K(A)$ diverges like an inverse square root at a known $y_0$. The interval is
cut there, and every piece is mapped by $v^4$ towards the end where its integrand varies fast (the
threshold, or the ends that become steep when $s \gg m^2$); the mapped integrands are smooth. A loop mass
far above the energy makes the difference of kernels cancel; there the boxes are integrated directly over
three Feynman parameters.

Conventions: $C_0 \to -1/(2m^2)$ and $D_0 \to 1/(6m^4)$ for a heavy loop; $h$ is the squared Higgs mass,
$h < 4m^2$, and the point is physical: $s \ge 4h$, $t < 0$, $u < 0$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["ScalarIntegrals", "scalar_integrals", "two_point_kernel", "zero_mass_triangle"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

_POWER = 4
_LEGENDRE_X, _LEGENDRE_W = np.polynomial.legendre.leggauss(32)
_V = 0.5 * (_LEGENDRE_X + 1.0)
_STEP = _V**_POWER  # relative distance from the end towards which the nodes cluster
_STEP_WEIGHT = 0.5 * _LEGENDRE_W * _POWER * _V ** (_POWER - 1)
_FEW_X, _FEW_W = np.polynomial.legendre.leggauss(8)
_FEW_X, _FEW_W = 0.5 * (_FEW_X + 1.0), 0.5 * _FEW_W
_HEAVY = 0.2  # s / m^2 below which the divided difference of the kernel would cancel


class ScalarIntegrals(NamedTuple):
    """Triangles and boxes at phase-space points; `a, b` are the gluons and `c, d` the Higgs bosons."""

    c_ab: ComplexArray
    c_cd: ComplexArray
    c_t: FloatArray
    c_u: FloatArray
    d_st: ComplexArray
    d_su: ComplexArray
    d_tu: FloatArray


class _Path(NamedTuple):
    """Nodes `y` of shape `(points, nodes)`, their weights, and the distance of each to a special point."""

    y: FloatArray
    weights: FloatArray
    distance: FloatArray


def two_point_kernel(
    q: FloatArray, a: FloatArray, b: FloatArray, lam: FloatArray | None = None
) -> ComplexArray:
    r"""Return $K(q; a, b) = \int_0^1 dz\,[z a + (1-z) b - z(1-z) q - i0]^{-1}$.

    Args:
        q: Virtuality, of either sign.
        a: First squared mass, positive.
        b: Second squared mass, positive.
        lam: The Kallen function $(a+b-q)^2 - 4ab$ where the caller knows it better than this formula,
            which cancels at the threshold.
    """
    if lam is None:
        lam = _kallen(q, a, b)
    p = a + b - q
    kernel = _kernel_off_threshold(p, lam, a * b).astype(np.complex128)
    beyond = (lam > 0) & (p < 0)
    kernel.imag[beyond] = 2.0 * np.pi / np.sqrt(lam[beyond])
    return kernel


def _kallen(q: FloatArray, a: FloatArray | float, b: FloatArray) -> FloatArray:
    return q * (q - 2.0 * (a + b)) + np.square(a - b)


def _kernel_off_threshold(p: FloatArray, lam: FloatArray, product: FloatArray) -> FloatArray:
    """Real part of the kernel; a series bridges the removable zero of the Kallen function at `p > 0`."""
    root = np.sqrt(np.abs(lam)) + 1e-300
    logarithm = 2.0 * np.copysign(np.log((np.abs(p) + root) / (2.0 * np.sqrt(product))), p)
    kernel: FloatArray = np.where(lam < 0, 2.0 * np.arctan2(root, p), logarithm) / root
    small = (np.abs(lam) < 1e-2 * p * p) & (p > 0)
    if small.any():
        z = lam[small] / np.square(p[small])
        series = np.zeros_like(z)
        for order in range(15, 0, -2):
            series = series * z + 1.0 / order
        kernel[small] = 2.0 * series / p[small]
    return kernel


def zero_mass_triangle(s: FloatArray, m2: float) -> ComplexArray:
    r"""Return $g(s) = s\,C_0(0, 0, s)$ for either sign of $s$."""
    s = np.asarray(s, dtype=np.float64)
    result = np.zeros(s.shape, dtype=np.complex128)
    ratio = s / (4.0 * m2)
    below, space_like, above = (s >= 0) & (ratio < 1), s < 0, ratio >= 1
    result[below] = -2.0 * np.square(np.arcsin(np.sqrt(ratio[below])))
    result[space_like] = 2.0 * np.square(np.arcsinh(np.sqrt(-ratio[space_like])))
    velocity = np.sqrt(1.0 - 1.0 / ratio[above])
    rapidity = 2.0 * np.log(np.sqrt(ratio[above]) * (1.0 + velocity))  # ln[(1 + b)/(1 - b)]
    result[above] = 0.5 * np.square(rapidity - 1j * np.pi)
    return result


def scalar_integrals(s: FloatArray, t: FloatArray, m2: float, h: float) -> ScalarIntegrals:
    """Return every scalar integral of gg -> hh at physical points.

    Args:
        s: Squared partonic energies, one-dimensional.
        t: Squared momentum transfers, one-dimensional.
        m2: Squared mass in the loop.
        h: Squared Higgs mass, below `4 * m2`.
    """
    u = 2.0 * h - s - t
    c_cd, d_st, d_su = _adjacent_gluons(s, t, u, m2, h)
    d_tu = _opposite_gluons(s, t, u, m2, h)
    heavy = s < _HEAVY * m2
    if heavy.any():
        y = _FEW_X
        a, shift = (1.0 - y) * s[heavy, None] + y * y * h, y * (1.0 - y) * h
        for box, transfer in ((d_st, t[heavy, None]), (d_su, u[heavy, None])):
            box[heavy] = _heavy_box(a, y * transfer - shift, m2 - shift, m2)
        a, b = (1.0 - y) * t[heavy, None] + y * h, (1.0 - y) * h + y * u[heavy, None]
        d_tu[heavy] = _heavy_box(a, b, np.full_like(y, m2), m2)
    on_shell = zero_mass_triangle(np.array([h]), m2).real
    return ScalarIntegrals(
        c_ab=zero_mass_triangle(s, m2) / s,
        c_cd=c_cd,
        c_t=(zero_mass_triangle(t, m2).real - on_shell) / (t - h),
        c_u=(zero_mass_triangle(u, m2).real - on_shell) / (u - h),
        d_st=d_st,
        d_su=d_su,
        d_tu=d_tu,
    )


def _adjacent_gluons(
    s: FloatArray, t: FloatArray, u: FloatArray, m2: float, h: float
) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    r"""Return $C_0(h, h, s)$, $D_0(s, t)$ and $D_0(s, u)$, which share the kernel that has the threshold.

    $A = (1-y) s + y^2 h$, $B = y t - y(1-y) h$, $M^2 = m^2 - y(1-y) h$. The Kallen function of $A$ is a
    quadratic in $y$; written in the distance to its root it does not cancel at the threshold.
    """
    s, t, u = s[:, None], t[:, None], u[:, None]
    quadratic = np.square(s - h) - 4.0 * m2 * h
    linear = 2.0 * (2.0 * m2 - s) * (s - h) + 4.0 * m2 * h
    constant = s * (s - 4.0 * m2)
    open_channel = constant > 0
    discriminant = np.maximum(np.square(linear) - 4.0 * quadratic * constant, 0.0)
    threshold = np.where(open_channel, 2.0 * constant / (np.sqrt(discriminant) - linear), 0.0)
    path = _path_through(threshold)
    kallen = path.distance * (quadratic * path.distance + 2.0 * quadratic * threshold + linear)
    kallen += np.where(open_channel, 0.0, constant)

    y, shift = path.y, path.y * (1.0 - path.y) * h
    mass2 = m2 - shift
    a = (1.0 - y) * s + y * y * h
    kernel_a = two_point_kernel(a, np.full_like(a, m2), mass2, kallen)
    triangle = -(np.log1p(-shift / m2) + (a + shift) * kernel_a) / (2.0 * a)
    boxes = []
    for transfer in (t, u):
        b = y * transfer - shift
        kernel_b = _kernel_off_threshold(m2 + mass2 - b, _kallen(b, m2, mass2), m2 * mass2)
        boxes.append((kernel_a - kernel_b) / ((1.0 - y) * s + y * (h - transfer)))
    c_cd, d_st, d_su = (np.sum(path.weights * f, axis=1) for f in (triangle, *boxes))
    return c_cd, d_st, d_su


def _opposite_gluons(s: FloatArray, t: FloatArray, u: FloatArray, m2: float, h: float) -> FloatArray:
    r"""Return $D_0(t, u)$: $A = (1-y) t + y h$, $B = (1-y) h + y u$, so that $A - B = s(y - (h-t)/s)$."""
    s, t, u = s[:, None], t[:, None], u[:, None]
    path = _path_through((h - t) / s)
    y = path.y
    kernel_a, kernel_b = (
        _kernel_off_threshold(2.0 * m2 - q, q * (q - 4.0 * m2), np.full_like(q, m2 * m2))
        for q in ((1.0 - y) * t + y * h, (1.0 - y) * h + y * u)
    )
    result: FloatArray = np.sum(path.weights * (kernel_a - kernel_b) / (s * path.distance), axis=1)
    return result


def _heavy_box(a: FloatArray, b: FloatArray, mass2: FloatArray, m2: float) -> FloatArray:
    r"""Return $\int dy\,dx\,dz\; z(1-z) [z m^2 + (1-z) M^2 - z(1-z)(B + x(A-B))]^{-2}$ far below threshold."""
    z, zz = _FEW_X, _FEW_X * (1.0 - _FEW_X)
    q = b[..., None] + _FEW_X * (a - b)[..., None]
    line = z * m2 + (1.0 - z) * mass2[:, None]
    integrand = zz / np.square(line[:, None, :] - zz * q[..., None])
    result: FloatArray = np.einsum("nyxz,y,x,z->n", integrand, _FEW_W, _FEW_W, _FEW_W, optimize=True)
    return result


def _path_through(point: FloatArray) -> _Path:
    """Cut [0, 1] at `point` and at the middles of both pieces; cluster at 0, at the point and at 1."""
    below, above = 0.5 * point, 0.5 * (1.0 - point)
    distances = (below * _STEP - point, -below * _STEP, above * _STEP, (1.0 - point) - above * _STEP)
    y = np.concatenate((below * _STEP, point - below * _STEP, point + above * _STEP, 1.0 - above * _STEP), 1)
    weights = np.concatenate([width * _STEP_WEIGHT for width in (below, below, above, above)], 1)
    return _Path(y, weights, np.concatenate(distances, 1))
