r"""How long, in which batches and how strongly regularised to train, by the size of the sample.

Passes over the data, not steps, decide about over-training, so that the standard length is a number of passes and the
batch grows with the sample: about a hundred batches a pass. The standard decay falls with the cube root of the number
of events, by what their weights leave of it, and faster where they are few. Both were chosen on seeds 100 to 103 of four problems (signed jets with
equal and with different shares, six correlated dimensions, the Signed toy) at 10,000 and 100,000 events per class;
`benchmarks/trusted.py` judges them on others. Beside the standard a few other lengths and strengths are tried where the sample
is small enough for them to matter and to be cheap, and a bold one where it is large (`trial_settings`); validation decides.
"""

from __future__ import annotations

import math
from dataclasses import replace

from quasiratio.training.settings import TrainingSettings

__all__ = [
    "STANDARD_MEMBER_DECAY",
    "direct_decay",
    "mined_settings",
    "single_function_length",
    "standard_batch_size",
    "standard_passes",
    "standard_starts",
    "standard_validation_fraction",
    "standard_weight_decay",
    "starts_from_one",
    "trial_settings",
]

_BATCHES_PER_PASS = 100
_SMALLEST_BATCH, _LARGEST_BATCH = 256, 8192
_FEWEST_PASSES, _MOST_PASSES = 6.0, 12.0
_EVENT_PASSES = 24e6
_DECAY, _DECAY_EVENTS, _STRONGEST_DECAY = 0.3, 2e4, 3.0
STANDARD_MEMBER_DECAY = 1 / 3
"""Averaging over members does part of what decay does, and the bias that decay leaves is in no spread between them."""
_VALIDATION, _VALIDATION_EVENTS = 0.1, 2e4
_STARTS, _MOST_STARTS_EVENTS = 4, 40_000
_MOST_TRIAL_EVENTS, _MOST_LONG_TRIAL_EVENTS = 400_000, 100_000
_LONG_TRIALS = ((1.0, 1 / 3), (1.0, 3.0))
_SHORT_TRIALS = ((1 / 3, 1.0), (1 / 3, 10.0))
"""Factors of the standard passes and of the standard decay."""
_BOLDNESS, _MOST_BOLD_TRIAL_EVENTS = 4.0, 5_000_000
"""By how much the bold trial is faster and its decay weaker, so that a step pulls as much as one of the standard."""
_BOLD_AVERAGED_PART = 0.15
"""Steep functions are learned last, and the mean over half of the steps is late where they are."""
_DIRECT_DECAY = 1 / 4
_MINED_PASSES, _MINED_DECAY = 3.0, 1 / 3
_MINED_TRIALS, _MINED_LONGER = ((1 / 3, 3.0), (1 / 3, 30.0)), (10 / 3, 0.0)
_SINGLE_FUNCTION_EVENTS, _MOST_LENGTH = 17_000, 2.0


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


def standard_weight_decay(n_events: float, *, noisy: bool = True) -> float:
    """Return 0.3 at twenty thousand events, falling with the cube root of their number, below with its square.

    What counts is what the events are worth, their effective number by |w|: weights with tails leave less to learn from. Below
    twenty thousand a cube root was too weak: with the power of two thirds the largest error on seeds 100 to 105 went from 1.12 to
    1.10 and from 0.83 to 0.69 on the signed jets with equal shares (5,000 and 10,000 events per class; medians from 0.86 to 0.71
    and 0.65 to 0.62), and from 0.152 to 0.157 on the Signed toy with 5,000. One over the number was too strong for the toy (0.195).

    Args:
        n_events: What the events are worth.
        noisy: Whether an event knows no more than its class. Those that bring along what is to be learned, and small
            classifiers of signs, keep the cube root: with the stronger decay mined ratios of 10,000 events lost a fifth.

    Example:
        >>> [round(standard_weight_decay(n), 3) for n in (2_500, 20_000, 200_000, 4_000_000)]
        [1.2, 0.3, 0.139, 0.051]
        >>> standard_weight_decay(2_500, noisy=False)
        0.6
    """
    fewer = _DECAY_EVENTS / max(n_events, 1.0)
    return float(min(_DECAY * fewer ** (2 / 3 if noisy and fewer > 1.0 else 1 / 3), _STRONGEST_DECAY))


