r"""Several weights at once: the ratios of all variations of two samples, from one fit.

Events carry a nominal weight $w$ and variations $w_k$ of it (scales, parton densities, efficiencies). The density of a
variation is that of the nominal weight times

$$\rho_k(x) = E_w\!\left[\frac{w_k}{w} \,\Big|\, x\right], \qquad
r_k(x) = r(x)\, \frac{\rho_k^\mathrm{target}(x)}{\rho_k^\mathrm{original}(x)}.$$

One network per sample learns all $\rho_k$ together (`variation_factors`). The nominal ratio is a fit as any other, and its error is common to all variations: their differences, which are what a systematic uncertainty
is made of, do not contain it.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioPrediction
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.estimators.fitting import require_one_process
from quasiratio.estimators.persistent import FittedDocument, PersistentEstimator, StoredParts
from quasiratio.estimators.reweighter import (
    Reweighter,
    ReweighterDocument,
    add_filled,
    add_folds,
    fold_of_events,
)
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.training_data import as_kind_of
from quasiratio.estimators.variation_factors import FactorDocument, VariationFactors
from quasiratio.estimators.variation_weights import Weights, variation_names, weight_columns, weight_matrix
from quasiratio.model_files.document import Name, PositiveFloat, TensorSpec, refuse_if
from quasiratio.model_files.onnx_file import add_inputs, checked_onnx_path, input_names, write_onnx
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.sample import WeightedSample

__all__ = ["VariationReweighter"]

FloatArray = npt.NDArray[np.float64]


class VariationDocument(ReweighterDocument):
    """A fitted `VariationReweighter`."""

    names: list[Name] = Field(min_length=2, max_length=10_000)
    norms: list[PositiveFloat]
    scales: list[PositiveFloat]
    original_factors: list[list[FactorDocument]]
    target_factors: list[list[FactorDocument]]

    @model_validator(mode="after")
    def _check_variations(self) -> Self:
        refuse_if(len(set(self.names)) < len(self.names), "a variation stands twice")
        refuse_if(
            not len(self.names) == len(self.norms) == len(self.scales),
            "there are as many norms and scales as variations",
        )
        for factors in (self.original_factors, self.target_factors):
            refuse_if(len(factors) != len(self.ratios), "there are factors for each fold")
            for one in (part for parts in factors for part in parts):
                refuse_if(
                    list(one.parameters.basis.parameters) != self.names[1:]
                    or one.parameters.basis.order != 1,
                    "the factors are not those of the variations",
                )
                refuse_if(
                    one.features.count != self.ratios[0].features.count,
                    "the factors have another number of features",
                )
        return self

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from super().tensors(prefix)
        for role, factors in (("original", self.original_factors), ("target", self.target_factors)):
            for fold, parts in enumerate(factors):
                for number, one in enumerate(parts):
                    yield from one.tensors(f"{prefix}{role}.{fold}.{number}.")


@dataclass(eq=False, repr=False)
class VariationReweighter(Reweighter):
    r"""Weights of all variations that turn an original sample into a target: $w_{ki} \to s_k\,w_{ki}\,r_k(x_i)$.

    Takes the parameters of `Reweighter`; the networks of the factors $\rho_k$ have the hyperparameters of `ratio`.

    Attributes:
        names_: Names of the variations, the nominal one first.
        variation_: The one that `predict_ratio` gives; see `varied`.
        original_factors_: `VariationFactors` of the original sample, one per fold. Weights that differ from the nominal
            one by a constant only are exact.
        target_factors_: The same of the target.
        norms_: What the products of ratio and factors are divided by, so that every ratio has the mean of
            the nominal one, each with its own weight.
        scales_: The factors $s_k$.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> original, target = rng.normal(0.0, 1.0, (3000, 1)), rng.normal(0.3, 1.0, (3000, 1))
        >>> weights = {"nominal": np.ones(3000), "up": 1.0 + 0.2 * (target[:, 0] > 0)}
        >>> model = VariationReweighter(SignResolvedRatio(max_steps=300, random_state=0), total="original")
        >>> model = model.fit(original, target, target_weight=weights)
        >>> ratios = model.predict_ratios([[-1.0], [1.0]])
        >>> bool(abs((ratios[1, 1] / ratios[0, 1]) / (ratios[1, 0] / ratios[0, 0]) - 1.2) < 0.06)
        True
    """

    fitted_type: ClassVar[type[FittedDocument]] = VariationDocument

    def fit(
        self,
        original: Any,  # noqa: ANN401
        target: Any,  # noqa: ANN401
        original_weight: Weights | None = None,
        target_weight: Weights | None = None,
    ) -> Self:
        """Learn the ratio of `target` to `original` for all weights; they may have either sign.

        Args:
            original: The sample to reweight.
            target: What it should look like.
            original_weight: Signed weights by name, the nominal one first; or one array for all variations, when left out
                those of a `WeightedSample`, else one.
            target_weight: The same for the target; one of the two has names, and if both have, the same.
        """
        require_one_process(type(self).__name__)
        given = [weights for weights in (original_weight, target_weight) if isinstance(weights, Mapping)]
        self.names_: list[str] = variation_names([list(map(str, weights)) for weights in given])
        self.variation_: str = self.names_[0]
        estimator = self.ratio if self.ratio is not None else SignResolvedRatio()
        samples, weights = [], []
        for role, events, own in (
            ("original", original, original_weight),
            ("target", target, target_weight),
        ):
            columns = weight_columns(own, self.names_)
            sample = estimator.sample_of(events, None if columns is None else columns[0])
            samples.append(sample)
            weights.append(weight_matrix(columns, sample, self.names_, role))
        super().fit(samples[0], samples[1])
        folds = [fold_of_events(sample.features, self.n_folds) for sample in samples]
        factors: list[list[VariationFactors]] = [[], []]
        for fold, ratio in enumerate(self.ratios_):
            densities = (ratio.reference_density_, ratio.target_density_)
            for number, density in enumerate(densities):
                seen = folds[number] != fold if self.n_folds > 1 else np.ones(len(folds[number]), dtype=bool)
                factors[number].append(
                    VariationFactors.learned(
                        ratio,
                        self.names_[1:],
                        samples[number].select(seen),
                        weights[number][seen],
                        density.sign,
                    )
                )
        self.original_factors_, self.target_factors_ = factors
        self.norms_: FloatArray = np.ones(len(self.names_))
        raw = self.predict_ratios(samples[0])
        sums = weights[0].sum(axis=0)
        reweighted = np.einsum("nk,nk->k", weights[0], raw)
        if not np.all(reweighted > 0):
            bad = self.names_[int(np.argmin(reweighted))]
            msg = f"The reweighted original sums to {reweighted.min():.6g} for {bad!r}; expected a positive sum. The fit has failed."
            raise InvalidInputError(msg)
        means = reweighted / sums
        self.norms_ = means / means[0]
        wanted = weights[1].sum(axis=0) if self.total == "target" else sums
        self.scales_: FloatArray = wanted / sums / means[0]
        self.scale_ = float(self.scales_[0])
        return self

    @property
    def fit_check_(self) -> FitCheck:
        """The check of the fold that is worst off; it has failed where that of a factor has."""
        check = super().fit_check_
        failed = [
            f"Variations of the {role}: {reason}"
            for role, factors in (("original", self.original_factors_), ("target", self.target_factors_))
            for one in factors
            for reason in one.failures
        ]
        if not failed:
            return check
        return dataclasses.replace(check, status="failed", reasons=(*check.reasons, *failed))

    @property
    def variation_names(self) -> list[str]:
        """Names of the variations, the nominal one first."""
        check_is_fitted(self, "names_")
        return list(self.names_)

    def varied(self, name: str) -> Self:
        """Return the same model with another variation for `predict_ratio`."""
        check_is_fitted(self, "ratios_")
        if name not in self.names_:
            msg = f"Got the variation {name!r}; expected one of {', '.join(self.names_)}."
            raise InvalidInputError(msg)
        other = copy.copy(self)
        other.variation_, other.scale_ = name, float(self.scales_[self.names_.index(name)])
        return other

    def predict_with_members(self, original: Any, *, members: bool) -> RatioPrediction:  # noqa: ANN401
        """Return the ratio of the chosen variation, if asked for the ratios of each member, and what to warn about."""
        nominal = super().predict_with_members(original, members=members)
        place = self.names_.index(self.variation_)
        if place == 0:
            return nominal
        sample = self.sample_of(original)
        ratio = nominal.ratio * self.predict_quotients(sample)[:, place]
        of_members = nominal.members
        if members:
            of_members = of_members * self._factors(sample, members=True)[..., place] / self.norms_[place]
        return RatioPrediction(ratio, of_members, nominal.nonpositive)

    def predict_ratios(self, original: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratio of densities per event and variation, `(n, n_variations)`."""
        check_is_fitted(self, "ratios_")
        sample = self.sample_of(original)
        nominal = super().predict_with_members(sample, members=False).warned().ratio
        return nominal[:, None] * self.predict_quotients(sample)

    def predict_quotients(self, original: Any) -> FloatArray:  # noqa: ANN401
        """Return the ratios in units of the nominal one, `(n, n_variations)`."""
        check_is_fitted(self, "ratios_")
        return self._factors(self.sample_of(original)) / self.norms_

    def predict_weights(
        self,
        original: Any,  # noqa: ANN401
        original_weight: Weights | None = None,
    ) -> dict[str, Any]:
        """Return the new weights of each variation, by name.

        Args:
            original: Events.
            original_weight: Their weights by name; or one array for all, where the fit had one for the original.
        """
        ratios = self.predict_ratios(original)
        columns = weight_columns(original_weight, self.names_)
        nominal = None if columns is None else columns[0]
        weights = weight_matrix(columns, self.sample_of(original, nominal), self.names_, "original")
        return {
            name: as_kind_of(original, self.scales_[k] * weights[:, k] * ratios[:, k], name=f"weight_{name}")
            for k, name in enumerate(self.names_)
        }

    def _factors(self, sample: WeightedSample, *, members: bool = False) -> FloatArray:
        """Return the quotients of target's and original's factors, `(n, n_variations)`, of each member first."""
        shape = (len(sample), len(self.names_))
        quotients = np.ones((self.n_members, *shape) if members else shape)
        folds = fold_of_events(sample.features, self.n_folds)
        for fold in range(self.n_folds):
            chosen = folds == fold
            if not chosen.any():
                continue
            events = sample.select(chosen)
            above, below = self.target_factors_[fold], self.original_factors_[fold]
            divided = np.maximum(below.predict(events, members=members), below.floors)
            quotients[..., chosen, 1:] = above.predict(events, members=members) / divided
        return quotients

    def fitted_parts(self) -> dict[str, PersistentEstimator]:
        """Return the fitted estimators of all folds, and the factors."""
        parts = super().fitted_parts()
        for role, factors in (("original", self.original_factors_), ("target", self.target_factors_)):
            parts |= {
                f"{role}.{fold}.{number}.": part
                for fold, one in enumerate(factors)
                for number, part in enumerate(one.parts)
            }
        return parts

    def fitted_fields(self) -> dict[str, Any]:
        """Add names, norms, scales and factors."""
        return {
            **super().fitted_fields(),
            "scale": float(self.scales_[0]),
            "names": list(self.names_),
            "norms": self.norms_.tolist(),
            "scales": self.scales_.tolist(),
            **{
                f"{role}_factors": [one.documents() for one in factors]
                for role, factors in (("original", self.original_factors_), ("target", self.target_factors_))
            },
        }

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set names, norms, scales and factors."""
        super().restore(document, stored)
        self.names_ = list(document.names)
        self.variation_ = self.names_[0]
        self.norms_, self.scales_ = np.array(document.norms), np.array(document.scales)
        self.original_factors_, self.target_factors_ = (
            [
                VariationFactors.stored(self.names_[1:], parts, stored.under(f"{role}.{fold}."))
                for fold, parts in enumerate(factors)
            ]
            for role, factors in (
                ("original", document.original_factors),
                ("target", document.target_factors),
            )
        )

    def export_onnx(
        self, path: str | os.PathLike[str], *, separate_inputs: bool = False, overwrite: bool = False
    ) -> None:
        """Write the model as one ONNX graph with an output `weight_factor_NAME` for each variation.

        Each is what to multiply the weight of that name by. Inputs are those of other estimators.

        Args:
            path: The file.
            separate_inputs: One input of shape `(batch, 1)` per feature, under its name.
            overwrite: Replace, in one step, a file that is there already.
        """
        check_is_fitted(self, "ratios_")
        target, features = checked_onnx_path(path, overwrite=overwrite), self.feature_list()
        results = [f"weight_factor_{name}" for name in self.names_]
        inputs = input_names(features, results, separate=separate_inputs)
        graph = OnnxGraph([*inputs, *results])
        matrix = add_filled(graph, add_inputs(graph, inputs), [self.fill_.get(name) for name in features])
        nominal = self.varied(self.names_[0]).add_onnx(graph, matrix).ratio
        quotients = self._add_factors(graph, matrix)
        outputs = {results[0]: nominal}
        for place, result in enumerate(results[1:], start=1):
            factor = float(self.scales_[place] / self.norms_[place] / self.scales_[0])
            quotient = graph.add("Gather", quotients, graph.constant(np.array(place - 1)), axis=1)
            outputs[result] = graph.add("Mul", graph.add("Mul", nominal, quotient), factor)
        write_onnx(
            target,
            graph,
            dict.fromkeys(inputs, 1) if separate_inputs else {"features": len(features)},
            outputs,
            metadata=self.onnx_metadata(
                dict.fromkeys(outputs, "new weight over old weight"), variations=self.names_
            ),
            description="VariationReweighter of quasiratio: new weight over old weight, for each variation",
            double_inputs=inputs if self.is_exact_ else (),
        )

    def _add_factors(self, graph: OnnxGraph, features: str) -> str:
        """Add the quotients of factors, `(n, n_variations - 1)`, of the fold that did not see the event."""
        chosen = ""
        for fold, (above, below) in enumerate(zip(self.target_factors_, self.original_factors_, strict=True)):
            column = graph.add("Mul", graph.add("Gather", features, graph.axes(0), axis=1), 0.0)
            quotient = graph.add("Add", column, np.ones((1, len(self.names_) - 1)))
            numerator, denominator = (one.add_onnx(graph, features) for one in (above, below))
            if numerator is not None:
                quotient = graph.add("Mul", quotient, numerator)
            if denominator is not None:
                quotient = graph.add("Div", quotient, graph.add("Max", denominator, below.floors))
            if fold == 0:
                chosen = quotient
                continue
            folds = add_folds(graph, features, self.n_features_in_, self.n_folds)
            is_here = graph.add("Equal", folds, graph.constant(np.array(fold)))
            chosen = graph.add("Where", graph.add("Unsqueeze", is_here, graph.axes(1)), quotient, chosen)
        return chosen
