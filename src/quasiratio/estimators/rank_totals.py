"""Sums of weights over the events of several processes, each of which has its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from quasiratio.io import StoredSample
from quasiratio.training import Ranks

__all__ = ["totals_of_all"]


def totals_of_all(
    weights: npt.NDArray[np.float64], ranks: Ranks, numbers: npt.NDArray[np.int64] | None = None
) -> StoredSample:
    """Return what is known of all events of one sample, from the weights that this process has of it.

    Args:
        weights: Signed weights, perhaps none.
        ranks: The processes that have the others.
        numbers: Numbers of the events; counted here when left out.

    Example:
        >>> totals = totals_of_all(np.array([1.0, -0.5, 2.0]), Ranks())
        >>> totals.sum_of_weights, totals.n_negative, totals.largest_number
        (2.5, 1, 2)
    """
    sizes = np.abs(weights)
    largest = int(np.argmax(sizes)) if len(sizes) else 0
    number = largest if numbers is None or not len(sizes) else int(numbers[largest])
    own = StoredSample(
        n_events=len(weights),
        n_negative=int(np.sum(weights < 0)),
        positive_sum=float(weights[weights >= 0].sum()),
        negative_sum=float(sizes[weights < 0].sum()),
        sum_of_squares=float(np.square(weights).sum()),
        largest=float(weights[largest]) if len(sizes) else 0.0,
        largest_number=number,
        lowest=(),
        highest=(),
    )
    totals, *others = ranks.gathered(own)
    for other in others:
        heavier = max(totals, other, key=lambda one: abs(one.largest))
        totals = replace(
            heavier,
            n_events=totals.n_events + other.n_events,
            n_negative=totals.n_negative + other.n_negative,
            positive_sum=totals.positive_sum + other.positive_sum,
            negative_sum=totals.negative_sum + other.negative_sum,
            sum_of_squares=totals.sum_of_squares + other.sum_of_squares,
        )
    return totals
