"""From the arguments of `fit` to checked training and validation arrays, and from results to what was given."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from quasiratio.columns import (
    FeatureMatrix,
    checked_fill,
    checked_names,
    columns_to_matrix,
    filled,
    require_finite_columns,
    with_needed_precision,
)
from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample, effective_size

__all__ = [
    "LabelledEvents",
    "as_kind_of",
    "checked_features",
    "checked_validation",
    "event_weights",
    "labelled_events",
    "require_class",
    "require_fraction",
    "require_positive_parts",
    "split_given",
    "split_indices",
    "split_validation",
    "stacked_samples",
    "validation_pair",
]


_MOST_CHECK_EVENTS = 200_000


@dataclass(frozen=True)
class LabelledEvents:
    """Events of both classes.

    Attributes:
        features: One row per event.
        labels: True for the target.
        weights: Signed weights.
        given_numbers: Which of the events that a user gave each of them is; `None` if they are those.
    """

    features: FeatureMatrix
    labels: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]
    given_numbers: npt.NDArray[np.int64] | None = field(default=None, kw_only=True)

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Which of the events that a user gave each of them is."""
        return np.arange(len(self.labels)) if self.given_numbers is None else self.given_numbers

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, index: npt.NDArray[Any]) -> LabelledEvents:
        """Return the events of a mask or of an index array."""
        return LabelledEvents(
            self.features[index], self.labels[index], self.weights[index], given_numbers=self.numbers[index]
        )

    @property
    def effective_share(self) -> float:
        """Effective number of events by |w|, each class for itself, over their number; one without a spread of weights."""
        classes = [np.abs(self.weights[self.labels == label]) for label in np.unique(self.labels)]
        return sum(effective_size(weights) for weights in classes) / max(1, len(self))

    def require_positive_sums(self, where: str) -> None:
        """Raise unless both classes are there and their weights sum to something positive."""
        for label in (False, True):
            chosen = self.weights[self.labels == label]
            with np.errstate(over="ignore"):  # beyond double precision is infinite
                require_class(len(chosen), float(chosen.sum()), label, where)


def require_class(n_events: int, total: float, label: bool, where: str) -> None:
    """Raise unless a class has events, and weights that sum to something positive."""
    role = "target (y = 1)" if label else "reference (y = 0)"
    if not n_events:
        msg = (
            f"Got events of one class only, none of the {role}, in the {where} data; expected events "
            "of both classes. In a cross-validation, StratifiedKFold(shuffle=True) puts both into every fold, "
            "as shuffle=True does in a learning curve."
        )
        raise InvalidInputError(msg)
    if not 0 < total < np.inf:
        msg = (
            f"The weights of the {role} sum to {total or 'zero':.6} in the {where} data; expected a "
            "positive sum. Check the sign convention of the weights and the selection."
        )
        raise InvalidInputError(msg)


def checked_features(estimator: BaseEstimator, features: Any, *, reset: bool) -> FeatureMatrix:  # noqa: ANN401
    """Check features with scikit-learn's rules and ours; store or compare names and number.

    Accepts what `WeightedSample` accepts. Raises with the column's name and the number of offenders.
    """
    if issparse(features):
        msg = "Got a sparse matrix; sparse input is not supported. Give a dense array, as from X.toarray()."
        raise InvalidInputError(msg)
    names, own_fill = None, dict[str, float]()
    if isinstance(features, WeightedSample):
        own_fill = dict(features.fill)
        features, names = features.features, features.names
    elif isinstance(features, Mapping) or _has_fields(features):
        features, named = columns_to_matrix(features)
        names = checked_names(named, features.shape[1])
    elif hasattr(features, "columns"):
        names = tuple(str(name) for name in features.columns)
    if reset:
        estimator.feature_names_ = names
    elif names is not None and estimator.feature_names_ is not None:
        _require_same_names(names, estimator.feature_names_)
    is_single = isinstance(features, np.ndarray) and features.dtype == np.float32
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        if names is not None:  # compared above; scikit-learn knows the names of frames only
            warnings.filterwarnings("ignore", "X (has feature names|does not have valid feature names)")
        try:
            matrix: FeatureMatrix = validate_data(
                estimator,
                features,
                reset=reset,
                dtype=np.float32 if is_single else np.float64,
                order="C",
                ensure_all_finite=False,
            )
        except ValueError as error:
            raise InvalidInputError(str(error)) from error
    if reset:
        matrix = with_needed_precision(matrix)
    elif not estimator.is_exact_:
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is reported by column
            matrix = matrix.astype(np.float32, copy=False)
    known = names or estimator.feature_names_ or checked_names(None, matrix.shape[1])
    if reset:
        estimator.is_exact_ = matrix.dtype == np.float64
        estimator.fill_ = {**own_fill, **checked_fill(estimator.fill, known)}
    of_fit = estimator.feature_names_ or checked_names(None, matrix.shape[1])
    matrix = filled(matrix, of_fit, estimator.fill_)
    require_finite_columns(matrix, known)
    return np.require(matrix, requirements="W")  # samples are frozen, and torch takes no read-only arrays


