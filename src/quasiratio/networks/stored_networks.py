"""Scaling and networks outside of PyTorch: their documents and tensors in model files, and their ONNX operations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

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
    """Scaling of the features.

    `floor` is the smallest value of a feature that is taken in logarithm; `periodic` lists the columns of angles.
    """

    uses_log: list[bool]
    floor: list[PositiveFloat | None]
    mean: list[float]
    scale: list[PositiveFloat]
    periodic: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the networks: angles have two."""
        return len(self.mean) + len(self.periodic)

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            len({len(self.uses_log), len(self.floor), len(self.mean), len(self.scale)}) != 1,
            "logarithms, floors, means and scales differ in number",
        )
        refuse_if(
            any(a >= b for a, b in itertools.pairwise([*self.periodic, len(self.mean)])),
            "the periodic features are not among the features, in order",
        )
        refuse_if(
            any(
                is_log != (floor is not None) for is_log, floor in zip(self.uses_log, self.floor, strict=True)
            ),
            "exactly the features taken in logarithm have a floor",
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
    return ScalingDocument(
        uses_log=uses_log,
        floor=[f if is_log else None for f, is_log in zip(scaling.floor.tolist(), uses_log, strict=True)],
        mean=scaling.mean.tolist(),
        scale=scaling.scale.tolist(),
        periodic=torch.nonzero(scaling.is_periodic).flatten().tolist(),
    )


def stored_scaling(document: ScalingDocument) -> FeatureScaling:
    """Make the scaling again."""
    scaling = FeatureScaling(len(document.mean))
    scaling.uses_log.copy_(torch.tensor(document.uses_log))
    scaling.floor.copy_(torch.tensor([-torch.inf if f is None else f for f in document.floor]))
    scaling.mean.copy_(torch.tensor(document.mean))
    scaling.scale.copy_(torch.tensor(document.scale))
    scaling.is_periodic[document.periodic] = True
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
    """Add logarithms, shift and scale, and angles: `(n, d)` raw features in double precision to network inputs."""
    raw = features
    uses_log = scaling.uses_log.cpu().numpy()
    if uses_log.any():
        any_positive = 1.0  # for the others, whose logarithm is not used
        floor = np.where(uses_log, scaling.floor.cpu().double().numpy(), any_positive)
        logarithms = graph.add("Log", graph.add("Max", features, floor))
        features = graph.add("Where", graph.constant(uses_log), logarithms, features)
    centred = graph.add("Sub", features, graph.double(scaling.mean.cpu().numpy()))
    scaled = graph.add("Div", centred, graph.double(scaling.scale.cpu().numpy()))
    is_periodic = scaling.is_periodic.cpu().numpy()
    if not is_periodic.any():
        return scaled
    # cos x = sin(x + pi/2): onnxruntime has the sine in double precision, the cosine in single only.
    cosines = graph.add("Mul", graph.add("Sin", graph.add("Add", raw, math.pi / 2)), math.sqrt(2.0))
    angles = graph.add("Gather", raw, graph.constant(np.flatnonzero(is_periodic)), axis=1)
    sines = graph.add("Mul", graph.add("Sin", angles), math.sqrt(2.0))
    inputs = graph.add("Where", graph.constant(is_periodic), cosines, scaled)
    return graph.add("Concat", inputs, sines, axis=1)


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
