"""Trained ratio models, as they stand in `model.json`: everything but the weights of the networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from quasiratio.model_files.document import (
    Count,
    Document,
    Measured,
    Name,
    PositiveFloat,
    TensorSpec,
    refuse_if,
)
from quasiratio.model_files.parameter_documents import LossDocument

__all__ = [
    "DirectModelDocument",
    "FloorsDocument",
    "HistoryDocument",
    "MixtureModelDocument",
    "ModelDocument",
    "NetworkDocument",
    "ObjectDocument",
    "ObjectsDocument",
    "ResolvedModelDocument",
    "ScalingDocument",
]

_SIGNS = ([1], [1, -1])
Asymmetry = Annotated[float, Field(gt=0, lt=1)]


Column = Annotated[int, Field(ge=0)]


class ObjectDocument(Document):
    """The columns of one object."""

    name: Name
    pt: Column
    eta: Column | None
    phi: Column
    mass: Column | None = None


class ObjectsDocument(Document):
    """`ObjectCoordinates`: objects, and which symmetries and invariants make coordinates of them."""

    n_features: Count
    objects: list[ObjectDocument] = Field(min_length=1, max_length=1000)
    azimuth: Column | None = None
    reflects_eta: bool = False
    reflects_phi: bool = False
    invariants: bool = False

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        n_complete = sum(group.eta is not None for group in self.objects)
        n_pairs = n_complete * (n_complete - 1) // 2 if self.invariants else 0
        return self.n_features - (self.azimuth is not None) + 2 * n_pairs

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [(group.pt, group.eta, group.phi, group.mass) for group in self.objects]
        columns = [column for group in given for column in group if column is not None]
        refuse_if(
            len(set(columns)) < len(columns) or max(columns) >= self.n_features,
            "the columns of the objects are not among the features, each once",
        )
        refuse_if(
            self.azimuth is not None and self.azimuth >= len(self.objects),
            "azimuths are measured from an object that is not there",
        )
        refuse_if(
            self.reflects_phi and (self.azimuth is None or len(self.objects) < 2),
            "a reflection in phi needs two objects and an azimuth to measure from",
        )
        refuse_if(
            self.reflects_eta and all(group.eta is None for group in self.objects),
            "a reflection in eta needs an object with eta",
        )
        return self


class ScalingDocument(Document):
    """Scaling of the features, or of the coordinates that `objects` makes of them.

    `floor` is the smallest value of a coordinate that is taken in logarithm; `periodic` lists the coordinates that are
    angles, `dropped` those that are no inputs. Each feature has `offset` and `unit` where some need more than float32,
    and a `fill` where some may miss.
    """

    uses_log: list[bool]
    floor: list[PositiveFloat | None]
    mean: list[float]
    scale: list[PositiveFloat]
    periodic: list[Column] = Field(default_factory=list)
    dropped: list[Column] = Field(default_factory=list)
    offset: list[float] = Field(default_factory=list)
    unit: list[PositiveFloat] = Field(default_factory=list)
    fill: list[float | None] = Field(default_factory=list)
    objects: ObjectsDocument | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.mean) if self.objects is None else self.objects.n_features

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the networks: angles have two, and there is one for each feature that may miss."""
        n_angles = len(set(self.periodic) - set(self.dropped))
        n_filled = sum(value is not None for value in self.fill)
        return len(self.mean) - len(self.dropped) + n_angles + n_filled

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            len({len(self.uses_log), len(self.floor), len(self.mean), len(self.scale)}) != 1,
            "logarithms, floors, means and scales differ in number",
        )
        for columns, what in ((self.periodic, "periodic"), (self.dropped, "dropped")):
            refuse_if(
                any(a >= b for a, b in itertools.pairwise([*columns, len(self.mean)])),
                f"the {what} features are not among the features, in order",
            )
        refuse_if(
            any(
                is_log != (floor is not None) for is_log, floor in zip(self.uses_log, self.floor, strict=True)
            ),
            "exactly the features taken in logarithm have a floor",
        )
        refuse_if(
            self.objects is not None and self.objects.n_coordinates != len(self.mean),
            "the objects make another number of coordinates",
        )
        refuse_if(
            len(self.offset) != len(self.unit)
            or any(len(values) not in (0, self.n_features) for values in (self.offset, self.fill)),
            "offsets, units or fills differ from the features in number",
        )
        return self


