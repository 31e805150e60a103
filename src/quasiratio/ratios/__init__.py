"""Ratio models: from raw features to a ratio that may be negative."""

from quasiratio.ratios.direct import DirectModel
from quasiratio.ratios.ratio_model import (
    OutputView,
    RatioModel,
    RatioModelDocument,
    RatioValues,
    RatioView,
    StoredModel,
)
from quasiratio.ratios.sign_odds import SignFloors, capped_log_odds
from quasiratio.ratios.sign_partition import (
    SIGN_CLASSES,
    SignClass,
    carried_classes,
    sign_classes,
    sign_parts,
)
from quasiratio.ratios.sign_resolved import SignResolvedModel
from quasiratio.ratios.signed_mixture import SignedMixtureModel, recombine

__all__ = [
    "SIGN_CLASSES",
    "DirectModel",
    "OutputView",
    "RatioModel",
    "RatioModelDocument",
    "RatioValues",
    "RatioView",
    "SignClass",
    "SignFloors",
    "SignResolvedModel",
    "SignedMixtureModel",
    "StoredModel",
    "capped_log_odds",
    "carried_classes",
    "recombine",
    "sign_classes",
    "sign_parts",
]
