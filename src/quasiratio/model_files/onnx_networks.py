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
from quasiratio.model_files.onnx_objects import add_objects
from quasiratio.networks import activation_shares

if TYPE_CHECKING:
    from quasiratio.networks import FeatureScaling, StackedMlp
    from quasiratio.networks.activations import ActivationShare

__all__ = ["ONNX_ACTIVATIONS", "add_networks", "add_scaling"]

_ERF_DEGREE = 28


def add_scaling(graph: OnnxGraph, features: str, scaling: FeatureScaling) -> str:
    """Add all that `FeatureScaling` does: `(n, d)` raw features in double precision to network inputs."""
    absent = _add_absent(graph, features, scaling)
    raw = features if absent is None else graph.add("Where", absent, 0.0, features)
    if scaling.offset is not None and scaling.unit is not None:
        centred = graph.add("Sub", raw, scaling.offset.cpu().numpy())
        raw = graph.add("Div", centred, scaling.unit.cpu().numpy())
    missing = absent
    if scaling.objects is not None:
        raw = add_objects(graph, raw, scaling.objects)
        missing = (
            None
            if absent is None
            else _add_missing(graph, absent, scaling.objects.sources, scaling.n_features)
        )
    values = raw
    uses_log = scaling.uses_log.cpu().numpy()
    if uses_log.any():
        any_positive = 1.0  # for the others, whose logarithm is not used
        floor = np.where(uses_log, scaling.floor.cpu().double().numpy(), any_positive)
        logarithms = graph.add("Log", graph.add("Max", values, floor))
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
