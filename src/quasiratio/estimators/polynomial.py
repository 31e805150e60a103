r"""Densities that are polynomials of parameters, relative to a reference: all coefficient functions in one network.

$$\lambda(x \mid \theta) = \frac{d\sigma(x \mid \theta)}{d\sigma_\mathrm{ref}(x)} = \sum_k P_k(\theta)\, \rho_k(x), \qquad
\rho_k(x) = E_\mathrm{ref}[c_k(x, z) \mid x],$$

with the joint coefficients $c_k$ of each reference event, from `PolynomialBasis.solve` or from the generator. Every $\rho_k$ may have
either sign, and so may $\lambda$ in a truncated expansion. The ratio of densities that are normalised to one is
$\lambda(x \mid \theta) / E_\mathrm{ref}[\lambda(\cdot \mid \theta)]$.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from sklearn.utils.validation import check_is_fitted

from quasiratio.basis import PolynomialBasis
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators.fingerprint import DataFingerprint, data_fingerprint
from quasiratio.estimators.fitting import with_own_threads
from quasiratio.estimators.mined import (
    CHECK_SHARE,
    MinedDocument,
    MinedEstimator,
    MinedParameters,
    Rate,
    split_groups,
)
from quasiratio.estimators.mined_check import MinedCheck, check_points
from quasiratio.estimators.mined_problems import MinedEvents
from quasiratio.estimators.persistent import FittedDocument
from quasiratio.estimators.sample_mixtures import (
    checked_samples,
    points_problem,
    rates_of_samples,
    solved_mixing,
)
from quasiratio.estimators.square_problem import reference_point
from quasiratio.estimators.training_data import checked_features
from quasiratio.estimators.weight_warnings import warn_about_sample
from quasiratio.losses.loss_document import UserLosses
from quasiratio.model_files.document import Document, Name, refuse_if
from quasiratio.model_files.onnx_file import add_inputs, checked_onnx_path, input_names, write_onnx
from quasiratio.model_files.onnx_graph import OnnxGraph, add_std
from quasiratio.ratios.coefficient_model import AffineTerms
from quasiratio.sample import WeightedSample

__all__ = ["PolynomialRatio"]

FloatArray = npt.NDArray[np.float64]
_METHODS = ("regression", "sign-resolved", "positive")


_MEANINGS = {
    "ratio": "ratio of the unit-normalised densities at theta, over the reference",
    "intensity": "ratio of differential cross-sections at theta, over the reference",
    "ratio_std": "standard deviation of the ratio across the members of the ensemble",
}
_MOST_TERMS = 20_000


class BasisDocument(Document):
    """`PolynomialBasis`."""

    parameters: list[Name] = Field(min_length=1, max_length=1000)
    order: Annotated[int, Field(ge=1, le=20)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(len(set(self.parameters)) < len(self.parameters), "a parameter stands twice")
        refuse_if(
            PolynomialBasis(self.parameters, self.order).n_terms > _MOST_TERMS, "there are too many terms"
        )
        return self

    def restored(self, losses: UserLosses) -> PolynomialBasis:  # noqa: ARG002
        """Make the basis again."""
        return PolynomialBasis(self.parameters, self.order)


class PolynomialParameters(MinedParameters):
    """Parameters of `PolynomialRatio`."""

    basis: BasisDocument
    method: Literal["regression", "sign-resolved", "positive"]


class PolynomialDocument(MinedDocument):
    """A fitted `PolynomialRatio`."""

    @model_validator(mode="after")
    def _check_terms(self) -> Self:
        basis = PolynomialBasis(self.parameters.basis.parameters, self.parameters.basis.order)
        refuse_if(basis.n_terms != self.model.n_terms, "the model has another number of terms than the basis")
        return self


@dataclass(eq=False, repr=False)
class PolynomialRatio(MinedEstimator):
    r"""Learn $\lambda(x \mid \theta) = \sum_k P_k(\theta)\, \rho_k(x)$ from one sample with weights at several points.

    Terms that are constant on the reference, such as the Standard Model's where that is the reference, are not learned but exact. So
    are linear relations between terms. Takes the hyperparameters of `MinedEstimator` as well.

    Args:
        basis: The monomials of the parameters.
        method: `"regression"` of the coefficients; `"sign-resolved"`, a softmax over the reference and both signs of each
            coefficient, milder where these have heavy tails; or `"positive"`, where the density is physical at all parameter values:
            $\lambda = |L(x)^T (1, \theta)|^2$, for second order only.

    Example:
        >>> import quasiratio as qr
        >>> case = qr.distributions.LatentAmplitudeCase()
        >>> events = case.sample(4000, np.random.default_rng(0))
        >>> model = qr.PolynomialRatio(case.basis, max_steps=300, random_state=0).fit(events.features, events.mined)
        >>> model.predict_coefficients(events.features).shape
        (4000, 6)
        >>> model.predict_ratio(events.features, {"a": 0.5}).mean().round(6)
        np.float64(1.0)
    """

    basis: PolynomialBasis
    method: Literal["regression", "sign-resolved", "positive"] = "regression"

    parameters_type: ClassVar[type[Document]] = PolynomialParameters
    fitted_type: ClassVar[type[FittedDocument]] = PolynomialDocument

    @with_own_threads
    def fit(self, X: Any, coefficients: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:  # noqa: ANN401
        """Learn from reference events that bring their coefficients.

        Args:
            X: `(n, d)` features of reference events, or anything that `WeightedSample` accepts.
            coefficients: `(n, n_terms)` joint coefficients, relative to the weight of the reference.
            sample_weight: Signed weights of the reference; those of a `WeightedSample`, else all one.
        """
        method = self._checked_polynomial_method()
        self.learn(X, coefficients, sample_weight, method=method, terms=self.basis.terms)
        return self

    def square_terms(self, coefficients: FloatArray) -> AffineTerms:
        """Count the parameters of a square from the reference, so that the density there is one exactly."""
        theta = reference_point(self.basis, coefficients)
        return AffineTerms(self.basis.recentred(-theta), np.zeros(self.basis.n_terms))

    def _checked_polynomial_method(self) -> str:
        given: object = self.basis
        if not isinstance(given, PolynomialBasis):
            msg = f"Got basis = {given!r}; expected a PolynomialBasis, such as PolynomialBasis(['C_H'], order=2)."
            raise InvalidInputError(msg)
        method = self.checked_method(self.method, _METHODS)
        if method == "positive" and self.basis.order != 2:
            msg = (
                f"Got method='positive' with a basis of order {self.basis.order}; expected order 2. A square is a polynomial of second "
                "order: a linear truncation is negative at some parameter values for every event, and no square can represent "
                "it. Use method='regression' or 'sign-resolved', or give the quadratic terms."
            )
            raise InvalidInputError(msg)
        return method

    @with_own_threads
    def fit_points(
        self,
        reference: Any,  # noqa: ANN401 - what WeightedSample takes
        samples: Sequence[Any],
        mixing: npt.ArrayLike,
        *,
        reference_mixing: npt.ArrayLike | None = None,
    ) -> Self:
        r"""Learn from several samples, each a known mixture of the terms, without weights of single events at other points.

        Sample $s$ has the density $d\sigma_s = \sum_k M_{sk}\, d\sigma_k$: the row of a sample at $\theta_s$ is `basis(theta_s)`, that
        of an interference-only sample is one at its term and zero elsewhere. One network learns all $d\sigma_s/d\sigma_\mathrm{ref}$,
        and the linear system is solved for the $\rho_k$.

        Args:
            reference: A `WeightedSample`, or what one can be made of; its weights must have a positive sum.
            samples: The same for each sample; sums of weights may be zero or negative. All weights are in the same units of
                cross-section, so that the sum of weights of a sample is its cross-section.
            mixing: `(n_samples, n_terms)` row of each sample.
            reference_mixing: Row of the reference, where it is a mixture of the terms, too: `basis(theta_ref)`. Then
                $\sum_k M_{\mathrm{ref}\,k}\, \rho_k = 1$ holds exactly.
        """
        method = self._checked_polynomial_method()
        if method == "positive":
            msg = "Got method='positive' for fit_points; expected 'regression' or 'sign-resolved', which learn from samples."
            raise InvalidInputError(msg)
        all_samples = checked_samples(reference, samples, self.sample_of)
        terms = solved_mixing(self.basis, mixing, len(samples), reference_mixing)
        stacked = WeightedSample.adopt(
            np.concatenate([sample.features for sample in all_samples]),
            np.concatenate([sample.weights for sample in all_samples]),
            all_samples[0].names,
            all_samples[0].fill,
        )
        features = checked_features(self, stacked, reset=True)
        numbers = np.repeat(np.arange(len(all_samples)), [len(sample) for sample in all_samples])
        weights = np.array(stacked.weights)
        self.checked_settings(len(features))
        for number, sample in enumerate(all_samples):  # an interference alone has no effective size
            role, n_features = (f"sample {number}", 0) if number else ("reference", features.shape[1])
            warn_about_sample(np.array(sample.weights), n_features, role, look_at="fit_check_")
        self.seed_: int = self.new_seed()
        self.fingerprint_: DataFingerprint = data_fingerprint(
            self.feature_list(), features, numbers > 0, weights
        )
        events = MinedEvents(features, numbers > 0, weights, numbers[:, None].astype(np.float64))
        fraction = self.held_out_fraction(len(events))
        rng = np.random.default_rng(self.seed_)
        parts = split_groups(2 * numbers + (weights < 0), (fraction, CHECK_SHARE * fraction), rng)
        training, held_out, aside = (events.select(part) for part in parts)
        problem = points_problem(
            method, training, all_samples, terms, is_positive=self.reference_density == "positive"
        )
        self.train_problem(problem, training, held_out)
        self.means_, self.means_covariance_ = rates_of_samples(all_samples, terms)
        is_reference = numbers == 0
        self.calibrate(features[is_reference], np.empty(0), weights[is_reference])
        counts = [np.bincount(n, minlength=len(all_samples)) for n in (numbers, numbers[parts[2]])]
        self.fit_check_: MinedCheck = check_points(
            self.model_.predict(aside.features).coefficients @ np.asarray(mixing, dtype=np.float64).T,
            numbers[parts[2]],
            aside.weights,
            counts[0] / np.maximum(counts[1], 1),
            np.array([sample.sum_of_weights for sample in all_samples]),
            peak_fraction=self.history_.peak_fraction,
        )
        if self.fit_check_.status == "failed":
            warnings.warn(str(self.fit_check_), UntrustworthyFitWarning, stacklevel=2)
        return self

    def predict_coefficients(self, X: Any) -> FloatArray:  # noqa: ANN401
        r"""Return the coefficient functions $\rho_k(x)$, `(n, n_terms)`, in the order of `basis.terms`."""
        check_is_fitted(self, "model_")
        return self.model_.predict(checked_features(self, X, reset=False)).coefficients

    def predict_member_coefficients(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return the coefficient functions of each member, `(n_members, n, n_terms)`."""
        check_is_fitted(self, "model_")
        return self.model_.predict(checked_features(self, X, reset=False), members=True).members

    def predict_intensity(self, X: Any, theta: Any) -> FloatArray:  # noqa: ANN401
        r"""Return $\lambda(x \mid \theta) = d\sigma(x \mid \theta)/d\sigma_\mathrm{ref}(x)$, of either sign.

        Args:
            X: Features in the order of the fit.
            theta: One point, for a result of the shape `(n,)`, or several, for `(n_points, n)`.
        """
        return self.basis(theta) @ self.predict_coefficients(X).T

    @overload
    def predict_ratio(self, X: Any, theta: Any, *, return_std: Literal[False] = False) -> FloatArray: ...  # noqa: ANN401

    @overload
    def predict_ratio(
        self,
        X: Any,  # noqa: ANN401
        theta: Any,  # noqa: ANN401
        *,
        return_std: Literal[True],
    ) -> tuple[FloatArray, FloatArray]: ...

    def predict_ratio(
        self, X: Any, theta: Any, *, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        r"""Return the ratio of unit-normalised densities, $\lambda(x \mid \theta) / E_\mathrm{ref}[\lambda(\cdot \mid \theta)]$.

        Args:
            X: Features in the order of the fit.
            theta: One point, for a result of the shape `(n,)`, or several, for `(n_points, n)`.
            return_std: Also return the standard deviation across the members; needs `n_members > 1`.
        """
        check_is_fitted(self, "model_")
        monomials = self.basis(theta)
        rates = monomials @ self.learned_means_
        if not np.all(rates > 0):
            msg = (
                f"The rate relative to the reference is {float(np.min(rates)):.6g}; expected a positive one, to normalise to. "
                "Use predict_intensity at parameter values where the cross-section is not positive."
            )
            raise InvalidInputError(msg)
        predicted = self.model_.predict(checked_features(self, X, reset=False), members=return_std)
        ratio: FloatArray = (monomials @ predicted.coefficients.T) / rates[..., None]
        if not return_std:
            return ratio
        if self.model_.n_members < 2:
            msg = (
                "return_std=True needs an ensemble; refit with n_members of at least 2 (8 is a good number)."
            )
            raise InvalidInputError(msg)
        members = [
            (monomials @ rows.T) / (monomials @ means)[..., None]
            for rows, means in zip(predicted.members, self.member_means_, strict=True)
        ]
        return ratio, np.std(members, axis=0, ddof=1)

    def rate(self, theta: Any) -> Rate:  # noqa: ANN401
        r"""Return $\sigma(\theta)/\sigma_\mathrm{ref} = \sum_k P_k(\theta)\, E_\mathrm{ref}[c_k]$ and its statistical error, from weights alone."""
        check_is_fitted(self, "model_")
        monomials = self.basis(theta)
        if monomials.ndim != 1:
            msg = f"Got {len(monomials)} points; expected one. Ask for the rate point by point."
            raise InvalidInputError(msg)
        variance = float(monomials @ self.means_covariance_ @ monomials)
        return Rate(float(monomials @ self.means_), max(variance, 0.0) ** 0.5)

    def stored_parameter(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Turn a parameter into what its document holds."""
        if isinstance(value, PolynomialBasis):
            return BasisDocument(parameters=list(value.parameters), order=value.order)
        return super().stored_parameter(name, value)

    def export_onnx(
        self, path: str | os.PathLike[str], *, separate_inputs: bool = False, overwrite: bool = False
    ) -> None:
        """Write the fitted estimator as one ONNX graph with the parameters as an input.

        Inputs: `features`, float32 of shape `(batch, d)`, and `theta`, float32 of shape `(batch, n_parameters)`, or with one row for
        all events. Outputs, float32 of shape `(batch,)`: `ratio`, `intensity` and, for an ensemble, `ratio_std`.

        Args:
            path: The file; the directory must exist.
            separate_inputs: One input of shape `(batch, 1)` per feature, under its name; the parameters stay together.
            overwrite: Replace, in one step, a file that is there already.
        """
        check_is_fitted(self, "model_")
        target, names = checked_onnx_path(path, overwrite=overwrite), self.feature_list()
        taken = ["theta", *_MEANINGS]
        inputs = input_names(names, taken, separate=separate_inputs)
        graph = OnnxGraph([*inputs, *taken])
        model = self.model_.add_onnx(graph, add_inputs(graph, inputs))
        monomials = _add_monomials(graph, graph.cast("theta", np.float64), self.basis)
        intensity = graph.add(
            "ReduceSum", graph.add("Mul", monomials, model.coefficients), graph.axes(-1), keepdims=0
        )
        rate = graph.add("MatMul", monomials, self.learned_means_)
        outputs = {"ratio": graph.add("Div", intensity, rate), "intensity": intensity}
        if model.members is not None:
            values = graph.add(
                "ReduceSum", graph.add("Mul", monomials, model.members), graph.axes(-1), keepdims=0
            )
            rates = graph.add("MatMul", monomials, np.ascontiguousarray(self.member_means_.T))
            ratios = graph.add("Div", values, graph.add("Transpose", rates, perm=[1, 0]))
            outputs["ratio_std"] = add_std(graph, ratios, self.n_members)
        widths = dict.fromkeys(inputs, 1) if separate_inputs else {"features": len(names)}
        write_onnx(
            target,
            graph,
            widths | {"theta": self.basis.n_parameters},
            outputs,
            metadata=self.onnx_metadata(
                {name: _MEANINGS[name] for name in outputs},
                parameters=list(self.basis.parameters),
                terms=list(self.basis.terms),
            ),
            rows={"theta": "points"},
            double_inputs=inputs if self.is_exact_ else (),
            description=f"PolynomialRatio of quasiratio: {_MEANINGS['ratio']}",
        )


def _add_monomials(graph: OnnxGraph, theta: str, basis: PolynomialBasis) -> str:
    """Add the monomials, `(n, n_terms)`, each a product of `order` factors out of (1, theta)."""
    one = graph.add("Add", graph.add("Mul", graph.add("Gather", theta, graph.axes(0), axis=1), 0.0), 1.0)
    extended = graph.add("Concat", one, theta, axis=1)
    factors = [np.repeat(np.arange(basis.n_parameters), row) + 1 for row in basis.exponents]
    places = np.array([np.pad(row, (0, basis.order - len(row))) for row in factors], dtype=np.int64)
    product = graph.add("Gather", extended, places[:, 0], axis=1)
    for column in places.T[1:]:
        product = graph.add(
            "Mul", product, graph.add("Gather", extended, np.ascontiguousarray(column), axis=1)
        )
    return product
