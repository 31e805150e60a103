"""A fit whose events stay on disk: what is small and common is taken into memory, the rest is streamed.

Scaling of features, tests of the densities' signs, choices between trials, the check, support and noise need a bounded number
of events. As a store is in random order, its first stretches are those: events to validate on, events kept aside for
the check, and then the beginning of the training events. The training itself, sums of weights and the normalisation
of the ratio go over all of them (`training.stored_pool`).

Several ranks share the store as they share files (`shared_fit`): all of them take the same events into memory, and each
streams its own stretch of the rest.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from quasiratio.columns import checked_fill
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fingerprint import stored_fingerprint
from quasiratio.estimators.fitting import streaming_estimators, usable_device, with_own_threads
from quasiratio.estimators.rank_agreement import facts_of, require_alike, take_learned
from quasiratio.estimators.training_data import (
    LabelledEvents,
    require_fraction,
    require_positive_parts,
)
from quasiratio.estimators.weight_warnings import warn_about_total
from quasiratio.training import Ranks, StoredTraining, TrainingSource

if TYPE_CHECKING:
    from quasiratio.io import EventStore
    from quasiratio.ratios import RatioModel
    from quasiratio.ratios.ratio_model import RatioPredictions

__all__ = [
    "CHECK_SHARE",
    "MOST_ASIDE",
    "MOST_COMMON",
    "MOST_HELD_OUT",
    "StoreFitting",
    "StoredSplit",
    "reference_means",
    "require_streaming",
    "split_store",
    "stored_means",
]

FloatArray = npt.NDArray[np.float64]
CHECK_SHARE = 0.5
"""Events kept aside for the check, in units of those held out for validation."""
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


class StoreFitting(ABC):
    """The part of a ratio estimator that fits events on disk.

    Attributes:
        trains_from_store: Whether it can: its training takes all events from `Fit.training_pool` and `Fit.signed_pools`.
    """

    trains_from_store: ClassVar[bool] = False

    @abstractmethod
    def learn(
        self,
        training: LabelledEvents,
        held_out: LabelledEvents,
        aside: LabelledEvents,
        **facts: Any,  # noqa: ANN401 - of `FitData`
    ) -> Self:
        """Learn from events that were checked and split."""

    @with_own_threads
    def fit_store(self, store: EventStore, *, say: Callable[[str], None] | None = None) -> Self:
        """Learn the ratio from events that stay on disk, for samples that do not fit into memory.

        Up to a million training events are held in memory, to scale features by and to test the signs of the densities;
        the training goes over all of them. `SignResolvedRatio` and `DirectRatio` can.

        In a process group every process opens the same store, and trains on its stretch of the events.

        Args:
            store: An `EventStore` of both samples, from `quasiratio.io.create_store`.
            say: Called with a line about the time that the training will take, before it starts; that of the first process.

        Example:
            >>> import tempfile, quasiratio as qr
            >>> rng = np.random.default_rng(0)
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     for name, mean in (("a", 0.0), ("b", 0.5)):
            ...         np.savez(f"{directory}/{name}.npz", pt=rng.normal(mean, size=2000))
            ...     pair = f"{directory}/a.npz", f"{directory}/b.npz"
            ...     store = qr.io.create_store(f"{directory}/store", *pair)
            ...     model = qr.SignResolvedRatio(max_steps=50, random_state=0).fit_store(store)
            >>> model.fingerprint_.n_events, model.predict_ratio({"pt": [0.0, 1.0]}).shape
            (4000, (2,))
        """
        estimator: Any = self
        ranks = Ranks.present()
        with ranks.one_voice():
            with ranks.agreed():
                _take_store(estimator, store)
            require_alike({"the store": store.sha256, **facts_of(estimator)}, ranks)
            estimator.seed_ = ranks.same(estimator.new_seed())
            estimator.fingerprint_ = ranks.once(functools.partial(stored_fingerprint, store))
            with ranks.agreed():
                fraction = estimator.held_out_fraction(len(store))
                training, held_out, aside, stored = split_store(store, fraction, ranks)
                estimator.periodic_columns(training.features)
                estimator.object_coordinates()
                usable_device(estimator.device)
            if ranks.size > 1:  # all measure how long it will take, or none
                say = (say if ranks.is_first else _say_nothing) if ranks.same(say is not None) else None
            self.learn(training, held_out, aside, numbered_in=" of the store", stored=stored, say=say)
            take_learned(estimator, ranks)
        return self


def _say_nothing(_: str) -> None:
    """Stand in for `say` in the ranks that measure with the first one and keep silent."""


def split_store(store: EventStore, fraction: float, ranks: Ranks) -> StoredSplit:
    """Take the first stretches of a store into memory.

    Args:
        store: The store.
        fraction: Share of the events that validates, up to a million.
        ranks: The processes that share the others.
    """
    require_fraction(fraction)
    n_held_out = min(max(1, round(fraction * len(store))), MOST_HELD_OUT)
    n_aside = min(round(CHECK_SHARE * fraction * len(store)), MOST_ASIDE)
    start = n_held_out + n_aside
    bounds = ((start, min(start + MOST_COMMON, len(store))), (0, n_held_out), (n_held_out, start))
    training, held_out, aside = (_rows(store, first, last) for first, last in bounds)
    require_positive_parts(training, held_out)
    stored = StoredTraining(store, start, ranks=ranks)
    if not stored.own:
        msg = f"Got a store with {len(stored)} training events for {ranks.size} processes; expected some for each. Use fewer processes."
        raise InvalidInputError(msg)
    return StoredSplit(training, held_out, aside, stored)


def _rows(store: EventStore, start: int, stop: int) -> LabelledEvents:
    rows = store.read(start, stop)
    return LabelledEvents(
        rows.features, rows.labels, rows.weights, given_numbers=np.arange(start, stop, dtype=np.int64)
    )


def require_streaming(estimator: Any, what: str = "a store of events") -> None:  # noqa: ANN401 - any estimator
    """Raise unless the estimator can train on events that stay on disk."""
    if getattr(estimator, "trains_from_store", False):
        return
    msg = (
        f"Got {what} for {type(estimator).__name__}, which needs all events in memory; expected "
        f"{streaming_estimators()}."
    )
    raise InvalidInputError(msg)


def _take_store(estimator: Any, store: EventStore) -> None:  # noqa: ANN401 - any estimator that streams
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
