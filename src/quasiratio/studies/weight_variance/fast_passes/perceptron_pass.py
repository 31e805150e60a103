"""Forward and backward passes of many small perceptrons, written out.

One step of a network of two layers of 64 on 256 events is a few million multiplications; what costs more is
everything around them. So there is no graph and buffers are kept, and then:

- Biases are the last rows of the weights, and every layer ends in a column of ones. No step adds or sums them.
- The last layer has one output, so that slopes times its weights are an outer product. The weights are taken into the
  small matrices instead: what is as large as the activations is the slope of an event where a unit is on, and zero.
- Its gradient needs no activations either: a unit that is on is linear in the layer below.
- Products are NumPy's. Those of PyTorch (MKL) leave half of an AVX-512 unit idle on processors of other makers, and
  take twice as long as they need to where one side is thin.

A test compares the passes with automatic differentiation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

__all__ = ["StackedPass", "initial_parameters", "with_ones"]

_SMALL_PRODUCT = 10**6
"""Multiplications of a product up to which OpenBLAS works on the matrices where they are, and does not copy them."""

_QUIET = np.errstate(all="ignore")
"""What runs away is judged by its validation loss, not by warnings of a product."""


def initial_parameters(widths: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Draw weights and biases of one network, uniform within one over the root of the inputs.

    Example:
        >>> [tuple(p.shape) for p in initial_parameters((2, 8, 1), torch.Generator().manual_seed(0))]
        [(1, 3, 8), (1, 9, 1)]
    """
    parameters = []
    for fan_in, fan_out in itertools.pairwise(widths):
        bound = 1.0 / math.sqrt(fan_in)
        drawn = [
            torch.empty(1, n_rows, fan_out).uniform_(-bound, bound, generator=generator)
            for n_rows in (fan_in, 1)
        ]
        parameters.append(torch.cat(drawn, dim=1))
    return parameters


def with_ones(inputs: Tensor) -> Tensor:
    """Append the column of ones that the biases are multiplied with.

    Example:
        >>> with_ones(torch.tensor([[5.0, 7.0]]))
        tensor([[5., 7., 1.]])
    """
    return torch.cat([inputs, torch.ones(*inputs.shape[:-1], 1)], dim=-1)


class StackedPass:
    """Networks with ReLU between layers and one output, all of one shape.

    Parameters are one `(k, fan_in + 1, fan_out)` per layer for k networks; the last rows are biases.

    Example:
        >>> parameters = initial_parameters((2, 8, 1), torch.Generator().manual_seed(0))
        >>> passes = StackedPass()
        >>> outputs = passes.outputs(parameters, with_ones(torch.zeros(5, 2)))
        >>> outputs.shape, [g.shape == p.shape for g, p in zip(passes.gradients(parameters, outputs), parameters)]
        (torch.Size([1, 5]), [True, True])
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int], Tensor] = {}
        self._layers: list[Tensor] = []

    @_QUIET
    def outputs(self, parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
        """Return the raw outputs `(k, n)` for `(n, d + 1)` events that all see, or `(k, n, d + 1)`, with ones."""
        shape = (len(parameters[0]), inputs.shape[-2])
        self._layers = [inputs]
        for layer, weight in enumerate(parameters[:-1]):
            into = self._buffer("hidden", layer, (*shape, weight.shape[2] + 1))
            _product(self._layers[-1], weight, into[..., :-1])
            self._layers.append(into.relu_())
        return _product(self._layers[-1], parameters[-1], torch.empty(*shape, 1))[..., 0]

    @_QUIET
    def gradients(self, parameters: Sequence[Tensor], slopes: Tensor) -> list[Tensor]:
        """Return the gradients for the `slopes` of the risk with respect to the last outputs, `(k, n)`."""
        top = len(parameters) - 2
        last = parameters[-1][:, :-1].transpose(1, 2)
        delta = self._where_on(slopes[..., None].expand_as(self._layers[-1]), top)
        found: list[Tensor] = []
        for layer in range(top, -1, -1):
            weight = parameters[layer]
            gradient = _product(
                self._layers[layer].transpose(-1, -2), delta[..., :-1], torch.empty_like(weight)
            )
            if layer == top:
                of_last = (gradient * weight).sum(dim=1)
                found = [torch.cat([of_last, slopes.sum(dim=1, keepdim=True)], dim=1)[..., None]]
                gradient *= last
                weight = weight * last
            found = [gradient, *found]
            if layer > 0:
                into = self._buffer("delta", layer - 1, tuple(self._layers[layer].shape))
                # In this order the product has no transposed side, which takes half as long again.
                _product(delta[..., :-1], weight[:, :-1].transpose(1, 2).contiguous(), into[..., :-1])
                delta = self._where_on(into, layer - 1)
        return found

    def _where_on(self, values: Tensor, layer: int) -> Tensor:
        """Return the values of events and units that are on, and zero elsewhere."""
        hidden = self._layers[layer + 1]
        into = self._buffer("delta", layer, tuple(hidden.shape))
        torch.ops.aten.threshold_backward.grad_input(values, hidden, 0.0, grad_input=into)
        return into

    def _buffer(self, kind: str, layer: int, shape: tuple[int, ...]) -> Tensor:
        known = self._buffers.get((kind, layer))
        if known is None or known.shape != shape:
            self._buffers[kind, layer] = known = torch.ones(shape)
        return known


def _product(left: Tensor, right: Tensor, into: Tensor) -> Tensor:
    """Multiply the matrices of all networks."""
    n_rows = left.shape[-2]
    n_blocks = math.ceil(n_rows * right.shape[-2] * right.shape[-1] / _SMALL_PRODUCT)
    block = math.ceil(n_rows / n_blocks)
    a, b, c = left.numpy(), right.numpy(), into.numpy()
    for start in range(0, n_rows, block):
        rows = slice(start, start + block)
        np.matmul(a[..., rows, :], b, out=c[..., rows, :])
    return into
