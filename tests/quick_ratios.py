"""Every ratio estimator of the registry, small and quick: a new one takes part in the laws without being named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import quasiratio as qr
from quasiratio.estimators import RatioEstimator
from quasiratio.estimators.loading import estimator_by_name
from quasiratio.registry import ESTIMATORS


def quick_ratios(
    options: Mapping[str, Any], **own: Mapping[str, Any]
) -> dict[str, Callable[[], RatioEstimator]]:
    """Return a maker of each, by name.

    Args:
        options: Hyperparameters of all.
        own: More of some, by the name of the estimator with underscores.
    """
    defaults: dict[str, Mapping[str, Any]] = {
        "direct": {"loss": "lsif"},
        "auto": {
            "candidates": {"a": qr.SignResolvedRatio(**options), "b": qr.DirectRatio(loss="lsif", **options)}
        },
    }

    def maker(name: str) -> Callable[[], RatioEstimator]:
        more = own.get(name.replace("-", "_"), defaults.get(name, {}))
        return lambda: estimator_by_name(name, **{**options, **more})

    return {name: maker(name) for name in ESTIMATORS.methods()}
