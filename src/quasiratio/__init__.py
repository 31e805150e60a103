"""quasiratio: likelihood ratios and event reweighting when weights and densities may be negative.

Labels: `y = 0` is the reference (denominator), `y = 1` the target (numerator);
`ratio = q_target / q_reference`, the ratio of unit-normalised densities, which may be negative.

Names are loaded when first used (PEP 562), so that `import quasiratio` is fast and needs neither
PyTorch nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quasiratio import distributions, io, losses, metrics
    from quasiratio.estimators.auto import AutoRatio
    from quasiratio.estimators.direct import DirectRatio
    from quasiratio.estimators.model_files import load
    from quasiratio.estimators.positive import PositiveReweighter
    from quasiratio.estimators.reweighter import Reweighter
    from quasiratio.estimators.sign_resolved import SignResolvedRatio
    from quasiratio.estimators.signed_mixture import SignedMixtureRatio
    from quasiratio.sample import WeightedSample

__all__ = [
    "AutoRatio",
    "DirectRatio",
    "PositiveReweighter",
    "Reweighter",
    "SignResolvedRatio",
    "SignedMixtureRatio",
    "WeightedSample",
    "__version__",
    "distributions",
    "io",
    "load",
    "losses",
    "metrics",
]

_HOMES = {
    "AutoRatio": "quasiratio.estimators.auto",
    "DirectRatio": "quasiratio.estimators.direct",
    "PositiveReweighter": "quasiratio.estimators.positive",
    "Reweighter": "quasiratio.estimators.reweighter",
    "SignResolvedRatio": "quasiratio.estimators.sign_resolved",
    "SignedMixtureRatio": "quasiratio.estimators.signed_mixture",
    "WeightedSample": "quasiratio.sample",
    "load": "quasiratio.estimators.model_files",
}
_SUBPACKAGES = {"distributions", "io", "losses", "metrics"}

__version__: str


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module, a class or the version
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _SUBPACKAGES:
        return importlib.import_module(f"quasiratio.{name}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom needed

        return version("quasiratio")
    msg = f"module 'quasiratio' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
