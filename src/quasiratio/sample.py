"""Signed samples: events with features and weights of either sign.

A `WeightedSample` is checked once, when it is built; everything behind it may then rely on finite
two-dimensional float32 features, finite float64 weights of the same length and unique names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SignPartition", "WeightedSample"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class WeightedSample:
    r"""Events $(x_i, w_i)$ with signed weights, validated and frozen.

    Sums over the sample estimate expectations of the quasiprobability density $q$:
    $\sum_i w_i f(x_i) / \sum_i w_i \to \int q(x) f(x)\,dx$, whatever the signs of the weights.

    Args:
        features: An `(n, d)` array, a mapping of columns, a pandas frame, a structured array, an awkward
            record array or another sample. One-dimensional arrays are taken as one feature.
        weights: The `n` signed weights; when left out those of the given sample, else all one.
        names: One name per feature; taken from the columns where there are any, else `x0, x1, ...`.

    Example:
        >>> s = WeightedSample([[0.1, 2.0], [0.3, 1.0], [0.2, 5.0]], weights=[1.0, -0.5, 1.0])
        >>> s.sum_of_weights, s.negative_fraction
        (1.5, 0.3333333333333333)
        >>> round(s.mixture_coefficient, 4)
        1.3333
    """

    features: npt.NDArray[np.float32]
    weights: FloatArray
    names: tuple[str, ...]

    def __init__(
        self,
        features: Any,  # noqa: ANN401 - arrays, frames, mappings: whatever has columns
        weights: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if weights is None and isinstance(features, WeightedSample):
            weights = features.weights
        matrix, column_names = _columns_to_matrix(features)
        matrix = _checked_features(matrix)
        checked_names = _checked_names(names if names is not None else column_names, matrix.shape[1])
        _require_finite_columns(matrix, checked_names)
        self._set(matrix, _checked_weights(weights, len(matrix)), checked_names)

    def _set(self, features: npt.NDArray[np.float32], weights: FloatArray, names: tuple[str, ...]) -> None:
        for array in (features, weights):
            array.flags.writeable = False
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "names", names)

    def _with(self, features: npt.NDArray[np.float32], weights: FloatArray) -> Self:
        """Wrap arrays that are known to be valid, without checking them again."""
        sample = object.__new__(type(self))
        sample._set(features, weights, self.names)
        return sample

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, index: Any) -> Self:  # noqa: ANN401 - whatever NumPy takes, but one integer
        """Return the events of a slice, an index array or a mask."""
        if isinstance(index, int | np.integer):
            msg = f"Got the single index {index}; slice instead, as in sample[{index}:{index + 1}]."
            raise InvalidInputError(msg)
        return self._with(self.features[index], self.weights[index])

    def __repr__(self) -> str:
        return (
            f"WeightedSample({len(self)} events, features {list(self.names)}, "
            f"sum of weights {self.sum_of_weights:.6g}, negative fraction {self.negative_fraction:.3g})"
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    @property
    def sum_of_weights(self) -> float:
        r"""Signed sum $\sum_i w_i$."""
        return float(self.weights.sum())

    @property
    def negative_fraction(self) -> float:
        """Fraction of events whose weight is negative; zero for an empty sample."""
        return float(np.mean(self.weights < 0)) if len(self) else 0.0

    @property
    def effective_size(self) -> float:
        r"""$(\sum w)^2 / \sum w^2$: the unweighted events that would carry the same statistical error."""
        sum_of_squares = float(np.square(self.weights).sum())
        return self.sum_of_weights**2 / sum_of_squares if sum_of_squares > 0 else 0.0

    @property
    def mixture_coefficient(self) -> float:
        r"""$c = \sum_{w_i \ge 0} w_i / \sum_i w_i$, at least one; raises where the sum is not positive."""
        total = self.require_positive_sum("sample")
        return max(1.0, float(self.weights[self.weights >= 0].sum()) / total)

    def require_positive_sum(self, role: str) -> float:
        """Return the sum of weights, or raise: a density can only be normalised by a positive sum."""
        total = self.sum_of_weights
        if not total > 0:
            msg = (
                f"The weights of the {role} sum to {total:.6g}; expected a positive sum. "
                "Check the sign convention of the weights and the selection."
            )
            raise InvalidInputError(msg)
        return total

    def select(self, mask: npt.ArrayLike) -> Self:
        """Return the events where `mask` is true; the selection may have any sum of weights."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            msg = (
                f"Got a mask of type {chosen.dtype} and shape {chosen.shape}; "
                f"expected {len(self)} booleans, one per event."
            )
            raise InvalidInputError(msg)
        return self[chosen]

    def split(self, fractions: Sequence[float], rng: np.random.Generator) -> tuple[Self, ...]:
        """Split at random into disjoint parts, e.g. `(0.65, 0.15, 0.20)`; nothing is left over."""
        shares = np.asarray(fractions, dtype=float)
        if shares.ndim != 1 or np.any(shares < 0) or not np.isclose(shares.sum(), 1.0):
            msg = f"Got the fractions {list(fractions)}; expected nonnegative numbers that sum to one."
            raise InvalidInputError(msg)
        bounds = np.round(np.cumsum(shares)[:-1] * len(self)).astype(int)
        return tuple(self[part] for part in np.split(rng.permutation(len(self)), bounds))

    def partition_by_sign(self) -> SignPartition:
        """Split into the events with `w >= 0` and those with `w < 0`, both with absolute weights."""
        negative = self.weights < 0
        return SignPartition(
            self._with(self.features[~negative], self.weights[~negative]),
            self._with(self.features[negative], -self.weights[negative]),
            self.mixture_coefficient,
        )


