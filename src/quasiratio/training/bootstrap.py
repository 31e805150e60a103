"""Balanced Poisson bootstrap: the members of an ensemble see the data as if it had been drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

__all__ = ["block_counts", "member_weights", "normalized_per_group"]


def member_weights(weights: Tensor, n_members: int, generator: torch.Generator) -> Tensor:
    r"""Return the weights of each member, `(n_members, n)`.

    One member sees the data as they are. With more, every event counts $k_m \sim \mathrm{Poisson}(1)$ times in
    member $m$, on the condition that $\sum_m k_m = K$: all $K$ members together see every event $K$ times. So
    the spread between members contains the statistical error of the data, while their mean has (to first
    order) no noise of the bootstrap; independent counts would add $1/K$ of that error's square to the mean.
    Since $\mathrm{Var}(k_m) - \mathrm{Cov}(k_m, k_n) = 1$, the variance across members (with $K - 1$ in the
    denominator) expects the same as with independent counts.
    """
    if n_members == 1:
        return weights[None].clone()
    counts = torch.zeros(n_members, len(weights), dtype=weights.dtype, device=weights.device)
    one = torch.ones(1, dtype=weights.dtype, device=weights.device).expand(1, len(weights))
    for _ in range(n_members):
        drawn = torch.randint(n_members, (1, len(weights)), generator=generator, device=weights.device)
        counts.scatter_add_(0, drawn, one)
    return counts.mul_(weights)


def block_counts(n_events: int, n_members: int, *, seed: int, block: int) -> npt.NDArray[np.uint8]:
    """Return how often each member sees each event of one block of a store, `(n_members, n_events)`.

    The same counts as in `member_weights`, drawn anew whenever a block is read, from the seed and the number of the block:
    an array for all events would not fit into memory.

    Example:
        >>> counts = block_counts(5, 3, seed=0, block=7)
        >>> counts.shape, counts.sum(axis=0).tolist()
        ((3, 5), [3, 3, 3, 3, 3])
    """
    if n_members == 1:
        return np.ones((1, n_events), dtype=np.uint8)
    rng = np.random.default_rng([seed, block])
    drawn = rng.integers(n_members, size=(n_members, n_events), dtype=np.uint16)
    return np.stack([(drawn == member).sum(axis=0, dtype=np.uint8) for member in range(n_members)])


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