def event_weights(features: Any, weights: Any, n_events: int) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Return the weights that were given, else those of the sample, else ones."""
    if weights is None and isinstance(features, WeightedSample):
        weights = features.weights
    return np.array(WeightedSample(np.zeros(n_events), weights).weights)


def stacked_samples(
    reference: WeightedSample, target: WeightedSample, *, role: str = "reference"
) -> tuple[WeightedSample, npt.NDArray[np.int64]]:
    """Join two samples into the arguments of `fit`: all events with their weights, and a label for each.

    Args:
        reference: Events of label 0.
        target: Events of label 1.
        role: What the first sample is called in messages.

    Example:
        >>> events, labels = stacked_samples(WeightedSample([1.0, 2.0]), WeightedSample([3.0], [-1.0]))
        >>> events.weights.tolist(), labels.tolist()
        ([1.0, 1.0, -1.0], [0, 0, 1])
    """
    if reference.names != target.names:
        msg = (
            f"Got the features {list(reference.names)} in the {role} and {list(target.names)} in the target; "
            "expected the same names in the same order."
        )
        raise InvalidInputError(msg)
    if reference.fill != target.fill:
        msg = f"Got the fills {dict(reference.fill)} in the {role} and {dict(target.fill)} in the target; expected the same."
        raise InvalidInputError(msg)
    events = WeightedSample.adopt(
        np.concatenate([reference.features, target.features]),
        np.concatenate([reference.weights, target.weights]),
        reference.names,
        reference.fill,
    )
    return events, np.repeat([0, 1], [len(reference), len(target)])


def validation_pair(validation: Any, *, is_weighted: bool) -> tuple[WeightedSample, WeightedSample]:  # noqa: ANN401
    """Check the validation samples of `fit_samples`."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        msg = f"Got validation of type {type(validation).__name__}; expected the pair (reference, target)."
        raise InvalidInputError(msg)
    if is_weighted and not all(isinstance(sample, WeightedSample) for sample in validation):
        msg = (
            "Got validation samples without weights for training samples with weights; expected weights in both. "
            "Give WeightedSample(features, weights)."
        )
        raise InvalidInputError(msg)
    return WeightedSample(validation[0]), WeightedSample(validation[1])


def labelled_events(
    estimator: BaseEstimator,
    features: Any,  # noqa: ANN401
    labels: Any,  # noqa: ANN401
    weights: Any,  # noqa: ANN401
    *,
    reset: bool,
    where: str,
    is_whole: bool = True,
) -> LabelledEvents:
    """Check features, labels and weights together; sums only where these are all events."""
    matrix = checked_features(estimator, features, reset=reset)
    if labels is None:
        msg = "This estimator requires y to be passed, but the target y is None; expected 0 and 1 per event."
        raise InvalidInputError(msg)
    label_array = _checked_labels(np.asarray(labels), len(matrix))
    weight_array = event_weights(features, weights, len(matrix))
    events = LabelledEvents(matrix, label_array, weight_array)
    if is_whole:
        events.require_positive_sums(where)
    return events


def as_kind_of(events: Any, values: npt.NDArray[np.float64], *, name: str) -> Any:  # noqa: ANN401
    """Return one value per event like the events themselves.

    Args:
        events: What the user gave: a pandas frame or series, an awkward array, or anything else.
        values: One value per event.
        name: Name of the series, where it becomes one.

    Returns:
        A pandas series with the index of the events, an awkward array, or `values` as they are.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"pt": [30.0, 50.0]}, index=[7, 9])
        >>> as_kind_of(frame, np.array([1.0, 2.0]), name="weight").index.tolist()
        [7, 9]
    """
    # Whoever has such an array has imported its package; nothing is imported here.
    package = type(events).__module__.partition(".")[0]
    if package == "pandas" and hasattr(events, "index"):
        return sys.modules["pandas"].Series(values, index=events.index, name=name)
    if package == "awkward":
        return sys.modules["awkward"].Array(values)
    return values


