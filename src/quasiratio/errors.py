"""Exceptions and warnings that quasiratio raises.

Every message has three parts: what was given, what was expected, and how to fix it. Where the last of them names
arguments, it is kept apart as `advice`, with the arguments in backticks, such as `overwrite=True`: Python reads it
as it stands, and the command line writes its options instead. It prints a `QuasiratioError` as one sentence and exits
with code 2.
"""

from __future__ import annotations

__all__ = [
    "AssumedValueWarning",
    "DivergenceError",
    "DivergenceWarning",
    "FeatureWarning",
    "FitInterrupted",
    "InvalidInputError",
    "LargeFileError",
    "LostRankError",
    "LostSchedulerError",
    "MissingExtraError",
    "NegativeDensityWarning",
    "NegativeWeightWarning",
    "NoEventsError",
    "OmittedColumnWarning",
    "PluginWarning",
    "QuasiratioError",
    "QuasiratioWarning",
    "RunInterrupted",
    "SupportWarning",
    "UntrustworthyFitWarning",
]


class _Advised(BaseException):
    """Something with a message, and with advice that names arguments.

    Args:
        message: What was given and what was expected; empty where all of it is about arguments.
        advice: What to do about it, arguments in backticks and no words of users among them.

    Example:
        >>> error = InvalidInputError("Got a name that is taken.", advice="Give another `output`.")
        >>> str(error), error.advice
        ('Got a name that is taken. Give another `output`.', 'Give another `output`.')
    """

    def __init__(self, message: str = "", *, advice: str = "") -> None:
        super().__init__(f"{message} {advice}".strip() if advice else message)
        self.message, self.advice = message, advice


class QuasiratioError(_Advised, Exception):
    """Base class of every error that quasiratio raises on purpose.

    Attributes:
        is_told: Whether another process of the same work says it.
    """

    is_told = False


class InvalidInputError(QuasiratioError, ValueError):
    """The data or an option cannot be used; the message says why and what to do."""


class LargeFileError(InvalidInputError):
    """A small file would unpack to gigabytes, and nobody has said that this is meant."""


class NoEventsError(InvalidInputError):
    """There is no event to read, or a selection keeps none."""


class DivergenceError(QuasiratioError, RuntimeError):
    """The training risk ran away and no finite state of the model exists (or the user asked to stop)."""


class LostRankError(QuasiratioError, RuntimeError):
    """Another process of the same training has ended, or cannot be reached."""


class LostSchedulerError(QuasiratioError, RuntimeError):
    """The scheduler of a cluster has ended, or cannot be reached any more."""


class FitInterrupted(_Advised, KeyboardInterrupt):
    """A fit was interrupted; the message says what was kept of it."""


class RunInterrupted(_Advised, KeyboardInterrupt):
    """Work on many files was interrupted; the message says what was kept of it."""


class MissingExtraError(QuasiratioError, ImportError):
    """An optional dependency is needed; the message names the extra that installs it."""


class QuasiratioWarning(_Advised, UserWarning):
    """Base class of every warning that quasiratio issues."""


class AssumedValueWarning(QuasiratioWarning):
    """A value that a file does not give was assumed."""


class DivergenceWarning(QuasiratioWarning):
    """The training risk ran away; the best validated state was kept."""


class FeatureWarning(QuasiratioWarning):
    """A column that is used as a feature does not look like one."""


class NegativeWeightWarning(QuasiratioWarning):
    """A loss that can only express positive ratios meets negative weights."""


class NegativeDensityWarning(QuasiratioWarning):
    """The estimated reference density vanishes or is negative for some events."""


class OmittedColumnWarning(QuasiratioWarning):
    """Columns of the input cannot be written in the format of the output, and were left out."""


class PluginWarning(QuasiratioWarning):
    """An installed package offers something under a name that is taken, and it was left out."""


class SupportWarning(QuasiratioWarning):
    """Target weight lies where the reference has too few events to be reweighted."""


class UntrustworthyFitWarning(QuasiratioWarning):
    """A fit failed its own check, or its events cannot support one."""
