"""The checks at the door of a sample: columns of any kind become one finite matrix, weights one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = [
    "FloatArray",
    "checked_features",
    "checked_names",
    "checked_weights",
    "columns_to_matrix",
    "nonfinite_features",
    "nonfinite_weights",
    "require_finite_columns",
]

FloatArray = npt.NDArray[np.float64]


def columns_to_matrix(features: Any) -> tuple[Any, list[str] | None]:  # noqa: ANN401
    """Turn anything with named columns into a matrix and its names; other arrays come back as they are.

    Mappings, structured arrays, pandas frames and awkward records of flat fields have named columns.

    Example:
        >>> columns_to_matrix({"pt": [30.0, 50.0], "eta": [0.1, -2.0]})[1]
        ['pt', 'eta']
    """
    if hasattr(features, "toarray"):  # SciPy's; one of its formats is a mapping
        msg = "Got a sparse matrix; sparse input is not supported. Give a dense array, as from X.toarray()."
        raise InvalidInputError(msg)
    if isinstance(features, Mapping):
        return _stacked([str(name) for name in features], list(features.values()))
    if isinstance(features, np.ndarray) and features.dtype.names:
        return _stacked(list(features.dtype.names), [features[name] for name in features.dtype.names])
    if hasattr(features, "columns") and hasattr(features, "to_numpy"):
        names = checked_names(list(features.columns), len(features.columns))
        return _stacked(list(names), [features[name] for name in features.columns])
    fields = getattr(features, "fields", None)
    if fields and type(features).__module__.startswith("awkward"):
        return _stacked(list(fields), [features[name] for name in fields])
    return features, None


def _stacked(names: list[str], columns: list[Any]) -> tuple[npt.NDArray[np.float32], list[str]]:
    if not columns:
        msg = "Got no columns; expected at least one feature."
        raise InvalidInputError(msg)
    arrays = [_numbers(column, f"column {name!r}") for name, column in zip(names, columns, strict=True)]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1:
        given = dict(zip(names, shapes, strict=True))
        msg = f"Got columns of shapes {given}; expected one-dimensional columns of one length."
        raise InvalidInputError(msg)
    with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
        return np.column_stack([array.astype(np.float32) for array in arrays]), names


def _numbers(values: Any, role: str) -> npt.NDArray[Any]:  # noqa: ANN401 - whatever NumPy can read
    """Return `values` as an array of real numbers, missing ones as NaN, or say why that cannot be."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    try:
        if isinstance(values, np.ma.MaskedArray):
            array = np.ma.filled(values.astype(np.float64), np.nan)
        elif kind in "fiub" and not isinstance(values, np.ndarray):  # nullable pandas columns among them
            array = np.asarray(values, dtype=np.float64)
        else:
            array = np.asarray(values)
    except (TypeError, ValueError) as error:
        msg = f"Got {role} with ragged or missing entries; expected a regular array of numbers. Pad or drop them."
        raise InvalidInputError(msg) from error
    if array.dtype.kind not in "fiub":
        msg = f"Got {role} of type {array.dtype}; expected numbers. Encode or drop what is not a number."
        raise InvalidInputError(msg)
    return array


def checked_features(matrix: Any) -> npt.NDArray[np.float32]:  # noqa: ANN401
    """Return a copy of the matrix in float32, one-dimensional input as one feature.

    Example:
        >>> checked_features([1, 2, 3]).shape
        (3, 1)
    """
    array = _numbers(matrix, "features")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        msg = f"Got features of shape {array.shape}; expected two dimensions (events, features)."
        raise InvalidInputError(msg)
    with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
        return np.array(array, dtype=np.float32, order="C", copy=True)


def checked_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Return one unique name per feature, `x0, x1, ...` when left out.

    Example:
        >>> checked_names(None, 2)
        ('x0', 'x1')
    """
    checked = tuple(f"x{i}" for i in range(n_features)) if names is None else tuple(str(n) for n in names)
    if len(checked) != n_features:
        msg = f"Got {len(checked)} names for {n_features} features; expected one name per feature."
        raise InvalidInputError(msg)
    repeated = sorted({name for name in checked if checked.count(name) > 1})
    if repeated:
        msg = f"Got the feature names {repeated} more than once; expected unique names."
        raise InvalidInputError(msg)
    return checked


def require_finite_columns(matrix: npt.NDArray[np.float32], names: tuple[str, ...]) -> None:
    """Raise, with their number and column, where features are NaN or infinite."""
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN, which is what we look for
        if np.isfinite(matrix.sum(dtype=np.float64)):  # one pass; NaN and infinity both survive a sum
            return
    raise nonfinite_features(dict(zip(names, np.sum(~np.isfinite(matrix), axis=0).tolist(), strict=True)))


def nonfinite_features(n_bad: Mapping[str, int]) -> InvalidInputError:
    """Return the error that names the features with values that are not finite, and how many there are."""
    offenders = ", ".join(f"{name!r} ({n} events)" for name, n in n_bad.items() if n)
    msg = (
        f"Got values that are NaN, infinite or beyond float32 in {offenders}; expected finite features. "
        "Remove these events or replace the values."
    )
    return InvalidInputError(msg)


def checked_weights(weights: npt.ArrayLike | None, n_events: int) -> FloatArray:
    """Return a copy of the signed weights in float64, all one when left out.

    Example:
        >>> checked_weights(None, 2).tolist()
        [1.0, 1.0]
    """
    if weights is None:
        return np.ones(n_events)
    array = _numbers(weights, "weights")
    if array.shape != (n_events,):
        msg = f"Got weights of shape {array.shape} for {n_events} events; expected one weight per event."
        raise InvalidInputError(msg)
    checked = np.array(array, dtype=np.float64, copy=True)
    n_bad = int(np.sum(~np.isfinite(checked)))
    if n_bad:
        raise nonfinite_weights(n_bad)
    return checked


def nonfinite_weights(n_bad: int, source: str = "") -> InvalidInputError:
    """Return the error that says how many weights are not finite, and where they came from if known."""
    origin = f" from {source}" if source else ""
    msg = (
        f"Got {n_bad} weights that are NaN or infinite{origin}; expected finite weights. Remove these events."
    )
    return InvalidInputError(msg)
