"""The weights of variations as they are given: by name, the nominal one first, or one array for all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample

__all__ = ["Weights", "relative_weights", "variation_names", "weight_columns", "weight_matrix"]

FloatArray = npt.NDArray[np.float64]
Weights = Mapping[str, npt.ArrayLike] | npt.ArrayLike

_CONSTANT = 1e-6
"""Spread of a relative weight, in units of itself, below which it is rounding."""


def variation_names(given: list[list[str]]) -> list[str]:
    """Return the names of the variations, which those who have them must agree on."""
    if not given:
        msg = "Got no weights by name; expected those of the original or of the target, such as {'nominal': w, 'up': w_up}."
        raise InvalidInputError(msg)
    if any(names != given[0] for names in given):
        msg = f"Got the weights {given[0]} for the original and {given[1]} for the target; expected the same names in the same order."
        raise InvalidInputError(msg)
    if len(given[0]) < 2 or not all(given[0]):
        msg = f"Got the weights {given[0]}; expected at least two with names, the nominal one first."
        raise InvalidInputError(msg)
    return given[0]


def weight_columns(weights: Weights | None, names: list[str]) -> list[npt.ArrayLike] | None:
    """Return the weights in the order of the variations; the same for all where there is one array."""
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        return [weights] * len(names)
    missing = [name for name in names if name not in weights]
    if missing:
        msg = f"Got weights without {missing[0]!r}; expected one for each of {', '.join(names)}."
        raise InvalidInputError(msg)
    return [weights[name] for name in names]


def weight_matrix(
    columns: list[npt.ArrayLike] | None, sample: WeightedSample, names: list[str], role: str
) -> FloatArray:
    """Return `(n, n_variations)` weights: finite, of a positive sum, and zero where the nominal one is."""
    if columns is None:
        columns = [sample.weights] * len(names)
    empty = np.zeros((len(sample), 0), dtype=np.float32)
    checked = []
    for name, column in zip(names, columns, strict=True):
        try:
            one = WeightedSample.adopt(
                empty, np.array(WeightedSample(np.zeros(len(sample)), column).weights), ()
            )
        except InvalidInputError as error:
            msg = f"The weights {name!r} of the {role} cannot be used: {error}"
            raise InvalidInputError(msg) from error
        one.require_positive_sum(f"{role}, with {name!r},")
        checked.append(one.weights)
    weights = np.stack(checked, axis=1)
    lost = (weights[:, :1] == 0.0) & (weights != 0.0)
    if lost.any():
        worst = int(np.argmax(lost.sum(axis=0)))
        msg = (
            f"Got {int(lost[:, worst].sum())} of {len(weights)} events of the {role} with the nominal weight {names[0]!r} zero "
            f"and {names[worst]!r} not; expected variations of the nominal weight, relative to which they are learned. Name one "
            "first that is zero for none of these events."
        )
        raise InvalidInputError(msg)
    return weights


def relative_weights(weights: FloatArray) -> FloatArray:
    """Return $w_k/w - 1$ of `(n, n_variations)` weights, the nominal one first; rounding is taken out.

    Example:
        >>> relative_weights(np.array([[1.0, 1.1, 2.0], [-2.0, -2.2, -2.0]])).round(3).tolist()
        [[0.1, 1.0], [0.1, 0.0]]
    """
    nominal = weights[:, :1]
    relative = np.divide(weights[:, 1:], nominal, out=np.ones_like(weights[:, 1:]), where=nominal != 0.0)
    carries = relative[nominal[:, 0] != 0.0]
    middle = 0.5 * (carries.min(axis=0) + carries.max(axis=0))
    is_constant = np.ptp(carries, axis=0) <= _CONSTANT * np.abs(middle)
    return np.where(is_constant | (nominal == 0.0), middle, relative) - 1.0
