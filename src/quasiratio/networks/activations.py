"""Activations by name, one for all networks of a stack or one for each share of them.

`"silu+hardswish"` gives the first half of the networks SiLU and the others hard swish. What a network cannot
follow within its training differs between the two, so that the mean over both is closer than over either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from quasiratio.errors import InvalidInputError

__all__ = ["ACTIVATIONS", "ActivationShare", "activate", "activation_shares"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "relu": nn.functional.relu,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "hardswish": nn.functional.hardswish,
}
_IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": partial(nn.functional.silu, inplace=True),
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "gelu": lambda hidden: hidden.copy_(nn.functional.gelu(hidden)),
    "hardswish": partial(nn.functional.hardswish, inplace=True),
}
"""The same without new memory, for evaluation: fresh pages cost more than the arithmetic."""

ActivationShare = tuple[str, slice]
"""An activation, and the networks that have it."""


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
        _IN_PLACE[name](hidden[networks])
    return hidden
