"""Signed samples: events with features and weights of either sign.

A `WeightedSample` is checked once, when it is built; everything behind it may then rely on finite
two-dimensional features (float32, or float64 where float32 would lose what tells events apart), finite float64
weights of the same length and unique names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.columns import (
    FeatureMatrix,
    FloatArray,
    checked_features,
    checked_fill,
    checked_names,
    checked_weights,
    columns_to_matrix,
    filled,
    require_finite_columns,
    require_usable_scale,
)
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SignPartition", "WeightedSample", "effective_size", "positive_sum", "size_of_sums"]


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
        fill: What stands for a missing value (NaN), by feature, such as `{"jet1_pt": 0.0}`; elsewhere a missing value is
            an error. Models learn from it whether the value is there.

    Example:
        >>> s = WeightedSample([[0.1, 2.0], [0.3, 1.0], [0.2, 5.0]], weights=[1.0, -0.5, 1.0])
        >>> s.sum_of_weights, s.negative_fraction
        (1.5, 0.3333333333333333)
        >>> round(s.mixture_coefficient, 4)
        1.3333
    """

    features: FeatureMatrix
    weights: FloatArray
    names: tuple[str, ...]
    fill: Mapping[str, float]

    def __init__(
        self,
        features: Any,  # noqa: ANN401 - arrays, frames, mappings: whatever has columns
        weights: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
        fill: Mapping[str, float] | None = None,
    ) -> None:
        matrix: Any
        column_names: Sequence[str] | None
        if isinstance(features, WeightedSample):
            weights = features.weights if weights is None else weights
            if fill is None and names is None:
                fill = features.fill
            matrix, column_names = features.features, features.names
        else:
            matrix, column_names = columns_to_matrix(features)
        matrix = checked_features(matrix)
        unique_names = checked_names(names if names is not None else column_names, matrix.shape[1])
        fills = checked_fill(fill, unique_names)
        matrix = filled(matrix, unique_names, fills)
        require_finite_columns(matrix, unique_names)
        self._set(matrix, checked_weights(weights, len(matrix)), unique_names, fills)

    def _set(
        self,
        features: FeatureMatrix,
        weights: FloatArray,
        names: tuple[str, ...],
        fill: Mapping[str, float],
    ) -> None:
        for array in (features, weights):
            array.flags.writeable = False
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "fill", dict(fill))

    @classmethod
    def adopt(
        cls,
        features: FeatureMatrix,
        weights: FloatArray,
        names: Sequence[str],
        fill: Mapping[str, float] | None = None,
    ) -> Self:
        """Wrap large arrays without a copy: for readers that have checked that all values are finite.

        The arrays become read-only; nobody else may keep a writable view of them.

        Example:
            >>> WeightedSample.adopt(np.zeros((2, 1), np.float32), np.ones(2), ["pt"])
            WeightedSample(2 events, features ['pt'], sum of weights 2, negative fraction 0)
        """
        checked = checked_names(names, features.shape[1])
        is_real = features.dtype in (np.float32, np.float64)
        if not is_real or weights.dtype != np.float64 or weights.shape != features.shape[:1]:
            msg = (
                f"Got features of type {features.dtype} and shape {features.shape} with weights of type "
                f"{weights.dtype} and shape {weights.shape}; expected float32 or float64 features, and one float64 weight "
                "per event. Build WeightedSample(features, weights, names), which converts them."
            )
            raise InvalidInputError(msg)
        require_usable_scale(weights)
        sample = object.__new__(cls)
        sample._set(features, weights, checked, fill or {})
        return sample

    def _with(self, features: FeatureMatrix, weights: FloatArray) -> Self:
        """Wrap arrays that are known to be valid, without checking them again."""
        sample = object.__new__(type(self))
        sample._set(features, weights, self.names, self.fill)
        return sample

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, index: Any) -> Self:  # noqa: ANN401 - whatever NumPy takes, but one integer
        """Return the events of a slice, an index array or a mask."""
        if isinstance(index, int | np.integer):
            msg = (
                f"Got the single index {index} of a WeightedSample; slice instead, as in sample[{index}:{index + 1}]. A Pipeline "
                "or a search of scikit-learn takes arrays: give sample.features, and sample.weights as sample_weight."
            )
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
        with np.errstate(over="ignore"):  # beyond double precision is infinite, and refused where it matters
            return float(self.weights.sum())

    @property
    def negative_fraction(self) -> float:
        """Fraction of events whose weight is negative; zero for an empty sample."""
        return float(np.mean(self.weights < 0)) if len(self) else 0.0

    @property
    def effective_size(self) -> float:
        r"""$(\sum w)^2 / \sum w^2$: the unweighted events that would carry the same statistical error."""
        return effective_size(self.weights)

    @property
    def mixture_coefficient(self) -> float:
        r"""$c = \sum_{w_i \ge 0} w_i / \sum_i w_i$, at least one; raises where the sum is not positive."""
        total = self.require_positive_sum("sample")
        return max(1.0, float(self.weights[self.weights >= 0].sum()) / total)

    def require_positive_sum(self, role: str) -> float:
        """Return the sum of weights, or raise: a density can only be normalised by a positive sum."""
        return positive_sum(self.sum_of_weights, role)

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


def positive_sum(total: float, role: str) -> float:
    """Return a sum of weights, or raise where no density can be normalised by it.

    Example:
        >>> positive_sum(2.5, "reference")
        2.5
    """
    if not 0 < total < np.inf:
        msg = (
            f"The weights of the {role} sum to {total:.6g}; expected a positive, finite sum. "
            "Check the sign convention of the weights and the selection."
        )
        raise InvalidInputError(msg)
    return total


def effective_size(weights: npt.NDArray[np.float64]) -> float:
    r"""Return $(\sum w)^2 / \sum w^2$, zero without any weight.

    Example:
        >>> effective_size(np.array([1.0, 1.0, -1.0]))
        0.3333333333333333
    """
    # In units of a power of two, so that no square is too large or too small, and no digit is lost.
    scaled = np.ldexp(weights, -np.frexp(np.abs(weights).max(initial=0.0))[1])
    return size_of_sums(float(scaled.sum()), float(np.square(scaled).sum()))


def size_of_sums(total: float, sum_of_squares: float) -> float:
    """Return the effective size where only the sums of the weights and of their squares are known.

    Example:
        >>> size_of_sums(2.0, 4.0)
        1.0
    """
    return total * total / sum_of_squares if sum_of_squares != 0 else 0.0
