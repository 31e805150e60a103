"""A fit by several ranks: each gives its own events, and all get the same model.

Features, options and the seed are the same everywhere, or the fit is refused. Every rank splits its own events. What is small
and common is gathered in all of them, as a fit from disk takes it into memory (`stored_fit`): events to validate on, events
kept aside for the check, and up to a million training events, by which features are scaled and signs are tested. Training,
sums of weights and the normalisation of the ratio go over the events of all ranks (`training.shared_training`).

What decides about the training is computed by the first rank for all; at the end its learned attributes are everybody's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from quasiratio.estimators.fingerprint import data_fingerprint, joined_fingerprint
from quasiratio.estimators.fitting import usable_device
from quasiratio.estimators.rank_agreement import facts_of, require_alike, take_learned
from quasiratio.estimators.rank_totals import totals_of_all
from quasiratio.estimators.stored_fit import (
    CHECK_SHARE,
    MOST_ASIDE,
    MOST_COMMON,
    MOST_HELD_OUT,
    require_streaming,
)
from quasiratio.estimators.training_data import (
    LabelledEvents,
    checked_validation,
    labelled_events,
    require_class,
    require_positive_parts,
    split_given,
    split_indices,
)
from quasiratio.estimators.weight_warnings import warn_about_total
from quasiratio.training import Ranks, SharedTraining

if TYPE_CHECKING:
    from quasiratio.estimators.base import RatioEstimator

__all__ = ["fit_together"]

_Estimator = TypeVar("_Estimator", bound="RatioEstimator")


def fit_together(
    estimator: _Estimator,
    given: tuple[Any, Any, Any],
    validation: Any,  # noqa: ANN401
) -> _Estimator:
    """Fit an estimator to the events of all ranks.

    Args:
        estimator: The same in all ranks.
        given: Features, labels and weights of this rank.
        validation: The same to validate on, or `None`, in all ranks alike.
    """
    ranks = Ranks.present()
    with ranks.one_voice():
        with ranks.agreed():
            require_streaming(estimator, "several processes")
            events = labelled_events(estimator, *given, reset=True, where="given", is_whole=False)
        events = _alike(estimator, events, ranks, has_validation=validation is not None)
        seed = estimator.seed_ = ranks.same(estimator.new_seed())
        fingerprint = data_fingerprint(
            estimator.feature_list(), events.features, events.labels, events.weights
        )
        estimator.fingerprint_ = joined_fingerprint(ranks.gathered(fingerprint))
        n_events = estimator.fingerprint_.n_events
        with ranks.agreed():
            estimator.checked_settings(n_events)
            estimator.periodic_columns(events.features)
            estimator.object_coordinates()
            usable_device(estimator.device)
        for label, role in ((False, "reference"), (True, "target")):
            _check_class(events, ranks, label, role, len(estimator.feature_list()))
        rng = np.random.default_rng([seed, ranks.rank])
        if validation is None:
            fraction = estimator.held_out_fraction(n_events)
            with ranks.agreed():
                parts = split_indices(events, (fraction, CHECK_SHARE * fraction), rng, is_whole=False)
            training = events.select(parts[0])
            held_out = _gathered(events.select(parts[1]), ranks, MOST_HELD_OUT, rng)
            aside = _gathered(events.select(parts[2]), ranks, MOST_ASIDE, rng)
        else:
            with ranks.agreed():
                own = checked_validation(estimator, validation, is_whole=False)
            training, whole = events, _gathered(own, ranks, MOST_HELD_OUT + MOST_ASIDE, rng)
            with ranks.agreed():
                whole.require_positive_sums("validation")
                held_out, aside = split_given(whole, np.random.default_rng(seed))
        common = _gathered(training, ranks, MOST_COMMON, rng)
        with ranks.agreed():
            require_positive_parts(common, held_out)
        source = SharedTraining(training.features, training.labels, training.weights, ranks)
        numbered_in = (
            " of all processes" if validation is None else " of the validation events of all processes"
        )
        estimator.learn(common, held_out, aside, numbered_in=numbered_in, stored=source)
        take_learned(estimator, ranks)
    return estimator


def _alike(estimator: Any, events: LabelledEvents, ranks: Ranks, *, has_validation: bool) -> LabelledEvents:  # noqa: ANN401
    """Raise unless all ranks were given the same features and options; number the events through all of them."""
    require_alike({**facts_of(estimator), "validation events": "with" if has_validation else "none"}, ranks)
    theirs = ranks.gathered((estimator.is_exact_, len(events)))
    estimator.is_exact_ = any(is_exact for is_exact, _ in theirs)
    n_before = sum(n_events for _, n_events in theirs[: ranks.rank])
    features = events.features.astype(np.float64) if estimator.is_exact_ else events.features
    return replace(events, features=features, given_numbers=n_before + np.arange(len(events)))


def _check_class(events: LabelledEvents, ranks: Ranks, label: bool, role: str, n_features: int) -> None:
    """Raise, or warn, of what in the weights of all ranks no training can mend."""
    chosen = events.labels == label
    totals = totals_of_all(events.weights[chosen], ranks, events.numbers[chosen])
    with ranks.agreed():
        require_class(totals.n_events, totals.sum_of_weights, label, "given")
    warn_about_total(
        n_events=totals.n_events,
        n_features=n_features,
        largest=(totals.largest, totals.largest_number),
        sum_of_abs_weights=totals.sum_of_abs_weights,
        size=totals.effective_size,
        role=role,
        look_at="fit_check_",
    )


def _gathered(events: LabelledEvents, ranks: Ranks, most: int, rng: np.random.Generator) -> LabelledEvents:
    """Return events of all ranks, the same in each: all of them, or a random choice of `most`."""
    place = ranks.places([len(events)])[0]
    if place.total > most:
        chosen = rng.choice(len(events), most * place.own // place.total, replace=False)
        events = events.select(np.sort(chosen))
    columns = zip(
        *ranks.gathered((events.features, events.labels, events.weights, events.numbers)), strict=True
    )
    features, labels, weights, numbers = (np.concatenate(column) for column in columns)
    return LabelledEvents(features, labels, weights, given_numbers=numbers)
