"""A model from its directory, with what `fit` noted in it, and whether the columns of a file agree with it."""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.loading import load_described
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Feature, Table, parse_expression
from quasiratio.io.column import element_column

__all__ = [
    "EFT_KEY",
    "NOTES_KEY",
    "FitNotes",
    "LoadedModel",
    "SampleNotes",
    "fit_notes",
    "load_ratio_model",
    "loaded_once",
    "model_digest",
]

NOTES_KEY = "fit"
EFT_KEY = "eft"


class _Notes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SampleNotes(_Notes):
    """One sample of the fit."""

    files: list[str] = Field(default_factory=list)
    weight: str | None = None
    weights: dict[str, str] = Field(default_factory=dict)
    n_events: int | None = None
    sum_of_weights: float | None = None
    negative_fraction: float | None = None
    effective_size: float | None = None
    mixture_coefficient: float | None = None


class FitNotes(_Notes):
    """Everything that is noted; a model that was saved from Python has none of it.

    Example:
        >>> FitNotes(selection="pt > 30").reference.weight is None
        True
    """

    method: str | None = None
    selection: str | None = None
    kinds: dict[str, Literal["float", "integer", "boolean"]] = Field(default_factory=dict)
    formulas: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    reference: SampleNotes = SampleNotes()
    target: SampleNotes = SampleNotes()


def fit_notes(notes: dict[str, Any], path: str) -> FitNotes:
    """Return the notes of a model, or say that they cannot be used.

    Example:
        >>> fit_notes({"fit": {"selection": "pt > 30"}}, "model").selection
        'pt > 30'
    """
    try:
        return FitNotes.model_validate(notes.get(NOTES_KEY, {}))
    except ValidationError as error:
        msg = f"Got the model {path!r}, whose notes of the fit cannot be read; expected those that `fit_files` wrote. Fit again."
        raise InvalidInputError(msg) from error


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts ratios.

    Attributes:
        path: Its directory.
        estimator: The estimator.
        notes: What `fit` noted.
        versions: Versions of the libraries that fitted it.
    """

    path: Path
    estimator: RatioPredictor
    notes: FitNotes
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each feature in the training data."""
        return dict(self.estimator.fingerprint_.ranges)

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the fit."""
        return list(self.ranges)

    @property
    def is_exact(self) -> bool:
        """Whether the features need more than float32."""
        return bool(self.estimator.is_exact_)

    @property
    def inputs(self) -> list[Feature]:
        """How the features are made of columns, in the order of the fit."""
        formulas = self.notes.formulas
        return [
            Feature(name, formulas[name], parse_expression(formulas[name]))
            if name in formulas
            else Feature(name, name)
            for name in self.features
        ]

    def varied(self, variation: str) -> tuple[LoadedModel, FitNotes]:
        """Return the model of one of several weights, and notes with that weight."""
        estimator = self.estimator.varied(variation)
        roles = {
            role: noted.model_copy(update={"weight": noted.weights.get(variation, noted.weight)})
            for role, noted in (("reference", self.notes.reference), ("target", self.notes.target))
        }
        notes = self.notes.model_copy(update=roles)
        return replace(self, estimator=estimator, notes=notes), notes

    def require_features(self, table: Table) -> None:
        """Raise unless the file has every feature, and each of the type that it had in the fit."""
        for feature in self.inputs:
            if feature.expression is not None:
                table.require_numbers(feature.columns)
                continue
            name = feature.text
            column = table.columns.get(name) or table.columns.get(element_column(name))
            if column is None:
                raise self._missing(name, table)
            kind = self.notes.kinds.get(name)
            if kind is not None and column.is_numeric and column.kind != kind:
                msg = (
                    f"Got the feature {name!r} as {column.kind} ({column.dtype}) in {table.label!r}; expected {kind}, "
                    "as in the files of the fit. Convert the column, or check that it is the same quantity."
                )
                raise InvalidInputError(msg)
            table.require_numbers([name])

    def _missing(self, name: str, table: Table) -> InvalidInputError:
        nearest = difflib.get_close_matches(name, list(table.columns), n=3, cutoff=0.5)
        listed = ", ".join(repr(column) for column in nearest or list(table.columns)[:10])
        return InvalidInputError(
            f"Got {table.label!r} without the feature {name!r}; expected every feature of the model "
            f"({', '.join(self.features)}). {'The nearest of its columns' if nearest else 'Its columns'}: {listed}. "
            "Rename the column, or fit without it."
        )


def load_ratio_model(path: str | os.PathLike[str]) -> LoadedModel:
    """Load a model that `fit` wrote, or that was saved from Python.

    A model of positive weights has no ratio, and is refused.
    """
    estimator, content = load_described(path)
    if not isinstance(estimator, RatioPredictor):
        msg = (
            f"Got the model {str(path)!r} of the class {type(estimator).__name__}, which has no ratio of two samples; expected a ratio "
            "estimator or a reweighter. Load this one in Python, or export it as an ONNX graph."
        )
        raise InvalidInputError(msg)
    return LoadedModel(Path(path), estimator, fit_notes(content.notes, str(path)), content.versions)


def model_digest(path: str | os.PathLike[str]) -> str:
    """Return the checksum of a model: its document holds those of the tensors."""
    return hashlib.sha256((Path(path) / "model.json").read_bytes()).hexdigest()


@functools.lru_cache(maxsize=1)
def loaded_once(path: str, digest: str) -> LoadedModel:
    """Load a model once per process; one that is not what `model_digest` returned is refused."""
    loaded = load_ratio_model(path)
    if model_digest(path) != digest:
        msg = (
            f"Got the model {path!r}, which has changed since the work began; expected the same. Start again."
        )
        raise InvalidInputError(msg)
    return loaded
