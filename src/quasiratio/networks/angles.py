"""Which features are angles: by their name and a range of one turn, and none that is in degrees."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import FeatureWarning, InvalidInputError
from quasiratio.networks.sentinels import isolated_value

__all__ = ["declared_angles", "recognised_angles", "refuse_degrees", "warn_of_degrees"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FULL_TURN = 0.9
_DEGREES_SPAN, _MOST_DEGREES = 160.0, 361.0


def declared_angles(periodic: Any, names: Sequence[str]) -> set[int]:  # noqa: ANN401 - what the user gave
    """Return the columns that a user calls angles, or say which of them is no feature.

    Args:
        periodic: Names or numbers of features; `None` for none.
        names: Names of the features.

    Example:
        >>> declared_angles(["theta", 0], ["phi", "pt", "theta"])
        {0, 2}
    """
    given: object = () if periodic is None else periodic
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        msg = f"Got periodic = {given!r}; expected a sequence of features, such as ['phi']."
        raise InvalidInputError(msg)
    declared = set()
    for feature in given:
        if isinstance(feature, str) and feature in names:
            declared.add(list(names).index(feature))
        elif isinstance(feature, int | np.integer) and 0 <= feature < len(names):
            declared.add(int(feature))
        else:
            msg = f"Got {feature!r} among the periodic features; expected one of {', '.join(names)}."
            raise InvalidInputError(msg)
    return declared


def recognised_angles(
    names: Sequence[str], features: FeatureMatrix, fill: Mapping[int, float] | None = None
) -> list[int]:
    """Return the columns that are azimuthal angles, by their name and by a range of one turn.

    A word of the name ends with phi or contains azimuth (`jet_phi`, `metPhi`, `deltaphi`), and the values lie within
    [-pi, pi] or [0, 2 pi] and fill at least nine tenths of it. A number that stands for missing values does not count.

    Args:
        names: Names of the features.
        features: `(n, d)` features.
        fill: The value that stands for a missing one, by column.

    Example:
        >>> turn = np.linspace(-np.pi, np.pi, 100, dtype=np.float32)
        >>> recognised_angles(["jet_phi", "eta", "philosophy"], np.column_stack([turn, turn, turn]))
        [0]
    """
    return _turning(names, features, fill, 2 * math.pi)


def warn_of_degrees(
    names: Sequence[str], features: FeatureMatrix, fill: Mapping[int, float] | None = None
) -> None:
    """Warn of columns that `recognised_angles` would be of, were they not in degrees: they keep an edge.

    Args:
        names: Names of the features.
        features: `(n, d)` features.
        fill: The value that stands for a missing one, by column.

    Example:
        >>> warn_of_degrees(["jet_phi"], np.linspace(-np.pi, np.pi, 100)[:, None])
    """
    for column in _turning(names, features, fill, 360.0):
        name = names[column]
        msg = (
            f"{name!r} looks like an angle in degrees, and is taken for a number with an edge at its ends. Give it in radians, "
            f"as in the formula phi=radians({name})."
        )
        warnings.warn(msg, FeatureWarning, stacklevel=3)


def refuse_degrees(name: str, values: npt.NDArray[np.floating[Any]], fill: float | None = None) -> None:
    """Raise where an angle in radians has values that only one in degrees has.

    Args:
        name: Name of the feature.
        values: Its values.
        fill: The value that stands for a missing one.

    Example:
        >>> refuse_degrees("phi", np.linspace(-np.pi, np.pi, 100))
    """
    low, high = _range(values, fill)
    if high - low > _DEGREES_SPAN and max(abs(low), abs(high)) <= _MOST_DEGREES:
        msg = (
            f"Got the angle {name!r} from {low:.4g} to {high:.4g}, which look like degrees; expected radians. Multiply it by "
            "pi/180, or write radians() of it in a formula."
        )
        raise InvalidInputError(msg)


def _turning(
    names: Sequence[str], features: FeatureMatrix, fill: Mapping[int, float] | None, turn: float
) -> list[int]:
    """Return the columns that are named like azimuths and fill a turn that is so long."""
    found = []
    for column, name in enumerate(names):
        if not any(word.endswith("phi") or "azimuth" in word for word in _words(name)):
            continue
        low, high = _range(features[:, column], (fill or {}).get(column))
        beyond = 1e-5 * turn
        fits = any(start - beyond <= low and high <= start + turn + beyond for start in (-turn / 2, 0.0))
        if fits and high - low >= _FULL_TURN * turn:
            found.append(column)
    return found


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _range(values: npt.NDArray[np.floating[Any]], fill: float | None) -> tuple[float, float]:
    """Return the smallest and the largest of the values that are there, NaN where none is."""
    missing = isolated_value(values) if fill is None else values.dtype.type(fill)
    there = values if missing is None else values[values != missing]
    return (float(there.min()), float(there.max())) if len(there) else (math.nan, math.nan)
