"""Weights that no training can mend, named before anything is trained: one event that decides, too few events that count."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quasiratio.errors import UntrustworthyFitWarning
from quasiratio.sample import effective_size

if TYPE_CHECKING:
    from quasiratio.estimators.training_data import LabelledEvents

__all__ = ["warn_about_sample", "warn_about_total", "warn_about_weights"]

_FEWEST_TO_JUDGE, _HEAVY_SHARE = 100, 0.1
_EFFECTIVE_PER_FEATURE = 40


def warn_about_weights(events: LabelledEvents, n_features: int) -> None:
    """Name, before anything is trained, what in the weights of both classes no training can mend."""
    for label, role in ((False, "reference"), (True, "target")):
        chosen = events.labels == label
        warn_about_sample(
            events.weights[chosen], n_features, role, look_at="fit_check_", numbers=events.numbers[chosen]
        )


def warn_about_sample(
    weights: npt.NDArray[np.float64],
    n_features: int,
    role: str,
    *,
    look_at: str,
    numbers: npt.NDArray[np.int64] | None = None,
) -> None:
    """Name, before anything is trained, what in the weights of one sample no training can mend.

    Args:
        weights: Signed weights.
        n_features: Number of features.
        role: What the sample is called.
        look_at: The learned attribute that says whether the fit succeeded.
        numbers: Numbers of the events; counted here when left out.
    """
    abs_weights = np.abs(weights)
    largest = int(np.argmax(abs_weights))
    warn_about_total(
        n_events=len(weights),
        n_features=n_features,
        largest=(float(weights[largest]), largest if numbers is None else int(numbers[largest])),
        sum_of_abs_weights=float(abs_weights.sum()),
        size=effective_size(weights),
        role=role,
        look_at=look_at,
    )


def warn_about_total(
    *,
    n_events: int,
    n_features: int,
    largest: tuple[float, int],
    sum_of_abs_weights: float,
    size: float,
    role: str,
    look_at: str,
) -> None:
    """Do what `warn_about_sample` does, from the number of events, the largest weight, its event, and sums."""
    weight, number = largest
    share = abs(weight) / sum_of_abs_weights
    if n_events >= _FEWEST_TO_JUDGE and share > _HEAVY_SHARE:
        msg = (
            f"One event of the {role}, number {number}, has the weight {weight:.6g} and {share:.0%} of the sum "
            "of |w|: it decides the fit alone. Look at it, or leave it out."
        )
        warnings.warn(msg, UntrustworthyFitWarning, stacklevel=6)
        return
    if size < _EFFECTIVE_PER_FEATURE * n_features:
        msg = (
            f"The {role} has an effective size of {size:.3g} events for {n_features} features; expected at least "
            f"{_EFFECTIVE_PER_FEATURE} per feature. Use fewer features or more events, and look at `{look_at}`."
        )
        warnings.warn(msg, UntrustworthyFitWarning, stacklevel=6)
