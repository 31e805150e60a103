"""Estimators by the names that the command line and configuration files use."""

from __future__ import annotations

from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioEstimator
from quasiratio.registry import ESTIMATORS

__all__ = ["estimator_by_name"]


def estimator_by_name(method: str, **parameters: Any) -> RatioEstimator:  # noqa: ANN401 - of the estimator
    """Return an unfitted estimator.

    Args:
        method: `"sign-resolved"`, `"rosmm"`, `"direct"`, `"auto"`, or one that was registered.
        parameters: What the estimator takes; a name it does not have is refused.

    Example:
        >>> estimator_by_name("direct", loss="lsif", n_members=4)
        DirectRatio(loss='lsif', n_members=4)
    """
    methods = ESTIMATORS.methods()
    if method not in methods:
        msg = f"Got the method {method!r}; expected one of {', '.join(methods)}."
        raise InvalidInputError(msg)
    estimator: RatioEstimator = ESTIMATORS[method]()
    known = estimator.get_params(deep=False)
    for name, value in parameters.items():
        if name not in known:
            msg = (
                f"Got {name} = {value!r} for the method {method!r}, which has no such option; expected one of "
                f"{', '.join(sorted(known))}. Leave it out, or choose another method."
            )
            raise InvalidInputError(msg)
    estimator.set_params(**parameters)
    return estimator