def direct_decay(n_events: int) -> float:
    """Return what direct losses have of the standard decay: all up to 400,000 events, above a quarter.

    Gradients with signed weights are noisier than those of a softmax with absolute ones, so that the same decay has more to say in
    a step. At the size of the published toys, on seed 100, the rms error of REVERT was 0.035 and 0.031 (Signed and Nonnegative) with
    all of it, 0.022 and 0.028 with a quarter; on signed jets with a million events per class 0.202 and 0.215 of that of no reweighting.

    Example:
        >>> [direct_decay(n) for n in (400_000, 4_000_000)]
        [1.0, 0.25]
    """
    return _DIRECT_DECAY if n_events > _MOST_TRIAL_EVENTS else 1.0


def starts_from_one(n_events: int) -> bool:
    """Return whether a direct loss begins with the ratio one, no reweighting: up to 400,000 events.

    Few steps with much decay should not have to find the constant first. A large sample learns faster from the middle of the raw output,
    zero: at the size of the published toys, on seed 100 and with `direct_decay`, the rms error of REVERT is 0.019 and 0.021 from there
    and 0.022 and 0.028 from one (Signed and Nonnegative), and that of LSIF 0.018 and 0.027 (Nonnegative).

    Example:
        >>> [starts_from_one(n) for n in (400_000, 4_000_000)]
        [True, False]
    """
    return n_events <= _MOST_TRIAL_EVENTS


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


def single_function_length(n_events: int) -> float:
    """Return how much longer, with more decay, a classifier of one mined function is trained: twice up to 8,500 events, falling to once.

    Batches are no smaller than 256, so that 36 passes over 8,500 events are 1,200 steps only. Twice as many with twice the decay had
    three quarters of the median error on seeds 100 to 107 of a joint ratio with smeared features, and 0.7 to 1.03 of it on seeds 100
    to 103 of three others (10,000 events each). Regression was worse for it, and so were several functions of a signed reference.

    Example:
        >>> [round(single_function_length(n), 2) for n in (2_000, 10_000, 100_000)]
        [2.0, 1.7, 1.0]
    """
    return min(max(_SINGLE_FUNCTION_EVENTS / n_events, 1.0), _MOST_LENGTH)


def mined_settings(
    settings: TrainingSettings,
    n_events: int,
    *,
    fixed_decay: bool = False,
    length: float = 1.0,
    is_classifier: bool = False,
) -> list[TrainingSettings]:
    """Return the standard of events that bring along what is to be learned, what to try beside it, and last a longer one.

    An event that knows its value says more than one that knows its class, so that there is less to over-train on, and what limits a
    fit is its length: on seeds 100 to 103 of two toys with smeared features (1,500 and 5,000 events) three times the standard passes
    with a third of its decay had two thirds of the error. Longer still, without decay, pays only where the value is a function of
    the features, and is tried up to 100,000 events; by classifiers up to 400,000, since 300,000 at particle level were worse without it
    than 100,000 with it. The risk of a regression hangs on too few events to tell.

    Args:
        settings: The standard of other events.
        n_events: Training events.
        fixed_decay: Whether the decay was given, and is to be kept.
        length: By how much the standard is longer than that, and its decay stronger; what is tried beside it stays.
        is_classifier: Whether the risk grows but linearly with the values.

    Example:
        >>> standard = TrainingSettings(n_passes=12, weight_decay=0.3)
        >>> [(trial.n_passes, round(trial.weight_decay, 2)) for trial in mined_settings(standard, 20_000)]
        [(36.0, 0.1), (12.0, 0.3), (12.0, 3.0), (120.0, 0.0)]
        >>> mined_settings(standard, 20_000, length=2.0)[0].n_passes
        72.0
        >>> [len(mined_settings(standard, n)) for n in (200_000, 4_000_000)]
        [3, 1]
        >>> len(mined_settings(standard, 200_000, is_classifier=True))
        4
    """
    if settings.schedule == "constant" or settings.max_steps is not None:
        return [settings]
    factors = [(length, length)]
    if n_events <= _MOST_TRIAL_EVENTS:
        factors += _MINED_TRIALS
    if n_events <= (_MOST_TRIAL_EVENTS if is_classifier else _MOST_LONG_TRIAL_EVENTS):
        factors.append(_MINED_LONGER)
    passes = _MINED_PASSES * settings.n_passes
    if fixed_decay:  # lengths alone
        lengths = sorted({longer for longer, _ in factors} - {length})
        return [replace(settings, n_passes=longer * passes) for longer in (length, *lengths)]
    decay = _MINED_DECAY * settings.weight_decay
    return [
        replace(settings, n_passes=longer * passes, weight_decay=stronger * decay)
        for longer, stronger in factors
    ]


