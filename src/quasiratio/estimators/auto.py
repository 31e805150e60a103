"""Several methods, judged alike on validation data, and combined."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import DivergenceError, InvalidInputError, QuasiratioWarning
from quasiratio.estimators.auto_report import AutoReport, AutoReportDocument, CandidateRow
from quasiratio.estimators.base import (
    FittedRatioDocument,
    RatioDocument,
    RatioEstimator,
    RatioParameters,
    RatioPrediction,
    RatioTemplate,
)
from quasiratio.estimators.densities import FitData
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.hyperparameters import NetworkEstimator
from quasiratio.estimators.persistent import (
    FittedDocument,
    PersistentEstimator,
    StoredParts,
    stored_estimator,
)
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.training_data import checked_features
from quasiratio.losses.loss_document import UserLosses
from quasiratio.metrics import ratio_risk, ratio_risk_difference
from quasiratio.model_files.document import (
    Document,
    Name,
    TensorSpec,
    refuse_if,
)
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames
from quasiratio.ratios.stacking import StackingProblem

__all__ = ["AutoRatio"]

FloatArray = npt.NDArray[np.float64]
_N_FOLDS = 5


class NamedTemplate(Document):
    """An unfitted estimator and its name among the candidates."""

    name: Name
    estimator: RatioTemplate


class AutoParameters(RatioParameters):
    """Parameters of `AutoRatio`."""

    candidates: list[NamedTemplate] | None


class CandidateDocument(Document):
    """A fitted candidate, its name and its weight in the stack."""

    name: Name
    weight: float
    estimator: RatioDocument


class AutoDocument(FittedRatioDocument):
    """A fitted `AutoRatio`."""

    candidates: list[CandidateDocument] = Field(min_length=1)
    report: AutoReportDocument

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            len({candidate.name for candidate in self.candidates}) != len(self.candidates),
            "two candidates have the same name",
        )
        refuse_if(
            any(part.estimator.features.count != self.features.count for part in self.candidates),
            "a candidate has another number of features",
        )
        refuse_if(
            len({part.estimator.n_members for part in self.candidates}) != 1,
            "the candidates have different numbers of members",
        )
        return self

    @property
    def n_members(self) -> int:
        """Number of members of each candidate."""
        return int(self.candidates[0].estimator.n_members)

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        for number, candidate in enumerate(self.candidates):
            yield from candidate.estimator.tensors(f"{prefix}candidates.{number}.")


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
        log_features_: Names of the features that the candidate of the largest weight takes in logarithm.
        periodic_features_: Names of the features that it takes as angles.
        dropped_features_: Names of the features that it does not use, being constant or copies of others.

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

    parameters_type: ClassVar[type[Document]] = AutoParameters
    fitted_type: ClassVar[type[FittedDocument]] = AutoDocument

    def fit_events(self, data: FitData) -> None:
        """Fit the candidates, and choose."""
        candidates = self._checked_candidates()
        any_sign = data.densities.reference.sign == "any"
        fitted: dict[str, RatioEstimator] = {}
        left_out: dict[str, str] = {}
        for name, candidate in candidates.items():
            if any_sign and not candidate.accepts_any_reference:
                left_out[name] = "it needs a positive reference density"
                continue
            try:
                # Lengths and strengths are tried for the first only: the others would cost as much again.
                candidate.fit_checked(data._replace(tries=not fitted), self)
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

    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:  # noqa: ANN401
        """Return the stacked ratio of each event and, if asked for, the stacked ratios of each member."""
        check_is_fitted(self, "candidates_")
        features = checked_features(self, X, reset=False)
        stacked = list(zip(self.stack_weights_, self.candidates_.values(), strict=True))
        parts = [
            (weight, c.predict_with_members(features, members=members))
            for weight, c in stacked
            if weight != 0
        ]
        return RatioPrediction(
            np.sum([weight * part.ratio for weight, part in parts], axis=0),
            np.sum([weight * part.members for weight, part in parts], axis=0),
            tuple(found for _, part in parts for found in part.nonpositive),
        )

    def _chosen(self) -> dict[str, RatioEstimator]:
        """Return the fitted candidates that have a weight, the largest first."""
        weighted = sorted(
            zip(self.stack_weights_, self.candidates_.items(), strict=True), key=lambda pair: -abs(pair[0])
        )
        return {name: candidate for weight, (name, candidate) in weighted if weight != 0}

    @property
    def log_features_(self) -> list[str]:
        """Names of the features that are taken in logarithm."""
        return self._of_largest("log_features_")

    @property
    def periodic_features_(self) -> list[str]:
        """Names of the features that are taken as angles."""
        return self._of_largest("periodic_features_")

    @property
    def dropped_features_(self) -> list[str]:
        """Names of the features that are not used."""
        return self._of_largest("dropped_features_")

    def _of_largest(self, name: str) -> list[str]:
        return list(getattr(next(iter(self._chosen().values())), name))

    def facts_for_check(self) -> dict[str, Any]:
        """Return what to know of the candidates that have a weight."""
        facts = {name: candidate.facts_for_check() for name, candidate in self._chosen().items()}
        helped = [f"{name}: {fact['helped']}" for name, fact in facts.items() if fact.get("helped")]
        return {
            "near_cap": max(fact.get("near_cap", 0.0) for fact in facts.values()),
            "peak_fraction": min(fact.get("peak_fraction", 1.0) for fact in facts.values()),
            "helped": " ".join(helped),
            "remarks": tuple(
                f"{name}: {remark}" for name, fact in facts.items() for remark in fact.get("remarks", ())
            ),
        }

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

    def stored_parameter(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Turn a parameter into what its document holds."""
        if name == "candidates" and value is not None:
            return [NamedTemplate(name=key, estimator=one.template()) for key, one in value.items()]
        return super().stored_parameter(name, value)

    @classmethod
    def restored_parameter(cls, name: str, value: Any, losses: UserLosses) -> Any:  # noqa: ANN401
        """Turn what a document holds into a parameter."""
        if name == "candidates" and value is not None:
            return {one.name: one.estimator.restored(losses) for one in value}
        return super().restored_parameter(name, value, losses)

    def fitted_parts(self) -> dict[str, PersistentEstimator]:
        """Return the fitted candidates."""
        return {f"candidates.{number}.": one for number, one in enumerate(self.candidates_.values())}

    def named_parts(self) -> dict[str, PersistentEstimator]:
        """Return the fitted candidates by their names."""
        return dict(self.candidates_)

    def fitted_fields(self) -> dict[str, Any]:
        """Add the candidates with their weights, and the report."""
        weighted = zip(self.candidates_.items(), self.stack_weights_, strict=True)
        candidates = [
            CandidateDocument(name=name, weight=float(weight), estimator=candidate.fitted_document())
            for (name, candidate), weight in weighted
        ]
        return {**super().fitted_fields(), "candidates": candidates, "report": self.report_.document()}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the candidates, their weights and the report."""
        super().restore(document, stored)
        self.stack_weights_ = np.array([candidate.weight for candidate in document.candidates])
        self.candidates_ = {
            candidate.name: cast(
                RatioEstimator, stored_estimator(candidate.estimator, stored.under(f"candidates.{number}."))
            )
            for number, candidate in enumerate(document.candidates)
        }
        self.report_ = AutoReport.stored(document.report)

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the stack to a graph."""
        stacked = zip(self.stack_weights_, self.candidates_.values(), strict=True)
        parts = [
            candidate.add_onnx(graph, features).scaled(graph, float(weight))
            for weight, candidate in stacked
            if weight != 0
        ]
        ratio, members = parts[0]
        for part in parts[1:]:
            ratio = graph.add("Add", ratio, part.ratio)
            if members is not None and part.members is not None:
                members = graph.add("Add", members, part.members)
        return RatioNames(ratio, members)

    def training_summary(self) -> dict[str, Any]:
        """Return the summaries of the candidates, with their weights."""
        weighted = zip(self.candidates_.items(), self.stack_weights_, strict=True)
        return {
            name: {"weight": float(weight), **candidate.training_summary()}
            for (name, candidate), weight in weighted
        }


def _with_left_out(reason: str, left_out: dict[str, str]) -> str:
    return "; ".join([reason, *(f"left out {name}: {why.rstrip('.')}" for name, why in left_out.items())])
