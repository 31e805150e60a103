"""Forward and backward passes of many small perceptrons, written out.

One step of a network of two layers of 64 on 256 events is a few million multiplications; what costs more is
everything around them. Written out, with buffers that are kept and without a graph, a step takes half the time
that automatic differentiation of the same stacked network takes. A test compares the two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["StackedPass", "initial_parameters"]


def initial_parameters(widths: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Draw weights and biases of one network, uniform within one over the root of the inputs.

    Example:
        >>> [tuple(p.shape) for p in initial_parameters((2, 8, 1), torch.Generator().manual_seed(0))]
        [(1, 2, 8), (1, 1, 8), (1, 8, 1), (1, 1, 1)]
    """
    parameters = []
    for fan_in, fan_out in itertools.pairwise(widths):
        bound = 1.0 / math.sqrt(fan_in)
        for shape in ((1, fan_in, fan_out), (1, 1, fan_out)):
            parameters.append(torch.empty(shape).uniform_(-bound, bound, generator=generator))
    return parameters


class StackedPass:
    """Networks with ReLU between layers and one output, all of one shape.

    Parameters are weights and biases in turn, each with a first axis over the networks.

    Example:
        >>> parameters = initial_parameters((2, 8, 1), torch.Generator().manual_seed(0))
        >>> passes = StackedPass()
        >>> outputs = passes.outputs(parameters, torch.ones(5, 2))
        >>> outputs.shape, [g.shape == p.shape for g, p in zip(passes.gradients(parameters, outputs), parameters)]
        (torch.Size([1, 5]), [True, True, True, True])
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int], Tensor] = {}
        self._inputs = torch.empty(0)

    def outputs(self, parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
        """Return the raw outputs `(k, n)` for `(n, d)` events that all see, or `(k, n, d)`."""
        n_networks = len(parameters[0])
        hidden = inputs if inputs.dim() == 3 else inputs.expand(n_networks, *inputs.shape)
        self._inputs = hidden
        n_hidden = len(parameters) // 2 - 1
        for layer in range(n_hidden):
            weight, bias = parameters[2 * layer : 2 * layer + 2]
            into = self._buffer("hidden", layer, (n_networks, hidden.shape[1], weight.shape[2]))
            hidden = torch.baddbmm(bias, hidden, weight, out=into).relu_()
        weight, bias = parameters[-2:]
        return torch.bmm(weight.transpose(1, 2), hidden.transpose(1, 2))[:, 0] + bias[:, 0]

    def gradients(self, parameters: Sequence[Tensor], slopes: Tensor) -> list[Tensor]:
        """Return the gradients for the `slopes` of the risk with respect to the last outputs, `(k, n)`."""
        n_hidden = len(parameters) // 2 - 1
        layers = [self._inputs, *(self._buffers["hidden", layer] for layer in range(n_hidden))]
        weight = parameters[-2]
        found = [
            torch.bmm(slopes[:, None], layers[-1]).transpose(1, 2).contiguous(),
            slopes.sum(dim=1)[:, None, None],
        ]
        delta = slopes[..., None]
        for layer in reversed(range(n_hidden)):
            hidden = layers[layer + 1]
            into = self._buffer("delta", layer, tuple(hidden.shape))
            if delta.shape[2] == 1:  # an outer product, for which the matrix product is slow
                torch.mul(delta, weight.transpose(1, 2), out=into)
            else:
                torch.bmm(delta, weight.transpose(1, 2), out=into)
            delta = torch.ops.aten.threshold_backward.grad_input(into, hidden, 0.0, grad_input=into)
            found = [torch.bmm(layers[layer].transpose(1, 2), delta), delta.sum(dim=1, keepdim=True), *found]
            weight = parameters[2 * layer]
        return found

    def _buffer(self, kind: str, layer: int, shape: tuple[int, ...]) -> Tensor:
        known = self._buffers.get((kind, layer))
        if known is None or known.shape != shape:
            self._buffers[kind, layer] = known = torch.empty(shape)
        return known
