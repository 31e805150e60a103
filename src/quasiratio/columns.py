"""The checks at the door of a sample: columns of any kind become one finite matrix, weights one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = [
    "FeatureMatrix",
    "FloatArray",
    "checked_features",
    "checked_fill",
    "checked_names",
    "checked_weights",
    "columns_to_matrix",
    "filled",
    "fills_that_occur",
    "needs_double",
    "nonfinite_features",
    "nonfinite_weights",
    "require_finite_columns",
    "require_usable_scale",
    "with_needed_precision",
    "without_dominant_value",
]

FloatArray = npt.NDArray[np.float64]
FeatureMatrix = npt.NDArray[np.floating[Any]]
"""Features of events: float32, or float64 where float32 would lose what tells the events apart."""

_N_PROBED = 4096
_RESOLUTION = 2.0**-11
_LARGEST_SINGLE, _SMALLEST_SINGLE = 1e37, 1e-30
_LARGE_WHOLE_NUMBER = 1e6
_DOMINANT = 0.01
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-140, 1e140


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


def needs_double(values: npt.NDArray[Any]) -> bool:
    """Whether a column would lose in float32 what tells its events apart, as a time stamp does.

    That is so where the rounding is more than a two-thousandth of the width (between the 5% and 95% quantiles), and
    where usual values are beyond the range of float32. A few thousand events are looked at, without a value that many of
    them share, as that may stand for a missing one.

    Example:
        >>> seconds = np.linspace(0.0, 60.0, 1000)
        >>> needs_double(seconds), needs_double(1.7e9 + seconds), needs_double(1e-300 * seconds)
        (False, True, True)
    """
    if values.dtype.kind not in "fiu" or (values.dtype.kind == "f" and values.dtype.itemsize <= 4):
        return False
    probed = values[:: max(1, len(values) // _N_PROBED)].astype(np.float64)
    probed = without_dominant_value(probed[np.isfinite(probed)])
    sizes = np.abs(probed[probed != 0.0])
    if not len(sizes):
        return False
    size, large = np.quantile(sizes, [0.25, 0.75], method="lower")
    if size > _LARGEST_SINGLE or large < _SMALLEST_SINGLE:
        return True
    with np.errstate(over="ignore"):  # single values beyond float32 are mistakes, and refused as such
        roundings = np.abs(probed - probed.astype(np.float32))
    rounding = float(np.quantile(roundings, 0.95, method="lower"))
    low, high = np.quantile(probed, [0.05, 0.95])
    width = float(high - low) or float(np.ptp(probed))
    if width == 0.0:
        return bool(rounding > 0.0 and size > _LARGE_WHOLE_NUMBER)
    return rounding > _RESOLUTION * width


def without_dominant_value(values: FloatArray) -> FloatArray:
    """Return the values without the most frequent one, where more than 1% are that one and others are left.

    Example:
        >>> without_dominant_value(np.array([0.0, 0.0, 1.5, 2.5])).tolist()
        [1.5, 2.5]
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 2 or counts.max() <= max(1.0, _DOMINANT * len(values)):
        return values
    others: FloatArray = values[values != found[np.argmax(counts)]]
    return others


def with_needed_precision(matrix: npt.NDArray[Any]) -> FeatureMatrix:
    """Return a matrix in float32 where that is enough, else in float64; a copy only where the type changes.

    Example:
        >>> stamps = 1.7e9 + np.linspace(0.0, 60.0, 1000)[:, None]
        >>> with_needed_precision(stamps).dtype, with_needed_precision(stamps - 1.7e9).dtype
        (dtype('float64'), dtype('float32'))
    """
    is_double = any(needs_double(matrix[:, column]) for column in range(matrix.shape[1]))
    with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
        return np.require(matrix, np.float64 if is_double else np.float32, "C")


def checked_fill(fill: Any, names: Sequence[str]) -> dict[str, float]:  # noqa: ANN401 - what the user gave
    """Return what stands for missing values, by feature, or say what is wrong with it.

    Example:
        >>> checked_fill({"jet1_pt": 0}, ["jet1_pt", "met"])
        {'jet1_pt': 0.0}
    """
    if fill is None:
        return {}
    if not isinstance(fill, Mapping):
        msg = f"Got fill = {fill!r}; expected names of features and numbers, such as {{'jet1_pt': 0.0}}."
        raise InvalidInputError(msg)
    for name, value in fill.items():
        if name not in names:
            msg = f"Got a fill for {name!r}; expected one of the features {', '.join(map(repr, names))}."
            raise InvalidInputError(msg)
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not is_number or not abs(float(value)) < _LARGEST_SINGLE:
            msg = f"Got {value!r} to fill in for {name!r}; expected a finite number, such as 0.0."
            raise InvalidInputError(msg)
    return {str(name): float(value) for name, value in fill.items()}


