"""Constructor parameters of every estimator, as they stand in `model.json`.

A parameter that a later version adds gets a default here, what the older version did, so that older files still load.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from quasiratio.model_files.document import Count, Document, Name, PositiveFloat

__all__ = [
    "AutoTemplate",
    "DirectTemplate",
    "LossDocument",
    "MixtureTemplate",
    "NamedTemplate",
    "PositiveParameters",
    "ResolvedTemplate",
    "ReweighterParameters",
    "TemplateDocument",
    "Widths",
]

Scalar = str | bool | int | float | None


class LossDocument(Document):
    """A loss object: its name and its parameters. Code is never stored, and never looked up by `type`."""

    name: Name
    parameters: dict[Name, Scalar]
    is_built_in: bool
    type: Name


class Widths(Document):
    """Hidden layers, as the tuple or list that was given."""

    container: Literal["tuple", "list"]
    values: list[Count] = Field(max_length=1000)


class NetworkParameters(Document):
    """Hyperparameters of `NetworkEstimator`."""

    hidden_layers: Widths | None
    activation: Name | None
    batch_size: Count | None
    learning_rate: PositiveFloat | None
    max_steps: Annotated[int, Field(ge=1)] | None
    patience: Annotated[int, Field(ge=1)] | None
    schedule: Literal["cosine", "constant"]
    epoch_size: Annotated[int, Field(ge=1)] | None
    weight_decay: Annotated[float, Field(ge=0)] | None
    n_members: Count
    validation_fraction: float | None
    device: Annotated[str, Field(pattern=r"^(auto|(cpu|cuda|mps|xpu)(:[0-9]{1,3})?)$")]
    on_divergence: Literal["warn", "raise"]
    random_state: int | None
    verbose: bool
    periodic: list[Name | Annotated[int, Field(ge=0)]] | None = Field(default=[], max_length=100_000)
    n_threads: Count | None = None
    fill: dict[Name, float] | None = None
    objects: dict[Name, list[Name]] | Name | None = None
    symmetry: list[Name] | Name | None = None
    invariants: bool = False


class RatioParameters(NetworkParameters):
    """Hyperparameters of `RatioEstimator`."""

    normalize: bool
    reference_density: Literal["auto", "positive", "any"] = "any"
    target_density: Literal["auto", "positive", "any"] = "any"


class DirectParameters(RatioParameters):
    """Parameters of `DirectRatio`."""

    loss: Name | LossDocument


class ResolvedParameters(RatioParameters):
    """Parameters of `SignResolvedRatio`."""

    tune: Literal["none", "all"]
    tune_loss: Name | LossDocument


class MixtureParameters(RatioParameters):
    """Parameters of `SignedMixtureRatio`."""

    tune: Literal["none", "coefficients", "all"]
    tune_loss: Name | LossDocument
    balanced_draw: bool


class AutoParameters(RatioParameters):
    """Parameters of `AutoRatio`."""

    candidates: list[NamedTemplate] | None


class PositiveParameters(NetworkParameters):
    """Parameters of `PositiveReweighter`."""

    on_negative_density: Literal["keep-sign", "refuse"]


class ReweighterParameters(Document):
    """Parameters of `Reweighter`."""

    ratio: TemplateDocument | None
    total: Literal["target", "original"]
    n_folds: Count


class DirectTemplate(Document):
    """An unfitted `DirectRatio`."""

    kind: Literal["DirectRatio"]
    parameters: DirectParameters


class ResolvedTemplate(Document):
    """An unfitted `SignResolvedRatio`."""

    kind: Literal["SignResolvedRatio"]
    parameters: ResolvedParameters


class MixtureTemplate(Document):
    """An unfitted `SignedMixtureRatio`."""

    kind: Literal["SignedMixtureRatio"]
    parameters: MixtureParameters


class AutoTemplate(Document):
    """An unfitted `AutoRatio`."""

    kind: Literal["AutoRatio"]
    parameters: AutoParameters


TemplateDocument = Annotated[
    DirectTemplate | ResolvedTemplate | MixtureTemplate | AutoTemplate, Field(discriminator="kind")
]


class NamedTemplate(Document):
    """An unfitted estimator and its name among the candidates."""

    name: Name
    estimator: TemplateDocument


def _resolve_forward_references() -> None:
    names: dict[str, Any] = {"NamedTemplate": NamedTemplate, "TemplateDocument": TemplateDocument}
    for document in (AutoParameters, ReweighterParameters, AutoTemplate, NamedTemplate):
        document.model_rebuild(_types_namespace=names)


_resolve_forward_references()
