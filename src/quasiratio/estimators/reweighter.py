"""hep_ml's interface on any ratio estimator, with cross-fitting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import model_validator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioDocument, RatioEstimator, RatioTemplate
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.estimators.fitting import require_one_process
from quasiratio.estimators.persistent import (
    FittedDocument,
    PersistentEstimator,
    StoredParts,
    stored_estimator,
)
from quasiratio.estimators.predictor import RatioPrediction, RatioPredictor
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.training_data import as_kind_of, stacked_samples
from quasiratio.metrics.duplicates import row_hashes
from quasiratio.model_files.document import Count, Document, PositiveFloat, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames
from quasiratio.sample import WeightedSample

__all__ = ["Reweighter", "ReweighterDocument", "add_filled", "add_folds", "fold_of_events"]

FloatArray = npt.NDArray[np.float64]

# Of `metrics.duplicates.row_hashes` and `fold_of_events`, with which a test compares.
_START, _FACTOR, _HASH_SHIFT, _FOLD_SHIFT = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 29, 11
_LOWEST, _HIGHEST = -126, 127


class ReweighterParameters(Document):
    """Parameters of `Reweighter`."""

    ratio: RatioTemplate
    total: Literal["target", "original"]
    n_folds: Count


class ReweighterDocument(FittedDocument):
    """A fitted `Reweighter`."""

    scale: PositiveFloat
    ratios: list[RatioDocument]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            len(self.ratios) != self.parameters.n_folds, "the number of estimators is not the number of folds"
        )
        refuse_if(
            len({ratio.features.count for ratio in self.ratios}) != 1,
            "the estimators have different numbers of features",
        )
        return self

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        for number, ratio in enumerate(self.ratios):
            yield from ratio.tensors(f"{prefix}folds.{number}.")


@dataclass(eq=False, repr=False)
class Reweighter(RatioPredictor):
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

    parameters_type: ClassVar[type[Document]] = ReweighterParameters
    fitted_type: ClassVar[type[FittedDocument]] = ReweighterDocument
    onnx_result: ClassVar[Literal["ratio", "weight_factor"]] = "weight_factor"

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
        require_one_process(type(self).__name__)
        if self.total not in ("target", "original"):
            msg = f"Got total = {self.total!r}; expected 'target' or 'original'."
            raise InvalidInputError(msg)
        if not isinstance(self.n_folds, int | np.integer) or self.n_folds < 1:  # type: ignore[redundant-expr]
            msg = f"Got n_folds = {self.n_folds!r}; expected a positive whole number."
            raise InvalidInputError(msg)
        estimator = self.ratio if self.ratio is not None else SignResolvedRatio()
        original_sample = estimator.sample_of(original, original_weight)
        target_sample = estimator.sample_of(target, target_weight)
        events, labels = stacked_samples(original_sample, target_sample, role="original")
        if not len(events):
            msg = "Got no events; expected an original and a target sample. Check the selection."
            raise InvalidInputError(msg)
        self.fingerprint_ = data_fingerprint(events.names, events.features, labels == 1, events.weights)
        folds = fold_of_events(events.features, self.n_folds)
        self.ratios_: list[RatioEstimator] = []
        for fold in range(self.n_folds):
            seen = (folds != fold) if self.n_folds > 1 else np.ones(len(folds), dtype=bool)
            estimator = clone(self.ratio if self.ratio is not None else SignResolvedRatio())
            self.ratios_.append(estimator.fit_part(events[seen], labels[seen], np.flatnonzero(seen)))
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

    def fit_samples(
        self,
        reference: Any,  # noqa: ANN401 - samples and frames
        target: Any,  # noqa: ANN401
        reference_weight: Any = None,  # noqa: ANN401
        target_weight: Any = None,  # noqa: ANN401
    ) -> Self:
        """Learn the ratio of `target` to `reference`, as `fit` does, under the name that every estimator has."""
        return self.fit(reference, target, reference_weight, target_weight)

    @property
    def ratio_parts(self) -> list[RatioEstimator]:
        """The fitted estimators, one per fold."""
        check_is_fitted(self, "ratios_")
        return self.ratios_

    @property
    def predicts_unseen(self) -> bool:
        """Whether every event is predicted by a model that has not seen it: with two folds or more."""
        return self.n_folds > 1

    @property
    def weight_scale(self) -> float:
        """The factor $s$ of the new weights."""
        return float(self.scale_)

    @property
    def n_features_in_(self) -> int:
        """Number of features of the fitted samples, under scikit-learn's name."""
        check_is_fitted(self, "ratios_")
        return int(self.ratios_[0].n_features_in_)

    @property
    def fill_(self) -> dict[str, float]:
        """What stands for a missing value, by feature."""
        check_is_fitted(self, "ratios_")
        return dict(self.ratios_[0].fill_)

    @property
    def is_exact_(self) -> bool:
        """Whether the features need more than float32."""
        check_is_fitted(self, "ratios_")
        return any(bool(ratio.is_exact_) for ratio in self.ratios_)

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
        return self.predict_with_members(original, members=False).warned().ratio

    def predict_members(self, original: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of each member, `(n_members, n)`, of the model that did not see the event."""
        return self.predict_with_members(original, members=True).warned().members

    def predict_with_members(self, original: Any, *, members: bool) -> RatioPrediction:  # noqa: ANN401
        """Return the ratio of each event, if asked for the ratios of each member, and what to warn about."""
        check_is_fitted(self, "ratios_")
        sample = self.sample_of(original)
        folds = fold_of_events(sample.features, self.n_folds)
        ratio = np.empty(len(sample))
        of_members = np.empty((self.n_members if members else 0, len(sample)))
        nonpositive: list[tuple[int, int]] = []
        for fold, estimator in enumerate(self.ratios_):
            chosen = folds == fold
            if chosen.any():
                part = estimator.predict_with_members(sample.select(chosen), members=members)
                ratio[chosen], of_members[:, chosen] = part.ratio, part.members
                nonpositive += part.nonpositive
        return RatioPrediction(ratio, of_members, tuple(nonpositive))

    def sample_of(self, original: Any, weights: npt.ArrayLike | None = None) -> WeightedSample:  # noqa: ANN401
        """Return events as a sample; missing values are taken for what the fit was told."""
        fill = self.fill_ or None
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
        weights = self.scale_ * self.sample_of(original, original_weight).weights * ratio
        return as_kind_of(original, weights, name="weight")

    def feature_list(self) -> list[str]:
        """Return the names of the features of the fit."""
        check_is_fitted(self, "ratios_")
        ratio: RatioEstimator = self.ratios_[0]
        return ratio.feature_list()

    def fitted_parts(self) -> dict[str, PersistentEstimator]:
        """Return the fitted estimators of all folds."""
        return {f"folds.{number}.": ratio for number, ratio in enumerate(self.ratios_)}

    def named_parts(self) -> dict[str, PersistentEstimator]:
        """Return the fitted estimators of all folds, which count from one."""
        several = len(self.ratios_) > 1
        return {f"fold {k}" if several else "": ratio for k, ratio in enumerate(self.ratios_, start=1)}

    def fitted_fields(self) -> dict[str, Any]:
        """Add the scale and the estimators of all folds."""
        ratios = [ratio.fitted_document() for ratio in self.ratios_]
        return {**super().fitted_fields(), "scale": self.scale_, "ratios": ratios}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the scale and the estimators of all folds."""
        super().restore(document, stored)
        self.scale_ = document.scale
        self.ratios_ = [
            cast(RatioEstimator, stored_estimator(ratio, stored.under(f"folds.{number}.")))
            for number, ratio in enumerate(document.ratios)
        ]

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the models of all folds to a graph, and choose for each event the one that did not see it."""
        features = add_filled(graph, features, [self.fill_.get(name) for name in self.feature_list()])
        parts = [ratio.add_onnx(graph, features) for ratio in self.ratios_]
        ratio, members = parts[0]
        if len(parts) > 1:
            folds = add_folds(graph, features, self.n_features_in_, len(parts))
            for number, part in enumerate(parts[1:], start=1):
                is_here = graph.add("Equal", folds, graph.constant(np.array(number)))
                ratio = graph.add("Where", is_here, part.ratio, ratio)
                if members is not None and part.members is not None:
                    members = graph.add("Where", is_here, part.members, members)
        return RatioNames(ratio, members).scaled(graph, self.scale_)

    def onnx_note(self) -> str:
        """Say which model an event gets."""
        return (
            f"of {self.n_folds} models, each event gets the one that did not see it"
            if self.n_folds > 1
            else ""
        )

    def training_summary(self) -> list[Any]:
        """Return the summaries of all folds."""
        return [ratio.training_summary() for ratio in self.ratios_]


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


def add_filled(graph: OnnxGraph, features: str, fills: Sequence[float | None]) -> str:
    """Add what stands for a missing value in the place of NaN, feature by feature, as before a prediction."""
    if all(fill is None for fill in fills):
        return features
    values = np.array([np.nan if fill is None else fill for fill in fills])
    return graph.add("Where", graph.add("IsNaN", graph.cast(features, np.float32)), values, features)


def add_folds(graph: OnnxGraph, features: str, n_features: int, n_folds: int) -> str:
    r"""Add the fold of each event as ONNX operations: `(n, d)` features in double precision to `(n,)` whole numbers.

    ONNX of this opset cannot look at the bits of a float, but they follow from its value: with $a = |x|$,
    $E = \max(\lfloor\log_2 a\rfloor, -126)$ and $p = 2^E$ the bits below the sign are $2^{23}\,(a/p + E + 126)$, an exact
    number in double precision also where $x$ is subnormal or zero.
    """
    single = graph.cast(features, np.float32)  # folds do not look at more, whatever the type of the input
    bits = _add_bits(graph, graph.cast(single, np.float64))
    state = graph.constant(np.array(_START, dtype=np.uint64))
    factor = graph.constant(np.array(_FACTOR, dtype=np.uint64).view(np.int64))
    for column in range(n_features):
        of_column = graph.add("Gather", bits, graph.constant(np.array(column)), axis=1)
        mixed = graph.add("BitwiseXor", state, graph.cast(of_column, np.uint64))
        # Runtimes multiply signed numbers; modulo 2^64 the product is the same.
        product = graph.cast(graph.add("Mul", graph.cast(mixed, np.int64), factor), np.uint64)
        state = graph.add("BitwiseXor", product, _shifted(graph, product, _HASH_SHIFT))
    number = graph.constant(np.array(n_folds, dtype=np.uint64))
    return graph.cast(graph.add("Mod", _shifted(graph, state, _FOLD_SHIFT), number), np.int64)


def _add_bits(graph: OnnxGraph, features: str) -> str:
    size = graph.add("Abs", features)
    normal = graph.add("Max", size, 2.0**_LOWEST)
    guess = graph.add("Floor", graph.add("Div", graph.add("Log", normal), math.log(2.0)))
    guess = graph.add("Min", graph.add("Max", guess, float(_LOWEST)), float(_HIGHEST))
    power = _add_power(graph, guess)
    too_large = graph.cast(graph.add("Greater", power, normal), np.float64)
    too_small = graph.cast(graph.add("LessOrEqual", graph.add("Mul", power, 2.0), normal), np.float64)
    exponent = graph.add("Add", graph.add("Sub", guess, too_large), too_small)
    mantissa = graph.add("Div", size, _add_power(graph, exponent))
    below_sign = graph.add(
        "Mul", graph.add("Add", mantissa, graph.add("Add", exponent, float(-_LOWEST))), 2.0**23
    )
    is_negative = graph.cast(graph.add("Less", features, 0.0), np.float64)
    return graph.cast(graph.add("Add", below_sign, graph.add("Mul", is_negative, 2.0**31)), np.int64)


def _add_power(graph: OnnxGraph, exponent: str) -> str:
    """Add two to a whole power, exactly, from a table."""
    table = graph.constant(2.0 ** np.arange(_LOWEST, _HIGHEST + 1))
    return graph.add("Gather", table, graph.cast(graph.add("Add", exponent, float(-_LOWEST)), np.int64))


def _shifted(graph: OnnxGraph, value: str, n_bits: int) -> str:
    return graph.add("BitShift", value, graph.constant(np.array(n_bits, dtype=np.uint64)), direction="RIGHT")