class NetworkDocument(Document):
    """Architecture of the stacked networks."""

    n_networks: Count
    n_inputs: Count
    hidden_layers: list[Count] = Field(max_length=1000)
    n_outputs: Count
    activation: Name

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of the weights."""
        widths = [self.n_inputs, *self.hidden_layers, self.n_outputs]
        for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
            yield f"{prefix}weights.{layer}", TensorSpec("float32", (self.n_networks, fan_in, fan_out))
            yield f"{prefix}biases.{layer}", TensorSpec("float32", (self.n_networks, 1, fan_out))


class RatioModelDocument(Document):
    """What every ratio model has."""

    n_members: Count
    scaling: ScalingDocument
    network: NetworkDocument
    tuned_with: LossDocument | None
    output_noise: Annotated[float, Field(ge=0)]

    def _require(self, n_per_member: int, n_outputs: int) -> None:
        refuse_if(
            self.network.n_inputs != self.scaling.n_inputs,
            "the networks and the scaling have different numbers of features",
        )
        refuse_if(
            self.network.n_networks != self.n_members * n_per_member,
            "the number of networks does not fit the number of members",
        )
        refuse_if(self.network.n_outputs != n_outputs, "the networks have the wrong number of outputs")


class DirectModelDocument(RatioModelDocument):
    """One network and the link of one loss."""

    kind: Literal["direct"]
    loss: LossDocument

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._require(1, 1)
        return self


class FloorsDocument(Document):
    """Smallest sign asymmetry of each class; `None` where the density may have any sign."""

    reference: Asymmetry | None = None
    target: Asymmetry | None = None


class MixtureModelDocument(RatioModelDocument):
    """Sub-ratio networks for the pairs of signs (reference, target), and the coefficients of each member."""

    floors: FloorsDocument = FloorsDocument()
    kind: Literal["signed-mixture"]
    pairs: list[Annotated[list[Literal[1, -1]], Field(min_length=2, max_length=2)]] = Field(max_length=4)
    coefficients: list[Annotated[list[float], Field(min_length=2, max_length=2)]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.pairs
            not in [[[a, b] for a in first for b in second] for first in _SIGNS for second in _SIGNS],
            "the pairs of signs are none that occur",
        )
        refuse_if(
            len(self.coefficients) != self.n_members,
            "the number of coefficients does not fit the number of members",
        )
        self._require(len(self.pairs), 1)
        return self


class ResolvedModelDocument(RatioModelDocument):
    """One softmax over the classes (label, sign)."""

    floors: FloorsDocument = FloorsDocument()
    kind: Literal["sign-resolved"]
    classes: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(max_length=4)

    @model_validator(mode="after")
    def _check(self) -> Self:
        possible = [
            [[0, a] for a in first] + [[1, b] for b in second] for first in _SIGNS for second in _SIGNS
        ]
        refuse_if(self.classes not in possible, "the classes (label, sign) are none that occur")
        self._require(1, len(self.classes))
        return self


ModelDocument = Annotated[
    DirectModelDocument | MixtureModelDocument | ResolvedModelDocument, Field(discriminator="kind")
]


class HistoryDocument(Document):
    """One stage of a training; the curves are tensors, and the numbers here a summary for readers."""

    stage: Name
    n_epochs: Annotated[int, Field(ge=0, le=2**31)]
    best_epoch: list[Annotated[int, Field(ge=-1, le=2**31)]]
    diverged: list[bool]
    n_steps: int
    seconds: Measured
    best_validation_loss: list[Measured]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(len(self.best_epoch) != len(self.diverged), "the history has different numbers of networks")
        return self

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of the curves."""
        yield f"{prefix}steps", TensorSpec("int64", (self.n_epochs,))
        for name in ("learning_rate", "seconds"):
            yield f"{prefix}{name}", TensorSpec("float64", (self.n_epochs,))
        for name in ("train_loss", "validation_loss"):
            yield f"{prefix}{name}", TensorSpec("float64", (self.n_epochs, len(self.best_epoch)))
