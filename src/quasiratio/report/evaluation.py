"""How well a fitted model closes on samples: the numbers behind `quasiratio evaluate`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError, SupportWarning
from quasiratio.estimators.learned_signs import LearnedSigns
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.metrics import (
    ClosureResult,
    RatioRisk,
    WeightDiagnostics,
    closure,
    natural_edges,
    ratio_risk_difference,
    total_chi_squared,
    weight_diagnostics,
)
from quasiratio.report.omnibus import OmnibusTest, omnibus_test
from quasiratio.sample import WeightedSample

__all__ = ["MODEL", "Evaluation", "distinct_features", "evaluate_model"]

MODEL = "model"
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """A model judged on a reference and a target sample.

    Attributes:
        closure: The reweighted reference against the target, observable by observable; its method is
            called `"model"`.
        risk_difference: Risk of the ratio minus the risk of no reweighting at all; negative is better.
        reference: Diagnostics of the reference's weights.
        reweighted: Diagnostics of its weights times the ratio.
        target: Diagnostics of the target's weights.
        ratios: The ratio at each reference event.
        target_ratios: The ratio at each target event.
        omnibus: Whether a classifier can still tell the reweighted reference from the target; `None` where there
            are too few events, or where it was not asked for.
        training_sizes: Effective sizes of the reference and of the target that the model was trained on, where known.
        seen: Estimated share of the reference and of the target events that the model was trained on, and predicts
            nevertheless; zero for a `Reweighter` with folds, whose models predict what they have not seen.
        n_judged: Reference and target events on which risk, omnibus test and ratios are based, where these are not all:
            events at random of samples beyond memory. Closure, weights and `seen` are always of all events.
    """

    closure: ClosureResult
    risk_difference: RatioRisk
    reference: WeightDiagnostics
    reweighted: WeightDiagnostics
    target: WeightDiagnostics
    ratios: FloatArray
    target_ratios: FloatArray
    omnibus: OmnibusTest | None = None
    training_sizes: tuple[float, float] | None = None
    seen: tuple[float, float] = (0.0, 0.0)
    n_judged: tuple[int, int] | None = None

    @property
    def limits(self) -> str:
        """What is not of all events, in a sentence; empty where everything is."""
        if self.n_judged is None:
            return ""
        return (
            "The samples are beyond memory: closure, sums of weights and shares of known events are of all events; risk and omnibus "
            "test, and the figures of weights, calibration and support, are of "
            f"{self.n_judged[0]} reference and {self.n_judged[1]} target events, chosen at random."
        )


def evaluate_model(
    model: RatioPredictor,
    reference: WeightedSample,
    target: WeightedSample,
    *,
    observables: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    n_bins: int = 99,
    edges: Mapping[str, npt.ArrayLike] | None = None,
    training_sizes: tuple[float, float] | None = None,
    omnibus: bool = True,
) -> Evaluation:
    """Reweight the reference and compare it with the target in every feature and observable.

    A feature with one value only, or that is a copy of another one, is left out with a `SupportWarning`.

    Args:
        model: A fitted ratio estimator or reweighter.
        reference: Sample to reweight, with the features of the fit.
        target: Sample to compare with.
        observables: More observables, as pairs of values at the reference and at the target events.
        n_bins: Bins of each observable.
        edges: Edges of the bins of single features and observables, by name.
        training_sizes: Effective sizes of the reference and of the target that the model was trained on, where the model
            does not know them itself (`training_sizes_`). From them comes the error of the training sample of a model
            without members.
        omnibus: Whether to train the small classifiers of the omnibus test.

    Example:
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (WeightedSample(rng.normal(mean, 1.0, 4000)) for mean in (0.0, 0.5))
        >>> model = qr.DirectRatio(max_steps=200, random_state=0).fit_samples(reference, target)
        >>> entry = evaluate_model(model, reference, target, n_bins=20).closure["x0"]
        >>> bool(entry["model"].chi_squared.value < 0.2 * entry.reference.chi_squared.value)
        True
    """
    sizes = getattr(model, "training_sizes_", None) or training_sizes
    at_reference, members = _predicted(model, reference)
    at_target = model.predict_ratio(target)
    chosen = distinct_features(reference, target) | dict(observables or {})
    left_out = set(reference.names) - set(chosen)
    given = {name: bounds for name, bounds in (edges or {}).items() if name not in left_out}
    bounds: dict[str, Any] = dict.fromkeys(chosen, partial(natural_edges, n_bins=n_bins)) | given
    result = closure(
        reference, {MODEL: at_reference}, target, observables=chosen, edges=bounds, training_sizes=sizes
    )
    if len(members) > 1:
        bounds = {entry.name: entry.edges for entry in result.observables}
        spread = closure(reference, {MODEL: members}, target, observables=chosen, edges=bounds)
        result = _with_bands(result, spread)
    return Evaluation(
        result,
        ratio_risk_difference(
            (at_reference, at_target),
            (np.ones(len(reference)), np.ones(len(target))),
            weights_reference=reference.weights,
            weights_target=target.weights,
            judge_weights=_judge_weights(model, reference),
        ),
        weight_diagnostics(reference),
        weight_diagnostics(reference.weights * at_reference),
        weight_diagnostics(target),
        at_reference,
        at_target,
        _omnibus(reference, at_reference, target, members, sizes) if omnibus else None,
        sizes,
        (share_seen(model, reference), share_seen(model, target)),
    )


def share_seen(model: RatioPredictor, sample: WeightedSample) -> float:
    """Estimate which share of the events is predicted by a model that was trained on them.

    Example:
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(2000, 2)), np.repeat([0, 1], 1000)
        >>> model = qr.DirectRatio(max_steps=5, random_state=0).fit(X, y)
        >>> share_seen(model, WeightedSample(X[:1000]))
        1.0
    """
    if model.predicts_unseen:
        return 0.0
    return float(model.fingerprint_.share_seen(sample))


def _judge_weights(model: RatioPredictor, reference: WeightedSample) -> FloatArray:
    """Return weights that no pole can bribe, from the reference alone, unless its density is seen to be negative."""
    features, weights = np.array(reference.features), np.array(reference.weights)
    signs = LearnedSigns.of(features, weights, periodic=model.ratio_parts[0].periodic_columns(features))
    return signs.judge_weights(weights)


def distinct_features(reference: WeightedSample, target: WeightedSample) -> dict[str, Any]:
    """Return the features to compare: one with a single value has nothing to show, and a copy nothing new.

    What is shown twice would count twice in the verdict. What is left out is said in a warning.

    Example:
        >>> sample = WeightedSample({"pt": [1.0, 2.0], "copy": [1.0, 2.0], "year": [2018, 2018]})
        >>> with warnings.catch_warnings(action="ignore"):
        ...     list(distinct_features(sample, sample))
        ['pt']
    """
    constant: list[str] = []
    copies: list[str] = []
    kept: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}
    for name, *pair in zip(reference.names, reference.features.T, target.features.T, strict=True):
        a, b = pair
        if max(a.max(), b.max()) == min(a.min(), b.min()):
            constant.append(name)
            continue
        original = next(
            (other for other, (c, d) in kept.items() if np.array_equal(a, c) and np.array_equal(b, d)), None
        )
        if original is None:
            kept[name] = a, b
        else:
            copies.append(f"{name!r} of {original!r}")
    for names, reason in ((constant, "they have one value only"), (copies, "they are copies")):
        if names:
            shown = map(repr, names) if names is constant else names
            msg = f"Left out of the closure, as {reason}: {', '.join(shown)}."
            warnings.warn(msg, SupportWarning, stacklevel=3)
    return {name: name for name in kept}


def _predicted(model: RatioPredictor, sample: WeightedSample) -> tuple[FloatArray, FloatArray]:
    ratio, members, _ = model.predict_with_members(sample, members=model.n_members > 1).warned(stacklevel=4)
    return ratio, members


def _with_bands(result: ClosureResult, spread: ClosureResult) -> ClosureResult:
    """Take bands and errors from the members' closure; its mean of ratios is not the ensemble's ratio."""
    entries = []
    for entry in result.observables:
        of_members = spread[entry.name][MODEL]
        error = of_members.training_error
        total = None if error is None else total_chi_squared(entry[MODEL].histogram, entry.target, error)
        method = replace(
            entry[MODEL],
            member_band=of_members.member_band,
            training_error=error,
            total_chi_squared=total,
        )
        entries.append(replace(entry, methods=(method,)))
    return ClosureResult(tuple(entries))


def _omnibus(
    reference: WeightedSample,
    ratios: FloatArray,
    target: WeightedSample,
    members: FloatArray,
    training_sizes: tuple[float, float] | None,
) -> OmnibusTest | None:
    try:
        return omnibus_test(reference, ratios, target, members=members, training_sizes=training_sizes)
    except InvalidInputError:  # too few events: the verdict says that it was not made
        return None
