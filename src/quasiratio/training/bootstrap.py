"""Poisson bootstrap: the members of an ensemble see the data as if it had been drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["member_weights", "normalized_per_group"]


def member_weights(weights: Tensor, n_members: int, generator: torch.Generator) -> Tensor:
    r"""Return the weights of each member, `(n_members, n)`.

    One member sees the data as they are. With more, every event counts $\mathrm{Poisson}(1)$ times in each
    member, independently, so that the spread between members contains the statistical error of the data.
    """
    if n_members == 1:
        return weights[None].clone()
    rates = torch.ones_like(weights)
    return torch.stack([weights * torch.poisson(rates, generator=generator) for _ in range(n_members)])


def normalized_per_group(weights: Tensor, group: Tensor, *, n_groups: int = 2) -> Tensor:
    r"""Scale each member's weights so that every group has the signed sum $N / n_\mathrm{groups}$.

    Both classes then carry the same total whatever their sizes, and duplicating all events of one class
    changes no ratio.

    Args:
        weights: `(n_members, n)` weights.
        group: `(n,)` group of each event, from zero.
        n_groups: Number of groups.
    """
    scaled = torch.zeros_like(weights, dtype=torch.float32)
    share = weights.shape[1] / n_groups
    for index in range(n_groups):
        in_group = group == index
        totals = (weights * in_group).sum(dim=1, keepdim=True)
        if not bool((totals > 0).all()):
            msg = (
                f"The weights of one class of an ensemble member sum to {float(totals.min()):.6g}; expected "
                "a positive sum. There are too few events: use n_members=1, or more events."
            )
            raise InvalidInputError(msg)
        scaled += (weights * in_group * (share / totals)).float()
    return scaled
