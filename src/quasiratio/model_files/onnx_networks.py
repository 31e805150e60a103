"""Scaling and networks as ONNX operations, in double precision."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks import activation_shares

if TYPE_CHECKING:
    from quasiratio.networks import FeatureScaling, StackedMlp
    from quasiratio.networks.activations import ActivationShare

__all__ = ["ONNX_ACTIVATIONS", "add_networks", "add_scaling"]

_ERF_DEGREE = 28


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
        return ONNX_ACTIVATIONS[shares[0][0]](graph, x)
    activated = [
        ONNX_ACTIVATIONS[name](
            graph, graph.add("Slice", x, graph.axes(networks.start), graph.axes(networks.stop), graph.axes(0))
        )
        for name, networks in shares
    ]
    return graph.add("Concat", *activated, axis=0)


def _silu(graph: OnnxGraph, x: str) -> str:
    # Not x * Sigmoid(x): onnxruntime up to 1.20 at least replaces that by a function it has in float only.
    return graph.add("Div", x, graph.add("Add", graph.add("Exp", graph.add("Neg", x)), 1.0))


def _hardswish(graph: OnnxGraph, x: str) -> str:
    gate = graph.add("Min", graph.add("Relu", graph.add("Add", x, 3.0)), 6.0)
    return graph.add("Mul", x, graph.add("Div", gate, 6.0))


def _gelu(graph: OnnxGraph, x: str) -> str:
    erf = _add_erf(graph, graph.add("Mul", x, math.sqrt(0.5)))
    return graph.add("Mul", graph.add("Mul", x, 0.5), graph.add("Add", erf, 1.0))


ONNX_ACTIVATIONS: dict[str, Callable[[OnnxGraph, str], str]] = {
    "silu": _silu,
    "hardswish": _hardswish,
    "relu": lambda graph, x: graph.add("Relu", x),
    "tanh": lambda graph, x: graph.add("Tanh", x),
    "gelu": _gelu,
}


def _add_erf(graph: OnnxGraph, x: str) -> str:
    r"""Add the error function, which runtimes have in single precision only.

    With $t = 2/(2 + |x|)$, $\mathrm{erf}\,|x| = 1 - e^{-x^2} f(t)$, where $f$ is smooth on $(0, 1]$ and a short
    Chebyshev series, summed by Clenshaw's recurrence.
    """
    size = graph.add("Abs", x)
    t = graph.add("Div", 2.0, graph.add("Add", size, 2.0))
    twice = graph.add("Sub", graph.add("Mul", t, 4.0), 2.0)  # 2 (2 t - 1)
    coefficients = _erf_coefficients()
    later, latest = graph.constant(0.0), graph.constant(float(coefficients[-1]))
    for coefficient in coefficients[-2:0:-1]:
        step = graph.add("Sub", graph.add("Mul", twice, latest), later)
        later, latest = latest, graph.add("Add", step, float(coefficient))
    half = graph.add("Mul", graph.add("Mul", twice, 0.5), latest)
    series = graph.add("Add", graph.add("Sub", half, later), float(coefficients[0]))
    tail = graph.add("Mul", graph.add("Exp", graph.add("Neg", graph.add("Mul", x, x))), series)
    return graph.add("Mul", graph.add("Sign", x), graph.add("Sub", 1.0, tail))


@functools.cache
def _erf_coefficients() -> npt.NDArray[np.float64]:
    nodes = chebyshev.chebpts1(_ERF_DEGREE + 1)
    series = chebyshev.chebfit(nodes, erfcx(4.0 / (nodes + 1.0) - 2.0), _ERF_DEGREE)
    return series.astype(np.float64)
