"""Estimators with the scikit-learn contract, and what they return; see `quasiratio.registry` for their names."""

import importlib
from typing import TYPE_CHECKING, Any

from quasiratio.registry import ESTIMATORS

if TYPE_CHECKING:
    from quasiratio.estimators.auto import AutoRatio as AutoRatio
    from quasiratio.estimators.auto_report import AutoReport as AutoReport
    from quasiratio.estimators.auto_report import CandidateRow as CandidateRow
    from quasiratio.estimators.base import RatioEstimator as RatioEstimator
    from quasiratio.estimators.densities import AssumedDensity as AssumedDensity
    from quasiratio.estimators.densities import density_lines as density_lines
    from quasiratio.estimators.direct import DirectRatio as DirectRatio
    from quasiratio.estimators.fingerprint import DataFingerprint as DataFingerprint
    from quasiratio.estimators.fit_check import FitCheck as FitCheck
    from quasiratio.estimators.hyperparameters import NetworkEstimator as NetworkEstimator
    from quasiratio.estimators.joint import JointRatio as JointRatio
    from quasiratio.estimators.loading import describe as describe
    from quasiratio.estimators.loading import estimator_by_name as estimator_by_name
    from quasiratio.estimators.loading import load as load
    from quasiratio.estimators.mined import MinedEstimator as MinedEstimator
    from quasiratio.estimators.mined import Rate as Rate
    from quasiratio.estimators.mined_check import MinedCheck as MinedCheck
    from quasiratio.estimators.persistent import PersistentEstimator as PersistentEstimator
    from quasiratio.estimators.polynomial import PolynomialRatio as PolynomialRatio
    from quasiratio.estimators.positive import PositiveReweighter as PositiveReweighter
    from quasiratio.estimators.positive import Resampled as Resampled
    from quasiratio.estimators.positive_report import PositiveReport as PositiveReport
    from quasiratio.estimators.reweighter import Reweighter as Reweighter
    from quasiratio.estimators.reweighter_variations import VariationReweighter as VariationReweighter
    from quasiratio.estimators.sign_resolved import SignResolvedRatio as SignResolvedRatio
    from quasiratio.estimators.signed_mixture import SignedMixtureRatio as SignedMixtureRatio
    from quasiratio.estimators.single_model import SingleModelRatio as SingleModelRatio
    from quasiratio.estimators.single_model import TrainedModel as TrainedModel
    from quasiratio.estimators.support import SupportDiagnostic as SupportDiagnostic
    from quasiratio.estimators.trials import Trial as Trial
    from quasiratio.estimators.trials import TrialReport as TrialReport

_HOMES = {
    "AssumedDensity": "densities",
    "AutoReport": "auto_report",
    "CandidateRow": "auto_report",
    "DataFingerprint": "fingerprint",
    "FitCheck": "fit_check",
    "MinedCheck": "mined_check",
    "MinedEstimator": "mined",
    "NetworkEstimator": "hyperparameters",
    "PersistentEstimator": "persistent",
    "PositiveReport": "positive_report",
    "Rate": "mined",
    "RatioEstimator": "base",
    "Resampled": "positive",
    "SingleModelRatio": "single_model",
    "SupportDiagnostic": "support",
    "TrainedModel": "single_model",
    "Trial": "trials",
    "TrialReport": "trials",
    "density_lines": "densities",
    "describe": "loading",
    "estimator_by_name": "loading",
    "load": "loading",
}
"""Names by module; the estimators themselves stand in the registry."""

__all__ = [*ESTIMATORS.built_in_classes(), *_HOMES]  # noqa: PLE0604 - estimators are listed once, in the registry


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    home = f"quasiratio.estimators.{_HOMES[name]}" if name in _HOMES else ESTIMATORS.home(name)
    if home is None:
        msg = f"module 'quasiratio.estimators' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(home.partition(":")[0]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
