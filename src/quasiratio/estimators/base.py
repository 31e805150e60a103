"""The contract of all ratio estimators: `fit`, `predict_ratio`, `predict_members` and `score`."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from pydantic import Field
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import (
    InvalidInputError,
    QuasiratioWarning,
    UntrustworthyFitWarning,
)
from quasiratio.estimators.checked_ratio import TERMS
from quasiratio.estimators.densities import (
    AssumedDensity,
    AssumedDensityDocument,
    EarlierFit,
    FitData,
    assumed_densities,
    checked_ratio,
    scored_ratio,
)
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.fit_check import FitCheck, FitCheckDocument, check_ratio
from quasiratio.estimators.fitting import usable_device, with_own_threads
from quasiratio.estimators.hyperparameters import (
    FittedNetworkDocument,
    NetworkEstimator,
    NetworkParameters,
)
from quasiratio.estimators.persistent import FittedDocument, StoredParts
from quasiratio.estimators.predictor import RatioPrediction, RatioPredictor
from quasiratio.estimators.shared_fit import fit_together
from quasiratio.estimators.stored_fit import CHECK_SHARE, StoreFitting
from quasiratio.estimators.training_data import (
    LabelledEvents,
    checked_validation,
    labelled_events,
    split_given,
    split_indices,
    stacked_samples,
    validation_pair,
)
from quasiratio.estimators.weight_warnings import warn_about_weights
from quasiratio.model_files.document import Document, Measured, as_measured, by_kind, from_measured
from quasiratio.registry import ESTIMATORS
from quasiratio.sample import WeightedSample
from quasiratio.training import Ranks

__all__ = [
    "FittedRatioDocument",
    "RatioDocument",
    "RatioEstimator",
    "RatioParameters",
    "RatioPrediction",
    "RatioTemplate",
]

FloatArray = npt.NDArray[np.float64]


class RatioParameters(NetworkParameters):
    """Hyperparameters of `RatioEstimator`."""

    normalize: bool
    reference_density: Literal["auto", "positive", "any"] = "any"
    target_density: Literal["auto", "positive", "any"] = "any"


class FittedRatioDocument(FittedNetworkDocument):
    """What every fitted ratio estimator has; the first version had none of it."""

    check: FitCheckDocument | None = None
    reference_density: AssumedDensityDocument | None = None
    target_density: AssumedDensityDocument | None = None
    training_sizes: Annotated[list[Measured], Field(min_length=2, max_length=2)] | None = None

    @property
    def n_members(self) -> int:
        """Number of members."""
        return int(self.parameters.n_members)


@dataclass(eq=False, repr=False, kw_only=True)
class RatioEstimator(NetworkEstimator, RatioPredictor, StoreFitting):
    r"""Base of the estimators of $r(x) = q_1(x)/q_0(x)$, the ratio of unit-normalised signed densities.

    Takes the hyperparameters of `NetworkEstimator`. Learned attributes end in an underscore.

    Args:
        normalize: Scale the ratio so that its weighted mean over the training reference is one; not where the reference
            density is seen to change its sign, where that mean has no finite variance.
        reference_density: What is known of the reference density: `"positive"`, so that a ratio over it has no pole;
            `"any"` sign; or `"auto"`, which tests the data (see `densities`).
        target_density: The same of the target density.

    Attributes:
        seed_: The seed in use, also where `random_state` was `None`.
        fit_check_: `FitCheck`: whether the ratio can be used, from events that took no part in the fit.
        reference_density_: `AssumedDensity`: what was assumed of the reference density, and why.
        target_density_: The same of the target density.
        training_sizes_: Effective sizes of the training reference and of the training target.
        fingerprint_: `DataFingerprint` of the events given to `fit`: their number, ranges and checksum.
    """

    normalize: bool = True
    reference_density: Literal["auto", "positive", "any"] = "auto"
    target_density: Literal["auto", "positive", "any"] = "auto"

    parameters_type: ClassVar[type[Document]] = RatioParameters
    fitted_type: ClassVar[type[FittedDocument]] = FittedRatioDocument

    @abstractmethod
    def fit_events(self, data: FitData) -> None:
        """Learn from checked events."""

    @property
    def ratio_parts(self) -> list[RatioEstimator]:
        """This estimator itself."""
        return [self]

    def facts_for_check(self) -> dict[str, Any]:
        """Return what `check_ratio` should know of the fit beside its ratios."""
        return {}

    @with_own_threads
    def fit(
        self,
        X: Any,  # noqa: ANN401 - arrays and frames; scikit-learn's name
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        validation: tuple[Any, npt.ArrayLike, npt.ArrayLike | None] | None = None,
    ) -> Self:
        """Learn the ratio from events of both classes, and check it on events kept aside.

        Args:
            X: `(n, d)` features, or anything with named columns that `WeightedSample` accepts.
            y: 0 for the reference (denominator), 1 for the target (numerator).
            sample_weight: Signed weights; when left out those of a `WeightedSample`, else all one. Each class
                must have a positive sum.
            validation: `(X, y, w)` to validate on and to check with, `w` as above; else `validation_fraction` of the
                events is held out, and half of that again for the check.
        """
        if Ranks.present().size > 1:
            return fit_together(self, (X, y, sample_weight), validation)
        events = labelled_events(self, X, y, sample_weight, reset=True, where="given")
        return self._fit_labelled(events, validation)

    @with_own_threads
    def fit_further(
        self,
        X: Any,  # noqa: ANN401
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        validation: tuple[Any, npt.ArrayLike, npt.ArrayLike | None] | None,
        earlier: EarlierFit,
    ) -> Self:
        """Learn from the events of an earlier fit, split as they were then, and go on from what that learned."""
        events = labelled_events(self, X, y, sample_weight, reset=True, where="given")
        return self._fit_labelled(events, validation, earlier)

    def fit_part(self, events: WeightedSample, y: npt.ArrayLike, numbers: npt.NDArray[np.int64]) -> Self:
        """Learn from a part of what a user gave, and tell events by their numbers in the whole."""
        part = labelled_events(self, events, y, None, reset=True, where="given")
        return self._fit_labelled(replace(part, given_numbers=numbers), None)

    def _fit_labelled(
        self,
        events: LabelledEvents,
        validation: Any,  # noqa: ANN401
        earlier: EarlierFit | None = None,
    ) -> Self:
        self.checked_settings(len(events))
        warn_about_weights(events, self.n_features_in_)
        self.seed_ = self.new_seed() if earlier is None else earlier.seed
        self.fingerprint_ = data_fingerprint(
            self.feature_list(), events.features, events.labels, events.weights
        )
        rng = np.random.default_rng(self.seed_)
        if validation is None:
            fraction = self.held_out_fraction(len(events))
            parts = split_indices(events, (fraction, CHECK_SHARE * fraction), rng)
            training, held_out, aside = (events.select(part) for part in parts)
        else:
            training, (held_out, aside) = events, split_given(checked_validation(self, validation), rng)
        numbered_in = "" if validation is None else " of the validation events"
        return self.learn(training, held_out, aside, numbered_in=numbered_in, earlier=earlier)

    def learn(
        self,
        training: LabelledEvents,
        held_out: LabelledEvents,
        aside: LabelledEvents,
        **facts: Any,  # noqa: ANN401 - of `FitData`
    ) -> Self:
        """Test the densities, train, and check the ratio on events kept aside."""
        densities = assumed_densities(
            training,
            reference=self.reference_density,
            target=self.target_density,
            periodic=self.periodic_columns(training.features),
            device=usable_device(self.device),
            seed=self.seed_ % 2**31,
        )
        self.reference_density_, self.target_density_ = densities.reference, densities.target
        data = FitData(training, held_out, densities, **facts)
        self.training_sizes_: tuple[float, float] | None = data.effective_sizes
        self.fit_events(data)
        self.fit_check_ = self._check(aside, data)
        if self.fit_check_.status == "failed":
            warnings.warn(str(self.fit_check_), UntrustworthyFitWarning, stacklevel=4)
        return self

    def _check(self, aside: LabelledEvents, data: FitData, **options: Any) -> FitCheck:  # noqa: ANN401
        """Check the fitted ratio on events kept aside."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuasiratioWarning)  # about the training events, and said before
            named = WeightedSample.adopt(aside.features, np.ones(len(aside)), self.feature_list())
            ratio = self.predict_with_members(named, members=False).ratio if len(aside) else np.empty(0)
        checked = checked_ratio(ratio, aside, data.densities, data.numbered_in)
        return check_ratio(checked, **options, **self.facts_for_check())

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
        samples = self.sample_of(reference, reference_weight), self.sample_of(target, target_weight)
        checked = None
        if validation is not None:
            is_weighted = any(bool(np.any(sample.weights != 1)) for sample in samples)
            checked = (*stacked_samples(*validation_pair(validation, is_weighted=is_weighted)), None)
        return self.fit(*stacked_samples(*samples), validation=checked)

    def fit_checked(self, data: FitData, owner: RatioEstimator) -> None:
        """Learn as a candidate among others, from events that their owner has checked, under its names of the features.

        The check is on the events to choose by, and as strict as a choice must be: one event that carries a term of the
        risk would decide it.
        """
        known: Any = owner
        self.n_features_in_, self.feature_names_ = known.n_features_in_, known.feature_names_
        self.is_exact_, self.fill_ = known.is_exact_, known.fill_
        self.checked_settings(len(data.training))
        self.seed_, self.fingerprint_ = self.new_seed(), owner.fingerprint_
        self.reference_density_, self.target_density_ = data.densities.reference, data.densities.target
        self.training_sizes_ = data.effective_sizes
        self.fit_events(data)
        self.fit_check_ = self._check(data.held_out, data, terms=TERMS)

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
            return self.predict_with_members(X, members=False).warned().ratio
        ratio, members, _ = self.predict_with_members(X, members=True).warned()
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
        return self.predict_with_members(X, members=True).warned().members

    def score(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:  # noqa: ANN401
        r"""Return $-J(r) = E_1[r] - \frac12 E_0[r^2]$: higher is better (see `metrics.ratio_risk`).

        Unless the reference given here has a region of negative density, $E_0$ uses weights $|w| a_0(x)$ with a sign
        asymmetry learned from these events alone, so that no pole on a negative weight can raise the score. What the fit
        assumed has no say, so that fits with different assumptions can be compared. A ratio in which one event carries
        more than 5% of either term (see `CheckedRatio.decisive_event`) has the score of minus infinity.
        """
        check_is_fitted(self)
        events = labelled_events(self, X, y, sample_weight, reset=False, where="scored")
        checked = scored_ratio(self.predict_ratio(X), events, self.periodic_columns(events.features))
        return float("-inf") if checked.decisive_event() else -checked.risk.value

    @property
    def accepts_any_reference(self) -> bool:
        """Whether the method can learn where the reference density is negative."""
        return True

    def fitted_fields(self) -> dict[str, Any]:
        """Add the check, what was assumed of the densities, and the sizes of the samples."""
        sizes = self.training_sizes_
        return {
            **super().fitted_fields(),
            "check": self.fit_check_.document(),
            "reference_density": self.reference_density_.document(),
            "target_density": self.target_density_.document(),
            "training_sizes": None if sizes is None else [as_measured(size) for size in sizes],
        }

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set what every ratio estimator knows of its fit."""
        super().restore(document, stored)
        self.fit_check_ = FitCheck.stored(document.check)
        self.reference_density_ = AssumedDensity.stored(document.reference_density)
        self.target_density_ = AssumedDensity.stored(document.target_density)
        sizes = document.training_sizes
        self.training_sizes_ = None if sizes is None else (from_measured(sizes[0]), from_measured(sizes[1]))


def _ratio_class(kind: str) -> type[RatioEstimator]:
    """Return the ratio estimator of that name of a class, or raise."""
    found: type[Any] = ESTIMATORS.of_kind(kind)
    if not issubclass(found, RatioEstimator):
        msg = f"Got an estimator of the class {kind}; expected one of a ratio."
        raise InvalidInputError(msg)
    return found


RatioTemplate = Annotated[Any, by_kind(lambda kind: _ratio_class(kind).template_type(), optional=True)]
"""An unfitted ratio estimator in `model.json`, or none."""
RatioDocument = Annotated[Any, by_kind(lambda kind: _ratio_class(kind).document_type())]
"""A fitted ratio estimator in `model.json`."""
