"""Problems with a known ratio on which a default must hold: signed jets, six correlated dimensions, the Signed toy; and mined coefficients with tails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.basis import PolynomialBasis
from quasiratio.distributions import signed_gaussian_case, signed_jets_case
from quasiratio.sample import WeightedSample

FloatArray = npt.NDArray[np.float64]
N_TEST = 200_000
_TEST_SEED = 12345


@dataclass(frozen=True)
class Problem:
    """Samples, their exact ratio, and what errors are measured against: `r* - 1` (what there is to learn) or `r*`.

    Where the reference density vanishes the exact ratio has poles, and no error of it is finite. `asymmetry`, that of
    the reference, is given then, and everything is said of its product with the ratio, the target density over that of
    absolute weights, which is finite. The pole of an estimate stands beside the exact one, where no mean of squares is finite
    either: there the error is that of medians.
    """

    name: str
    samples: Callable[[int, np.random.Generator], tuple[WeightedSample, WeightedSample]]
    exact_ratio: Callable[[npt.ArrayLike], FloatArray]
    against_one: bool
    asymmetry: Callable[[npt.ArrayLike], FloatArray] | None = None

    def test_reference(self) -> WeightedSample:
        """Fresh reference events, the same for every seed of the training."""
        return self.samples(N_TEST, np.random.default_rng(_TEST_SEED))[0]

    def judge(self, ratio: FloatArray, reference: WeightedSample) -> dict[str, float]:
        """Return the relative rms error, weighted by |w|, the effective size over the exact one, and the reach.

        The ratio is first scaled to a mean of one over these events, so that a common factor, which no method here
        promises, does not count; not where it has poles and no such mean.
        """
        exact, w = self.exact_ratio(reference.features), reference.weights
        scale = exact - 1.0 if self.against_one else exact
        if self.asymmetry is None:
            ratio = ratio * (w.sum() / (w @ ratio))
            errors = [np.sqrt(np.average(np.square(x), weights=np.abs(w))) for x in (ratio - exact, scale)]
        else:
            asymmetry, w = self.asymmetry(reference.features), np.abs(w)
            ratio, exact, scale = (asymmetry * values for values in (ratio, exact, scale))
            errors = [np.median(np.abs(x)) for x in (ratio - exact, scale)]
        sizes = [(w @ r) ** 2 / np.sum(np.square(w * r)) for r in (ratio, exact)]
        return {
            "error": float(errors[0] / errors[1]),
            "effective": float(sizes[0] / sizes[1]),
            "lowest": float(ratio.min()),
            "highest": float(ratio.max()),
            "exact_highest": float(np.abs(exact).max()),
        }


class SixDimensions:
    """Two signed mixtures of correlated Gaussians in six dimensions; the target's density is slightly negative."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.root = np.tril(0.4 * rng.normal(size=(6, 6)), -1) + np.eye(6)
        self.shift = np.array([0.3, -0.3, 0.2, 0.0, 0.0, 0.2])
        self.reference = (1.2, np.zeros(6), 1.0, 0.8)
        self.target = (1.5, self.shift, 0.95, 0.75)

    def _density(self, x: FloatArray, c: float, mean: FloatArray, wide: float, narrow: float) -> FloatArray:
        squares = np.square(np.linalg.solve(self.root, (x - mean).T)).sum(axis=0)
        parts = [np.exp(-0.5 * squares / s**2) / s**6 for s in (wide, narrow)]
        return np.asarray(c * parts[0] + (1.0 - c) * parts[1])

    def exact_ratio(self, x: npt.ArrayLike) -> FloatArray:
        points = np.asarray(x, dtype=np.float64)
        return self._density(points, *self.target) / self._density(points, *self.reference)

    def _sample(
        self, n: int, rng: np.random.Generator, c: float, mean: FloatArray, wide: float, narrow: float
    ) -> WeightedSample:
        positive = rng.random(n) < c / (2 * c - 1)
        x = mean + (rng.normal(size=(n, 6)) @ self.root.T) * np.where(positive, wide, narrow)[:, None]
        return WeightedSample(x, np.where(positive, 1.0, -1.0))

    def samples(self, n: int, rng: np.random.Generator) -> tuple[WeightedSample, WeightedSample]:
        return self._sample(n, rng, *self.reference), self._sample(n, rng, *self.target)


def problem(name: str) -> Problem:
    """Return a problem by name.

    `jets equal`, `jets different`, `jets negative-target`, `jets negative-reference`, `six`, `signed` or `nonnegative`.
    """
    if name.startswith("jets negative-"):
        jets = signed_jets_case(name.removeprefix("jets "))
        asymmetry = jets.reference.sign_asymmetry if name.endswith("reference") else None
        return Problem(name, jets.samples, jets.exact_ratio, against_one=True, asymmetry=asymmetry)
    if name.startswith("jets "):
        jets = signed_jets_case(f"{name.removeprefix('jets ')}-shares")
        return Problem(name, jets.samples, jets.exact_ratio, against_one=True)
    if name == "six":
        six = SixDimensions()
        return Problem(name, six.samples, six.exact_ratio, against_one=False)
    case = signed_gaussian_case(name)
    return Problem(name, case.samples, case.exact_ratio, against_one=False)


class TailCase:
    """A squared amplitude (1 + a g)^2 with g = exp(z - 1/2) of a hidden z, seen with a resolution: c reaches thousands."""

    basis = PolynomialBasis(["a"])
    smearing = 0.7

    def sample(self, n_events: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw features and coefficients."""
        z = rng.normal(size=n_events)
        g = np.exp(z - 0.5)
        X = np.column_stack([z + self.smearing * rng.normal(size=n_events), rng.normal(size=n_events)])
        return X, np.column_stack([np.ones(n_events), 2 * g, g**2])

    def exact(self, X: FloatArray) -> FloatArray:
        """Return the coefficient functions, means of exponentials over a Gaussian."""
        mean, variance = X[:, 0] / (1 + self.smearing**2), self.smearing**2 / (1 + self.smearing**2)
        g = np.exp(mean + 0.5 * (variance - 1))
        return np.column_stack([np.ones(len(X)), 2 * g, np.exp(2 * mean + 2 * variance - 1)])
