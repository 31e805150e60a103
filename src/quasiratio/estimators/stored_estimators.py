"""Fitted estimators to documents and tensors, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.auto import AutoRatio
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.devices import usable_device
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.positive import PositiveReport, PositiveReweighter
from quasiratio.estimators.reweighter import Reweighter
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.single_model import SingleModelRatio
from quasiratio.estimators.stored_losses import UserLosses
from quasiratio.estimators.stored_models import (
    Arrays,
    history_document,
    history_tensors,
    model_document,
    network_tensors,
    stored_history,
    stored_model,
)
from quasiratio.estimators.stored_parameters import parameter_document, require_known_kind, with_parameters
from quasiratio.estimators.stored_reports import (
    check_document,
    density_document,
    fingerprint_document,
    measured_document,
    measured_numbers,
    report_document,
    stored_check,
    stored_density,
    stored_fingerprint,
    stored_report,
    stored_support,
    stored_trials,
    support_document,
    trials_document,
)
from quasiratio.model_files import fitted_documents as documents
from quasiratio.model_files.bundle import Bundle
from quasiratio.model_files.document import as_measured, from_measured
from quasiratio.model_files.report_documents import FeaturesDocument, PositiveReportDocument

__all__ = ["fitted_document", "fitted_tensors", "fitted_times", "stored_estimator"]

_SINGLE: dict[type[SingleModelRatio], type[documents.SingleModelPart]] = {
    DirectRatio: documents.DirectDocument,
    SignedMixtureRatio: documents.MixtureDocument,
    SignResolvedRatio: documents.ResolvedDocument,
}


def fitted_document(estimator: Any) -> Any:  # noqa: ANN401 - any of ours, and its document
    """Describe a fitted estimator, all but its tensors."""
    common: dict[str, Any] = {
        "kind": require_known_kind(estimator),
        "parameters": parameter_document(estimator),
        "fingerprint": fingerprint_document(estimator.fingerprint_),
    }
    if isinstance(estimator, Reweighter):
        ratios = [fitted_document(ratio) for ratio in estimator.ratios_]
        return documents.ReweighterDocument(scale=estimator.scale_, ratios=ratios, **common)
    common["seed"] = estimator.seed_
    common["features"] = FeaturesDocument(
        count=estimator.n_features_in_,
        names=None if estimator.feature_names_ is None else list(estimator.feature_names_),
        from_frame=hasattr(estimator, "feature_names_in_"),
        fill=estimator.fill_,
        is_exact=estimator.is_exact_,
    )
    if isinstance(estimator, RatioEstimator):
        common["check"] = check_document(estimator.fit_check_)
        common["reference_density"] = density_document(estimator.reference_density_)
        common["target_density"] = density_document(estimator.target_density_)
        sizes = estimator.training_sizes_
        common["training_sizes"] = None if sizes is None else [as_measured(size) for size in sizes]
    if isinstance(estimator, AutoRatio):
        return documents.AutoDocument(
            candidates=[
                documents.CandidateDocument(
                    name=name, weight=float(weight), estimator=fitted_document(candidate)
                )
                for (name, candidate), weight in zip(
                    estimator.candidates_.items(), estimator.stack_weights_, strict=True
                )
            ],
            report=report_document(estimator.report_),
            **common,
        )
    if isinstance(estimator, PositiveReweighter):
        model: Any = None if estimator.model_ is None else model_document(estimator.model_)
        return documents.PositiveDocument(
            model=model,
            history=None if estimator.history_ is None else history_document(estimator.history_),
            flattens=estimator.flattens_,
            scale=estimator.scale_,
            report=measured_document(PositiveReportDocument, estimator.report_),
            trials=trials_document(estimator.trials_),
            **common,
        )
    tuning = estimator.tuning_history_
    return _SINGLE[type(estimator)](
        model=model_document(estimator.model_),
        normalization=estimator.normalization_,
        member_normalizations=estimator.member_normalizations_.tolist(),
        history=history_document(estimator.history_),
        tuning_history=None if tuning is None else history_document(tuning),
        support=support_document(estimator.support_),
        trials=trials_document(estimator.trials_),
        **common,
    )


def fitted_tensors(estimator: Any, prefix: str = "") -> Arrays:  # noqa: ANN401 - any of ours
    """Return the weights and the training curves of a fitted estimator by name."""
    tensors: Arrays = {}
    if isinstance(estimator, Reweighter):
        for number, ratio in enumerate(estimator.ratios_):
            tensors |= fitted_tensors(ratio, f"{prefix}folds.{number}.")
    elif isinstance(estimator, AutoRatio):
        for number, candidate in enumerate(estimator.candidates_.values()):
            tensors |= fitted_tensors(candidate, f"{prefix}candidates.{number}.")
    elif estimator.model_ is not None:
        tensors |= network_tensors(estimator.model_, f"{prefix}network.")
        tensors |= history_tensors(estimator.history_, f"{prefix}history.")
        if getattr(estimator, "tuning_history_", None) is not None:
            tensors |= history_tensors(estimator.tuning_history_, f"{prefix}tuning_history.")
    return tensors


def fitted_times(estimator: Any, prefix: str = "") -> dict[str, list[float]]:  # noqa: ANN401 - any of ours
    """Return the wall-clock times of every training by the name of its history."""
    if isinstance(estimator, Reweighter):
        parts = [(f"{prefix}folds.{number}.", ratio) for number, ratio in enumerate(estimator.ratios_)]
    elif isinstance(estimator, AutoRatio):
        candidates = enumerate(estimator.candidates_.values())
        parts = [(f"{prefix}candidates.{number}.", candidate) for number, candidate in candidates]
    else:
        named = {
            "history.": estimator.history_,
            "tuning_history.": getattr(estimator, "tuning_history_", None),
        }
        return {f"{prefix}{name}": one.seconds for name, one in named.items() if one is not None}
    return {name: seconds for place, part in parts for name, seconds in fitted_times(part, place).items()}


def stored_estimator(document: Any, bundle: Bundle, losses: UserLosses, prefix: str = "") -> Any:  # noqa: ANN401
    """Make a fitted estimator from its document, its tensors and its times."""
    tensors = bundle.tensors
    estimator = with_parameters(document.kind, document.parameters, losses)
    estimator.fingerprint_ = stored_fingerprint(document.fingerprint)
    if isinstance(document, documents.ReweighterDocument):
        estimator.scale_ = document.scale
        estimator.ratios_ = [
            stored_estimator(ratio, bundle, losses, f"{prefix}folds.{number}.")
            for number, ratio in enumerate(document.ratios)
        ]
        return estimator
    estimator.seed_ = document.seed
    names = document.features.names
    estimator.n_features_in_ = document.features.count
    estimator.feature_names_ = None if names is None else tuple(names)
    estimator.fill_, estimator.is_exact_ = document.features.fill, document.features.is_exact
    if document.features.from_frame:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if isinstance(document, documents.RatioPart):
        _restore_assumptions(estimator, document)
    if isinstance(document, documents.AutoDocument):
        estimator.stack_weights_ = np.array([candidate.weight for candidate in document.candidates])
        estimator.candidates_ = {
            candidate.name: stored_estimator(
                candidate.estimator, bundle, losses, f"{prefix}candidates.{number}."
            )
            for number, candidate in enumerate(document.candidates)
        }
        estimator.report_ = stored_report(document.report)
        return estimator
    device = _available(document.parameters.device)
    estimator.model_ = (
        None
        if document.model is None
        else stored_model(document.model, tensors, f"{prefix}network.", losses, device)
    )
    estimator.history_ = (
        None if document.history is None else stored_history(document.history, bundle, f"{prefix}history.")
    )
    if isinstance(document, documents.PositiveDocument):
        estimator.flattens_, estimator.scale_ = document.flattens, document.scale
        estimator.trials_ = stored_trials(document.trials)
        estimator.report_ = PositiveReport(**measured_numbers(document.report))
        return estimator
    _restore_single(estimator, document, bundle, prefix)
    return estimator


def _restore_assumptions(estimator: Any, document: documents.RatioPart) -> None:  # noqa: ANN401 - a ratio estimator
    """Set what every ratio estimator knows of its fit."""
    estimator.fit_check_ = stored_check(document.check)
    estimator.reference_density_ = stored_density(document.reference_density)
    estimator.target_density_ = stored_density(document.target_density)
    sizes = document.training_sizes
    estimator.training_sizes_ = None if sizes is None else (from_measured(sizes[0]), from_measured(sizes[1]))


def _restore_single(
    estimator: Any,  # noqa: ANN401 - one with a single model
    document: documents.SingleModelPart,
    bundle: Bundle,
    prefix: str,
) -> None:
    """Set what estimators with one model have besides it, as a fit does."""
    tuning = document.tuning_history
    estimator.tuning_history_ = (
        None if tuning is None else stored_history(tuning, bundle, f"{prefix}tuning_history.")
    )
    estimator.normalization_ = document.normalization
    estimator.member_normalizations_ = np.array(document.member_normalizations)
    estimator.support_ = stored_support(document.support)
    model = estimator.model_
    histories = [estimator.history_] if tuning is None else [estimator.history_, estimator.tuning_history_]
    estimator.diverged_ = any(bool(history.diverged.any()) for history in histories)
    estimator._name_features()
    estimator.trials_ = stored_trials(document.trials)
    estimator.helped_ = estimator.fit_check_.helped
    estimator.near_cap_ = (estimator.fit_check_.near_cap, "")
    if isinstance(estimator, DirectRatio):
        estimator.loss_ = model.loss
    elif isinstance(estimator, SignedMixtureRatio):
        coefficients = model.fixed_where_certain(model.coefficients.detach())
        estimator.pairs_, estimator.coefficients_ = model.pairs, coefficients.cpu().numpy().astype(np.float64)
    elif isinstance(estimator, SignResolvedRatio):
        estimator.classes_ = model.classes


def _available(name: str) -> torch.device:
    """Return the device of the fit, or the processor where this machine has no such device."""
    try:
        return usable_device(name)
    except InvalidInputError:
        return torch.device("cpu")
