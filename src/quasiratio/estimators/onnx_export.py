"""Fitted estimators as one ONNX graph: raw features in, ratio or weight factor out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import quasiratio
from quasiratio.estimators.auto import AutoRatio
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.reweighter import Reweighter
from quasiratio.estimators.single_model import SingleModelRatio
from quasiratio.model_files.onnx_file import add_inputs, checked_onnx_path, input_names, write_onnx
from quasiratio.model_files.onnx_folds import add_folds
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.model_files.onnx_ratios import RatioNames, add_ratios, add_std

if TYPE_CHECKING:
    from quasiratio.training import TrainingHistory

__all__ = ["export_onnx"]

_MEANINGS = {
    "ratio": "ratio of the unit-normalised densities, target over reference",
    "ratio_std": "standard deviation of the ratio across the members of the ensemble",
    "weight_factor": "new weight over old weight",
    "weight_factor_std": "standard deviation of the factor across the members of the ensemble",
}


def export_onnx(
    estimator: RatioEstimator | Reweighter | PositiveReweighter,
    path: str | os.PathLike[str],
    *,
    separate_inputs: bool = False,
) -> None:
    """Write a fitted estimator as an ONNX file; see `PersistentEstimator.export_onnx`.

    Example:
        >>> import tempfile
        >>> import onnxruntime
        >>> import quasiratio as qr
        >>> X, y = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32), np.repeat([0, 1], 500)
        >>> model = qr.SignResolvedRatio(max_steps=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.export_onnx(f"{directory}/model.onnx")
        ...     session = onnxruntime.InferenceSession(f"{directory}/model.onnx")
        >>> (ratio,) = session.run(["ratio"], {"features": X})
        >>> bool(np.allclose(ratio, model.predict_ratio(X), rtol=1e-5))
        True
    """
    check_is_fitted(estimator, "fingerprint_")
    target = checked_onnx_path(path)
    fitted = estimator.ratios_[0] if isinstance(estimator, Reweighter) else estimator
    names = fitted._names()
    stem = "ratio" if isinstance(estimator, RatioEstimator) else "weight_factor"
    inputs = input_names(names, [stem, f"{stem}_std"], separate=separate_inputs)
    graph = OnnxGraph([*inputs, stem, f"{stem}_std"])
    ratio, members = _add_estimator(graph, add_inputs(graph, inputs), estimator, len(names))
    outputs = {stem: ratio}
    if members is not None:
        outputs[f"{stem}_std"] = add_std(graph, members, fitted.n_members)
    write_onnx(
        target,
        graph,
        dict.fromkeys(inputs, 1) if separate_inputs else {"features": len(names)},
        outputs,
        metadata=_metadata(estimator, names, outputs),
        description=f"{type(estimator).__name__} of quasiratio: {_MEANINGS[stem]}{_note(estimator)}",
        double_inputs=fitted.is_exact_,
    )


def _add_estimator(graph: OnnxGraph, features: str, estimator: Any, n_features: int) -> RatioNames:  # noqa: ANN401
    """Add any estimator: what its predictions do, but for warnings."""
    if isinstance(estimator, PositiveReweighter):
        return RatioNames(_add_positive_factor(graph, features, estimator), None)
    if isinstance(estimator, Reweighter):
        return _scaled(graph, _add_folds_of(graph, features, estimator, n_features), estimator.scale_)
    if isinstance(estimator, AutoRatio):
        stacked = zip(estimator.stack_weights_, estimator.candidates_.values(), strict=True)
        parts = [
            _scaled(graph, _add_estimator(graph, features, candidate, n_features), float(weight))
            for weight, candidate in stacked
            if weight != 0
        ]
        return _sum(graph, parts)
    return _add_single(graph, features, estimator)


def _add_single(graph: OnnxGraph, features: str, estimator: SingleModelRatio) -> RatioNames:
    ratio, members = add_ratios(graph, features, estimator.model_)
    if members is not None:
        members = graph.add("Mul", members, estimator.member_normalizations_[:, None])
    return RatioNames(graph.add("Mul", ratio, estimator.normalization_), members)


def _add_positive_factor(graph: OnnxGraph, features: str, estimator: PositiveReweighter) -> str:
    if estimator.model_ is None:  # no weight was negative: the factor is one everywhere
        first = graph.add("Gather", features, graph.constant(np.array(0)), axis=1)
        return graph.add("Add", graph.add("Mul", first, 0.0), estimator.scale_)
    odds = add_ratios(graph, features, estimator.model_).ratio
    asymmetry = graph.add("Div", graph.add("Sub", odds, 1.0), graph.add("Add", odds, 1.0))
    if estimator.flattens_:
        asymmetry = graph.add("Relu", asymmetry)
    return graph.add("Mul", asymmetry, estimator.scale_)


def _add_folds_of(graph: OnnxGraph, features: str, estimator: Reweighter, n_features: int) -> RatioNames:
    """Add the models of all folds, and choose for each event the one that did not see it."""
    parts = [_add_estimator(graph, features, ratio, n_features) for ratio in estimator.ratios_]
    ratio, members = parts[0]
    if len(parts) > 1:
        folds = add_folds(graph, features, n_features, len(parts))
        for number, part in enumerate(parts[1:], start=1):
            is_here = graph.add("Equal", folds, graph.constant(np.array(number)))
            ratio = graph.add("Where", is_here, part.ratio, ratio)
            if members is not None and part.members is not None:
                members = graph.add("Where", is_here, part.members, members)
    return RatioNames(ratio, members)


def _scaled(graph: OnnxGraph, names: RatioNames, factor: float) -> RatioNames:
    members = None if names.members is None else graph.add("Mul", names.members, factor)
    return RatioNames(graph.add("Mul", names.ratio, factor), members)


def _sum(graph: OnnxGraph, parts: list[RatioNames]) -> RatioNames:
    ratio, members = parts[0]
    for part in parts[1:]:
        ratio = graph.add("Add", ratio, part.ratio)
        if members is not None and part.members is not None:
            members = graph.add("Add", members, part.members)
    return RatioNames(ratio, members)


def _metadata(estimator: Any, names: list[str], outputs: dict[str, str]) -> dict[str, str]:  # noqa: ANN401
    fingerprint = estimator.fingerprint_
    fitted = estimator.ratios_[0] if isinstance(estimator, Reweighter) else estimator
    return {
        "quasiratio_version": quasiratio.__version__,
        "estimator": " ".join(repr(estimator).split()),
        "features": json.dumps(names),
        "fill": json.dumps(fitted.fill_),
        "outputs": json.dumps({name: _MEANINGS[name] for name in outputs}),
        "note": _note(estimator).removeprefix("; "),
        "training_events": str(fingerprint.n_events),
        "training_sha256": fingerprint.sha256,
        "training_summary": json.dumps(_training_summary(estimator)),
    }


def _note(estimator: Any) -> str:  # noqa: ANN401 - any estimator
    if isinstance(estimator, PositiveReweighter):
        return "; multiply the absolute value of the old weight by it"
    if isinstance(estimator, Reweighter) and estimator.n_folds > 1:
        return f"; of {estimator.n_folds} models, each event gets the one that did not see it"
    return ""


def _training_summary(estimator: Any) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(estimator, Reweighter):
        return [_training_summary(ratio) for ratio in estimator.ratios_]
    if isinstance(estimator, AutoRatio):
        weights = zip(estimator.candidates_.items(), estimator.stack_weights_, strict=True)
        return {
            name: {"weight": float(weight), **_training_summary(candidate)}
            for (name, candidate), weight in weights
        }
    histories: list[TrainingHistory | None] = [
        estimator.history_,
        getattr(estimator, "tuning_history_", None),
    ]
    return {
        "stages": [
            {"stage": history.stage, "steps": history.n_steps} for history in histories if history is not None
        ],
        "members": estimator.n_members,
        "seed": estimator.seed_,
    }
