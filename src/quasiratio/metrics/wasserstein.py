r"""The sliced Wasserstein distance, extended to signed measures.

With $B = B_+ - B_-$ and $T = T_+ - T_-$, each of unit signed sum, the negative parts change sides: the
distance is that between the measures $B_+ + T_-$ and $T_+ + B_-$, which are nonnegative and of one mass.
In one dimension this is $\int |F_B(x) - F_T(x)|\,dx$ with the *signed* distribution functions. It is not
divided by the common mass, so that it stays a metric between unit-sum signed measures (the dual is
$\sup_f \int f\,d(B - T)$ over 1-Lipschitz $f$) and is the ordinary distance where nothing is negative.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_weights, require_finite, require_positive_sum

__all__ = ["sliced_wasserstein"]


def sliced_wasserstein(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    first_weights: npt.ArrayLike | None = None,
    second_weights: npt.ArrayLike | None = None,
    n_projections: int = 100,
    rng: np.random.Generator | None = None,
) -> float:
    r"""Return the Wasserstein-1 distance, averaged over random directions.

    $$\mathrm{SW}_1 = \mathbb{E}_{\theta} \int |F_B^\theta(x) - F_T^\theta(x)|\,dx$$

    Exact in one dimension, where there is only one direction. Features count in their own units:
    standardise them where these differ. A direction takes one sort of all events.

    Args:
        first: An `(n, d)` array of features, or `(n,)` for one feature.
        second: The same of the other sample, `(m, d)`.
        first_weights: Signed weights of positive sum; all one when left out.
        second_weights: Signed weights of the second sample.
        n_projections: Number of random directions; not used in one dimension.
        rng: The source of the directions; needed for two features or more.

    Example:
        >>> sliced_wasserstein([0.0, 1.0], [0.5, 1.5])
        0.5
    """
    a, b = _checked_points(first), _checked_points(second)
    if a.shape[1] != b.shape[1]:
        msg = f"Got samples of {a.shape[1]} and {b.shape[1]} features; expected the same features in both."
        raise InvalidInputError(msg)
    masses = np.concatenate([_unit_weights(first_weights, len(a)), -_unit_weights(second_weights, len(b))])
    points = np.concatenate([a, b])
    if points.shape[1] == 1:
        return _signed_distance(points[:, 0], masses)
    directions = _random_directions(points.shape[1], n_projections, rng)
    return float(np.mean([_signed_distance(points @ direction, masses) for direction in directions]))


def _signed_distance(positions: FloatArray, masses: FloatArray) -> float:
    """Return the integral of the absolute cumulative sum of masses that add up to zero."""
    order = np.argsort(positions)
    return float(np.abs(np.cumsum(masses[order])[:-1]) @ np.diff(positions[order]))


def _random_directions(n_features: int, n_projections: int, rng: np.random.Generator | None) -> FloatArray:
    if rng is None:
        msg = "Got no rng for more than one feature; expected a source of directions: rng=np.random.default_rng(seed)."
        raise InvalidInputError(msg)
    if n_projections < 1:
        msg = f"Got n_projections = {n_projections}; expected at least one direction."
        raise InvalidInputError(msg)
    directions = rng.standard_normal((n_projections, n_features))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _checked_points(points: npt.ArrayLike) -> FloatArray:
    array = np.asarray(points)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiub":
        msg = (
            f"Got points of shape {array.shape} and type {array.dtype}; expected numbers (events, features)."
        )
        raise InvalidInputError(msg)
    require_finite(array, "coordinates")
    return array.astype(np.float64, copy=False)


def _unit_weights(weights: npt.ArrayLike | None, n_events: int) -> FloatArray:
    checked = checked_weights(weights, n_events, "weights")
    return np.asarray(checked / require_positive_sum(checked, "weights"))
