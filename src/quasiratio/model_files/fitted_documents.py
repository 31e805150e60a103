"""Fitted estimators, as they stand in `model.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from quasiratio.model_files.document import (
    Document,
    Measured,
    Name,
    PositiveFloat,
    TensorSpec,
    refuse_if,
)
from quasiratio.model_files.model_documents import (
    DirectModelDocument,
    HistoryDocument,
    MixtureModelDocument,
    ResolvedModelDocument,
)
from quasiratio.model_files.parameter_documents import (
    AutoTemplate,
    DirectTemplate,
    MixtureTemplate,
    PositiveParameters,
    ResolvedTemplate,
    ReweighterParameters,
)
from quasiratio.model_files.report_documents import (
    AssumedDensityDocument,
    FeaturesDocument,
    FingerprintDocument,
    FitCheckDocument,
    PositiveReportDocument,
    ReportDocument,
    SupportDocument,
    TrialReportDocument,
)

__all__ = [
    "AutoDocument",
    "CandidateDocument",
    "DirectDocument",
    "FittedDocument",
    "MixtureDocument",
    "ModelFileDocument",
    "PositiveDocument",
    "RatioDocument",
    "ResolvedDocument",
    "ReweighterDocument",
]

Tensors = Iterator[tuple[str, TensorSpec]]


class FittedPart(Document):
    """What every fitted estimator with networks has."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]
    features: FeaturesDocument
    fingerprint: FingerprintDocument


class RatioPart(FittedPart):
    """What every fitted ratio estimator has; the first version had none of it."""

    check: FitCheckDocument | None = None
    reference_density: AssumedDensityDocument | None = None
    target_density: AssumedDensityDocument | None = None
    training_sizes: Annotated[list[Measured], Field(min_length=2, max_length=2)] | None = None


class SingleModelPart(RatioPart):
    """What every estimator with one trained model has."""

    normalization: PositiveFloat
    member_normalizations: list[PositiveFloat]
    history: HistoryDocument
    tuning_history: HistoryDocument | None
    support: SupportDocument
    trials: TrialReportDocument | None = None
    model: Any

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.model.scaling.n_features != self.features.count, "the model has another number of features"
        )
        refuse_if(
            len(self.member_normalizations) != self.model.n_members,
            "the number of normalisations does not fit the number of members",
        )
        return self

    def tensors(self, prefix: str = "") -> Tensors:
        """Return names, types and shapes of all tensors."""
        yield from self.model.network.tensors(f"{prefix}network.")
        yield from self.history.tensors(f"{prefix}history.")
        if self.tuning_history is not None:
            yield from self.tuning_history.tensors(f"{prefix}tuning_history.")


class DirectDocument(SingleModelPart, DirectTemplate):
    """A fitted `DirectRatio`."""

    model: DirectModelDocument


class MixtureDocument(SingleModelPart, MixtureTemplate):
    """A fitted `SignedMixtureRatio`."""

    model: MixtureModelDocument


class ResolvedDocument(SingleModelPart, ResolvedTemplate):
    """A fitted `SignResolvedRatio`."""

    model: ResolvedModelDocument


class CandidateDocument(Document):
    """A fitted candidate, its name and its weight in the stack."""

    name: Name
    weight: float
    estimator: RatioDocument


class AutoDocument(RatioPart, AutoTemplate):
    """A fitted `AutoRatio`."""

    candidates: list[CandidateDocument] = Field(min_length=1)
    report: ReportDocument

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
            len({n_members(part.estimator) for part in self.candidates}) != 1,
            "the candidates have different numbers of members",
        )
        return self

    def tensors(self, prefix: str = "") -> Tensors:
        """Return names, types and shapes of all tensors."""
        for number, candidate in enumerate(self.candidates):
            yield from candidate.estimator.tensors(f"{prefix}candidates.{number}.")


RatioDocument = Annotated[
    DirectDocument | MixtureDocument | ResolvedDocument | AutoDocument, Field(discriminator="kind")
]


def n_members(document: Any) -> int:  # noqa: ANN401 - any ratio document
    """Return the number of members of a fitted ratio estimator."""
    if isinstance(document, AutoDocument):
        return n_members(document.candidates[0].estimator)
    return int(document.model.n_members)


class ReweighterDocument(Document):
    """A fitted `Reweighter`."""

    kind: Literal["Reweighter"]
    parameters: ReweighterParameters
    fingerprint: FingerprintDocument
    scale: PositiveFloat
    ratios: list[RatioDocument]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            len(self.ratios) != self.parameters.n_folds, "the number of estimators is not the number of folds"
        )
        refuse_if(
            len({ratio.features.count for ratio in self.ratios}) != 1,
            "the estimators have different numbers of features",
        )
        return self

    def tensors(self, prefix: str = "") -> Tensors:
        """Return names, types and shapes of all tensors."""
        for number, ratio in enumerate(self.ratios):
            yield from ratio.tensors(f"{prefix}folds.{number}.")


class PositiveDocument(FittedPart):
    """A fitted `PositiveReweighter`; without negative weights there is no model."""

    kind: Literal["PositiveReweighter"]
    parameters: PositiveParameters
    model: DirectModelDocument | None
    history: HistoryDocument | None
    flattens: bool
    scale: PositiveFloat
    report: PositiveReportDocument
    trials: TrialReportDocument | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if((self.model is None) != (self.history is None), "a model has a history")
        refuse_if(
            self.model is not None and self.model.scaling.n_features != self.features.count,
            "the model has another number of features",
        )
        return self

    def tensors(self, prefix: str = "") -> Tensors:
        """Return names, types and shapes of all tensors."""
        if self.model is not None and self.history is not None:
            yield from self.model.network.tensors(f"{prefix}network.")
            yield from self.history.tensors(f"{prefix}history.")


FittedDocument = Annotated[
    DirectDocument
    | MixtureDocument
    | ResolvedDocument
    | AutoDocument
    | ReweighterDocument
    | PositiveDocument,
    Field(discriminator="kind"),
]


class ModelFileDocument(Document):
    """The whole of `model.json`, but for the entries that `bundle` checks and takes away."""

    versions: dict[Name, Name]
    estimator: FittedDocument
    notes: dict[Name, JsonValue] = Field(default_factory=dict)


CandidateDocument.model_rebuild()
AutoDocument.model_rebuild()
