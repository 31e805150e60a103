"""Estimators with the scikit-learn contract."""

from quasiratio.estimators.auto import AutoRatio
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.joint import JointRatio
from quasiratio.estimators.loading import estimator_by_name
from quasiratio.estimators.persistent import PersistentEstimator
from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.reweighter import Reweighter
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.single_model import SingleModelRatio, TrainedModel
from quasiratio.estimators.variations import VariationReweighter

__all__ = [
    "AutoRatio",
    "DirectRatio",
    "JointRatio",
    "PersistentEstimator",
    "PolynomialRatio",
    "PositiveReweighter",
    "RatioEstimator",
    "Reweighter",
    "SignResolvedRatio",
    "SignedMixtureRatio",
    "SingleModelRatio",
    "TrainedModel",
    "VariationReweighter",
    "estimator_by_name",
]
