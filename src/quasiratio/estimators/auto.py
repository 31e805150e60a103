"""Several methods, judged alike on validation data, and combined."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import DivergenceError, InvalidInputError, QuasiratioWarning
from quasiratio.estimators.auto_report import AutoReport, CandidateRow
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.training_data import LabelledEvents, checked_features
from quasiratio.losses import loss_by_name
from quasiratio.metrics import ratio_risk, ratio_risk_difference
from quasiratio.ratios.stacking import StackingProblem

__all__ = ["AutoRatio", "reference_is_negative"]

FloatArray = npt.NDArray[np.float64]
_N_FOLDS = 5
_SIGNIFICANCE = 4.0
_TAIL_FRACTIONS = (0.01, 0.05, 0.2)
_TEST_STEPS = 500


@dataclass(eq=False, repr=False)
class AutoRatio(RatioEstimator):
    r"""Fit a few methods, judge them by one risk, and stack them.

    The risk $J(r) = \frac12 E_0[r^2] - E_1[r]$ measures $\frac12\int q_0 (r - r^*)^2$ up to a constant for
    weights of any sign. Where the reference density itself is negative (tested on the validation data) it is
    no distance: then losses that need a positive reference are dropped, nothing is stacked, and the first
    candidate left, by default the sign-resolved classifier, is taken.

    Takes the hyperparameters of `NetworkEstimator`, which the default candidates inherit; all candidates take
    over `normalize`, and get seeds of their own from `random_state`.

    Args:
        candidates: Names and estimators to try, the most trusted first: the stack leaves it only as far as the
            validation data demand. By default sign-resolved, RoSMM, REVERT and LSIF.

    Attributes:
        candidates_: The fitted candidates that were kept.
        stack_weights_: Weight of each of them in the answer; they sum to one.
        report_: `AutoReport`: the table of risks and what was chosen, and why.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 1)) + np.repeat([[0.0], [0.5]], 2000, axis=0)
        >>> y = np.repeat([0, 1], 2000)
        >>> auto = AutoRatio(max_steps=100, random_state=0).fit(X, y)
        >>> sorted(auto.candidates_)
        ['lsif', 'revert', 'rosmm', 'sign-resolved']
        >>> round(float(auto.stack_weights_.sum()), 6)
        1.0
    """

    candidates: Mapping[str, RatioEstimator] | None = None

    def _fit_events(self, training: LabelledEvents, held_out: LabelledEvents) -> None:
        candidates = self._checked_candidates()
        is_negative = reference_is_negative(training, held_out, self)
        kept = {n: c for n, c in candidates.items() if not is_negative or _accepts_any_reference(c)}
        if not kept:
            msg = (
                f"The reference density is negative, and every candidate ({', '.join(candidates)}) needs a "
                "positive one; add SignResolvedRatio() to the candidates."
            )
            raise InvalidInputError(msg)
        self.candidates_ = {}
        for name, candidate in kept.items():
            try:
                candidate._fit_checked(training, held_out, self)
            except (InvalidInputError, DivergenceError) as error:
                last_error = error
                warnings.warn(
                    f"The candidate {name!r} was left out: {error}", QuasiratioWarning, stacklevel=3
                )
            else:
                self.candidates_[name] = candidate
        if not self.candidates_:
            raise last_error
        dropped = tuple(name for name in candidates if name not in self.candidates_)
        self._choose(held_out, is_negative=is_negative, dropped=dropped)

    def _predict(self, X: Any, *, members: bool) -> tuple[FloatArray, FloatArray]:  # noqa: ANN401
        check_is_fitted(self, "candidates_")
        features = checked_features(self, X, reset=False)
        stacked = list(zip(self.stack_weights_, self.candidates_.values(), strict=True))
        parts = [(weight, *c._predict(features, members=members)) for weight, c in stacked if weight != 0]
        ratio = np.sum([weight * ratio for weight, ratio, _ in parts], axis=0)
        return ratio, np.sum([weight * rows for weight, _, rows in parts], axis=0)

    def _checked_candidates(self) -> dict[str, RatioEstimator]:
        """Return unfitted candidates with seeds of their own."""
        if self.candidates is None:
            candidates: dict[str, RatioEstimator] = {
                "sign-resolved": SignResolvedRatio(),
                "rosmm": SignedMixtureRatio(),
                "revert": DirectRatio(loss="revert"),
                "lsif": DirectRatio(loss="lsif"),
            }
            inherited = {name: getattr(self, name) for name in NetworkEstimator().get_params()}
            for candidate in candidates.values():
                candidate.set_params(**inherited)
        else:
            given: Any = self.candidates
            is_mapping = isinstance(given, Mapping) and len(given) > 0
            if not is_mapping or not all(isinstance(c, RatioEstimator) for c in given.values()):
                msg = f"Got candidates = {given!r}; expected names and ratio estimators."
                raise InvalidInputError(msg)
            candidates = {name: clone(candidate) for name, candidate in given.items()}
        if len({candidate.n_members for candidate in candidates.values()}) > 1:
            msg = "Got candidates with different n_members; expected the same number for all."
            raise InvalidInputError(msg)
        for candidate, seed in zip(candidates.values(), self._candidate_seeds(len(candidates)), strict=True):
            candidate.set_params(random_state=seed, normalize=self.normalize)
        return candidates

    def _candidate_seeds(self, n_candidates: int) -> list[int]:
        states = np.random.SeedSequence(self.seed_).generate_state(n_candidates)
        return [int(state % (2**31 - 1)) for state in states]

    def _choose(self, held_out: LabelledEvents, *, is_negative: bool, dropped: tuple[str, ...]) -> None:
        """Judge the candidates on the held-out events; set the stack's weights and the report."""
        names = list(self.candidates_)
        reference, target = held_out.select(~held_out.labels), held_out.select(held_out.labels)
        problem = StackingProblem(
            np.array([c.predict_ratio(reference.features) for c in self.candidates_.values()]),
            reference.weights,
            np.array([c.predict_ratio(target.features) for c in self.candidates_.values()]),
            target.weights,
        )
        risks = [
            ratio_risk(r, reference.weights, t, target.weights)
            for r, t in zip(problem.reference, problem.target, strict=True)
        ]
        best = 0 if is_negative else problem.best_single()
        stacked_risk = single_risk = float("nan")
        self.stack_weights_ = np.eye(len(names))[best]
        if is_negative:
            reason = (
                f"the reference density is negative, so the risk is no distance; took {names[best]} without "
                f"stacking{' and left out ' + ', '.join(dropped) if dropped else ''}"
            )
        elif len(names) == 1:
            reason = f"{names[best]} was the only candidate"
        else:
            rng = np.random.default_rng(self.seed_)
            stacked_risk, single_risk = problem.cross_validated(_N_FOLDS, rng)
            if stacked_risk < single_risk:
                self.stack_weights_ = problem.weights()
                reason = (
                    f"the stack has a lower cross-validated risk than the best single model ({names[best]})"
                )
            else:
                reason = f"{names[best]} alone has a lower cross-validated risk than the stack"
        rows = []
        for index, name in enumerate(names):
            difference = ratio_risk_difference(
                (problem.reference[index], problem.target[index]),
                (problem.reference[best], problem.target[best]),
                weights_reference=reference.weights,
                weights_target=target.weights,
            )
            rows.append(CandidateRow(name, risks[index], difference, float(self.stack_weights_[index])))
        self.report_ = AutoReport(tuple(rows), names[best], dropped, stacked_risk, single_risk, reason)