def trial_settings(
    settings: TrainingSettings, n_events: int, *, fixed_decay: bool = False, fixed_rate: bool = False
) -> list[TrainingSettings]:
    """Return what to try beside the standard: nothing for the largest samples, and where the length is given.

    Above 100,000 events only the two short ones are: other strengths at full length cost as much as the fit itself, and
    were never taken there on the problems that the standard was chosen on.

    Above 400,000 events nothing shorter pays any more, and what is tried is a bold one: four times the rate and a quarter of the
    decay. In large batches the standard takes few steps, all of them small, which suits noisy signs and leaves steep functions
    unfinished: on gg -> hh, whose target changes its sign at an edge, the bold one had a far lower risk (632,000 events per
    class, split 100: by 0.008), on the signed jets with a million an error half as large again. Eight times the rate spoiled
    the published toys, which four times improve. Its weights are averaged over the last steps only (see docs/decisions.md). Above five million events a second training would cost more than it may gain.

    Args:
        settings: The standard, or what was given in its place.
        n_events: Training events.
        fixed_decay: Whether the decay was given, and is to stay.
        fixed_rate: Whether the learning rate was.

    Example:
        >>> standard = TrainingSettings(n_passes=12, weight_decay=0.3)
        >>> [(trial.n_passes, round(trial.weight_decay, 2)) for trial in trial_settings(standard, 20_000)]
        [(12.0, 0.1), (12.0, 0.9), (4.0, 0.3), (4.0, 3.0)]
        >>> [len(trial_settings(standard, n)) for n in (200_000, 4_000_000, 40_000_000)]
        [2, 1, 0]
        >>> [(trial.learning_rate, trial.weight_decay) for trial in trial_settings(standard, 4_000_000)]
        [(0.04, 0.075)]
    """
    if settings.schedule == "constant" or settings.max_steps is not None:
        return []
    if n_events > _MOST_TRIAL_EVENTS:
        if n_events > _MOST_BOLD_TRIAL_EVENTS or (fixed_decay and fixed_rate):
            return []
        return [
            replace(
                settings,
                learning_rate=settings.learning_rate * (1.0 if fixed_rate else _BOLDNESS),
                weight_decay=settings.weight_decay / (1.0 if fixed_decay else _BOLDNESS),
                averaged_part=_BOLD_AVERAGED_PART,
            )
        ]
    trials = (*_LONG_TRIALS, *_SHORT_TRIALS) if n_events <= _MOST_LONG_TRIAL_EVENTS else _SHORT_TRIALS
    return [
        replace(settings, n_passes=passes * settings.n_passes, weight_decay=decay * settings.weight_decay)
        for passes, decay in trials
        if decay == 1 or not fixed_decay
    ]
