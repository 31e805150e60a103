r"""By how much a sample's density changes from the nominal weight to its variations, $\rho_k(x) = E_w[w_k/w \mid x]$.

One network learns all $\rho_k - 1$ of a sample together, by regression. Where nominal weights have both signs it takes
$|w|$ for the measure, $m_k(x) = E_{|w|}[w_k/w - 1 \mid x]$, which does not suffer from their cancellation. That is the
answer wherever the variation does not depend on the sign of an event beyond $x$. Whether it does, a second network is
asked, which learns $E_w[w_k/w - 1 - m_k \mid x]$ from what is left; its terms are added where they lower the risk on
events kept aside by more than two errors.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, cast

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.basis import PolynomialBasis
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.persistent import PersistentEstimator, StoredParts, stored_estimator
from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.estimators.variation_weights import relative_weights
from quasiratio.model_files.document import by_kind
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.sample import WeightedSample

__all__ = ["FactorDocument", "VariationFactors"]

FloatArray = npt.NDArray[np.float64]

_SMALLEST = 0.1
"""The smallest factor to divide by, in units of its mean, where the density is positive."""
_ASIDE = 0.1
_SIGNIFICANT = 2.0


def _factor_class(kind: str) -> type[PersistentEstimator]:
    if kind != PolynomialRatio.__name__:
        msg = f"Got an estimator of the class {kind} for the factors of variations; expected PolynomialRatio."
        raise InvalidInputError(msg)
    return PolynomialRatio


FactorDocument = Annotated[Any, by_kind(lambda kind: _factor_class(kind).document_type())]
"""A fitted part of the factors in `model.json`."""


@dataclass(frozen=True)
class VariationFactors:
    r"""The factors $\rho_k$ of one sample, but for constants, which normalisation takes out.

    Attributes:
        names: Names of the variations, without the nominal one.
        parts: Fitted estimators whose sum is $\rho_k - 1$; none where all variations are constant.
    """

    names: tuple[str, ...]
    parts: tuple[PolynomialRatio, ...]

    @classmethod
    def learned(
        cls,
        ratio: RatioEstimator,
        names: Sequence[str],
        sample: WeightedSample,
        weights: FloatArray,
        sign: str,
    ) -> Self:
        """Learn from the weights of a sample.

        Args:
            ratio: The fitted nominal ratio, whose hyperparameters are taken.
            names: Names of the variations, without the nominal one.
            sample: Events.
            weights: `(n, n_variations)` weights, the nominal ones first.
            sign: `"positive"` where the density of the sample is, else `"any"`.
        """
        differences, nominal = relative_weights(weights), weights[:, 0]
        if not np.ptp(differences, axis=0).any():
            return cls(tuple(names), ())
        shared = {field.name for field in dataclasses.fields(NetworkEstimator)}
        parameters = {name: value for name, value in ratio.get_params(deep=False).items() if name in shared}
        estimator = PolynomialRatio(
            PolynomialBasis(names, order=1), reference_density=cast(Any, sign), **parameters
        )
        if not np.any(nominal < 0):
            return cls(tuple(names), (_fitted(estimator, sample, differences, nominal),))
        first = _fitted(estimator, sample, differences, np.abs(nominal))
        again = {**estimator.get_params(deep=False), "max_steps": first.history_.n_steps}
        second = _correction(PolynomialRatio(**again), first, sample, differences, nominal)
        return cls(tuple(names), (first,) if second is None else (first, second))

    def predict(self, sample: WeightedSample, *, members: bool = False) -> FloatArray:
        """Return the factors, `(n, n_variations - 1)`, or of each member, `(n_members, n, n_variations - 1)`."""
        factors = np.ones((len(sample), len(self.names)))
        for part in self.parts:
            by_member = members and part.n_members > 1
            learned = (
                part.predict_member_coefficients(sample) if by_member else part.predict_coefficients(sample)
            )
            factors = factors + learned[..., 1:]
        return factors

    @property
    def floors(self) -> FloatArray:
        """The smallest factors to divide by: a tenth of their means, or any where the density may vanish."""
        if any(part.reference_density == "any" for part in self.parts):
            return np.full(len(self.names), -np.inf)
        return np.asarray(
            _SMALLEST * sum((part.learned_means_[1:] for part in self.parts), np.ones(len(self.names)))
        )

    @property
    def failures(self) -> Iterator[str]:
        """Why the check of the fit failed; of what was added to it for signs, only terms that had proved themselves are left."""
        for part in self.parts[:1]:
            if part.fit_check_.status == "failed":
                yield from part.fit_check_.reasons

    def add_onnx(self, graph: OnnxGraph, features: str) -> str | None:
        """Add the factors to a graph, `(n, n_variations - 1)`; `None` where all are one."""
        total: str | None = None
        for part in self.parts:
            places = graph.axes(*range(1, len(self.names) + 1))
            learned = graph.add("Gather", part.model_.add_onnx(graph, features).coefficients, places, axis=-1)
            total = learned if total is None else graph.add("Add", total, learned)
        return None if total is None else graph.add("Add", total, 1.0)

    def documents(self) -> list[Any]:
        """Describe the parts, all but their tensors."""
        return [part.fitted_document() for part in self.parts]

    @classmethod
    def stored(cls, names: Sequence[str], documents: Sequence[Any], stored: StoredParts) -> Self:
        """Make the factors again."""
        parts = [stored_estimator(one, stored.under(f"{number}.")) for number, one in enumerate(documents)]
        return cls(tuple(names), tuple(cast(PolynomialRatio, part) for part in parts))


def _fitted(
    estimator: PolynomialRatio, sample: WeightedSample, differences: FloatArray, weights: FloatArray
) -> PolynomialRatio:
    known = np.column_stack([np.ones(len(sample)), differences])
    return estimator.fit(sample, known, weights)


def _correction(
    estimator: PolynomialRatio,
    first: PolynomialRatio,
    sample: WeightedSample,
    differences: FloatArray,
    weights: FloatArray,
) -> PolynomialRatio | None:
    """Learn what the measure |w| leaves; terms that do not lower the risk on events kept aside are zero."""
    left = differences - first.predict_coefficients(sample)[:, 1:]
    is_aside = np.random.default_rng(first.seed_).random(len(sample)) < _ASIDE
    if not weights[~is_aside].sum() > 0 or not weights[is_aside].sum() > 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustworthyFitWarning)  # what does not help is not taken
        second = _fitted(estimator, sample.select(~is_aside), left[~is_aside], weights[~is_aside])
    learned = second.predict_coefficients(sample.select(is_aside))[:, 1:]
    changes = weights[is_aside, None] * learned * (learned - 2.0 * left[is_aside])
    significant = changes.sum(axis=0) < -_SIGNIFICANT * np.sqrt(np.square(changes).sum(axis=0))
    if not significant.any():
        return None
    rejected = torch.from_numpy(np.concatenate([[True], ~significant]))
    with torch.no_grad():  # the constant term is that of the first part
        second.model_.matrix[rejected] = 0.0
        second.model_.offset[rejected] = 0.0
    second.learned_means_ = np.where(rejected.numpy(), 0.0, second.learned_means_)
    return second
