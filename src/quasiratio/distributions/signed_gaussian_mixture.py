r"""The signed mixture of two Gaussians in the plane.

$$q(x, y) = c\,\mathcal{N}(0, \sigma_1^2 I) + (1 - c)\,\mathcal{N}(0, \sigma_2^2 I), \qquad c \ge 1.$$

The second component is subtracted, so that $q$ integrates to one but may be negative. Everything depends
on the radius alone. With $t = r^2/2$, $\alpha = 1/\sigma_1^2$ and $\beta = 1/\sigma_2^2$ the survival
function is $S = c\,e^{-\alpha t} - (c-1)\,e^{-\beta t}$ and the planar density $-S'(t)/2\pi$.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample

__all__ = ["SignedGaussianMixture"]

FloatArray = npt.NDArray[np.float64]

_N_TABLE = 4096
_MAX_NEWTON_STEPS = 64


@dataclass(frozen=True)
class SignedGaussianMixture:
    r"""$q = c\,\mathcal{N}(0, \sigma_1^2 I) + (1-c)\,\mathcal{N}(0, \sigma_2^2 I)$ in the plane.

    Args:
        c: The mixture coefficient, at least one; `c = 1` is the ordinary Gaussian of width `sigma_1`.
        sigma_1: Width of the component that is added.
        sigma_2: Width of the component that is subtracted.

    Example:
        >>> import numpy as np
        >>> q = SignedGaussianMixture(c=2.0, sigma_1=2.0, sigma_2=1.2)
        >>> q.is_nonnegative
        False
        >>> np.round(q.density([[0.0, 0.0], [3.0, 0.0]]), 4).tolist()
        [-0.0309, 0.021]
        >>> q.sample(1000, np.random.default_rng(1)).names
        ('x', 'y')
    """

    c: float
    sigma_1: float
    sigma_2: float

    def __post_init__(self) -> None:
        for name, minimum, reason in (
            ("c", 1.0, "at least one"),
            ("sigma_1", np.nextafter(0.0, 1.0), "positive"),
            ("sigma_2", np.nextafter(0.0, 1.0), "positive"),
        ):
            value = getattr(self, name)
            if not (isinstance(value, Real) and np.isfinite(float(value)) and float(value) >= minimum):
                msg = f"Got {name} = {value!r}; expected a finite number, {reason}."
                raise InvalidInputError(msg)

    @property
    def is_nonnegative(self) -> bool:
        r"""Whether $q \ge 0$ everywhere: $\sigma_1 \ge \sigma_2$ and $c/\sigma_1^2 \ge (c-1)/\sigma_2^2$."""
        if self.c == 1:
            return True
        return self.sigma_1 >= self.sigma_2 and self.c * self.sigma_2**2 >= (self.c - 1) * self.sigma_1**2

    def density(self, X: npt.ArrayLike) -> FloatArray:
        """Return the signed density at the `(n, 2)` points `X`."""
        rate, factor = self._rate_and_factor(_half_squared_radius(X))
        return np.asarray(np.exp(-rate) * factor)

    def density_ratio(self, denominator: SignedGaussianMixture, X: npt.ArrayLike) -> FloatArray:
        """Return this density divided by `denominator`, exact also where both underflow.

        Example:
            >>> wide, narrow = SignedGaussianMixture(1.0, 2.0, 1.0), SignedGaussianMixture(1.0, 1.0, 1.0)
            >>> float(wide.density_ratio(narrow, [[0.0, 0.0]])[0])
            0.25
        """
        t = _half_squared_radius(X)
        rate, factor = self._rate_and_factor(t)
        denominator_rate, denominator_factor = denominator._rate_and_factor(t)
        return np.asarray(np.exp(denominator_rate - rate) * (factor / denominator_factor))

    def _rate_and_factor(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Write the density as `exp(-rate) * factor`, with a factor that does not underflow."""
        alpha, beta = self.sigma_1**-2, self.sigma_2**-2
        slowest = alpha if self.c == 1 else min(alpha, beta)
        factor = self.c * alpha * np.exp(-t * (alpha - slowest))
        if self.c > 1:  # an absent component is left out, not multiplied by zero
            factor = factor - (self.c - 1) * beta * np.exp(-t * (beta - slowest))
        return t * slowest, factor / (2 * np.pi)

    def radial_density(self, r: npt.ArrayLike) -> FloatArray:
        r"""Return $dF/dr = 2\pi r\,q(r)$; zero for negative radii."""
        radius = np.maximum(np.asarray(r, dtype=np.float64), 0.0)
        rate, factor = self._rate_and_factor(radius**2 / 2)
        return np.asarray(2 * np.pi * radius * np.exp(-rate) * factor)

    def radial_cdf(self, r: npt.ArrayLike) -> FloatArray:
        r"""Return $F(r) = 1 - c\,e^{-r^2/2\sigma_1^2} + (c-1)\,e^{-r^2/2\sigma_2^2}$; not monotonic if signed."""
        t = np.maximum(np.asarray(r, dtype=np.float64), 0.0) ** 2 / 2
        return np.asarray(
            -self.c * np.expm1(-t / self.sigma_1**2) + (self.c - 1) * np.expm1(-t / self.sigma_2**2)
        )

    def radial_quantile(self, u: npt.ArrayLike) -> FloatArray:
        r"""Return the radius with $F(r) = u$; only where the density is nonnegative.

        The cumulative hazard $h(t) = -\log S$ is convex and increasing for a nonnegative density, so
        Newton's steps for $h(t) = -\log(1-u)$, begun from a table, converge from above.

        Example:
            >>> ordinary = SignedGaussianMixture(c=1.0, sigma_1=2.0, sigma_2=1.0)
            >>> round(float(ordinary.radial_quantile(0.5)), 6)  # 2 sqrt(2 log 2)
            2.35482
        """
        self._require_nonnegative("The radial quantile")
        probability = np.asarray(u, dtype=np.float64)
        if not np.all((probability >= 0) & (probability <= 1)):
            msg = "Got probabilities outside [0, 1] or NaN; expected the values of a distribution function."
            raise InvalidInputError(msg)
        radius = np.where(probability == 1, np.inf, 0.0)
        inside = (probability > 0) & (probability < 1)
        radius[inside] = np.sqrt(2 * self._invert_hazard(-np.log1p(-probability[inside])))
        return radius

    def _hazard(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Return $h(t) = \alpha t - \log(c - (c-1) e^{-(\beta-\alpha) t})$ and its derivative."""
        alpha, gap = self.sigma_1**-2, self.sigma_2**-2 - self.sigma_1**-2
        if self.c == 1:
            return alpha * t, np.full_like(t, alpha)
        loss = np.expm1(-gap * t)
        rest = 1 - (self.c - 1) * loss
        return alpha * t - np.log1p(-(self.c - 1) * loss), alpha - (self.c - 1) * gap * (1 + loss) / rest

    def _invert_hazard(self, level: FloatArray) -> FloatArray:
        """Solve `h(t) = level` for positive levels."""
        if level.size == 0:
            return level
        furthest = (level.max() + np.log(self.c)) * self.sigma_1**2  # h(t) >= alpha t - log c
        table = furthest * np.linspace(0.0, 1.0, _N_TABLE) ** 2  # uniform in the radius
        t: FloatArray = np.interp(level, self._hazard(table)[0], table)
        for _ in range(_MAX_NEWTON_STEPS):
            value, slope = self._hazard(t)
            step = (value - level) / np.maximum(slope, np.finfo(float).tiny)
            t -= np.minimum(step, t / 2)  # the solution is positive: never step onto zero
            if np.all(np.abs(step) <= 1e-10 * t):  # convergence is quadratic: this step was the last needed
                break
        return t

    def sample(self, n: int, rng: np.random.Generator) -> WeightedSample:
        r"""Draw `n` events with weights $\pm 1$, positive with probability $c/(2c-1)$."""
        positive = rng.random(_require_count(n)) < self.c / (2 * self.c - 1)
        points = rng.standard_normal((n, 2))
        points *= np.where(positive, self.sigma_1, self.sigma_2)[:, None]
        return WeightedSample(points, np.where(positive, 1.0, -1.0), ("x", "y"))

    def sample_unweighted(self, n: int, rng: np.random.Generator) -> WeightedSample:
        """Draw `n` events of weight one by inverting the radial cdf; refuses a signed density."""
        self._require_nonnegative("Unweighted sampling")
        radius = self.radial_quantile(rng.random(_require_count(n)))
        angle = rng.uniform(0.0, 2 * np.pi, n)
        return WeightedSample(
            np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), None, ("x", "y")
        )

    def _require_nonnegative(self, what: str) -> None:
        if not self.is_nonnegative:
            msg = (
                f"{what} needs a nonnegative density, and {self} is negative for some radii, where no event "
                "of positive weight could be. Use sample(n, rng), whose weights carry the signs, or choose "
                "sigma_1 >= sigma_2 with c/sigma_1**2 >= (c-1)/sigma_2**2."
            )
            raise InvalidInputError(msg)


def _half_squared_radius(X: npt.ArrayLike) -> FloatArray:
    """Return $(x^2 + y^2)/2$ of `(n, 2)` points."""
    points = np.asarray(X)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
        msg = f"Got points of shape {points.shape} and type {points.dtype}; expected numbers of shape (n, 2)."
        raise InvalidInputError(msg)
    points = points.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", points, points) / 2)


def _require_count(n: object) -> int:
    """Return the number of events asked for, or raise."""
    if not isinstance(n, int | np.integer) or n < 0:
        msg = f"Got n = {n!r}; expected the number of events to draw, a nonnegative integer."
        raise InvalidInputError(msg)
    return int(n)