def split_validation(
    events: LabelledEvents, fraction: float, rng: np.random.Generator
) -> tuple[LabelledEvents, LabelledEvents]:
    """Split off a random fraction for validation, alike in every label and sign."""
    train, validation = split_indices(events, (fraction,), rng)
    return events.select(train), events.select(validation)


def split_indices(
    events: LabelledEvents, fractions: Sequence[float], rng: np.random.Generator, *, is_whole: bool = True
) -> list[npt.NDArray[np.int64]]:
    """Split off random fractions, alike in every label and sign, and return the numbers of the events.

    The first part is what is left for training. Where there are events for it, the first fraction gets at least one of
    every label and sign; the others get what their fraction amounts to, which may be nothing. Sums of weights are looked at
    only where these are all events.
    """
    require_fraction(fractions[0])
    part_of = np.zeros(len(events), dtype=np.int64)
    groups = 2 * events.labels + (events.weights < 0)
    for group in range(4):
        members = rng.permutation(np.flatnonzero(groups == group))
        start = 0
        for number, fraction in enumerate(fractions, start=1):
            left = len(members) - start - 1
            wanted = max(number == 1, round(fraction * len(members)))
            n_taken = max(0, min(wanted, left))
            part_of[members[start : start + n_taken]] = number
            start += n_taken
    parts = [np.flatnonzero(part_of == number) for number in range(len(fractions) + 1)]
    if is_whole:
        require_positive_parts(*(events.select(part) for part in parts[:2]))
    return parts


def checked_validation(
    estimator: BaseEstimator,
    validation: Any,  # noqa: ANN401
    *,
    is_whole: bool = True,
) -> LabelledEvents:
    """Check validation events; sums of weights only where these are all of them."""
    if not isinstance(validation, tuple | list) or len(validation) != 3:
        msg = f"Got validation of type {type(validation).__name__}; expected the tuple (X, y, w)."
        raise InvalidInputError(msg)
    return labelled_events(estimator, *validation, reset=False, where="validation", is_whole=is_whole)


def split_given(
    validation: LabelledEvents, rng: np.random.Generator
) -> tuple[LabelledEvents, LabelledEvents]:
    """Split given validation events into those to choose by and those kept aside for the check, half but not too many."""
    fraction = 1.0 - max(0.5, 1.0 - _MOST_CHECK_EVENTS / len(validation))
    held_out, aside = (validation.select(part) for part in split_indices(validation, (fraction,), rng))
    return held_out, aside


def require_fraction(fraction: float) -> None:
    """Raise unless this share of the events can validate."""
    if not 0 < fraction < 1:
        msg = f"Got validation_fraction = {fraction}; expected a number between 0 and 1."
        raise InvalidInputError(msg)


def require_positive_parts(training: LabelledEvents, validation: LabelledEvents) -> None:
    """Raise unless both classes have a positive sum of weights in both parts."""
    advice = " (after the random split: give more events, or validation=(X, y, w) explicitly)"
    for part, name in ((training, "training"), (validation, "validation")):
        try:
            part.require_positive_sums(name)
        except InvalidInputError as error:
            raise InvalidInputError(str(error) + advice) from None


def _checked_labels(labels: npt.NDArray[Any], n_events: int) -> npt.NDArray[np.bool_]:
    if labels.shape not in {(n_events,), (n_events, 1)}:
        msg = f"Got labels of shape {labels.shape} for {n_events} events; expected one label per event."
        raise InvalidInputError(msg)
    labels = labels.reshape(-1)
    if labels.dtype.kind not in "fiubO":
        msg = f"Got labels of type {labels.dtype}; expected 0 (reference) and 1 (target)."
        raise InvalidInputError(msg)
    valid = (labels == 0) | (labels == 1)
    if not np.all(valid):
        others = sorted({str(value) for value in labels[~valid][:1000]})[:5]
        msg = (
            f"Got {int(np.sum(~valid))} labels other than 0 and 1 (such as {', '.join(others)}); "
            "expected 0 for the reference and 1 for the target."
        )
        raise InvalidInputError(msg)
    return np.asarray(labels == 1, dtype=bool)


def _has_fields(features: Any) -> bool:  # noqa: ANN401
    is_structured = isinstance(features, np.ndarray) and bool(features.dtype.names)
    return is_structured or type(features).__module__.startswith("awkward")


def _require_same_names(given: tuple[str, ...], known: tuple[str, ...]) -> None:
    if given != known:
        msg = (
            "The feature names should match those that were passed during fit: "
            f"got {list(given)}, expected {list(known)} in this order."
        )
        raise InvalidInputError(msg)
