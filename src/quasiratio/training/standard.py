r"""How long, in which batches and how strongly regularised to train, by the size of the sample.

Passes over the data, not steps, decide about over-training, so that the standard length is a number of passes and the
batch grows with the sample: about a hundred batches a pass. The standard decay falls with the cube root of the number
of events, by what their weights leave of it. Both were chosen on seeds 100 to 103 of four problems (signed jets with
equal and with different shares, six correlated dimensions, the Signed toy) at 10,000 and 100,000 events per class;
`benchmarks/trusted.py` judges them on others. Beside the standard a few other lengths and strengths are tried where the sample is small enough for them to
matter and to be cheap (`trial_settings`); validation decides.
"""

from __future__ import annotations

import math
from dataclasses import replace

from quasiratio.training.settings import TrainingSettings

__all__ = [
    "STANDARD_MEMBER_DECAY",
    "mined_settings",
    "standard_batch_size",
    "standard_passes",
    "standard_starts",
    "standard_validation_fraction",
    "standard_weight_decay",
    "trial_settings",
]

_BATCHES_PER_PASS = 100
_SMALLEST_BATCH, _LARGEST_BATCH = 256, 8192
_FEWEST_PASSES, _MOST_PASSES = 6.0, 12.0
_EVENT_PASSES = 24e6
_DECAY, _DECAY_EVENTS = 0.3, 2e4
STANDARD_MEMBER_DECAY = 1 / 3
"""Averaging over members does part of what decay does, and the bias that decay leaves is in no spread between them."""
_VALIDATION, _VALIDATION_EVENTS = 0.1, 2e4
_STARTS, _MOST_STARTS_EVENTS = 4, 40_000
_MOST_TRIAL_EVENTS, _MOST_LONG_TRIAL_EVENTS = 400_000, 100_000
_LONG_TRIALS = ((1.0, 1 / 3), (1.0, 3.0))
_SHORT_TRIALS = ((1 / 3, 1.0), (1 / 3, 10.0))
"""Factors of the standard passes and of the standard decay."""
_MINED_PASSES, _MINED_DECAY = 3.0, 1 / 3
_MINED_TRIALS, _MINED_LONGER = ((1 / 3, 3.0), (1 / 3, 30.0)), (10 / 3, 0.0)


def standard_batch_size(n_events: int) -> int:
    """Return a hundredth of the events, as a power of two between 256 and 8192.

    Example:
        >>> [standard_batch_size(n) for n in (1_000, 20_000, 200_000, 4_000_000)]
        [256, 256, 2048, 8192]
    """
    exponent = round(math.log2(max(1.0, n_events / _BATCHES_PER_PASS)))
    return min(max(1 << exponent, _SMALLEST_BATCH), _LARGEST_BATCH)


def standard_passes(n_events: int) -> float:
    """Return 12 passes up to two million events, falling to 6 at four million.

    Example:
        >>> [standard_passes(n) for n in (20_000, 3_000_000, 40_000_000)]
        [12.0, 8.0, 6.0]
    """
    return min(max(_EVENT_PASSES / n_events, _FEWEST_PASSES), _MOST_PASSES)


def standard_weight_decay(n_events: float) -> float:
    """Return 0.3 at twenty thousand events, falling with the cube root of their number.

    What counts is what the events are worth, their effective number by |w|: weights with tails leave less to learn from.

    Example:
        >>> [round(standard_weight_decay(n), 3) for n in (20_000, 200_000, 4_000_000)]
        [0.3, 0.139, 0.051]
    """
    return float(min(_DECAY * (_DECAY_EVENTS / max(n_events, 1.0)) ** (1 / 3), 1.0))


