"""Multilayer perceptrons with a leading member axis.

Ensemble members, sub-ratios, folds and grid points are small networks of one shape. Stacking their
parameters along a first axis advances all of them with one batched matrix product per layer. Gradients and
Adam's moments never mix members, so each trains exactly as it would alone.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from quasiratio.errors import InvalidInputError
from quasiratio.networks.activations import activate, activation_shares
from quasiratio.networks.threads import network_threads
from quasiratio.wording import shortened

__all__ = ["TILE", "StackedMlp", "default_hidden_layers", "narrow_product", "whole_tiles"]

_FEW_FEATURES = 4
_MANY_EVENTS = 400_000
_COPIES_IN_TRAINING = 4  # parameters, gradients and two moments
TILE = 64
"""Events that products of matrices take together."""


def default_hidden_layers(n_features: int, n_events: int) -> tuple[int, ...]:
    """Return two layers of 64 for up to four features, three of 64 above, or of 128 where there are events for them.

    Example:
        >>> [default_hidden_layers(*sizes) for sizes in ((2, 4_000_000), (12, 200_000), (16, 1_500_000))]
        [(64, 64), (64, 64, 64), (128, 128, 128)]
    """
    if n_features <= _FEW_FEATURES:
        return (64, 64)
    return (128, 128, 128) if n_events > _MANY_EVENTS else (64, 64, 64)


def _require_memory(n_networks: int, widths: Sequence[int]) -> None:
    """Raise before the system runs out of memory, or kills the process, for parameters that cannot fit."""
    n_parameters = n_networks * sum((fan_in + 1) * fan_out for fan_in, fan_out in itertools.pairwise(widths))
    n_bytes = 4 * _COPIES_IN_TRAINING * n_parameters
    if n_bytes > _memory_bytes():
        shown = "x".join(str(width) for width in widths)
        msg = (
            f"Got {n_networks} network{'s' if n_networks > 1 else ''} of the widths {shortened(shown)}, whose training "
            f"needs {n_bytes / 1e9:.3g} GB; expected what fits into memory. Choose smaller hidden_layers or n_members."
        )
        raise InvalidInputError(msg)


def _memory_bytes() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on this system
        return math.inf


class StackedMlp(nn.Module):
    """`n_networks` independent perceptrons of one shape, evaluated together.

    Args:
        n_networks: Length of the leading axis.
        n_inputs: Number of inputs of each network.
        hidden_layers: Width of each hidden layer; empty for a linear model.
        n_outputs: Number of outputs of each network.
        activation: One of `ACTIVATIONS`, or several joined by `+` (see `networks.activations`).
        generator: Source of the initial weights; each network draws its own.

    Example:
        >>> mlp = StackedMlp(3, 2, (8,), 1, generator=torch.Generator().manual_seed(0))
        >>> mlp(torch.zeros(5, 2)).shape
        torch.Size([3, 5, 1])
    """

    def __init__(
        self,
        n_networks: int,
        n_inputs: int,
        hidden_layers: Sequence[int],
        n_outputs: int,
        *,
        activation: str = "silu",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_networks = n_networks
        self.activation = activation
        self._shares = activation_shares(activation, n_networks)
        widths = [n_inputs, *hidden_layers, n_outputs]
        _require_memory(n_networks, widths)
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for fan_in, fan_out in itertools.pairwise(widths):
            bound = 1.0 / math.sqrt(fan_in)
            for parameters, shape in ((self.weights, (fan_in, fan_out)), (self.biases, (1, fan_out))):
                start = torch.empty(n_networks, *shape).uniform_(-bound, bound, generator=generator)
                parameters.append(nn.Parameter(start))

    def forward(self, inputs: Tensor) -> Tensor:
        """Evaluate all networks.

        Args:
            inputs: `(n, n_inputs)` events that every network sees, or `(n_networks, n, n_inputs)`.

        Returns:
            Raw outputs of shape `(n_networks, n, n_outputs)`.
        """
        hidden = inputs if inputs.dim() == 3 else inputs.expand(self.n_networks, *inputs.shape)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer < last:
                hidden = activate(torch.baddbmm(bias, hidden, weight), self._shares)
            else:
                hidden = narrow_product(hidden, weight) + bias
        return hidden

    @classmethod
    def side_by_side(cls, stacks: Sequence[StackedMlp]) -> StackedMlp:
        """Return the networks of several stacks of one shape in one, those of the first in front.

        Example:
            >>> one, other = (StackedMlp(1, 2, (8,), 1) for _ in range(2))
            >>> x = torch.ones(5, 2)
            >>> torch.allclose(StackedMlp.side_by_side([one, other])(x), torch.cat([one(x), other(x)]))
            True
        """
        first = stacks[0]
        n_inputs, *widths = [first.weights[0].shape[1], *(weight.shape[2] for weight in first.weights)]
        n_networks = sum(stack.n_networks for stack in stacks)
        joined = cls(n_networks, n_inputs, widths[:-1], widths[-1], activation=first.activation)
        joined = joined.to(first.weights[0].device)
        with torch.no_grad():
            for all_of_them, *parts in zip(*(one.parameters() for one in (joined, *stacks)), strict=True):
                all_of_them.copy_(torch.cat(parts))
        return joined

    def averaged(self, n_starts: int) -> StackedMlp:
        """Return fewer, wider networks whose outputs are the means over `n_starts` of these.

        With `m` networks left, number `i` has the hidden units of the networks `i`, `i + m`, `i + 2m`, ... side by side, with no
        weights between them.

        Example:
            >>> mlp = StackedMlp(4, 2, (8, 8), 1, generator=torch.Generator().manual_seed(0))
            >>> one = mlp.averaged(4)
            >>> one.n_networks, torch.allclose(one(torch.ones(5, 2)), mlp(torch.ones(5, 2)).mean(dim=0), atol=1e-6)
            (1, True)
        """
        n_left, last = self.n_networks // n_starts, len(self.weights) - 1
        hidden_layers = [n_starts * weight.shape[2] for weight in self.weights[:last]]
        n_inputs, n_outputs = self.weights[0].shape[1], self.weights[last].shape[2]
        merged = StackedMlp(n_left, n_inputs, hidden_layers, n_outputs, activation=self.activation)
        merged = merged.to(self.weights[0].device)
        with torch.no_grad():
            for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                for number in range(n_left):
                    parts, shifts = list(weight[number::n_left]), bias[number::n_left]
                    if last == 0:
                        joined = torch.stack(parts).mean(dim=0)
                    elif layer == 0:
                        joined = torch.cat(parts, dim=1)
                    elif layer == last:
                        joined = torch.cat(parts, dim=0) / n_starts
                    else:
                        joined = torch.block_diag(*parts)  # type: ignore[no-untyped-call]
                    merged.weights[layer][number] = joined
                    merged.biases[layer][number] = (
                        shifts.mean(dim=0) if layer == last else shifts.reshape(1, -1)
                    )
        return merged

    @property
    def width(self) -> int:
        """Units of the widest layer."""
        return max(int(weight.shape[2]) for weight in self.weights)

    def threads(self, n_events: int) -> AbstractContextManager[None]:
        """Return a block in which so many events, all in all, are evaluated with the threads that they are worth."""
        return network_threads(None, n_events * self.n_networks, self.width)


def whole_tiles(events: Tensor) -> Tensor:
    """Repeat the last event up to a multiple of 64 events.

    Products of matrices, and vector instructions, treat what is left over otherwise than the rest. Without this an output
    changes in its seventh digit with the number of events that are evaluated together, and files do not add up to their
    merged one.

    Example:
        >>> whole_tiles(torch.arange(65.0)[:, None]).shape
        torch.Size([128, 1])
    """
    n_more = -len(events) % TILE
    return torch.cat([events, events[-1:].expand(n_more, -1)]) if n_more else events


def narrow_product(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return `hidden @ weight` for `(k, n, m)` and `(k, m, few)`.

    General matrix products are slow when one side is a handful of columns, as the outputs of a ratio network are. Laid
    out with the events along the fast axis the same product is several times faster, forwards and backwards; on a
    training step that is a fifth.

    Example:
        >>> hidden, weight = torch.ones(3, 5, 4), torch.ones(3, 4, 2)
        >>> torch.equal(narrow_product(hidden, weight), hidden @ weight)
        True
    """
    if not torch.is_grad_enabled():
        return _NarrowProduct.forward(hidden, weight)
    result: Tensor = _NarrowProduct.apply(hidden, weight)  # type: ignore[no-untyped-call]
    return result


class _NarrowProduct(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(hidden: Tensor, weight: Tensor) -> Tensor:
        return torch.bmm(weight.transpose(1, 2), hidden.transpose(1, 2)).transpose(1, 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ANN401, ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        hidden, weight = ctx.saved_tensors
        return (
            torch.bmm(gradient, weight.transpose(1, 2)),
            torch.bmm(gradient.transpose(1, 2), hidden).transpose(1, 2),
        )
