"""The methods that studies put side by side: their names, what is shared between them, and their fits.

RoSMM_c and RoSMM_r begin from the sub-ratios of RoSMM, and `AutoRatio` fits sign-resolved, RoSMM and REVERT as its
candidates. So what was fitted for one serves the others too.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quasiratio.errors import InvalidInputError, QuasiratioWarning
from quasiratio.sample import WeightedSample

if TYPE_CHECKING:
    from quasiratio.estimators import SignedMixtureRatio
    from quasiratio.estimators.base import RatioEstimator

__all__ = [
    "FIGURE_LABELS",
    "METHOD_LABELS",
    "OUR_METHODS",
    "PUBLISHED_METHODS",
    "FittedMethod",
    "families",
    "fit_family",
]

SamplePair = tuple[WeightedSample, WeightedSample]

METHOD_LABELS = {
    "mlp": "MLP (BCE)",
    "rosmm": "RoSMM",
    "rosmm_c": "RoSMM_c",
    "rosmm_r": "RoSMM_r",
    "sign-resolved": "sign-resolved",
    "sign-resolved-x8": "sign-resolved, 8 members",
    "revert": "REVERT",
    "lsif": "LSIF",
    "auto": "AutoRatio",
    "exact": "exact ratio",
}
"""What tables call a method."""

FIGURE_LABELS = METHOD_LABELS | {"rosmm_c": "RoSMM$_c$", "rosmm_r": "RoSMM$_r$"}
"""What figures call it."""

PUBLISHED_METHODS = ("mlp", "rosmm", "rosmm_c", "rosmm_r")
OUR_METHODS = ("sign-resolved", "sign-resolved-x8", "revert", "lsif", "auto")

_CANDIDATES = ("sign-resolved", "rosmm", "revert")
_TUNED = {"rosmm_c": "coefficients", "rosmm_r": "all"}
_N_MEMBERS = 8


class FittedMethod(NamedTuple):
    """A fitted method and the seconds that it added to what was there before."""

    name: str
    estimator: RatioEstimator
    seconds: float


def families(methods: Sequence[str], *, share: bool = True) -> list[tuple[str, ...]]:
    """Group methods into fits that need nothing of each other.

    Args:
        methods: Names out of `METHOD_LABELS`.
        share: Whether candidates of `AutoRatio` also stand for themselves.

    Example:
        >>> families(["mlp", "rosmm", "rosmm_c", "auto", "sign-resolved-x8"])
        [('mlp',), ('auto', 'rosmm', 'rosmm_c'), ('sign-resolved-x8',)]
        >>> families(["rosmm_c", "rosmm", "lsif"])
        [('rosmm', 'rosmm_c'), ('lsif',)]
    """
    unknown = [name for name in methods if name not in METHOD_LABELS]
    if unknown:
        msg = f"Got the methods {unknown}; expected some of {', '.join(METHOD_LABELS)}."
        raise InvalidInputError(msg)
    of_auto = {*_CANDIDATES, *_TUNED} if "auto" in methods and share else set()
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(methods):
        owner = "auto" if name == "auto" or name in of_auto else "rosmm" if name in _TUNED else name
        groups.setdefault(owner, []).append(name)
    order = list(METHOD_LABELS)
    return [
        tuple(sorted(names, key=lambda name: (name != owner, order.index(name))))
        for owner, names in groups.items()
    ]


def fit_family(
    names: Sequence[str],
    training: SamplePair,
    validation: SamplePair,
    *,
    seed: int,
    parameters: Mapping[str, Mapping[str, Any]],
) -> Iterator[FittedMethod]:
    """Fit the methods of one family and yield each as soon as it is there.

    Args:
        names: One of the tuples of `families`.
        training: Reference and target to fit.
        validation: The same to validate on.
        seed: Random state of the fits.
        parameters: Hyperparameters by kind: `"direct"` for single networks, `"rosmm"` for sub-ratios, and
            `"mlp"` for what the classifier has besides those of `"direct"`, and `"tuning"` for what the training of
            RoSMM_r has of its own.

    Example:
        >>> from quasiratio.studies.signed_gaussians.toy_events import toy_events
        >>> events = toy_events("signed", 0, (500, 200, 10))
        >>> fast = {"direct": {"max_steps": 5}, "rosmm": {"max_steps": 5}}
        >>> [m.name for m in fit_family(["rosmm", "rosmm_c"], events.training, events.validation, seed=0,
        ...                             parameters=fast)]
        ['rosmm', 'rosmm_c']
    """
    from quasiratio.estimators.training_data import stacked_samples  # noqa: PLC0415 - loads scikit-learn

    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)  # judged by the numbers of the study
        first, *rest = names
        base = "rosmm" if first in _TUNED else first
        estimator = _estimator(base, seed, parameters)
        estimator.fit_samples(*training, validation=validation)
        fitted: dict[str, RatioEstimator] = {base: estimator}
        if base == "auto":
            candidates: dict[str, RatioEstimator] = estimator.candidates_
            fitted |= candidates
            seconds = {name: one.history_.wall_clock for name, one in candidates.items()}
        else:
            seconds = {}
        seconds[base] = time.perf_counter() - start
        for name in (first, *rest):
            if name in _TUNED:
                if "rosmm" not in fitted:
                    continue  # it could not be fitted, and so neither can this
                begin = time.perf_counter()
                untuned: SignedMixtureRatio = fitted["rosmm"]
                how: Any = _TUNED[name]
                events, labels = stacked_samples(*training)
                held_out = (*stacked_samples(*validation), None)
                own = parameters.get("tuning", {})
                fitted[name] = untuned.tuned(how, events, labels, validation=held_out, training=own)
                seconds[name] = time.perf_counter() - begin
            if name in fitted:
                yield FittedMethod(name, fitted[name], float(seconds[name]))


def _estimator(name: str, seed: int, parameters: Mapping[str, Mapping[str, Any]]) -> Any:  # noqa: ANN401
    from quasiratio.estimators import (  # noqa: PLC0415 - torch, which listing the studies does not need
        AutoRatio,
        DirectRatio,
        SignedMixtureRatio,
        SignResolvedRatio,
    )

    common: dict[str, Any] = {"random_state": seed, "verbose": False}
    if name == "rosmm":
        return SignedMixtureRatio(**common, **parameters.get("rosmm", {}))
    direct = dict(parameters.get("direct", {}))
    if name == "mlp":
        return DirectRatio(loss="bce", **common, **direct | dict(parameters.get("mlp", {})))
    if name in ("revert", "lsif"):
        return DirectRatio(loss=name, **common, **direct)
    if name == "auto":
        return AutoRatio(**common, **direct)
    n_members = _N_MEMBERS if name == "sign-resolved-x8" else 1
    return SignResolvedRatio(n_members=n_members, **common, **direct)
