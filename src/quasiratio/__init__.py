"""quasiratio: likelihood ratios and event reweighting when weights and densities may be negative.

Labels: `y = 0` is the reference (denominator), `y = 1` the target (numerator);
`ratio = q_target / q_reference`, the ratio of unit-normalised densities, which may be negative.

Names are loaded when first used (PEP 562), so that `import quasiratio` is fast and needs neither
PyTorch nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quasiratio.registry import (
    ESTIMATORS,
    load_plugins,
    register_activation,
    register_estimator,
    register_format,
    register_loss,
)

if TYPE_CHECKING:
    from quasiratio import distributions as distributions
    from quasiratio import io as io
    from quasiratio import losses as losses
    from quasiratio import metrics as metrics
    from quasiratio import plots as plots
    from quasiratio import report as report
    from quasiratio import workflows as workflows
    from quasiratio.basis import PolynomialBasis as PolynomialBasis
    from quasiratio.estimators.auto import AutoRatio as AutoRatio
    from quasiratio.estimators.direct import DirectRatio as DirectRatio
    from quasiratio.estimators.joint import JointRatio as JointRatio
    from quasiratio.estimators.loading import load as load
    from quasiratio.estimators.polynomial import PolynomialRatio as PolynomialRatio
    from quasiratio.estimators.positive import PositiveReweighter as PositiveReweighter
    from quasiratio.estimators.reweighter import Reweighter as Reweighter
    from quasiratio.estimators.reweighter_variations import VariationReweighter as VariationReweighter
    from quasiratio.estimators.sign_resolved import SignResolvedRatio as SignResolvedRatio
    from quasiratio.estimators.signed_mixture import SignedMixtureRatio as SignedMixtureRatio
    from quasiratio.sample import SignPartition as SignPartition
    from quasiratio.sample import WeightedSample as WeightedSample
    from quasiratio.solved_weights import SolvedWeights as SolvedWeights

_HOMES = {
    "PolynomialBasis": "quasiratio.basis",
    "SignPartition": "quasiratio.sample",
    "SolvedWeights": "quasiratio.solved_weights",
    "WeightedSample": "quasiratio.sample",
    "load": "quasiratio.estimators.loading",
}
_SUBPACKAGES = ("distributions", "io", "losses", "metrics", "plots", "report", "workflows")

__all__ = [  # noqa: PLE0604 - estimators are listed once, in the registry
    *ESTIMATORS.built_in_classes(),
    *_HOMES,
    *_SUBPACKAGES,
    "__version__",
    "load_plugins",
    "register_activation",
    "register_estimator",
    "register_format",
    "register_loss",
]

__version__: str


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module, a class or the version
    home = _HOMES.get(name) or ESTIMATORS.home(name)
    if home is not None:
        return getattr(importlib.import_module(home.partition(":")[0]), name)
    if name in _SUBPACKAGES:
        return importlib.import_module(f"quasiratio.{name}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom needed

        return version("quasiratio")
    msg = f"module 'quasiratio' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
