r"""Densities with a hidden variable whose marginal ratios are known in closed form.

A hidden $z \sim N(0, 1)$ is seen as $x = z + \sigma\,\varepsilon$, beside a feature that is pure noise. Given $x$ the hidden variable
is Gaussian again, with mean $m = x/(1+\sigma^2)$ and variance $v = \sigma^2/(1+\sigma^2)$, so that the conditional means of
polynomials and exponentials of $z$ are elementary. They are what a network must learn from the joint ratios of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.basis import PolynomialBasis
from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample

__all__ = ["LatentAmplitudeCase", "LatentExponentialCase", "MinedSample"]

FloatArray = npt.NDArray[np.float64]


class MinedSample(NamedTuple):
    """Reference events with what a generator knows of each.

    Attributes:
        features: `(n, 2)` what is seen.
        mined: `(n, n_terms)` joint coefficients, or `(n,)` joint ratios, of the hidden event.
        weights: `(n,)` weights of the reference.
    """

    features: FloatArray
    mined: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class LatentAmplitudeCase:
    r"""A squared amplitude, quadratic in two parameters, of a hidden variable.

    $$d\sigma(z \mid a, b) = N(z; 0, 1)\, s(z)\, \bigl(1 + a\,g_a(z) + b\,g_b(z)\bigr)^2, \qquad g_a = 0.6\,z,\quad
    g_b = 0.5\,(z^2 - 1).$$

    Its coefficient functions have both signs, and the density is physical at all $(a, b)$. With `negative` above zero the
    weights of the reference are signed, $s(z) = E[\operatorname{sign} w \mid z] = 1 - \beta\,e^{-z^2/2}$.

    Args:
        smearing: $\sigma$, the resolution.
        negative: $\beta$, twice the share of negative weights at $z = 0$.
        linear: Keep the terms of first order only, a density of either sign.

    Example:
        >>> case = LatentAmplitudeCase()
        >>> case.basis.terms
        ('1', 'a', 'b', 'a^2', 'a*b', 'b^2')
        >>> case.exact_coefficients([[0.0, 0.0]]).round(3).tolist()
        [[1.0, 0.0, -0.671, 0.118, 0.0, 0.167]]
    """

    smearing: float = 0.7
    negative: float = 0.0
    linear: bool = False

    @property
    def basis(self) -> PolynomialBasis:
        """The parameters `a` and `b`, at first or second order."""
        return PolynomialBasis(["a", "b"], order=1 if self.linear else 2)

    @property
    def _polynomials(self) -> list[FloatArray]:
        """Coefficient functions as polynomials of the hidden variable, lowest power first."""
        one, g_a, g_b = np.array([1.0]), np.array([0.0, 0.6]), np.array([-0.5, 0.0, 0.5])
        first = [one, 2.0 * g_a, 2.0 * g_b]
        if self.linear:
            return first
        products = [np.convolve(g_a, g_a), 2.0 * np.convolve(g_a, g_b), np.convolve(g_b, g_b)]
        return [*first, *products]

    def sample(self, n: int, rng: np.random.Generator) -> MinedSample:
        """Draw reference events."""
        hidden = rng.normal(size=n)
        features = np.column_stack([hidden + self.smearing * rng.normal(size=n), rng.normal(size=n)])
        mined = np.column_stack([np.polyval(p[::-1], hidden) for p in self._polynomials]).astype(np.float64)
        asymmetry = 1.0 - self.negative * np.exp(-0.5 * hidden**2)
        weights = np.where(rng.random(n) < 0.5 * (1.0 + asymmetry), 1.0, -1.0)
        return MinedSample(features, mined, weights)

    def exact_coefficients(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $\rho_k(x) = E[c_k\,s \mid x] / E[s \mid x]$ at the `(n, 2)` points, `(n, n_terms)`."""
        mean, variance = _posterior(X, self.smearing)
        numerators = np.column_stack([_polynomial_mean(p, mean, variance) for p in self._polynomials])
        if not self.negative:
            return numerators
        # a Gaussian times exp(-z^2/2) is a Gaussian
        share = self.negative * np.exp(-0.5 * mean**2 / (1.0 + variance)) / np.sqrt(1.0 + variance)
        inner_mean, inner_variance = mean / (1.0 + variance), variance / (1.0 + variance)
        inner = np.column_stack([_polynomial_mean(p, inner_mean, inner_variance) for p in self._polynomials])
        result: FloatArray = (numerators - share[:, None] * inner) / (1.0 - share)[:, None]
        return result


