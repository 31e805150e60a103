"""Distributions whose signed densities and ratios are known exactly, to test methods against."""

from quasiratio.distributions.latent_case import LatentAmplitudeCase, LatentExponentialCase, MinedSample
from quasiratio.distributions.signed_gaussian_case import SignedGaussianCase, signed_gaussian_case
from quasiratio.distributions.signed_gaussian_mixture import SignedGaussianMixture
from quasiratio.distributions.signed_jets_case import (
    SignAsymmetry,
    SignedJets,
    SignedJetsCase,
    signed_jets_case,
)

__all__ = [
    "LatentAmplitudeCase",
    "LatentExponentialCase",
    "MinedSample",
    "SignAsymmetry",
    "SignedGaussianCase",
    "SignedGaussianMixture",
    "SignedJets",
    "SignedJetsCase",
    "signed_gaussian_case",
    "signed_jets_case",
]
