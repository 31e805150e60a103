"""The ratio of signed mixtures as an estimator: RoSMM, RoSMM_c and RoSMM_r."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioParameters
from quasiratio.estimators.densities import EarlierFit
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.single_model import SingleModelRatio, TrainedModel
from quasiratio.estimators.training_data import LabelledEvents, checked_features
from quasiratio.estimators.trials import Trained, best_of_trials
from quasiratio.estimators.tuning import checked_tune, resolved_loss, tune_all
from quasiratio.losses import Bce, RatioLoss
from quasiratio.losses.loss_document import LossDocument
from quasiratio.model_files.document import Document, Name
from quasiratio.ratios import RatioModel, SignedMixtureModel, SignFloors, sign_classes
from quasiratio.ratios.signed_mixture import SignPair, recombine, sign_pairs
from quasiratio.training import Pool, RatioObjective, TrainingHistory, normalized_per_group
from quasiratio.training.validation import IMPROVEMENT_ERRORS, standard_error

__all__ = ["SignedMixtureRatio", "coefficient_risk", "tune_coefficients"]

_CHUNK = 2**15
_TUNINGS = ("none", "coefficients", "all")
_MAX_ITERATIONS = 50


class MixtureParameters(RatioParameters):
    """Parameters of `SignedMixtureRatio`."""

    tune: Literal["none", "coefficients", "all"]
    tune_loss: Name | LossDocument
    balanced_draw: bool


@dataclass(eq=False, repr=False)
class SignedMixtureRatio(SingleModelRatio):
    r"""RoSMM: the ratio recombined from classifiers between the parts of either sign.

    With $r_{ab} = p_{1b}/p_{0a}$ learned by cross-entropy on absolute weights and
    $c_y = \sum_{w \ge 0} w / \sum w$,

    $$r = c_1 \left[\frac{c_0}{r_{++}} + \frac{1-c_0}{r_{-+}}\right]^{-1}
        + (1-c_1) \left[\frac{c_0}{r_{+-}} + \frac{1-c_0}{r_{--}}\right]^{-1}.$$

    All sub-ratios train as one batched model; those whose coefficient is zero are left out. Takes the common
    hyperparameters of `RatioEstimator` as well.

    Args:
        tune: `"none"` (RoSMM), `"coefficients"` (RoSMM_c) or `"all"` (RoSMM_r); the validation risk of the
            tuning loss never gets worse.
        tune_loss: `"pare"`, `"lsif"`, or a `RatioLoss` that expresses negative ratios.
        balanced_draw: Train each sub-ratio on equally many events of both parts, drawn at random, as the
            paper does; by default all events are used.

    Attributes:
        coefficients_: `(n_members, 2)` array of $(c_0, c_1)$ in use.
        pairs_: Signs (reference, target) of the sub-ratios that were trained.

    Example:
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(8000, 1)) + np.repeat([[0.0], [0.5]], 4000, axis=0)
        >>> y, w = np.repeat([0, 1], 4000), np.tile([1.0, 1.0, 1.0, -1.0], 2000)
        >>> model = qr.SignedMixtureRatio(max_steps=100, random_state=0).fit(X, y, sample_weight=w)
        >>> len(model.pairs_), model.coefficients_.round(3).tolist()
        (4, [[1.5, 1.5]])
    """

    tune: Literal["none", "coefficients", "all"] = "none"
    tune_loss: str | RatioLoss = "pare"
    balanced_draw: bool = False

    parameters_type: ClassVar[type[Document]] = MixtureParameters
    model_type: ClassVar[type[RatioModel]] = SignedMixtureModel

    def tuned(
        self,
        tune: Literal["coefficients", "all"],
        X: Any,  # noqa: ANN401 - arrays and frames; scikit-learn's name
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        validation: tuple[Any, npt.ArrayLike, npt.ArrayLike | None] | None = None,
        *,
        training: Mapping[str, Any] | None = None,
    ) -> SignedMixtureRatio:
        """Return a tuned copy of this fitted estimator, whose sub-ratios need not be learned again.

        What a new fit with `tune` would give, up to the order of the batches; this estimator stays as it is.

        Args:
            tune: `"coefficients"` (RoSMM_c) or `"all"` (RoSMM_r).
            X: Features of the fit.
            y: Labels of the fit.
            sample_weight: Weights of the fit.
            validation: Validation events of the fit.
            training: `learning_rate`, `batch_size` and `patience` of `"all"` where they are not to follow from those
                of the fit; the paper has its own for the tuning.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(8000, 1)) + np.repeat([[0.0], [0.5]], 4000, axis=0)
            >>> y, w = np.repeat([0, 1], 4000), np.tile([1.0, 1.0, 1.0, -1.0], 2000)
            >>> fitted = SignedMixtureRatio(max_steps=100, random_state=0).fit(X, y, sample_weight=w)
            >>> fitted.tuned("coefficients", X, y, w).tuning_history_.stage
            'tune-coefficients:pare'
        """
        check_is_fitted(self)
        result: SignedMixtureRatio = clone(self).set_params(tune=tune)
        checked_tune(tune, ("coefficients", "all"), self.tune_loss)
        earlier = EarlierFit(
            copy.deepcopy(self.model_), self.history_, self.trials_, self.seed_, training or {}
        )
        return result.fit_further(X, y, sample_weight, validation, earlier)

    def predict_sub_ratios(self, X: Any) -> dict[SignPair, npt.NDArray[np.float64]]:  # noqa: ANN401
        r"""Return the sub-ratios $r_{ab}(x) = p_{1b}(x) / p_{0a}(x)$ by their signs $(a, b)$.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X, y = rng.normal(size=(2000, 1)), np.repeat([0, 1], 1000)
            >>> w = np.where((y == 1) & (rng.random(2000) < 0.2), -1.0, 1.0)
            >>> model = SignedMixtureRatio(max_steps=50, random_state=0).fit(X, y, sample_weight=w)
            >>> sorted(model.predict_sub_ratios(X))
            [(1, -1), (1, 1)]
        """
        check_is_fitted(self)
        features = checked_features(self, X, reset=False)
        model: Any = self.model_
        log_ratios: dict[SignPair, npt.NDArray[np.float64]] = model.predict_log_ratios(features)
        return {pair: np.exp(values) for pair, values in log_ratios.items()}

    def layer_widths(self, n_events: int) -> Sequence[int]:
        """Return hidden layers half as wide by default: there are up to four networks."""
        widths = super().layer_widths(n_events)
        return [width // 2 for width in widths] if self.hidden_layers is None else widths

    def activation_name(self) -> str:
        """Return hard swish by default: on the toys these small networks learn faster with it than with SiLU."""
        return "hardswish" if self.activation is None else self.activation

    def train_model(self, fit: Fit, floors: SignFloors) -> TrainedModel:
        """Train the networks, and tune them if asked to."""
        checked_tune(self.tune, _TUNINGS, self.tune_loss)
        best, trials = best_of_trials(fit, partial(self._train_sub_ratios, floors=floors))
        return self.train_further(fit, floors, EarlierFit(best.model, best.history, trials, fit.seed, {}))

    def train_further(self, fit: Fit, floors: SignFloors, earlier: EarlierFit) -> TrainedModel:  # noqa: ARG002
        """Tune trained sub-ratios, if asked to."""
        tune, loss = checked_tune(self.tune, _TUNINGS, self.tune_loss)
        model: SignedMixtureModel = earlier.model
        histories = [earlier.history]
        if tune == "coefficients":
            histories.append(tune_coefficients(model, fit, resolved_loss(loss, model, fit)))
        elif tune == "all":
            histories.append(tune_all(model, fit, loss, earlier.training))
        return TrainedModel(model, tuple(histories), earlier.trials)

    def network_names(self) -> list[str]:
        """Return the sub-ratios."""
        signs = {1: "+", -1: "-"}
        return [f"$r_{{{signs[a]}{signs[b]}}}$" for a, b in self.pairs_]

    def take_from_model(self, model: Any) -> None:  # noqa: ANN401
        """Set the pairs and the coefficients in use."""
        self.pairs_ = model.pairs
        self.coefficients_ = _numpy(model.fixed_where_certain(model.coefficients.detach()))

    def _train_sub_ratios(self, fit: Fit, floors: SignFloors) -> Trained:
        _, present = sign_classes(fit.train_events.labels, fit.train_events.weights)
        pairs = sign_pairs(present)
        rng = np.random.default_rng(self.seed_) if self.balanced_draw else None
        training = _pair_pools(fit.train_events, fit.member_weights, pairs, rng)
        held_out_weights = fit.tensor(fit.validation_events.weights)[None]
        validation = _pair_pools(fit.validation_events, held_out_weights, pairs, None)
        network = fit.network(1, n_per_member=len(pairs))
        coefficients = _coefficients(fit.member_weights, fit.tensor(fit.train_events.labels))
        model = SignedMixtureModel(fit.scaling, network, fit.n_members, pairs, coefficients, floors)
        model = model.to(fit.device)
        return Trained(model, *fit.train(model.network, RatioObjective(Bce()), training, validation))


def _coefficients(weights: Tensor, labels: Tensor) -> Tensor:
    r"""Return $c_y = \sum_{w \ge 0} w / \sum w$ of each member and class, `(n_members, 2)`."""
    columns = []
    for in_class in (~labels, labels):
        chosen = weights[:, in_class]
        columns.append((chosen.clamp(min=0).sum(dim=1) / chosen.sum(dim=1)).clamp(min=1.0))
    return torch.stack(columns, dim=1).float()


def _pair_pools(
    events: LabelledEvents, weights: Tensor, pairs: tuple[SignPair, ...], rng: np.random.Generator | None
) -> list[Pool]:
    """Make one pool per sub-ratio: the events of its two parts, with absolute weights of equal sums."""
    pools = []
    negative = events.weights < 0
    for reference_sign, target_sign in pairs:
        parts = [
            np.flatnonzero((events.labels == label) & (negative == (sign < 0)))
            for label, sign in ((False, reference_sign), (True, target_sign))
        ]
        if not all(len(part) for part in parts):  # training data have all parts of their pairs
            msg = (
                "The training data have weights of both signs where the validation data have one only, so "
                "not every sub-ratio can be validated; expected validation events like the training ones."
            )
            raise InvalidInputError(msg)
        if rng is not None:
            n_drawn = min(len(part) for part in parts)
            parts = [rng.choice(part, n_drawn, replace=False) for part in parts]
        # In the order of the events, which is random: validation may use the first ones only.
        chosen = torch.from_numpy(np.sort(np.concatenate(parts))).to(weights.device)
        labels = torch.from_numpy(events.labels).to(weights.device)[chosen]
        pools.append(Pool(chosen, labels.float(), normalized_per_group(weights[:, chosen].abs(), labels)))
    return pools


def coefficient_risk(
    log_ratios: dict[SignPair, Tensor], pool: Pool, coefficients: Tensor, loss: RatioLoss
) -> Tensor:
    r"""Risk of a member as a function of $(c_0, c_1)$ with its sub-ratios fixed, `(n_members,)`."""
    return _losses(log_ratios, pool, coefficients, loss, SignFloors()).mean(dim=1)


def _losses(
    log_ratios: dict[SignPair, Tensor],
    pool: Pool,
    coefficients: Tensor,
    loss: RatioLoss,
    floors: SignFloors,
) -> Tensor:
    ratio = recombine(log_ratios, coefficients[:, :1], coefficients[:, 1:], floors).ratio
    return loss.per_event(loss.link.raw(ratio), pool.classes) * pool.weights


def tune_coefficients(model: SignedMixtureModel, fit: Fit, loss: RatioLoss) -> TrainingHistory:
    """Minimise the risk over the coefficients by L-BFGS on all training events, sub-ratios frozen.

    Coefficients of a class without negative weights stay at one. A member keeps its coefficients unless the new ones are
    better on validation data by more than two standard errors of the paired difference (with the published schedule: unless
    they are better at all).
    """
    start = time.perf_counter()
    training, validation = fit.memory_pool(), fit.validation_pool()
    train_ratios = _log_ratios(model, fit.train_inputs)
    held_out_ratios = _log_ratios(model, fit.validation_inputs)
    losses = partial(_losses, loss=loss, floors=model.floors)  # of the ratio that the model predicts
    initial = model.coefficients.detach().double()
    tuned = initial.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([tuned], max_iter=_MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        risk = losses(train_ratios, training, model.fixed_where_certain(tuned)).mean(dim=1).sum()
        risk.backward()  # type: ignore[no-untyped-call]
        return risk

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        proposal = model.fixed_where_certain(tuned)
        before = losses(held_out_ratios, validation, initial)
        difference = losses(held_out_ratios, validation, proposal) - before
        n_errors = 0.0 if fit.settings.schedule == "constant" else IMPROVEMENT_ERRORS
        error = standard_error(difference)
        better = difference.mean(dim=1) < -n_errors * error
        model.coefficients.copy_(torch.where(better[:, None], proposal, initial).float())
        train_risk = losses(train_ratios, training, model.coefficients.double()).mean(dim=1)
    model.tuned_with = loss
    history = TrainingHistory(stage=f"tune-coefficients:{loss.name}")
    risk = before.mean(dim=1) + torch.where(better, difference.mean(dim=1), 0.0)
    history.append(1, _numpy(train_risk), _numpy(risk), 0.0, time.perf_counter() - start)
    history.best_epoch = np.where(_numpy(better) > 0, 0, -1)
    history.diverged = np.zeros(fit.n_members, dtype=bool)
    return history


@torch.inference_mode()
def _log_ratios(model: SignedMixtureModel, inputs: Tensor) -> dict[SignPair, Tensor]:
    chunks = [
        model.outputs(inputs[start : start + _CHUNK]).double() for start in range(0, len(inputs), _CHUNK)
    ]
    return {pair: values.clone() for pair, values in model.log_ratios(torch.cat(chunks, dim=1)).items()}


def _numpy(tensor: Tensor) -> npt.NDArray[np.float64]:
    return tensor.detach().cpu().numpy().astype(np.float64)
