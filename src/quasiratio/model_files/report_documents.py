"""Features, training data and reports of a fit, as they stand in `model.json`."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from quasiratio.model_files.document import Count, Document, Measured, Name, refuse_if

__all__ = [
    "AssumedDensityDocument",
    "CandidateRowDocument",
    "FeaturesDocument",
    "FingerprintDocument",
    "FitCheckDocument",
    "PositiveReportDocument",
    "ReportDocument",
    "RiskDocument",
    "SketchDocument",
    "SupportDocument",
    "TrialDocument",
    "TrialReportDocument",
]

Text = Annotated[str, Field(max_length=10_000)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FeaturesDocument(Document):
    """Number, names and order of the features; `from_frame` where scikit-learn knows the names as well.

    `fill` says what stands for a missing value, `is_exact` that float32 is not enough for them.
    """

    count: Count
    names: list[Name] | None
    from_frame: bool
    fill: dict[Name, float] = Field(default_factory=dict)
    is_exact: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.names is not None and len(self.names) != self.count,
            "the number of names is not the number of features",
        )
        refuse_if(self.names is None and self.from_frame, "a frame has names")
        return self


class SketchDocument(Document):
    """`EventSketch`: 16 hexadecimal digits per hash, increasing."""

    hashes: Annotated[str, Field(pattern=r"^([0-9a-f]{16})*$", max_length=16 * 4096)]
    is_complete: bool

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = [self.hashes[start : start + 16] for start in range(0, len(self.hashes), 16)]
        refuse_if(any(a >= b for a, b in itertools.pairwise(parts)), "the hashes of events do not increase")
        return self


class FingerprintDocument(Document):
    """What the training data were."""

    n_events: Count
    sum_of_weights: float
    ranges: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]]
    sha256: Sha256
    sketches: list[SketchDocument] = Field(default_factory=list, max_length=2)


class SupportDocument(Document):
    """`SupportDiagnostic`."""

    outside_range: dict[Name, Measured]
    largest_supported_ratio: Measured
    beyond_support: Measured
    n_reference: int


class RiskDocument(Document):
    """`RatioRisk`."""

    value: Measured
    error: Measured


class AssumedDensityDocument(Document):
    """`AssumedDensity`."""

    sign: Literal["positive", "any"]
    floor: Annotated[float, Field(gt=0, lt=1)] | None
    reason: Text


class FitCheckDocument(Document):
    """`FitCheck`."""

    status: Literal["good", "failed", "unknown"]
    n_events: Annotated[int, Field(ge=0)]
    effective_share: Measured
    largest_share: Measured
    worst_events: list[int] = Field(max_length=100)
    risk_difference: RiskDocument
    reach: Annotated[list[Measured], Field(min_length=2, max_length=2)]
    near_cap: Measured
    peak_fraction: Measured
    helped: Text
    reasons: list[Text] = Field(max_length=100)


class TrialDocument(Document):
    """`Trial`."""

    n_passes: Measured
    weight_decay: Measured
    risk: Measured
    difference: Measured
    error: Measured


class TrialReportDocument(Document):
    """`TrialReport`."""

    trials: list[TrialDocument] = Field(min_length=1, max_length=1000)
    chosen: Annotated[int, Field(ge=0)]
    batch_size: Count

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(self.chosen >= len(self.trials), "the chosen trial is not among the trials")
        return self


class CandidateRowDocument(Document):
    """`CandidateRow`."""

    name: Name
    risk: RiskDocument
    difference: RiskDocument
    weight: Measured


class ReportDocument(Document):
    """`AutoReport`."""

    rows: list[CandidateRowDocument]
    best: Name
    dropped: list[Name]
    stacked_risk: Measured
    single_risk: Measured
    reason: Name


class PositiveReportDocument(Document):
    """`PositiveReport`."""

    negative_fraction_before: Measured
    negative_fraction_after: Measured
    negative_density_fraction: Measured
    flattened_fraction: Measured
    effective_size_before: Measured
    effective_size_after: Measured
    effective_size_with_training: Measured = "nan"
