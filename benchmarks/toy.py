"""The signed-Gaussian toys at the published sizes, and how a ratio is judged on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.distributions import SignedGaussianCase, signed_gaussian_case
from quasiratio.metrics import chi_squared, radial_edges, tsallis_relative_entropy
from quasiratio.sample import WeightedSample

FloatArray = npt.NDArray[np.float64]
Labelled = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], FloatArray]

PUBLISHED_SIZES = (2_000_000, 600_000, 1_400_000)


@dataclass(frozen=True)
class ToyData:
    """Training and validation events of both classes, and the two test samples."""

    case: SignedGaussianCase
    training: Labelled
    validation: Labelled
    reference: WeightedSample
    target: WeightedSample

    def judge(self, ratio: FloatArray) -> dict[str, float]:
        """Return radial chi2/ndof (also relative to the exact ratio's), D_S2 and the rms error."""
        exact = self.case.exact_ratio(self.reference.features)
        chi2, entropy = self._radial(ratio)
        exact_chi2, exact_entropy = self._radial(exact)
        squares = (ratio - exact) ** 2
        square = np.average(squares, weights=self.reference.weights)
        if square < 0:  # with signed weights it can fluctuate below zero; this one cannot
            square = np.average(squares, weights=np.abs(self.reference.weights))
        error = np.sqrt(square)
        return {
            "chi2": chi2,
            "exact_chi2": exact_chi2,
            "chi2_to_exact": chi2 / exact_chi2,
            "entropy": entropy,
            "exact_entropy": exact_entropy,
            "rms": float(error),
        }

    def _radial(self, ratio: FloatArray) -> tuple[float, float]:
        radii = [np.hypot(*sample.features.T.astype(float)) for sample in (self.reference, self.target)]
        options: dict[str, Any] = {
            "reweighted_weights": self.reference.weights * ratio,
            "target_weights": self.target.weights,
            "edges": radial_edges(*radii),
        }
        return chi_squared(*radii, **options).value, tsallis_relative_entropy(*radii, **options).value


def toy_data(case_name: str, seed: int, sizes: tuple[int, int, int] = PUBLISHED_SIZES) -> ToyData:
    """Draw the samples of one case; `sizes` are per class: training, validation, test."""
    case, rng = signed_gaussian_case(case_name), np.random.default_rng(seed)
    training, validation = (_labelled(*case.samples(n, rng)) for n in sizes[:2])
    return ToyData(case, training, validation, *case.test_samples(sizes[2], rng))


def _labelled(reference: WeightedSample, target: WeightedSample) -> Labelled:
    return (
        np.concatenate([reference.features, target.features]),
        np.repeat([0, 1], [len(reference), len(target)]),
        np.concatenate([reference.weights, target.weights]),
    )