@dataclass(frozen=True)
class LatentExponentialCase:
    r"""A signed joint ratio with heavy tails.

    $$r(z) = \sum_j a_j\, e^{\kappa_j z - \kappa_j^2/2}, \qquad \sum_j a_j = 1,$$

    is the ratio of $\sum_j a_j N(z; \kappa_j, 1)$, of either sign, to $N(z; 0, 1)$. With $\kappa = 2$ joint ratios reach
    thousands in a hundred thousand events.

    Args:
        amplitudes: $a_j$, which sum to one.
        slopes: $\kappa_j$.
        smearing: $\sigma$, the resolution.

    Example:
        >>> case = LatentExponentialCase()
        >>> case.exact_ratio([[0.0, 0.0]]).round(4).tolist()
        [0.0344]
    """

    amplitudes: Sequence[float] = (1.5, -0.5)
    slopes: Sequence[float] = (2.0, -1.0)
    smearing: float = 0.7

    def __post_init__(self) -> None:
        if len(self.amplitudes) != len(self.slopes) or abs(sum(self.amplitudes) - 1.0) > 1e-9:
            msg = f"Got the amplitudes {self.amplitudes} of {len(self.slopes)} slopes; expected one each, with the sum one."
            raise InvalidInputError(msg)

    def sample(self, n: int, rng: np.random.Generator) -> MinedSample:
        """Draw reference events with their joint ratios."""
        hidden = rng.normal(size=n)
        features = np.column_stack([hidden + self.smearing * rng.normal(size=n), rng.normal(size=n)])
        return MinedSample(features, self._ratio(hidden, np.zeros(n)), np.ones(n))

    def target_sample(self, n: int, rng: np.random.Generator) -> WeightedSample:
        """Draw signed events of the numerator, as a fit of two samples needs them."""
        shares = np.abs(self.amplitudes) / np.abs(self.amplitudes).sum()
        component = rng.choice(len(shares), size=n, p=shares)
        hidden = np.asarray(self.slopes)[component] + rng.normal(size=n)
        features = np.column_stack([hidden + self.smearing * rng.normal(size=n), rng.normal(size=n)])
        return WeightedSample(features, np.sign(self.amplitudes)[component])

    def exact_ratio(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $E[r(z) \mid x]$ at the `(n, 2)` points."""
        mean, variance = _posterior(X, self.smearing)
        return self._ratio(mean, np.full_like(mean, variance))

    def _ratio(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean of the joint ratio over a Gaussian hidden variable."""
        terms = [
            amplitude * np.exp(slope * mean + 0.5 * slope**2 * (variance - 1.0))
            for amplitude, slope in zip(self.amplitudes, self.slopes, strict=True)
        ]
        return np.asarray(np.sum(terms, axis=0), dtype=np.float64)


def _posterior(X: npt.ArrayLike, smearing: float) -> tuple[FloatArray, float]:
    """Return the mean of the hidden variable at each point, and its variance."""
    seen = np.asarray(X, dtype=np.float64)
    if seen.ndim != 2 or seen.shape[1] != 2:
        msg = f"Got points of the shape {seen.shape}; expected (n, 2)."
        raise InvalidInputError(msg)
    return seen[:, 0] / (1.0 + smearing**2), smearing**2 / (1.0 + smearing**2)


def _polynomial_mean(polynomial: FloatArray, mean: FloatArray, variance: float) -> FloatArray:
    """Return the mean of a polynomial over Gaussians, by the recursion of their moments."""
    moments = [np.ones_like(mean), mean]
    for power in range(2, len(polynomial)):
        moments.append(mean * moments[-1] + (power - 1) * variance * moments[-2])
    total: FloatArray = np.sum([c * m for c, m in zip(polynomial, moments, strict=False)], axis=0)
    return total
