"""Samples with weights at several parameter points: looked at, and fitted by a `PolynomialRatio`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.io import Feature, read_sample
from quasiratio.sample import WeightedSample
from quasiratio.workflows.eft_closure import EftClosure, closure_at
from quasiratio.workflows.eft_inspection import InspectedEft, chosen_points, inspected
from quasiratio.workflows.eft_samples import EftSample, eft_features, read_eft_sample
from quasiratio.workflows.fit_directory import FitDirectory
from quasiratio.workflows.fit_files import feature_notes
from quasiratio.workflows.fitted_model import EFT_KEY, NOTES_KEY, FitNotes, SampleNotes
from quasiratio.workflows.sample_files import Files

__all__ = ["FittedEft", "fit_eft_files", "inspect_eft_files"]

_TEST_SHARE = 0.2


def inspect_eft_files(
    files: Files,
    *,
    at: Sequence[Mapping[str, float]] | None = None,
    random_state: int = 0,
    **options: Any,  # noqa: ANN401 - those of read_eft_sample
) -> InspectedEft:
    """Describe a sample with weights at points, as `quasiratio eft inspect` does.

    Args:
        files: Paths, patterns, `file.root:tree`.
        at: Points at which to give rate and effective size; by default those of the file. A file of ready coefficients has none:
            some are drawn.
        random_state: Seed of drawn points.
        **options: Those of `read_eft_sample`.
    """
    sample = read_eft_sample(files, **options)
    return inspected(sample, chosen_points(sample, at, seed=random_state))


@dataclass(frozen=True)
class FittedEft:
    """A fitted sample.

    Attributes:
        model: The estimator, saved where asked.
        features: Its features.
        inspection: What the sample is like.
        closure: Closure at every point, on events that took no part in the fit.
        notes: What is kept with the model.
    """

    model: PolynomialRatio
    features: tuple[str, ...]
    inspection: InspectedEft
    closure: tuple[EftClosure, ...]
    notes: FitNotes

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "features": list(self.features),
            "check": str(self.model.fit_check_),
            "closure": {point.label: point.chi_squared() for point in self.closure},
            "not_compared": {point.label: point.reason for point in self.closure if point.reason},
            **self.inspection.as_dict(),
        }


def fit_eft_files(
    files: Files,
    output: str | os.PathLike[str] | None = None,
    *,
    features: Sequence[str] | None = None,
    method: str = "regression",
    estimator: Mapping[str, Any] | None = None,
    closure_points: Sequence[Mapping[str, float]] | None = None,
    overwrite: bool = False,
    **options: Any,  # noqa: ANN401 - those of read_eft_sample
) -> FittedEft:
    """Fit a `PolynomialRatio` to a sample with weights at points, and look at its closure, as `quasiratio eft fit` does.

    A fifth of the events is kept for the closure: half of it, reweighted by the learned ratio, against the other half with its
    exact weights, at the given points or at those of the file. The model is saved before that.

    Args:
        files: Paths, patterns, `file.root:tree`.
        output: Directory of the model; nothing is written when left out.
        features: Columns, elements and formulas to learn from; by default every numeric column but weights and identifiers.
        method: `"regression"`, `"sign-resolved"` or `"positive"`.
        estimator: Hyperparameters of `PolynomialRatio`.
        closure_points: Where to look at the closure.
        overwrite: Replace a model that is there.
        **options: Those of `read_eft_sample`.
    """
    directory = None if output is None else FitDirectory(Path(output))
    if directory is not None:
        directory.require_writable(overwrite=overwrite)
    sample = read_eft_sample(files, **options)
    seed = dict(estimator or {}).get("random_state")
    seed = seed if isinstance(seed, int) else 0
    points = chosen_points(sample, closure_points, seed=seed)
    chosen = eft_features(sample, features)
    X = read_sample(sample.table, features=chosen, weight="1", selection=sample.selection)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(order, [round((1 - _TEST_SHARE) * len(X))])
    w, c = sample.reference_weights, sample.coefficients
    model = PolynomialRatio(sample.basis, method, **(estimator or {}))
    model.fit(_part(X, train, w), c[train])
    notes = _notes(sample, chosen, method)
    if directory is not None:
        described = {NOTES_KEY: notes.model_dump(), EFT_KEY: sample.notes.model_dump()}
        model.save(directory.path, notes=described, overwrite=overwrite)
    tested = closure_at(model, _part(X, test, w), c[test], points, seed=seed)
    return FittedEft(
        model, tuple(one.name for one in chosen), inspected(sample, points), tuple(tested), notes
    )


def _part(events: WeightedSample, index: Any, weights: Any) -> WeightedSample:  # noqa: ANN401 - arrays
    return WeightedSample.adopt(events.features[index], np.array(weights[index]), events.names, events.fill)


def _notes(sample: EftSample, features: Sequence[Feature], method: str) -> FitNotes:
    w = WeightedSample(np.zeros(len(sample)), sample.reference_weights)
    reference = SampleNotes(
        files=list(sample.table.sources),
        weight=sample.weight,
        n_events=len(sample),
        sum_of_weights=w.sum_of_weights,
        negative_fraction=w.negative_fraction,
        effective_size=w.effective_size,
    )
    return FitNotes.model_validate(
        {
            "method": method,
            "selection": sample.selection,
            **feature_notes(list(features), sample.table),
            "reference": reference,
        }
    )
