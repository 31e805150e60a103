"""The contract of all ratio estimators: `fit`, `predict_ratio`, `predict_members` and `score`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.persistent import PersistentEstimator
from quasiratio.estimators.training_data import (
    LabelledEvents,
    labelled_events,
    split_validation,
    stacked_samples,
)
from quasiratio.metrics import ratio_risk
from quasiratio.sample import WeightedSample

__all__ = ["RatioEstimator"]

FloatArray = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class RatioEstimator(PersistentEstimator, NetworkEstimator):
    r"""Base of the estimators of $r(x) = q_1(x)/q_0(x)$, the ratio of unit-normalised signed densities.

    Takes the hyperparameters of `NetworkEstimator`. Learned attributes end in an underscore.

    Args:
        normalize: Scale the ratio so that its weighted mean over the training reference is one.

    Attributes:
        seed_: The seed in use, also where `random_state` was `None`.
        fingerprint_: `DataFingerprint` of the events given to `fit`: their number, ranges and checksum.
    """

    normalize: bool = True

    @abstractmethod
    def _fit_events(self, training: LabelledEvents, held_out: LabelledEvents) -> None:
        """Learn from checked events."""

    @abstractmethod
    def _predict(self, X: Any, *, members: bool) -> tuple[FloatArray, FloatArray]:  # noqa: ANN401
        """Return the ratio of each event and, if asked for, the ratios of each member."""

    def fit(
        self,
        X: Any,  # noqa: ANN401 - arrays and frames; scikit-learn's name
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        validation: tuple[Any, npt.ArrayLike, npt.ArrayLike | None] | None = None,
    ) -> Self:
        """Learn the ratio from events of both classes.

        Args:
            X: `(n, d)` features, or anything with named columns that `WeightedSample` accepts.
            y: 0 for the reference (denominator), 1 for the target (numerator).
            sample_weight: Signed weights; when left out those of a `WeightedSample`, else all one. Each class
                must have a positive sum.
            validation: `(X, y, w)` to validate on, `w` as above; else `validation_fraction` of the events is held
                out.
        """
        events = labelled_events(self, X, y, sample_weight, reset=True, where="given")
        self._checked_settings()
        self.seed_ = self._new_seed()
        self.fingerprint_ = data_fingerprint(self._names(), events.features, events.labels, events.weights)
        if validation is None:
            rng = np.random.default_rng(self.seed_)
            training, held_out = split_validation(events, self.validation_fraction, rng)
        else:
            training, held_out = events, self._checked_validation(validation)
        self._fit_events(training, held_out)
        return self

    def fit_samples(
        self,
        reference: Any,  # noqa: ANN401 - samples and frames
        target: Any,  # noqa: ANN401
        reference_weight: npt.ArrayLike | None = None,
        target_weight: npt.ArrayLike | None = None,
        *,
        validation: tuple[Any, Any] | None = None,
    ) -> Self:
        """Learn the ratio of `target` to `reference`, two samples with weights of their own.

        The same as `fit` with both samples stacked and labelled.

        Args:
            reference: A `WeightedSample`, or anything that one can be made of: arrays, frames, dictionaries.
            target: The same for the numerator.
            reference_weight: Signed weights; when left out those of the sample, else all one.
            target_weight: The same for the target.
            validation: The pair `(reference, target)` to validate on, with weights of their own; else
                `validation_fraction` of the events is held out.

        Example:
            >>> import quasiratio as qr
            >>> case = qr.distributions.signed_gaussian_case("signed")
            >>> reference, target = case.samples(2000, np.random.default_rng(0))
            >>> model = qr.SignResolvedRatio(max_steps=100, random_state=0).fit_samples(reference, target)
            >>> model.predict_ratio(reference).shape
            (2000,)
        """
        samples = WeightedSample(reference, reference_weight), WeightedSample(target, target_weight)
        checked = None
        if validation is not None:
            is_weighted = any(bool(np.any(sample.weights != 1)) for sample in samples)
            checked = (*stacked_samples(*_validation_pair(validation, is_weighted=is_weighted)), None)
        return self.fit(*stacked_samples(*samples), validation=checked)

    def _fit_checked(self, training: LabelledEvents, held_out: LabelledEvents, owner: RatioEstimator) -> None:
        """Learn from events that another estimator has checked, under its names of the features."""
        known: Any = owner
        self.n_features_in_, self.feature_names_ = known.n_features_in_, known.feature_names_
        self._checked_settings()
        self.seed_, self.fingerprint_ = self._new_seed(), owner.fingerprint_
        self._fit_events(training, held_out)

    @overload
    def predict_ratio(self, X: Any, *, return_std: Literal[False] = False) -> FloatArray: ...  # noqa: ANN401

    @overload
    def predict_ratio(self, X: Any, *, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...  # noqa: ANN401

    def predict_ratio(
        self,
        X: Any,
        *,
        return_std: bool = False,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        r"""Return $r(x) = q_1(x)/q_0(x)$ per event, negative where one density is.

        Args:
            X: Features in the order of the fit.
            return_std: Also return the standard deviation across the members (not divided by the square
                root of their number); needs `n_members > 1`.
        """
        if not return_std:
            return self._predict(X, members=False)[0]
        ratio, members = self._predict(X, members=True)
        if len(members) < 2:
            msg = (
                "return_std=True needs an ensemble; refit with n_members of at least 2 (8 is a good number)."
            )
            raise InvalidInputError(msg)
        return ratio, members.std(axis=0, ddof=1)

    def predict(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return `predict_ratio`, under the name by which pipelines of scikit-learn call it."""
        return self.predict_ratio(X)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn has no types
        """Tell scikit-learn that labels are two classes, so that its default folds hold both of them."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def predict_members(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of each member, `(n_members, n)`; propagate these, not per-event errors."""
        return self._predict(X, members=True)[1]

    def score(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:  # noqa: ANN401
        r"""Return $-J(r) = E_1[r] - \frac12 E_0[r^2]$: higher is better (see `metrics.ratio_risk`)."""
        check_is_fitted(self)
        events = labelled_events(self, X, y, sample_weight, reset=False, where="scored")
        ratio, target = self.predict_ratio(X), events.labels
        risk = ratio_risk(ratio[~target], events.weights[~target], ratio[target], events.weights[target])
        return -risk.value

    def _checked_validation(self, validation: Any) -> LabelledEvents:  # noqa: ANN401
        if not isinstance(validation, tuple | list) or len(validation) != 3:
            msg = f"Got validation of type {type(validation).__name__}; expected the tuple (X, y, w)."
            raise InvalidInputError(msg)
        features, labels, weights = validation
        return labelled_events(self, features, labels, weights, reset=False, where="validation")


def _validation_pair(validation: Any, *, is_weighted: bool) -> tuple[WeightedSample, WeightedSample]:  # noqa: ANN401
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
