"""What `fit` notes in a model for the commands that use it: files, weights, selection and types of columns."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quasiratio.errors import InvalidInputError

__all__ = ["FitNotes", "SampleNotes", "fit_notes"]

KEY = "fit"


class _Notes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SampleNotes(_Notes):
    """One sample of the fit."""

    files: list[str] = Field(default_factory=list)
    weight: str | None = None
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
        return FitNotes.model_validate(notes.get(KEY, {}))
    except ValidationError as error:
        msg = f"Got the model {path!r}, whose notes of the fit cannot be read; expected those that 'fit' wrote. Fit again."
        raise InvalidInputError(msg) from error
