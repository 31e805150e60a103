r"""Closure of the sub-ratios: each part of the reference, reweighted to each part of the target.

$r_{ab}$ turns the density of the reference events of sign $a$ into that of the target events of sign $b$; all
weights are absolute. On the toys the parts are Gaussians, so that the exact sub-ratios are known as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quasiratio.distributions import SignedGaussianMixture
from quasiratio.sample import WeightedSample
from quasiratio.studies.output.finite_ratios import finite_ratios
from quasiratio.studies.signed_gaussians.toy_events import ToyEvents, closure_of, stored_methods

__all__ = ["SIGNS", "pair_name", "sub_density_closures"]

SIGNS = {1: "+", -1: "-"}


def pair_name(pair: tuple[int, int]) -> str:
    """Return the signs of a sub-ratio as text, that of the reference part first.

    Example:
        >>> pair_name((1, -1))
        '+-'
    """
    return "".join(SIGNS[sign] for sign in pair)


def sub_density_closures(estimator: Any, events: ToyEvents) -> dict[str, Any]:  # noqa: ANN401 - a fitted RoSMM
    """Return stored histograms by pair, then by target, reference, `sub-ratio` and `exact`, then by observable.

    Args:
        estimator: A fitted `SignedMixtureRatio`.
        events: The events of its fit.
    """
    reference, target = events.signed_test_samples()
    learned = estimator.predict_sub_ratios(reference.features)
    stored = {}
    for pair in learned:
        of_reference = _part(reference, pair[0])
        of_target = _part(target, pair[1])
        chosen = _is_of_sign(reference, pair[0])
        ratios = {
            "sub-ratio": finite_ratios(learned[pair][chosen]).ratio,
            "exact": _component(events.case.target, pair[1]).density_ratio(
                _component(events.case.reference, pair[0]), of_reference.features
            ),
        }
        stored[pair_name(pair)] = stored_methods(closure_of(of_reference, ratios, of_target))
    return stored


def _part(sample: WeightedSample, sign: int) -> WeightedSample:
    chosen = _is_of_sign(sample, sign)
    return WeightedSample(sample.features[chosen], np.abs(sample.weights[chosen]), sample.names)


def _is_of_sign(sample: WeightedSample, sign: int) -> np.typing.NDArray[np.bool_]:
    return np.asarray((sample.weights < 0) == (sign < 0))


def _component(mixture: SignedGaussianMixture, sign: int) -> SignedGaussianMixture:
    """Return the Gaussian that is added, or the one that is subtracted, alone."""
    sigma = mixture.sigma_1 if sign > 0 else mixture.sigma_2
    return SignedGaussianMixture(1.0, sigma, sigma)