class SignPartition(NamedTuple):
    r"""The two probability densities of $q = c\,p_+ + (1-c)\,p_-$, each with absolute weights."""

    positive: WeightedSample
    negative: WeightedSample
    coefficient: float


def _columns_to_matrix(features: Any) -> tuple[Any, list[str] | None]:  # noqa: ANN401
    """Turn anything with named columns into a matrix and its names."""
    if isinstance(features, WeightedSample):
        return features.features, list(features.names)
    if isinstance(features, Mapping):
        return _stacked([str(name) for name in features], list(features.values()))
    if isinstance(features, np.ndarray) and features.dtype.names:
        return _stacked(list(features.dtype.names), [features[name] for name in features.dtype.names])
    if hasattr(features, "columns") and hasattr(features, "to_numpy"):
        names = _checked_names(list(features.columns), len(features.columns))
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


def _checked_features(matrix: Any) -> npt.NDArray[np.float32]:  # noqa: ANN401
    array = _numbers(matrix, "features")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        msg = f"Got features of shape {array.shape}; expected two dimensions (events, features)."
        raise InvalidInputError(msg)
    with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
        return np.array(array, dtype=np.float32, order="C", copy=True)


def _checked_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    checked = tuple(f"x{i}" for i in range(n_features)) if names is None else tuple(str(n) for n in names)
    if len(checked) != n_features:
        msg = f"Got {len(checked)} names for {n_features} features; expected one name per feature."
        raise InvalidInputError(msg)
    repeated = sorted({name for name in checked if checked.count(name) > 1})
    if repeated:
        msg = f"Got the feature names {repeated} more than once; expected unique names."
        raise InvalidInputError(msg)
    return checked


def _require_finite_columns(matrix: npt.NDArray[np.float32], names: tuple[str, ...]) -> None:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN, which is what we look for
        if np.isfinite(matrix.sum(dtype=np.float64)):  # one pass; NaN and infinity both survive a sum
            return
    n_bad = np.sum(~np.isfinite(matrix), axis=0)
    offenders = ", ".join(f"{name!r} ({n} events)" for name, n in zip(names, n_bad, strict=True) if n)
    msg = (
        f"Got values that are NaN, infinite or beyond float32 in {offenders}; expected finite features. "
        "Remove these events or replace the values."
    )
    raise InvalidInputError(msg)


def _checked_weights(weights: npt.ArrayLike | None, n_events: int) -> FloatArray:
    if weights is None:
        return np.ones(n_events)
    array = _numbers(weights, "weights")
    if array.shape != (n_events,):
        msg = f"Got weights of shape {array.shape} for {n_events} events; expected one weight per event."
        raise InvalidInputError(msg)
    checked = np.array(array, dtype=np.float64, copy=True)
    n_bad = int(np.sum(~np.isfinite(checked)))
    if n_bad:
        msg = f"Got {n_bad} weights that are NaN or infinite; expected finite weights. Remove these events."
        raise InvalidInputError(msg)
    return checked
