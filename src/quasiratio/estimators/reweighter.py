"""hep_ml's interface on any ratio estimator, with cross-fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.array_kinds import as_kind_of
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.estimators.persistent import PersistentEstimator
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.training_data import stacked_samples
from quasiratio.metrics.duplicates import row_hashes
from quasiratio.sample import WeightedSample

__all__ = ["Reweighter", "fold_of_events", "predicts_unseen"]

FloatArray = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class Reweighter(PersistentEstimator, BaseEstimator):  # type: ignore[misc]
    r"""Weights that turn an original sample into a target: $w_i \to s\,w_i\,r(x_i)$.

    What comes out is the **new weight**, the original weight included, not a factor. The scale $s$ is fixed
    by the fit: the new weights of the fitted original sample sum to the target's sum of weights
    (`total="target"`) or to the original's own (`total="original"`).

    Args:
        ratio: Any ratio estimator; by default `SignResolvedRatio()`.
        total: What the new weights of the fitted sample sum to.
        n_folds: With two or more, every event gets its ratio from a model that never saw it. The fold of an
            event is a hash of its features, so that this holds for any subset and order of events.

    Attributes:
        ratios_: The fitted estimators, one per fold.
        scale_: The factor $s$.
        fingerprint_: `DataFingerprint` of both samples.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> original, target = rng.normal(0.0, 1.0, (3000, 1)), rng.normal(0.3, 1.0, (6000, 1))
        >>> reweighter = Reweighter(SignResolvedRatio(max_steps=300, random_state=0)).fit(original, target)
        >>> weights = reweighter.predict_weights(original)
        >>> round(float(weights.sum()), 3)
        6000.0
        >>> bool(abs(np.average(original[:, 0], weights=weights) - 0.3) < 0.1)
        True
    """

    ratio: RatioEstimator | None = None
    total: Literal["target", "original"] = "target"
    n_folds: int = 1

    def fit(
        self,
        original: Any,  # noqa: ANN401
        target: Any,  # noqa: ANN401
        original_weight: npt.ArrayLike | None = None,
        target_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the ratio of `target` to `original`; weights may have either sign.

        Args:
            original: The sample to reweight.
            target: What it should look like.
            original_weight: Signed weights; when left out those of a `WeightedSample`, else all one.
            target_weight: The same for the target.
        """
        if self.total not in ("target", "original"):
            msg = f"Got total = {self.total!r}; expected 'target' or 'original'."
            raise InvalidInputError(msg)
        if not isinstance(self.n_folds, int | np.integer) or self.n_folds < 1:  # type: ignore[redundant-expr]
            msg = f"Got n_folds = {self.n_folds!r}; expected a positive whole number."
            raise InvalidInputError(msg)
        estimator = self.ratio if self.ratio is not None else SignResolvedRatio()
        original_sample = estimator._sample(original, original_weight)
        target_sample = estimator._sample(target, target_weight)
        events, labels = stacked_samples(original_sample, target_sample, role="original")
        if not len(events):
            msg = "Got no events; expected an original and a target sample. Check the selection."
            raise InvalidInputError(msg)
        self.fingerprint_ = data_fingerprint(events.names, events.features, labels == 1, events.weights)
        folds = fold_of_events(events.features, self.n_folds)
        self.ratios_ = []
        for fold in range(self.n_folds):
            seen = (folds != fold) if self.n_folds > 1 else np.ones(len(folds), dtype=bool)
            estimator = clone(self.ratio if self.ratio is not None else SignResolvedRatio())
            self.ratios_.append(estimator.fit(events[seen], labels[seen]))
        ratio = self.predict_ratio(original_sample)
        wanted = target_sample if self.total == "target" else original_sample
        reweighted_sum = float(original_sample.weights @ ratio)
        if not reweighted_sum > 0:
            msg = (
                f"The reweighted original sums to {reweighted_sum:.6g}; expected a positive sum. The fit has "
                "failed: look at the estimators in `ratios_`."
            )
            raise InvalidInputError(msg)
        self.scale_ = wanted.sum_of_weights / reweighted_sum
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of features of the fitted samples, under scikit-learn's name."""
        check_is_fitted(self, "ratios_")
        return int(self.ratios_[0].n_features_in_)

    @property
    def n_members(self) -> int:
        """Members of the ensemble of each fold."""
        ratio = self.ratio if self.ratio is not None else SignResolvedRatio()
        return int(ratio.n_members)

    @property
    def fit_check_(self) -> FitCheck:
        """The check of the fold that is worst off."""
        check_is_fitted(self, "ratios_")
        order = ("failed", "unknown", "good")
        checks: list[FitCheck] = [ratio.fit_check_ for ratio in self.ratios_]
        return min(checks, key=lambda check: order.index(check.status))

    def predict_ratio(self, original: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of densities per event, from the model that did not see the event."""
        return self._predict(original, members=False)[0]

    def predict_members(self, original: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of each member, `(n_members, n)`, of the model that did not see the event."""
        return self._predict(original, members=True)[1]

    def _predict(self, original: Any, *, members: bool) -> tuple[FloatArray, FloatArray]:  # noqa: ANN401
        """Return the ratio of each event and, if asked for, the ratios of each member."""
        check_is_fitted(self, "ratios_")
        sample = self._sample(original)
        folds = fold_of_events(sample.features, self.n_folds)
        ratio = np.empty(len(sample))
        of_members = np.empty((self.n_members if members else 0, len(sample)))
        for fold, estimator in enumerate(self.ratios_):
            chosen = folds == fold
            if chosen.any():
                ratio[chosen], of_members[:, chosen] = estimator._predict(
                    sample.select(chosen), members=members
                )
        return ratio, of_members

    def _sample(self, original: Any, weights: npt.ArrayLike | None = None) -> WeightedSample:  # noqa: ANN401
        """Return events as a sample; missing values are taken for what the fit was told."""
        fill = self.ratios_[0].fill_ or None
        return WeightedSample(original, weights, fill=None if isinstance(original, WeightedSample) else fill)

    def predict_weights(
        self,
        original: Any,  # noqa: ANN401
        original_weight: npt.ArrayLike | None = None,
    ) -> Any:  # noqa: ANN401
        """Return the new weights, `scale_ * original_weight * ratio`.

        They come as the events did: a pandas series with the index of a frame, an awkward array for awkward
        records, else a NumPy array.
        """
        ratio = self.predict_ratio(original)
        weights = self.scale_ * self._sample(original, original_weight).weights * ratio
        return as_kind_of(original, weights, name="weight")


def fold_of_events(features: FeatureMatrix, n_folds: int) -> npt.NDArray[np.int64]:
    """Assign each event to a fold by a hash of its features: the same event, the same fold, always.

    Example:
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]], dtype=np.float32)
        >>> folds = fold_of_events(x, 5)
        >>> bool(folds[0] == folds[2])
        True
    """
    if n_folds == 1:
        return np.zeros(len(features), dtype=np.int64)
    with np.errstate(over="ignore"):
        single = features.astype(np.float32, copy=False)  # as in ONNX
    return ((row_hashes(single) >> np.uint64(11)) % np.uint64(n_folds)).astype(np.int64)


def predicts_unseen(model: RatioEstimator | Reweighter) -> bool:
    """Tell whether every event is predicted by a model that has not seen it."""
    return isinstance(model, Reweighter) and model.n_folds > 1
