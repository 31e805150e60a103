"""Ratio models: from raw features to a ratio that may be negative."""

from quasiratio.ratios.direct import DirectModel
from quasiratio.ratios.ratio_model import RatioModel, RatioValues, RatioView
from quasiratio.ratios.sign_partition import SIGN_CLASSES, SignClass, sign_classes
from quasiratio.ratios.sign_resolved import SignResolvedModel
from quasiratio.ratios.signed_mixture import SignedMixtureModel, recombine

__all__ = [
    "SIGN_CLASSES",
    "DirectModel",
    "RatioModel",
    "RatioValues",
    "RatioView",
    "SignClass",
    "SignResolvedModel",
    "SignedMixtureModel",
    "recombine",
    "sign_classes",
]
