"""Estimators with the scikit-learn contract."""

from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio

__all__ = ["DirectRatio", "RatioEstimator", "SignResolvedRatio", "SignedMixtureRatio"]
