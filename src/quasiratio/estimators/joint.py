r"""The ratio of two densities from reference events and their joint ratios alone.

A generator knows more of an event than is seen: the joint ratio $r(x, z) = q_1(x, z)/q_0(x, z)$ of the hidden event, as a ratio of
matrix elements. Its mean over the hidden part is the ratio of the seen one,

$$E_0[r(x, z) \mid x] = \int dz\, q_0(z \mid x)\, \frac{q_1(x, z)}{q_0(x, z)} = \frac{q_1(x)}{q_0(x)},$$

whatever the signs. So a regression of $r(x, z)$ on reference events learns the ratio, without target events and with less noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fitting import with_own_threads
from quasiratio.estimators.mined import MinedEstimator, MinedParameters
from quasiratio.estimators.training_data import checked_features
from quasiratio.model_files.document import Document
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames

__all__ = ["JointRatio"]

FloatArray = npt.NDArray[np.float64]


class JointParameters(MinedParameters):
    """Parameters of `JointRatio`."""

    method: Literal["regression", "sign-resolved"]
    normalize: bool


@dataclass(eq=False, repr=False)
class JointRatio(MinedEstimator):
    r"""Learn $r(x) = q_1(x)/q_0(x)$ from reference events and their joint ratios $r(x, z)$, which may be negative.

    Takes the hyperparameters of `MinedEstimator` as well.

    Args:
        method: `"sign-resolved"` trains a softmax over the reference and both signs of $r$, $f = (\pi_+ - \pi_-)/(a\,\pi_0)$,
            whose risk grows only linearly with $r$: the default, because the noise of joint ratios grows with them.
            `"regression"` minimises $E_0[(f - r)^2]$, and is better where joint ratios have no noise and no tails.
        normalize: Scale the ratio so that its weighted mean over the training reference is one. The mean of
            a sample has an error of its own, which joint ratios of unit-normalised densities are spared with `False`.

    Example:
        >>> import quasiratio as qr
        >>> case = qr.distributions.LatentExponentialCase(slopes=(0.5, -0.5))
        >>> events = case.sample(4000, np.random.default_rng(0))
        >>> model = qr.JointRatio(max_steps=200, random_state=0).fit(events.features, events.mined)
        >>> ratio = model.predict_ratio(events.features)
        >>> bool(np.sqrt(np.mean((ratio - case.exact_ratio(events.features)) ** 2)) < 0.1), round(float(ratio.mean()), 6)
        (True, 1.0)
    """

    method: Literal["regression", "sign-resolved"] = "sign-resolved"
    normalize: bool = True

    parameters_type: ClassVar[type[Document]] = JointParameters

    @with_own_threads
    def fit(self, X: Any, joint_ratio: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:  # noqa: ANN401
        """Learn from reference events.

        Args:
            X: `(n, d)` features of reference events, or anything that `WeightedSample` accepts.
            joint_ratio: `(n,)` joint ratios of these events.
            sample_weight: Signed weights of the reference; those of a `WeightedSample`, else all one.
        """
        method = self.checked_method(self.method, ("regression", "sign-resolved"))
        self.learn(X, joint_ratio, sample_weight, method=method, terms=("joint ratio",))
        return self

    def require_means(self, means: FloatArray) -> None:
        """Raise where there is nothing positive to normalise to, before anything is trained."""
        if self.normalize and not means[0] > 0:
            msg = (
                f"Got joint ratios of the weighted mean {means[0]:.6g}; expected a positive one, to normalise to. Use "
                "normalize=False for the ratio as it is."
            )
            raise InvalidInputError(msg)

    @overload
    def predict_ratio(self, X: Any, *, return_std: Literal[False] = False) -> FloatArray: ...  # noqa: ANN401

    @overload
    def predict_ratio(self, X: Any, *, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...  # noqa: ANN401

    def predict_ratio(
        self, X: Any, *, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        r"""Return $r(x)$ per event, of either sign.

        Args:
            X: Features in the order of the fit.
            return_std: Also return the standard deviation across the members; needs `n_members > 1`.
        """
        check_is_fitted(self, "model_")
        predicted = self.model_.predict(checked_features(self, X, reset=False), members=return_std)
        scale = self.learned_means_[0] if self.normalize else 1.0
        ratio: FloatArray = predicted.coefficients[:, 0] / scale
        if not return_std:
            return ratio
        if self.model_.n_members < 2:
            msg = (
                "return_std=True needs an ensemble; refit with n_members of at least 2 (8 is a good number)."
            )
            raise InvalidInputError(msg)
        scales = self.member_means_[:, :1] if self.normalize else 1.0
        return ratio, (predicted.members[..., 0] / scales).std(axis=0, ddof=1)

    def predict(self, X: Any) -> FloatArray:  # noqa: ANN401
        """Return `predict_ratio`, under the name by which pipelines of scikit-learn call it."""
        return self.predict_ratio(X)

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the ratio to a graph."""
        names = self.model_.add_onnx(graph, features)
        ratio = graph.add("Squeeze", names.coefficients, graph.axes(-1))
        if self.normalize:
            ratio = graph.add("Div", ratio, float(self.learned_means_[0]))
        members = names.members
        if members is not None:
            members = graph.add("Squeeze", members, graph.axes(-1))
            if self.normalize:
                members = graph.add("Div", members, self.member_means_)
        return RatioNames(ratio, members)
