"""Distributions whose signed densities and ratios are known exactly, to test methods against."""

from quasiratio.distributions.signed_gaussian_case import SignedGaussianCase, signed_gaussian_case
from quasiratio.distributions.signed_gaussian_mixture import SignedGaussianMixture

__all__ = ["SignedGaussianCase", "SignedGaussianMixture", "signed_gaussian_case"]
