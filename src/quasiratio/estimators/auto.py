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
from quasiratio.estimators.base import FitData, RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.training_data import checked_features
from quasiratio.losses import loss_by_name
from quasiratio.metrics import ratio_risk, ratio_risk_difference
from quasiratio.ratios.stacking import StackingProblem

__all__ = ["AutoRatio"]

FloatArray = npt.NDArray[np.float64]
_N_FOLDS = 5


@dataclass(eq=False, repr=False)
class AutoRatio(RatioEstimator):
    r"""Fit a few methods, judge them by one risk, and stack them.

    The risk $J(r) = \frac12 E_0[r^2] - E_1[r]$ measures $\frac12\int q_0 (r - r^*)^2$ up to a constant for
    weights of any sign, and is taken with positive weights, so that no pole can lower it. Where the reference density
    itself may be negative it is no distance: then losses that need a positive reference are left out, nothing is
    stacked, and the first candidate left, by default the sign-resolved classifier, is taken. A candidate that fails
    its check on the validation events is out.

    Takes the hyperparameters of `NetworkEstimator`, which the default candidates inherit; all candidates take
    over `normalize`, and get seeds of their own from `random_state`.

    Args:
        candidates: Names and estimators to try, the most trusted first: the stack leaves it only as far as the
            validation data demand. By default sign-resolved, RoSMM and REVERT.

    Attributes:
        candidates_: The fitted candidates.
        stack_weights_: Weight of each of them in the answer; they sum to one, and those that failed have none.
        report_: `AutoReport`: the table of risks and what was chosen, and why.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 1)) + np.repeat([[0.0], [0.5]], 2000, axis=0)
        >>> y = np.repeat([0, 1], 2000)
        >>> auto = AutoRatio(max_steps=100, random_state=0).fit(X, y)
        >>> sorted(auto.candidates_)
        ['revert', 'rosmm', 'sign-resolved']
        >>> round(float(auto.stack_weights_.sum()), 6)
        1.0
    """

    candidates: Mapping[str, RatioEstimator] | None = None

    def _fit_events(self, data: FitData) -> None:
        candidates = self._checked_candidates()
        any_sign = data.densities.reference.sign == "any"
        fitted: dict[str, RatioEstimator] = {}
        left_out: dict[str, str] = {}
        for name, candidate in candidates.items():
            if any_sign and not _accepts_any_reference(candidate):
                left_out[name] = "it needs a positive reference density"
                continue
            try:
                # Lengths and strengths are tried for the first only: the others would cost as much again.
                candidate._fit_checked(data._replace(tries=not fitted), self)
            except (InvalidInputError, DivergenceError) as error:
                last_error = error
                left_out[name] = str(error)
                warnings.warn(
                    f"The candidate {name!r} was left out: {error}", QuasiratioWarning, stacklevel=3
                )
            else:
                fitted[name] = candidate
        if not fitted and len(left_out) == len(candidates) and not any_sign:
            raise last_error
        if not fitted:
            msg = (
                f"The reference density may be negative, and no candidate ({', '.join(candidates)}) accepts that; add "
                "SignResolvedRatio() to the candidates."
            )
            raise InvalidInputError(msg)
        # If all failed, the first is taken, and the check of the whole will say so.
        sound = [name for name, c in fitted.items() if c.fit_check_.status != "failed"] or [
            next(iter(fitted))
        ]
        left_out |= {name: c.fit_check_.reasons[0] for name, c in fitted.items() if name not in sound}
        self.candidates_ = fitted
        self._choose(data, sound, any_sign=any_sign, left_out=left_out)

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

    def _choose(self, data: FitData, names: list[str], *, any_sign: bool, left_out: dict[str, str]) -> None:
        """Judge the named candidates on the held-out events; set the stack's weights and the report."""
        candidates = [self.candidates_[name] for name in names]
        held_out = data.held_out
        judged = data.densities.judge_weights(held_out)[~held_out.labels]
        reference, target = held_out.select(~held_out.labels), held_out.select(held_out.labels)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", QuasiratioWarning
            )  # what is wrong with a candidate is in the report
            problem = StackingProblem(
                np.array([c.predict_ratio(reference.features) for c in candidates]),
                judged,
                np.array([c.predict_ratio(target.features) for c in candidates]),
                target.weights,
            )
        risks = [
            ratio_risk(r, reference.weights, t, target.weights, judge_weights=judged)
            for r, t in zip(problem.reference, problem.target, strict=True)
        ]
        lowest = int(np.argmin([risk.value for risk in risks]))
        taken = 0 if any_sign else problem.best_single()
        stacked_risk = single_risk = float("nan")
        weights = np.eye(len(names))[taken]
        if any_sign:
            reason = f"the reference density may be negative, so the risk is no distance; took {names[taken]}"
        elif len(names) == 1:
            reason = f"{names[taken]} was the only candidate"
        else:
            rng = np.random.default_rng(self.seed_)
            stacked_risk, single_risk = problem.cross_validated(_N_FOLDS, rng)
            if stacked_risk < single_risk:
                weights = problem.weights()
                reason = f"the stack has a lower cross-validated risk than {names[taken]} alone"
            else:
                reason = f"{names[taken]} alone has a lower cross-validated risk than the stack"
            if taken != lowest:
                reason += f"; {names[lowest]} is lower by less than two errors"
        rows = []
        for index, name in enumerate(names):
            difference = ratio_risk_difference(
                (problem.reference[index], problem.target[index]),
                (problem.reference[lowest], problem.target[lowest]),
                weights_reference=reference.weights,
                weights_target=target.weights,
                judge_weights=judged,
            )
            rows.append(CandidateRow(name, risks[index], difference, float(weights[index])))
        of = dict(zip(names, weights, strict=True))
        self.stack_weights_ = np.array([of.get(name, 0.0) for name in self.candidates_])
        self.report_ = AutoReport(
            tuple(rows),
            names[lowest],
            tuple(left_out),
            stacked_risk,
            single_risk,
            _with_left_out(reason, left_out),
        )


def _with_left_out(reason: str, left_out: dict[str, str]) -> str:
    return "; ".join([reason, *(f"left out {name}: {why.rstrip('.')}" for name, why in left_out.items())])


def _accepts_any_reference(candidate: RatioEstimator) -> bool:
    """Whether a candidate can learn where the reference density is negative."""
    if isinstance(candidate, DirectRatio):
        return loss_by_name(candidate.loss).is_bounded(q_reference=-1.0, q_target=0.0)
    return True
