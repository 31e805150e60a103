"""What every fitted model of ratios offers to workflows and reports: one estimator, or a reweighter made of several."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError, NegativeDensityWarning
from quasiratio.estimators.persistent import PersistentEstimator

if TYPE_CHECKING:
    from quasiratio.estimators.base import RatioEstimator

__all__ = ["RatioPrediction", "RatioPredictor"]

FloatArray = npt.NDArray[np.float64]


class RatioPrediction(NamedTuple):
    """Ratios of a set of events.

    Attributes:
        ratio: The ratio of each event.
        members: The ratios of each member, `(n_members, n)`; no rows where they were not asked for.
        nonpositive: For each model that took part, at how many of how many events its estimate of the reference density
            is zero or negative.
    """

    ratio: FloatArray
    members: FloatArray
    nonpositive: tuple[tuple[int, int], ...] = ()

    @property
    def n_nonpositive(self) -> int:
        """Number of events where an estimate of the reference density is zero or negative, added over the models."""
        return sum(n_found for n_found, _ in self.nonpositive)

    def warned(self, stacklevel: int = 3) -> Self:
        """Return the same, after a warning where the reference density vanishes."""
        for n_found, n_events in self.nonpositive:
            if n_found:
                msg = (
                    f"The estimated reference density is zero or negative for {n_found} of {n_events} events "
                    f"({100 * n_found / n_events:.2g}%); their ratio is returned as it comes out, and may be large."
                )
                warnings.warn(msg, NegativeDensityWarning, stacklevel=stacklevel)
        return self


class RatioPredictor(PersistentEstimator):
    """Base of what predicts ratios. Whoever has a model asks it, and never of which class it is."""

    if TYPE_CHECKING:
        # Learned by an estimator, asked of the folds by a reweighter.
        fill_: Any
        fit_check_: Any
        is_exact_: Any

        @property
        def n_members(self) -> int:
            """Members of the ensemble."""

    @property
    @abstractmethod
    def ratio_parts(self) -> list[RatioEstimator]:
        """The fitted ratio estimators: one, or one per fold."""

    @property
    def weight_scale(self) -> float:
        """The factor of a new weight beside the old weight and the ratio."""
        return 1.0

    @property
    def predicts_unseen(self) -> bool:
        """Whether every event is predicted by a model that has not seen it."""
        return False

    @property
    def variation_names(self) -> list[str]:
        """Names of the weights that it has ratios for, the nominal one first, where these are several."""
        return []

    def varied(self, name: str) -> Self:
        """Return the model of one of several weights."""
        msg = f"Got the variation {name!r} of a model of one weight; expected one of several weights."
        raise InvalidInputError(msg, advice="Fit again with `weights`, or leave it out.")

    def predict_quotients(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of each of several weights over the one that `predict_ratio` gives, `(n, n_weights)`."""
        return np.ones((len(X), 1))

    @abstractmethod
    def fit_samples(
        self,
        reference: Any,  # noqa: ANN401 - samples and frames
        target: Any,  # noqa: ANN401
        reference_weight: Any = None,  # noqa: ANN401
        target_weight: Any = None,  # noqa: ANN401
    ) -> Self:
        """Learn the ratio of `target` to `reference`."""

    @abstractmethod
    def predict_ratio(self, X: Any) -> FloatArray:  # noqa: ANN401 - arrays and frames; scikit-learn's name
        """Return the ratio of each event."""

    @abstractmethod
    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:  # noqa: ANN401
        """Return the ratio of each event, if asked for the ratios of each member, and what to warn about."""
