"""Exceptions and warnings that quasiratio raises.

Every message has three parts: what was given, what was expected, and how to fix it. The command line
prints a `QuasiratioError` as one sentence and exits with code 2.
"""

__all__ = [
    "DivergenceError",
    "DivergenceWarning",
    "FeatureWarning",
    "InvalidInputError",
    "LargeFileError",
    "MissingExtraError",
    "NegativeDensityWarning",
    "NegativeWeightWarning",
    "OmittedColumnWarning",
    "QuasiratioError",
    "QuasiratioWarning",
    "SupportWarning",
    "UntrustworthyFitWarning",
]


class QuasiratioError(Exception):
    """Base class of every error that quasiratio raises on purpose."""


class InvalidInputError(QuasiratioError, ValueError):
    """The data or an option cannot be used; the message says why and what to do."""


class LargeFileError(InvalidInputError):
    """A small file would unpack to gigabytes, and nobody has said that this is meant."""


class DivergenceError(QuasiratioError, RuntimeError):
    """The training risk ran away and no finite state of the model exists (or the user asked to stop)."""


class MissingExtraError(QuasiratioError, ImportError):
    """An optional dependency is needed; the message names the extra that installs it."""


class QuasiratioWarning(UserWarning):
    """Base class of every warning that quasiratio issues."""


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


class SupportWarning(QuasiratioWarning):
    """Target weight lies where the reference has too few events to be reweighted."""


class UntrustworthyFitWarning(QuasiratioWarning):
    """A fit failed its own check, or its events cannot support one."""
