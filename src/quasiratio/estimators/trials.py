"""A few fits side by side, judged on validation data: how long and how strongly to train on these events.

The standard of `training.standard` is the first; the others are taken only where validation prefers them by more than
the standard error of the paired difference, because at small sizes the lowest of several risks is the lowest by chance. One
with another rate, tried at large sizes, has to be better by five: it is there for what the standard leaves unfinished, which
is far more than that, and a risk that is lower by little says nothing of the tails. Where validation cannot tell the two, the
softmax of `SignResolvedRatio` is the mean of both: it has less of the noise that a training leaves, and both are there anyway.
An ensemble tries with one member, and trains all of them with what was chosen and a share of its decay: members average
out part of what decay is there for, and the bias that it leaves is not in their spread. A single network of a small
sample is trained from several starts with what was chosen, and is their mean (see `standard_starts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from quasiratio.errors import DivergenceError
from quasiratio.model_files.document import (
    Count,
    Document,
    Measured,
    measured_document,
    measured_numbers,
    refuse_if,
)
from quasiratio.training.validation import standard_error

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.estimators.fitting import Fit
    from quasiratio.ratios import RatioModel
    from quasiratio.training import TrainingHistory, TrainingSettings

__all__ = ["Trained", "Trial", "TrialReport", "TrialReportDocument", "best_of_trials"]

_PREFERRED_ERRORS, _BOLD_ERRORS = 1.0, 5.0


class TrialDocument(Document):
    """`Trial`."""

    n_passes: Measured
    weight_decay: Measured
    risk: Measured
    difference: Measured
    error: Measured
    rate: Measured = 1.0


class TrialReportDocument(Document):
    """`TrialReport`."""

    trials: list[TrialDocument] = Field(min_length=1, max_length=1000)
    chosen: Annotated[int, Field(ge=0)]
    batch_size: Count
    member_decay: Annotated[float, Field(ge=0)] = 1.0
    n_starts: Count = 1
    is_mean: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(self.chosen >= len(self.trials), "the chosen trial is not among the trials")
        return self


class Trained(NamedTuple):
    """A trained model, its history, and the weighted validation losses of its kept state."""

    model: RatioModel
    history: TrainingHistory
    losses: Tensor


@dataclass(frozen=True)
class Trial:
    """One of the settings that were tried.

    Attributes:
        n_passes: Passes over the training events.
        weight_decay: Decoupled weight decay.
        risk: Validation risk.
        difference: Risk minus that of the standard settings.
        error: Standard error of that difference.
        rate: Learning rate in units of the standard one.
    """

    n_passes: float
    weight_decay: float
    risk: float
    difference: float
    error: float
    rate: float = 1.0


@dataclass(frozen=True)
class TrialReport:
    """What was tried, and what was taken.

    Attributes:
        trials: The standard settings first.
        chosen: Index of those that were taken.
        batch_size: Events per step in all of them.
        member_decay: What the members of an ensemble have of the decay that was taken; one without an ensemble.
        n_starts: Networks from different starts that a network of the model is the mean of.
        is_mean: Whether the model is the mean of the standard training and of the bold one.
    """

    trials: tuple[Trial, ...]
    chosen: int
    batch_size: int
    member_decay: float = 1.0
    n_starts: int = 1
    is_mean: bool = False

    def __str__(self) -> str:
        taken = self.trials[self.chosen]
        decay = taken.weight_decay * self.member_decay
        length = f"{taken.n_passes:.3g} passes in batches of {self.batch_size}, weight decay {decay:.2g}"
        if taken.rate != 1:
            length += f", {taken.rate:.3g} times the standard rate"
        if self.n_starts > 1:
            length += f", as the mean of {self.n_starts} starts"
        if len(self.trials) == 1:
            return f"Trained for {length}."
        if self.is_mean:
            bold = self.trials[-1]
            return (
                f"Trained for {length}, and averaged with a training of {bold.rate:.3g} times the rate and a weight decay of "
                f"{bold.weight_decay:.2g}: the difference of their validation risks, {bold.difference:.2g} ± {bold.error:.2g}, decides for neither."
            )
        if self.chosen == 0:
            error = "its error" if all(trial.rate == 1 for trial in self.trials) else "five times its error"
            return (
                f"Trained for {length}: of {len(self.trials)} settings none was better by more than {error}."
            )
        return (
            f"Trained for {length}: its validation risk is lower by {-taken.difference:.2g} ± {taken.error:.2g} than "
            f"that of the standard {self.trials[0].n_passes:.3g} passes with {self.trials[0].weight_decay:.2g}."
        )

    def document(self) -> TrialReportDocument:
        """Describe what was tried."""
        trials = [measured_document(TrialDocument, trial) for trial in self.trials]
        return TrialReportDocument(
            trials=trials,
            chosen=self.chosen,
            batch_size=self.batch_size,
            member_decay=self.member_decay,
            n_starts=self.n_starts,
            is_mean=self.is_mean,
        )

    @classmethod
    def stored(cls, document: TrialReportDocument | None) -> Self | None:
        """Make the report again; the first version tried nothing."""
        if document is None:
            return None
        trials = tuple(Trial(**measured_numbers(trial)) for trial in document.trials)
        others = document.model_dump(include={"chosen", "batch_size", "member_decay", "n_starts", "is_mean"})
        return cls(trials, **others)


def best_of_trials(
    fit: Fit, train_once: Callable[[Fit], Trained], mean_of: Callable[[Any, Any], RatioModel] | None = None
) -> tuple[Trained, TrialReport]:
    """Train with the standard settings and with the trials, and return the best.

    What is longer than the standard is not tried where something shorter was better.

    Args:
        fit: The events, the standard settings and the trials.
        train_once: Trains once with the settings of the fit that it is given.
        mean_of: The mean of two models, to be taken of the standard and the bold one where neither is better.
    """
    member_decay = fit.settings.member_decay if fit.n_members > 1 else 1.0
    if not fit.trials:
        trained = _trained_as_chosen(fit, fit.settings, train_once)
        alone = (_trial(fit.settings, trained, trained, fit),)
        return trained, TrialReport(alone, 0, fit.settings.batch_size, member_decay, fit.n_starts)
    pilot = fit.alone()
    standard = best = train_once(pilot.with_settings(fit.settings))
    trials, chosen, chosen_settings = [_trial(fit.settings, standard, standard, fit)], 0, fit.settings
    equal: Trained | None = None
    for settings in fit.trials:
        if settings.n_passes > fit.settings.n_passes > chosen_settings.n_passes:
            continue
        try:
            trained = train_once(pilot.with_settings(settings))
        except DivergenceError:
            continue
        trial = _trial(settings, trained, standard, fit)
        n_errors = _PREFERRED_ERRORS if trial.rate == 1 else _BOLD_ERRORS
        is_better = trial.difference < -n_errors * trial.error
        if is_better and trial.risk < trials[chosen].risk:
            best, chosen, chosen_settings = trained, len(trials), settings
        elif trial.rate != 1 and trial.difference < _PREFERRED_ERRORS * trial.error:
            equal = trained
        trials.append(trial)
    is_mean = False
    if fit.n_members > 1 or fit.n_starts > 1:
        best = _trained_as_chosen(fit, chosen_settings, train_once)
    elif equal is not None and mean_of is not None:
        best, is_mean = best._replace(model=mean_of(best.model, equal.model)), True
    return best, TrialReport(
        tuple(trials), chosen, fit.settings.batch_size, member_decay, fit.n_starts, is_mean
    )


def _trained_as_chosen(fit: Fit, settings: TrainingSettings, train_once: Callable[[Fit], Trained]) -> Trained:
    """Train all members, or a single one from all its starts."""
    if fit.n_members > 1:
        decay = settings.member_decay * settings.weight_decay
        return train_once(fit.with_settings(replace(settings, weight_decay=decay)))
    if fit.n_starts == 1:
        return train_once(fit.with_settings(settings))
    trained = train_once(fit.with_settings(settings).from_starts())
    return trained._replace(model=trained.model.averaged())


def _trial(settings: TrainingSettings, trained: Trained, standard: Trained, fit: Fit) -> Trial:
    difference = (trained.losses - standard.losses).double().flatten()
    n_events = fit.n_training
    return Trial(
        settings.n_steps(n_events) * settings.batch_size / n_events,
        settings.weight_decay,
        float(trained.losses.double().mean()),
        float(difference.mean()),
        float(standard_error(difference)),
        settings.learning_rate / fit.settings.learning_rate,
    )