def standard_starts(n_events: int) -> int:
    """Return how many networks, from different starts, one network of the fit is the mean of: four up to 40,000 events.

    At such sizes the start decides much of what a network makes of the fluctuations: on seeds 100 to 107 of the signed jets with
    5,000 events per class one network erred by 0.5 to 3.0 of rms(r - 1), the mean of four by 0.5 to 0.7. For larger samples it
    would cost more than it gains.

    Example:
        >>> [standard_starts(n) for n in (2_000, 40_000, 200_000)]
        [4, 4, 1]
    """
    return _STARTS if n_events <= _MOST_STARTS_EVENTS else 1


def standard_validation_fraction(n_events: int) -> float:
    """Return a tenth up to twenty thousand events, falling with the fourth root of their number.

    Validation needs a number of events, not a share of them; what it takes is missing in training.

    Example:
        >>> [round(standard_validation_fraction(n), 3) for n in (2_000, 20_000, 200_000, 4_000_000)]
        [0.1, 0.1, 0.056, 0.027]
    """
    return float(_VALIDATION * min(1.0, _VALIDATION_EVENTS / n_events) ** 0.25)


def mined_settings(
    settings: TrainingSettings, n_events: int, *, fixed_decay: bool = False
) -> list[TrainingSettings]:
    """Return the standard of events that bring along what is to be learned, what to try beside it, and last a longer one.

    An event that knows its value says more than one that knows its class, so that there is less to over-train on, and what limits a
    fit is its length: on seeds 100 to 103 of two toys with smeared features (1,500 and 5,000 events) three times the standard passes
    with a third of its decay had two thirds of the error. Longer still, without decay, pays only where the value is a function of
    the features, and is tried up to 100,000 events.

    Example:
        >>> standard = TrainingSettings(n_passes=12, weight_decay=0.3)
        >>> [(trial.n_passes, round(trial.weight_decay, 2)) for trial in mined_settings(standard, 20_000)]
        [(36.0, 0.1), (12.0, 0.3), (12.0, 3.0), (120.0, 0.0)]
        >>> [len(mined_settings(standard, n)) for n in (200_000, 4_000_000)]
        [3, 1]
    """
    if settings.schedule == "constant" or settings.max_steps is not None:
        return [settings]
    factors = [(1.0, 1.0)]
    if n_events <= _MOST_TRIAL_EVENTS:
        factors += _MINED_TRIALS
    if n_events <= _MOST_LONG_TRIAL_EVENTS:
        factors.append(_MINED_LONGER)
    passes = _MINED_PASSES * settings.n_passes
    if fixed_decay:  # lengths alone
        lengths = sorted({longer for longer, _ in factors} - {1.0})
        return [replace(settings, n_passes=longer * passes) for longer in (1.0, *lengths)]
    decay = _MINED_DECAY * settings.weight_decay
    return [
        replace(settings, n_passes=longer * passes, weight_decay=stronger * decay)
        for longer, stronger in factors
    ]


def trial_settings(
    settings: TrainingSettings, n_events: int, *, fixed_decay: bool = False
) -> list[TrainingSettings]:
    """Return what to try beside the standard: nothing for large samples, and where the length is given.

    Above 100,000 events only the two short ones are: other strengths at full length cost as much as the fit itself, and
    were never taken there on the problems that the standard was chosen on.

    Example:
        >>> standard = TrainingSettings(n_passes=12, weight_decay=0.3)
        >>> [(trial.n_passes, round(trial.weight_decay, 2)) for trial in trial_settings(standard, 20_000)]
        [(12.0, 0.1), (12.0, 0.9), (4.0, 0.3), (4.0, 3.0)]
        >>> [len(trial_settings(standard, n)) for n in (200_000, 4_000_000)]
        [2, 0]
    """
    if n_events > _MOST_TRIAL_EVENTS or settings.schedule == "constant" or settings.max_steps is not None:
        return []
    trials = (*_LONG_TRIALS, *_SHORT_TRIALS) if n_events <= _MOST_LONG_TRIAL_EVENTS else _SHORT_TRIALS
    return [
        replace(settings, n_passes=passes * settings.n_passes, weight_decay=decay * settings.weight_decay)
        for passes, decay in trials
        if decay == 1 or not fixed_decay
    ]
