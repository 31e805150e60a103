"""Scaling and networks outside of PyTorch: their documents and tensors in model files, and their ONNX operations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, model_validator

from quasiratio.errors import InvalidInputError
from quasiratio.model_files.document import Count, Document, Name, PositiveFloat, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks.activations import ActivationShare, activation_named, activation_shares
from quasiratio.networks.mlp import StackedMlp
from quasiratio.networks.standardize import FeatureScaling
from quasiratio.networks.stored_objects import (
    Column,
    ObjectsDocument,
    add_objects,
    objects_document,
    stored_objects,
)

__all__ = [
    "NetworkDocument",
    "ScalingDocument",
    "add_networks",
    "add_scaling",
    "network_document",
    "network_tensors",
    "scaling_document",
    "stored_network",
    "stored_scaling",
]

Arrays = dict[str, npt.NDArray[Any]]


class ScalingDocument(Document):
    """Scaling of the features, or of the coordinates that `objects` makes of them.

    `floor` and `ceiling` are the edges beyond which a coordinate is not followed (the first two formats have a floor where a
    logarithm is taken, and no ceiling); `periodic` lists the coordinates that are angles, `dropped` those that are no inputs. Each feature has `offset` and `unit` where some need more than float32,
    a `reach` where some go further than what is followed of them, and a `fill` where some may miss.
    """

    uses_log: list[bool]
    floor: list[float | None]
    ceiling: list[float | None] = Field(default_factory=list)
    mean: list[float]
    scale: list[PositiveFloat]
    periodic: list[Column] = Field(default_factory=list)
    dropped: list[Column] = Field(default_factory=list)
    offset: list[float] = Field(default_factory=list)
    unit: list[PositiveFloat] = Field(default_factory=list)
    reach: list[PositiveFloat | None] = Field(default_factory=list)
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
                is_log and (floor is None or floor <= 0)
                for is_log, floor in zip(self.uses_log, self.floor, strict=True)
            ),
            "a feature is taken in logarithm without a positive floor",
        )
        refuse_if(
            len(self.ceiling) not in (0, len(self.mean)), "the ceilings differ from the means in number"
        )
        refuse_if(
            any(
                low is not None and high is not None and low > high
                for low, high in zip(self.floor, self.ceiling, strict=False)
            ),
            "a floor is above its ceiling",
        )
        refuse_if(
            self.objects is not None and self.objects.n_coordinates != len(self.mean),
            "the objects make another number of coordinates",
        )
        refuse_if(
            len(self.offset) != len(self.unit)
            or any(
                len(values) not in (0, self.n_features) for values in (self.offset, self.reach, self.fill)
            ),
            "offsets, units, reaches or fills differ from the features in number",
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


def scaling_document(scaling: FeatureScaling) -> ScalingDocument:
    """Describe the scaling of the features."""
    uses_log = scaling.uses_log.tolist()
    fill = [] if scaling.fill is None else scaling.fill.tolist()
    return ScalingDocument(
        uses_log=uses_log,
        floor=_finite_or_none(scaling.floor),
        ceiling=_finite_or_none(scaling.ceiling) if bool(scaling.ceiling.isfinite().any()) else [],
        mean=scaling.mean.tolist(),
        scale=scaling.scale.tolist(),
        periodic=torch.nonzero(scaling.is_periodic).flatten().tolist(),
        dropped=torch.nonzero(~scaling.is_kept).flatten().tolist(),
        offset=[] if scaling.offset is None else scaling.offset.tolist(),
        unit=[] if scaling.unit is None else scaling.unit.tolist(),
        reach=[] if scaling.reach is None else _finite_or_none(scaling.reach),
        fill=[None if np.isnan(value) else value for value in fill],
        objects=None if scaling.objects is None else objects_document(scaling.objects),
    )


def _finite_or_none(values: torch.Tensor) -> list[float | None]:
    return [one if math.isfinite(one) else None for one in values.tolist()]


def stored_scaling(document: ScalingDocument) -> FeatureScaling:
    """Make the scaling again."""
    objects = None if document.objects is None else stored_objects(document.objects)
    scaling = FeatureScaling(document.n_features, objects)
    scaling.uses_log.copy_(torch.tensor(document.uses_log))
    scaling.floor.copy_(torch.tensor([-torch.inf if f is None else f for f in document.floor]))
    if document.ceiling:
        scaling.ceiling.copy_(torch.tensor([torch.inf if c is None else c for c in document.ceiling]))
    scaling.mean.copy_(torch.tensor(document.mean))
    scaling.scale.copy_(torch.tensor(document.scale))
    scaling.is_periodic[document.periodic] = True
    scaling.is_kept[document.dropped] = False
    if document.offset:
        scaling.offset = torch.tensor(document.offset, dtype=torch.float64)
        scaling.unit = torch.tensor(document.unit, dtype=torch.float64)
    if document.reach:
        reach = [math.inf if one is None else one for one in document.reach]
        scaling.reach = torch.tensor(reach, dtype=torch.float64)
    if document.fill:
        fill = [np.nan if value is None else value for value in document.fill]
        scaling.fill = torch.tensor(fill, dtype=torch.float64)
    return scaling


def network_document(network: StackedMlp) -> NetworkDocument:
    """Describe the architecture of stacked networks."""
    shapes = [tuple(weight.shape) for weight in network.weights]
    return NetworkDocument(
        n_networks=network.n_networks,
        n_inputs=shapes[0][1],
        hidden_layers=[shape[2] for shape in shapes[:-1]],
        n_outputs=shapes[-1][2],
        activation=network.activation,
    )


def network_tensors(network: StackedMlp, prefix: str) -> Arrays:
    """Return the weights of all networks by name."""
    return {
        f"{prefix}{name}.{layer}": parameter.detach().cpu().numpy()
        for name, parameters in (("weights", network.weights), ("biases", network.biases))
        for layer, parameter in enumerate(parameters)
    }


def stored_network(document: NetworkDocument, tensors: Arrays, prefix: str) -> StackedMlp:
    """Make the networks from their document and tensors, whose names and shapes were checked."""
    network = StackedMlp(
        document.n_networks,
        document.n_inputs,
        document.hidden_layers,
        document.n_outputs,
        activation=document.activation,
        generator=torch.Generator().manual_seed(0),  # overwritten; the global generator is left alone
    )
    with torch.no_grad():
        for name, parameters in (("weights", network.weights), ("biases", network.biases)):
            for layer, parameter in enumerate(parameters):
                values = tensors[f"{prefix}{name}.{layer}"]
                if not np.all(np.isfinite(values)):
                    msg = f"Got a model with values that are NaN or infinite in '{prefix}{name}.{layer}'; refit it."
                    raise InvalidInputError(msg)
                parameter.copy_(torch.from_numpy(np.array(values)))
    return network


def add_scaling(graph: OnnxGraph, features: str, scaling: FeatureScaling) -> str:
    """Add all that `FeatureScaling` does: `(n, d)` raw features in double precision to network inputs."""
    absent = _add_absent(graph, features, scaling)
    raw = features if absent is None else graph.add("Where", absent, 0.0, features)
    if scaling.offset is not None and scaling.unit is not None:
        centred = graph.add("Sub", raw, scaling.offset.cpu().numpy())
        raw = graph.add("Div", centred, scaling.unit.cpu().numpy())
    if scaling.reach is not None:
        reach = scaling.reach.cpu().numpy()
        raw = graph.add("Max", graph.add("Min", raw, reach), -reach)
    missing = absent
    if scaling.objects is not None:
        raw = add_objects(graph, raw, scaling.objects)
        missing = (
            None
            if absent is None
            else _add_missing(graph, absent, scaling.objects.sources, scaling.n_features)
        )
    edges = (scaling.floor.cpu().double().numpy(), scaling.ceiling.cpu().double().numpy())
    values = graph.add("Min", graph.add("Max", raw, edges[0]), edges[1])
    uses_log = scaling.uses_log.cpu().numpy()
    if uses_log.any():
        any_positive = 1.0  # for the others, whose logarithm is not used
        logarithms = graph.add("Log", graph.add("Where", graph.constant(uses_log), values, any_positive))
        values = graph.add("Where", graph.constant(uses_log), logarithms, values)
    centred = graph.add("Sub", values, graph.double(scaling.mean.cpu().numpy()))
    parts = [graph.add("Div", centred, graph.double(scaling.scale.cpu().numpy()))]
    is_kept = scaling.is_kept.cpu().numpy()
    is_periodic = scaling.is_periodic.cpu().numpy() & is_kept
    if is_periodic.any():
        # cos x = sin(x + pi/2): onnxruntime has the sine in double precision, the cosine in single only.
        cosines = graph.add("Mul", graph.add("Sin", graph.add("Add", raw, math.pi / 2)), math.sqrt(2.0))
        sines = graph.add("Mul", graph.add("Sin", raw), math.sqrt(2.0))
        parts = [graph.add("Where", graph.constant(is_periodic), cosines, parts[0]), sines]
    if missing is not None:
        parts = [graph.add("Where", missing, 0.0, part) for part in parts]
    chosen = [
        part if which.all() else graph.add("Gather", part, graph.constant(np.flatnonzero(which)), axis=1)
        for part, which in zip(parts, (is_kept, is_periodic), strict=False)
    ]
    if absent is not None:
        is_there = graph.cast(graph.add("Not", absent), np.float64)
        filled = graph.constant(np.array(scaling.filled, dtype=np.int64))
        chosen.append(graph.add("Gather", is_there, filled, axis=1))
    return graph.add("Concat", *chosen, axis=1) if len(chosen) > 1 else chosen[0]


def _add_absent(graph: OnnxGraph, features: str, scaling: FeatureScaling) -> str | None:
    """Add, per feature, whether its value misses; `None` where none may."""
    if scaling.fill is None:
        return None
    fill = scaling.fill.float().cpu().numpy()
    may_miss = ~np.isnan(fill)
    single = graph.cast(features, np.float32)
    is_fill = graph.add("Equal", single, graph.constant(np.where(may_miss, fill, np.float32(0.0))))
    is_fill = graph.add("Or", is_fill, graph.add("IsNaN", single))
    return graph.add("And", is_fill, graph.constant(may_miss))


def _add_missing(graph: OnnxGraph, absent: str, sources: Sequence[tuple[int, ...]], n_features: int) -> str:
    """Add, per coordinate, whether one of the features that it is made of misses."""
    counts = np.zeros((n_features, len(sources)))
    for place, columns in enumerate(sources):
        counts[list(columns), place] = 1.0
    numbers = graph.cast(absent, np.float64)
    return graph.add("Greater", graph.add("MatMul", numbers, counts), 0.5)


def add_networks(graph: OnnxGraph, inputs: str, network: StackedMlp) -> str:
    """Add all stacked networks: `(n, d)` inputs to `(n_networks, n, n_outputs)` outputs."""
    shares = activation_shares(network.activation, network.n_networks)
    last = len(network.weights) - 1
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        product = graph.add("MatMul", inputs, graph.double(weight.detach().cpu().numpy()))
        inputs = graph.add("Add", product, graph.double(bias.detach().cpu().numpy()))
        if layer < last:
            inputs = _add_activations(graph, inputs, shares)
    return inputs


def _add_activations(graph: OnnxGraph, x: str, shares: Sequence[ActivationShare]) -> str:
    if len(shares) == 1:
        return _add_activation(graph, x, shares[0][0])
    activated = [
        _add_activation(
            graph,
            graph.add("Slice", x, graph.axes(networks.start), graph.axes(networks.stop), graph.axes(0)),
            name,
        )
        for name, networks in shares
    ]
    return graph.add("Concat", *activated, axis=0)


def _add_activation(graph: OnnxGraph, x: str, name: str) -> str:
    add_onnx = activation_named(name).add_onnx
    if add_onnx is None:
        msg = (
            f"Got the activation {name!r}, which is your own code and has no ONNX form; expected one with `add_onnx`. "
            "Register an Activation that has it."
        )
        raise InvalidInputError(msg)
    return add_onnx(graph, x)
