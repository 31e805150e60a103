"""What ranks that fit one estimator must have in common, and what all of them have at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fitting import usable_device
from quasiratio.training import Ranks

__all__ = ["facts_of", "require_alike", "take_learned"]

_OWN = {"random_state", "verbose", "device", "n_threads"}
"""Parameters that may differ between the ranks."""


def facts_of(estimator: Any) -> dict[str, Any]:  # noqa: ANN401 - any ratio estimator
    """Return features and options of an estimator that is about to be fitted, by what to call them in messages."""
    options = {
        name: repr(value) for name, value in sorted(estimator.get_params().items()) if name not in _OWN
    }
    return {
        "the features": list(estimator.feature_names_ or range(estimator.n_features_in_)),
        "the fill": dict(estimator.fill_),
        "the estimator": type(estimator).__name__,
        **{f"the option {name}": value for name, value in options.items()},
    }


def require_alike(facts: Mapping[str, Any], ranks: Ranks) -> None:
    """Raise in all ranks unless they have the same facts.

    Args:
        facts: Of this rank, by what to call them.
        ranks: All of them.

    Example:
        >>> require_alike({"the features": ["pt"]}, Ranks())
    """
    first, *others = ranks.gathered(dict(facts))
    with ranks.agreed():
        for rank, theirs in enumerate(others, start=1):
            for what in dict.fromkeys([*first, *theirs]):
                if first.get(what) != theirs.get(what):
                    msg = (
                        f"Got {what} {first.get(what)} in process 0 and {theirs.get(what)} in process {rank}; expected the "
                        "same in all processes of one training."
                    )
                    raise InvalidInputError(msg)


def take_learned(estimator: Any, ranks: Ranks) -> None:  # noqa: ANN401 - any ratio estimator
    """Give all ranks what the first has learned, bit by bit."""
    if ranks.size == 1:
        return
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    learned = ranks.same(learned)
    if not ranks.is_first:
        learned["model_"] = learned["model_"].to(usable_device(estimator.device))
        vars(estimator).update(learned)
