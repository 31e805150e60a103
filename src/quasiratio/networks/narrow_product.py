"""The last layer: a batched product with few columns.

General matrix products are slow when one side is a handful of columns, as the outputs of a ratio network
are. Laid out with the events along the fast axis the same product is several times faster, forwards and
backwards; on a training step that is a fifth.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["narrow_product"]


def narrow_product(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return `hidden @ weight` for `(k, n, m)` and `(k, m, few)`.

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