def reference_is_negative(
    training: LabelledEvents, held_out: LabelledEvents, settings: NetworkEstimator
) -> bool:
    """Test whether the reference has a region of negative density.

    A short classifier of the weights' sign, trained on one half of the reference events, orders those of the
    other half, and the reverse; a tail of 1%, 5% or 20% of them whose weights sum to less than zero by four
    standard deviations is such a region.
    """
    features = np.concatenate([part.features[~part.labels] for part in (training, held_out)])
    weights = np.concatenate([part.weights[~part.labels] for part in (training, held_out)])
    if np.sum(weights < 0) <= _SIGNIFICANCE**2:  # n events are at most sqrt(n) standard deviations below zero
        return False
    judge = PositiveReweighter(max_steps=_TEST_STEPS, random_state=0, verbose=False, device=settings.device)
    in_first_half = np.random.default_rng(0).permutation(len(weights)) % 2 == 0
    ordered = []
    for trained in (in_first_half, ~in_first_half):
        asymmetry_of = judge.sign_asymmetry(features[trained], weights[trained])
        ordered.append(weights[~trained][np.argsort(asymmetry_of(features[~trained]))])
    for fraction in _TAIL_FRACTIONS:
        tail = np.concatenate([half[: max(1, int(fraction * len(half)))] for half in ordered])
        if tail.sum() < -_SIGNIFICANCE * np.sqrt(np.square(tail).sum()):
            return True
    return False


def _accepts_any_reference(candidate: RatioEstimator) -> bool:
    """Whether a candidate can learn where the reference density is negative."""
    if isinstance(candidate, DirectRatio):
        return loss_by_name(candidate.loss).is_bounded(q_reference=-1.0, q_target=0.0)
    return True
