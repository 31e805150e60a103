"""Numbers that stand for missing values without having been declared, such as the -999 of flat files.

One value that many events share, far from all others, hides these: with a tenth of the events at -999, a score between zero
and one is constant to half a permille of its width. It is a category and no number, and recognised as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix

__all__ = ["isolated_value", "recognised_sentinels"]

_FEWEST_EVENTS, _SMALLEST_SHARE = 10, 1e-3
_N_PROBED = 20_000
_BLOCK_EVENTS = 2**15


def recognised_sentinels(features: FeatureMatrix, declared: Collection[int] = ()) -> dict[int, float]:
    """Return, by column, the number that stands for missing values, where there is one.

    Args:
        features: `(n, d)` features.
        declared: Columns whose missing values are known already.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> score, has_tau = rng.random(1000), rng.random(1000) < 0.9
        >>> recognised_sentinels(np.column_stack([score, np.where(has_tau, score, -999.0), has_tau]))
        {1: -999.0}
    """
    found = {}
    for column in range(features.shape[1]):
        if column not in declared:
            value = isolated_value(features[:, column])
            if value is not None:
                found[column] = value
    return found


def isolated_value(values: npt.NDArray[np.floating[Any]]) -> float | None:
    """Return the smallest or the largest value, if many events share it and it is far from all others.

    Many are ten events and a permille. Far is farther from the next value than the 5% and 95% quantiles of all others are from
    each other, and told from it in float32. A count or a flag has no such value, as its steps are no smaller than that.

    Example:
        >>> isolated_value(np.append(np.linspace(-3.0, 3.0, 90), np.full(10, -9.0)))
        -9.0
        >>> isolated_value(np.append(np.linspace(0.0, 6.0, 90), np.full(10, -1.0))) is None
        True
    """
    return max(_candidates(values), default=(0, None), key=lambda pair: pair[0])[1]


def _candidates(values: npt.NDArray[np.floating[Any]]) -> Iterator[tuple[int, float]]:
    if not len(values):
        return
    for extreme in (values.min(), values.max()):
        n_shared = sum(
            int(np.count_nonzero(values[start : start + _BLOCK_EVENTS] == extreme))
            for start in range(0, len(values), _BLOCK_EVENTS)
        )
        if n_shared == len(values) or n_shared < max(_FEWEST_EVENTS, _SMALLEST_SHARE * len(values)):
            continue
        others = values[values != extreme].astype(np.float64)
        nearest = others.min() if extreme < others[0] else others.max()
        low, high = np.quantile(others[:: max(1, len(others) // _N_PROBED)], [0.05, 0.95])
        is_far = abs(nearest - float(extreme)) > high - low > 0.0
        if is_far and np.float32(nearest) != np.float32(extreme):
            yield n_shared, float(extreme)
