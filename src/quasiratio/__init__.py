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
    register_loss,
)

if TYPE_CHECKING:
    from quasiratio import distributions, io, losses, metrics, plots, report, workflows
    from quasiratio.basis import PolynomialBasis
    from quasiratio.estimators.auto import AutoRatio
    from quasiratio.estimators.direct import DirectRatio
    from quasiratio.estimators.joint import JointRatio
    from quasiratio.estimators.loading import load
    from quasiratio.estimators.polynomial import PolynomialRatio
    from quasiratio.estimators.positive import PositiveReweighter
    from quasiratio.estimators.reweighter import Reweighter
    from quasiratio.estimators.sign_resolved import SignResolvedRatio
    from quasiratio.estimators.signed_mixture import SignedMixtureRatio
    from quasiratio.estimators.variations import VariationReweighter
    from quasiratio.sample import WeightedSample

__all__ = [
    "AutoRatio",
    "DirectRatio",
    "JointRatio",
    "PolynomialBasis",
    "PolynomialRatio",
    "PositiveReweighter",
    "Reweighter",
    "SignResolvedRatio",
    "SignedMixtureRatio",
    "VariationReweighter",
    "WeightedSample",
    "__version__",
    "distributions",
    "io",
    "load",
    "load_plugins",
    "losses",
    "metrics",
    "plots",
    "register_activation",
    "register_estimator",
    "register_loss",
    "report",
    "workflows",
]

_HOMES = {
    "PolynomialBasis": "quasiratio.basis",
    "WeightedSample": "quasiratio.sample",
    "load": "quasiratio.estimators.loading",
}
_SUBPACKAGES = {"distributions", "io", "losses", "metrics", "plots", "report", "workflows"}

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
