"""What is known of a model and its samples, besides the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quasiratio.estimators.predictor import RatioPredictor

__all__ = ["EvaluatedModel", "SampleSource"]


@dataclass(frozen=True)
class SampleSource:
    """Where the events of a sample come from.

    Args:
        files: Names of the files.
        weight: Expression of the weight; one where there is none.
        selection: Condition on the events; all where there is none.
        n_events: Number of events, where known.

    Example:
        >>> SampleSource(["a.root:events"], weight="w_gen").weight
        'w_gen'
    """

    files: Sequence[str] = ()
    weight: str | None = None
    selection: str | None = None
    n_events: int | None = None

    def is_same_as(self, other: SampleSource) -> bool:
        """Return whether both are the same events, as far as can be told from the names of files.

        Example:
            >>> SampleSource(["a.npz"], n_events=10).is_same_as(SampleSource(["a.npz"], n_events=10))
            True
            >>> SampleSource().is_same_as(SampleSource())
            False
        """
        named = bool(self.files) and list(self.files) == list(other.files)
        return named and self.selection == other.selection and self.n_events == other.n_events


@dataclass(frozen=True)
class EvaluatedModel:
    """A fitted model, and what was noted when it was fitted.

    Args:
        estimator: The model.
        path: Its directory.
        method: Name of the method on the command line.
        versions: Versions of the libraries that fitted it.
        fitted_on: Samples of the fit, by `"reference"` and `"target"`.

    Example:
        >>> import quasiratio as qr
        >>> EvaluatedModel(qr.SignResolvedRatio(), path="model").path
        'model'
    """

    estimator: RatioPredictor
    path: str = ""
    method: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    fitted_on: Mapping[str, SampleSource] = field(default_factory=dict)
