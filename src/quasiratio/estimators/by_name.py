"""Estimators by the names that the command line and configuration files use."""

from __future__ import annotations

from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.auto import AutoRatio
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio

__all__ = ["METHODS", "estimator_by_name"]

METHODS: dict[str, type[RatioEstimator]] = {
    "sign-resolved": SignResolvedRatio,
    "rosmm": SignedMixtureRatio,
    "direct": DirectRatio,
    "auto": AutoRatio,
}


def estimator_by_name(method: str, **parameters: Any) -> RatioEstimator:  # noqa: ANN401 - of the estimator
    """Return an unfitted estimator.

    Args:
        method: `"sign-resolved"`, `"rosmm"`, `"direct"` or `"auto"`.
        parameters: What the estimator takes; a name it does not have is refused.

    Example:
        >>> estimator_by_name("direct", loss="lsif", n_members=4)
        DirectRatio(loss='lsif', n_members=4)
    """
    if method not in METHODS:
        msg = f"Got the method {method!r}; expected one of {', '.join(METHODS)}."
        raise InvalidInputError(msg)
    estimator = METHODS[method]()
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
