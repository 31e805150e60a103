"""Activations by name, one for all networks of a stack or one for each share of them.

`"silu+hardswish"` gives the first half of the networks SiLU and the others hard swish. What a network cannot
follow within its training differs between the two, so that the mean over both is closer than over either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from numpy.polynomial import chebyshev
from scipy.special import erfcx
from torch import Tensor, nn

from quasiratio import registry
from quasiratio.errors import InvalidInputError
from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "ActivationShare",
    "activate",
    "activation_named",
    "activation_shares",
    "add_erf",
]

_ERF_DEGREE = 28


@dataclass(frozen=True)
class Activation:
    """A function of a tensor, element by element, and its other forms.

    Attributes:
        function: The function, through which gradients flow.
        in_place: The same without new memory, for evaluation: fresh pages cost more than the arithmetic.
        add_onnx: Adds it to a graph, in double precision; without it a model cannot be exported.
    """

    function: Callable[[Tensor], Tensor]
    in_place: Callable[[Tensor], Tensor] | None = None
    add_onnx: Callable[[OnnxGraph, str], str] | None = None

    def __call__(self, hidden: Tensor) -> Tensor:
        """Apply the function."""
        return self.function(hidden)

    def apply_in_place(self, hidden: Tensor) -> None:
        """Overwrite a tensor."""
        if self.in_place is None:
            hidden.copy_(self.function(hidden))
        else:
            self.in_place(hidden)


def _add_silu(graph: OnnxGraph, x: str) -> str:
    # Not x * Sigmoid(x): onnxruntime up to 1.20 at least replaces that by a function it has in float only.
    return graph.add("Div", x, graph.add("Add", graph.add("Exp", graph.add("Neg", x)), 1.0))


def _add_hardswish(graph: OnnxGraph, x: str) -> str:
    gate = graph.add("Min", graph.add("Relu", graph.add("Add", x, 3.0)), 6.0)
    return graph.add("Mul", x, graph.add("Div", gate, 6.0))


def _add_gelu(graph: OnnxGraph, x: str) -> str:
    erf = add_erf(graph, graph.add("Mul", x, math.sqrt(0.5)))
    return graph.add("Mul", graph.add("Mul", x, 0.5), graph.add("Add", erf, 1.0))


SILU = Activation(nn.functional.silu, partial(nn.functional.silu, inplace=True), _add_silu)
RELU = Activation(nn.functional.relu, torch.relu_, lambda graph, x: graph.add("Relu", x))
TANH = Activation(torch.tanh, torch.tanh_, lambda graph, x: graph.add("Tanh", x))
GELU = Activation(nn.functional.gelu, None, _add_gelu)
HARDSWISH = Activation(
    nn.functional.hardswish, partial(nn.functional.hardswish, inplace=True), _add_hardswish
)

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = registry.ACTIVATIONS
"""Activations by name, yours among them (see `quasiratio.registry`)."""

ActivationShare = tuple[str, slice]
"""An activation, and the networks that have it."""


def activation_named(name: str) -> Activation:
    """Return a registered activation with its other forms, as far as it has them."""
    found = ACTIVATIONS[name]
    return found if isinstance(found, Activation) else Activation(found)


def activation_shares(activation: str, n_networks: int) -> list[ActivationShare]:
    """Divide networks evenly among the names that `+` joins, the first ones taking what is left over.

    Example:
        >>> activation_shares("silu+hardswish", 5)
        [('silu', slice(0, 3, None)), ('hardswish', slice(3, 5, None))]
        >>> activation_shares("silu+hardswish", 1)
        [('silu', slice(0, 1, None))]
    """
    names = activation.split("+")
    if any(name not in ACTIVATIONS for name in names):
        msg = (
            f"Got the activation {activation!r}; expected one of {', '.join(ACTIVATIONS)}, or several joined "
            "by +, such as silu+hardswish, for the members of an ensemble."
        )
        raise InvalidInputError(msg)
    least, n_larger = divmod(n_networks, len(names))
    shares, start = [], 0
    for number, name in enumerate(names):
        stop = start + least + (number < n_larger)
        if stop > start:
            shares.append((name, slice(start, stop)))
        start = stop
    return shares


def activate(hidden: Tensor, shares: Sequence[ActivationShare]) -> Tensor:
    """Apply to each network, along the first axis, its own activation; in place where no gradient is taken."""
    if torch.is_grad_enabled():
        activated = [ACTIVATIONS[name](hidden[networks]) for name, networks in shares]
        return activated[0] if len(activated) == 1 else torch.cat(activated)
    for name, networks in shares:
        activation_named(name).apply_in_place(hidden[networks])
    return hidden


def add_erf(graph: OnnxGraph, x: str) -> str:
    r"""Add the error function to a graph, which runtimes have in single precision only.

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


@cache
def _erf_coefficients() -> npt.NDArray[np.float64]:
    nodes = chebyshev.chebpts1(_ERF_DEGREE + 1)
    series = chebyshev.chebfit(nodes, erfcx(4.0 / (nodes + 1.0) - 2.0), _ERF_DEGREE)
    return cast("npt.NDArray[np.float64]", series.astype(np.float64))
