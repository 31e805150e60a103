"""A fit whose events stay on disk: what is small and common is taken into memory, the rest is streamed.

Scaling of features, tests of the densities' signs, choices between trials, the check, support and noise need a bounded number
of events. As a store is in random order, its first stretches are those: events to validate on, events kept aside for
the check, and then the beginning of the training events. The training itself, sums of weights and the normalisation
of the ratio go over all of them (`training.stored_pool`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.columns import checked_fill
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.training_data import (
    LabelledEvents,
    require_fraction,
    require_positive_parts,
)
from quasiratio.estimators.weight_warnings import warn_about_total
from quasiratio.registry import ESTIMATORS
from quasiratio.training import StoredTraining, TrainingSource

if TYPE_CHECKING:
    from quasiratio.io import EventStore
    from quasiratio.ratios import RatioModel
    from quasiratio.ratios.ratio_model import RatioPredictions

__all__ = [
    "MOST_ASIDE",
    "MOST_COMMON",
    "MOST_HELD_OUT",
    "StoredSplit",
    "reference_means",
    "require_streaming",
    "split_store",
    "stored_means",
    "take_store",
]

FloatArray = npt.NDArray[np.float64]
MOST_COMMON = 2**20
"""Training events in memory, of which scaling, signs, support and noise are made."""
MOST_HELD_OUT, MOST_ASIDE = 2**20, 2**18
"""Events that validate, and events kept aside for the check."""


class StoredSplit(NamedTuple):
    """The events of a store.

    Attributes:
        training: The first training events, in memory.
        held_out: Events to validate on.
        aside: Events kept aside for the check.
        stored: All training events.
    """

    training: LabelledEvents
    held_out: LabelledEvents
    aside: LabelledEvents
    stored: StoredTraining


def split_store(store: EventStore, fraction: float, *, check_share: float) -> StoredSplit:
    """Take the first stretches of a store into memory.

    Args:
        store: The store.
        fraction: Share of the events that validates, up to a million.
        check_share: Events kept aside, in units of those.
    """
    require_fraction(fraction)
    n_held_out = min(max(1, round(fraction * len(store))), MOST_HELD_OUT)
    n_aside = min(round(check_share * fraction * len(store)), MOST_ASIDE)
    start = n_held_out + n_aside
    bounds = ((start, min(start + MOST_COMMON, len(store))), (0, n_held_out), (n_held_out, start))
    training, held_out, aside = (_rows(store, first, last) for first, last in bounds)
    require_positive_parts(training, held_out)
    return StoredSplit(training, held_out, aside, StoredTraining(store, start))


def _rows(store: EventStore, start: int, stop: int) -> LabelledEvents:
    rows = store.read(start, stop)
    return LabelledEvents(
        rows.features, rows.labels, rows.weights, given_numbers=np.arange(start, stop, dtype=np.int64)
    )


def require_streaming(estimator: Any, what: str = "a store of events") -> None:  # noqa: ANN401 - any estimator
    """Raise unless the estimator can train on events that stay on disk."""
    if getattr(estimator, "trains_from_store", False):
        return
    able = [
        f"{ESTIMATORS.require(method).__name__} ({method!r})"
        for method in ESTIMATORS.methods()
        if getattr(ESTIMATORS.require(method), "trains_from_store", False)
    ]
    msg = (
        f"Got {what} for {type(estimator).__name__}, which needs all events in memory; expected one of "
        f"{', '.join(able)}, without folds or several weights."
    )
    raise InvalidInputError(msg)


def take_store(estimator: Any, store: EventStore) -> None:  # noqa: ANN401 - any estimator that streams
    """Set what an estimator learns of its features before it is trained, and warn of weights as `fit` does."""
    require_streaming(estimator)
    estimator.n_features_in_, estimator.feature_names_ = len(store.names), store.names
    estimator.is_exact_, estimator.fill_ = (
        False,
        {**store.fill, **checked_fill(estimator.fill, store.names)},
    )
    if hasattr(estimator, "feature_names_in_"):  # of an earlier fit, to a frame
        del estimator.feature_names_in_
    estimator.checked_settings(len(store))
    for sample, role in ((store.reference, "reference"), (store.target, "target")):
        sample.require_positive_sum(role)
        warn_about_total(
            n_events=len(sample),
            n_features=len(store.names),
            largest=(sample.largest, sample.largest_number),
            sum_of_abs_weights=sample.sum_of_abs_weights,
            size=sample.effective_size,
            role=role,
            look_at="fit_check_",
        )


def reference_means(predictions: RatioPredictions, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of the ratio, and of the ratio of every member."""
    rows = np.vstack([predictions.ratio[None], predictions.members])
    return np.asarray(rows @ weights / weights.sum())


def stored_means(model: RatioModel, stored: TrainingSource, *, members: bool) -> FloatArray:
    """Return `reference_means` over all training events of the reference, block by block."""
    weighted, total = np.zeros(1 + (model.n_members if members else 0)), np.zeros(1)
    for features, weights in stored.reference_events():
        predictions = model.predict(features, members=members)
        weighted += np.vstack([predictions.ratio[None], predictions.members]) @ weights
        total += weights.sum()
    return np.asarray(stored.summed(weighted) / stored.summed(total))
