r"""What is assumed of the signs of the two densities, and why.

A reference density that is positive has no zero, so that a ratio has no pole; its estimate may then be kept positive
(see `ratios.sign_odds`). Whether it is, the user states or the data say. Undecided data are taken for a positive
reference, because a pole that is not there does more harm than a cap that is hardly felt. A target keeps any sign, because
nothing divides by it, unless its asymmetry is beyond doubt above the floor even where negative weights are most frequent.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.checked_ratio import CheckedRatio
from quasiratio.estimators.learned_signs import LearnedSigns
from quasiratio.model_files.document import Document, Text
from quasiratio.ratios import SignFloors
from quasiratio.sample import effective_size
from quasiratio.training.ranks import Ranks, alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from quasiratio.estimators.training_data import LabelledEvents
    from quasiratio.estimators.trials import TrialReport
    from quasiratio.training import TrainingHistory, TrainingSource

__all__ = [
    "AssumedDensity",
    "AssumedDensityDocument",
    "Densities",
    "EarlierFit",
    "FitData",
    "assumed_densities",
    "checked_ratio",
    "density_lines",
    "scored_ratio",
]

FloatArray = npt.NDArray[np.float64]
Statement = Literal["auto", "positive", "any"]
_STATEMENTS = ("auto", "positive", "any")
_CLEAR_ERRORS = 2.0


class AssumedDensityDocument(Document):
    """`AssumedDensity`."""

    sign: Literal["positive", "any"]
    floor: Annotated[float, Field(gt=0, lt=1)] | None
    reason: Text


@dataclass(frozen=True)
class AssumedDensity:
    """What is assumed of one density.

    Attributes:
        sign: `"positive"` or `"any"`.
        floor: The smallest sign asymmetry that its estimate may have; `None` for any sign, and where no weight is
            negative.
        reason: Why.
    """

    sign: Literal["positive", "any"]
    floor: float | None
    reason: str

    def document(self) -> AssumedDensityDocument:
        """Describe what was assumed."""
        return AssumedDensityDocument(**dataclasses.asdict(self))

    @classmethod
    def stored(cls, document: AssumedDensityDocument | None) -> Self:
        """Make the assumption again; the first version assumed nothing."""
        if document is None:
            return cls("any", None, "the model was made before densities were tested")
        return cls(document.sign, document.floor, document.reason)


@dataclass(frozen=True)
class Densities:
    """What is assumed of both densities, and the signs that were learned on the way."""

    reference: AssumedDensity
    target: AssumedDensity
    reference_signs: LearnedSigns

    @property
    def floors(self) -> SignFloors:
        """The floors of both classes."""
        return SignFloors(self.reference.floor, self.target.floor)

    @property
    def has_poles(self) -> bool:
        """Whether the reference density is seen to change its sign, so that the exact ratio has poles."""
        return self.reference.sign == "any" and self.reference_signs.test.sign == "negative"

    def judge_weights(self, events: LabelledEvents) -> FloatArray:
        """Return weights by which to judge: positive ones for the reference, unless its density is seen to be negative.

        What the fit may assume has no say in this: a ratio that was allowed any sign can have poles, and with signed
        weights a pole on a negative weight would look like an improvement.
        """
        weights = events.weights.copy()
        reference = ~events.labels
        signs = self.reference_signs
        if not self.has_poles:
            floor = (self.reference.floor or 0.0) if self.reference.sign == "positive" else signs.floor
            log_odds = signs.log_odds(events.features[reference])
            weights[reference] = signs.positive_weights(log_odds, weights[reference], floor)
        return weights


class EarlierFit(NamedTuple):
    """A fit of the same events, from whose model another goes on.

    Attributes:
        model: What it learned, to be changed.
        history: How that was trained.
        trials: What was tried.
        seed: Its seed, and with it the same held-out events.
        training: Settings of what follows that are not to follow from those of the fit.
    """

    model: Any
    history: TrainingHistory
    trials: TrialReport | None
    seed: int
    training: Mapping[str, Any]


class FitData(NamedTuple):
    """What a fit gets.

    Attributes:
        training: Events to train on.
        held_out: Events to choose by; their `numbers` say which of the given ones they are.
        densities: What is assumed of the densities.
        tries: Whether to try other settings.
        numbered_in: What those numbers count, where not the events given to `fit`: "of the validation events".
        earlier: A fit of the same events to go on from.
        stored: All events to train on, where they stay on disk or are those of several processes; `training` are then some of
            them.
        say: Called with a line about the time that a training from disk will take.
    """

    training: LabelledEvents
    held_out: LabelledEvents
    densities: Densities
    tries: bool = True
    numbered_in: str = ""
    earlier: EarlierFit | None = None
    stored: TrainingSource | None = None
    say: Callable[[str], None] | None = None

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """Effective sizes of the training reference and target."""
        if self.stored is not None:
            return self.stored.effective_sizes
        labels, weights = self.training.labels, self.training.weights
        return effective_size(weights[~labels]), effective_size(weights[labels])


def checked_ratio(
    ratio: FloatArray, events: LabelledEvents, densities: Densities, numbered_in: str = ""
) -> CheckedRatio:
    """Arrange the ratio at events of both classes for a check."""
    judge_weights = densities.judge_weights(events) if len(events) else events.weights
    return _arranged(ratio, events, judge_weights[~events.labels], numbered_in)


def scored_ratio(ratio: FloatArray, events: LabelledEvents, periodic: Sequence[int]) -> CheckedRatio:
    """Arrange the ratio at events of both classes for a score, with signs that are learned from these events alone."""
    reference = ~events.labels
    with alone():  # also where others have events to score
        signs = LearnedSigns.of(events.features[reference], events.weights[reference], periodic=periodic)
    return _arranged(ratio, events, signs.judge_weights(events.weights[reference]))


def _arranged(
    ratio: FloatArray, events: LabelledEvents, judge_weights: FloatArray, numbered_in: str = ""
) -> CheckedRatio:
    target, numbers = events.labels, events.numbers
    return CheckedRatio(
        ratio[~target],
        ratio[target],
        events.weights[~target],
        events.weights[target],
        judge_weights,
        numbers[~target],
        numbers[target],
        numbered_in,
    )


def density_lines(reference: AssumedDensity, target: AssumedDensity) -> list[str]:
    """Say in one line each what was assumed of the densities.

    Example:
        >>> density_lines(AssumedDensity("positive", 0.13, "as stated"), AssumedDensity("any", None, "as stated"))[0]
        'The reference density is taken to be positive (smallest asymmetry 0.13): as stated.'
    """
    lines = []
    for role, density in (("reference", reference), ("target", target)):
        meaning = "is taken to be positive" if density.sign == "positive" else "may have any sign"
        floor = "" if density.floor is None else f" (smallest asymmetry {density.floor:.3g})"
        lines.append(f"The {role} density {meaning}{floor}: {density.reason}.")
    return lines


def assumed_densities(
    events: LabelledEvents,
    *,
    reference: str,
    target: str,
    periodic: Sequence[int],
    device: torch.device,
    seed: int,
) -> Densities:
    """Decide what to assume of both densities.

    Args:
        events: Training events.
        reference: What the user states of the reference: `"auto"`, `"positive"` or `"any"`.
        target: The same of the target.
        periodic: Columns of the features that are angles.
        device: Where to train.
        seed: Seed of the small classifiers.
    """
    for name, stated in (("reference_density", reference), ("target_density", target)):
        if stated not in _STATEMENTS:
            msg = f"Got {name} = {stated!r}; expected one of {', '.join(_STATEMENTS)}."
            raise InvalidInputError(msg)
    ranks = Ranks.present()  # which have the same events here, and must come to the same conclusion
    signs = [
        ranks.once(
            partial(
                LearnedSigns.of,
                events.features[chosen],
                events.weights[chosen],
                periodic=periodic,
                device=device,
                seed=seed,
            )
        )
        for chosen in (~events.labels, events.labels)
    ]
    return Densities(
        _assumed(reference, signs[0], if_undecided="positive"),
        _assumed(target, signs[1], if_undecided="any"),
        signs[0],
    )


def _assumed(stated: str, signs: LearnedSigns, *, if_undecided: Literal["positive", "any"]) -> AssumedDensity:
    test = signs.test
    has_negative = bool(signs.networks) or test.sign != "positive"
    floor = signs.floor if has_negative else None
    sign: Literal["positive", "any"] = if_undecided
    reason = str(test)
    if stated != "auto":
        sign = "positive" if stated == "positive" else "any"
        doubtful = sign == "positive" and test.sign == "negative"
        reason = f"as stated, although {test}" if doubtful else "as stated"
    elif floor is None:
        sign, reason = "positive", "no weight is negative"
    elif test.sign == "negative":
        sign = "any"
    elif test.asymmetry - _CLEAR_ERRORS * test.error > floor:
        sign = "positive"
    return AssumedDensity(sign, floor if sign == "positive" else None, reason)