def filled(matrix: npt.NDArray[Any], names: Sequence[str], fill: Mapping[str, float]) -> npt.NDArray[Any]:
    """Return the matrix with its NaN replaced where a fill is declared; the same one if there are none.

    Example:
        >>> filled(np.array([[np.nan, 1.0]]), ["jet1_pt", "met"], {"jet1_pt": 0.0}).tolist()
        [[0.0, 1.0]]
    """
    for name, value in fill.items():
        column = list(names).index(name)
        missing = np.isnan(matrix[:, column])
        if missing.any():
            fills_that_occur(name, value, matrix[~missing, column])
            if not matrix.flags.writeable or matrix.base is not None:
                matrix = matrix.copy()
            matrix[missing, column] = value
    return matrix


def fills_that_occur(name: str, fill: float, present: npt.NDArray[Any]) -> None:
    """Raise where values that are there equal what stands for a missing one, as models compare them: in float32.

    Example:
        >>> fills_that_occur("tag", -1.0, np.array([0.0, 1.0]))
    """
    n_equal = int(np.sum(present.astype(np.float32) == np.float32(fill)))
    if n_equal:
        free = np.floor(min(float(present.min()), fill)) - 1.0
        msg = (
            f"Got {n_equal} values of {name!r} equal to its fill {fill:g} beside missing ones; expected a fill that no value has, "
            f"such as {free:g}, as models tell missing values by it."
        )
        raise InvalidInputError(msg)


def _stacked(names: list[str], columns: list[Any]) -> tuple[FeatureMatrix, list[str]]:
    if not columns:
        msg = "Got no columns; expected at least one feature."
        raise InvalidInputError(msg)
    arrays = [_numbers(column, f"column {name!r}") for name, column in zip(names, columns, strict=True)]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1:
        given = dict(zip(names, shapes, strict=True))
        msg = f"Got columns of shapes {given}; expected one-dimensional columns of one length."
        raise InvalidInputError(msg)
    dtype = np.float64 if any(needs_double(array) for array in arrays) else np.float32
    with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
        matrix = np.empty((len(arrays[0]), len(arrays)), dtype)
        for column, array in enumerate(arrays):
            matrix[:, column] = array
    return matrix, names


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


def checked_features(matrix: Any) -> FeatureMatrix:  # noqa: ANN401
    """Return a copy of the matrix in float32 (or float64, where `needs_double`), one-dimensional input as one feature.

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
    checked = with_needed_precision(array)
    return checked.copy() if np.shares_memory(checked, array) else checked


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


def require_finite_columns(matrix: FeatureMatrix, names: tuple[str, ...]) -> None:
    """Raise, with their number and column, where features are NaN or infinite."""
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN, which is what we look for
        if np.isfinite(matrix.sum(dtype=np.float64)):  # one pass; NaN and infinity both survive a sum
            return
        if np.isfinite(matrix).all():  # large values, whose sum is not
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
    require_usable_scale(checked)
    return checked


def require_usable_scale(weights: FloatArray, source: str = "") -> None:
    """Raise where the squares of the weights, of which all errors are made, would not be numbers.

    Args:
        weights: Finite weights.
        source: Where they came from, if known.

    Example:
        >>> require_usable_scale(np.array([0.0, -2.5, 1e-300]))
    """
    largest = float(max(weights.max(initial=0.0), -weights.min(initial=0.0)))
    if largest and not _SMALLEST_SCALE <= largest <= _LARGEST_SCALE:
        origin = f" from {source}" if source else ""
        msg = (
            f"Got weights{origin} whose largest has the size {largest:.3g}; expected one between {_SMALLEST_SCALE:.0e} and "
            f"{_LARGEST_SCALE:.0e}. Multiply all weights by one constant, which changes no ratio."
        )
        raise InvalidInputError(msg)


def nonfinite_weights(n_bad: int, source: str = "") -> InvalidInputError:
    """Return the error that says how many weights are not finite, and where they came from if known."""
    origin = f" from {source}" if source else ""
    msg = (
        f"Got {n_bad} weights that are NaN or infinite{origin}; expected finite weights. Remove these events."
    )
    return InvalidInputError(msg)
