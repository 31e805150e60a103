"""Mini-batches from tensors in memory.

Features stay in one tensor. A `Pool` lists the events one kind of network trains on, with their classes and
weights; an epoch over a pool is one shuffled index, read by every member from its own starting point. There
is no loader, no worker process and no per-event Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Batch", "Batches", "Pool"]


@dataclass(frozen=True)
class Pool:
    """Events of one training problem.

    Attributes:
        events: Indices into the feature tensor, or `None` for all events in order.
        classes: Label or class of each event, `(n,)`.
        weights: Weight of each event for each member, `(n_members, n)`.
    """

    events: Tensor | None
    classes: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def n_members(self) -> int:
        """Length of the member axis."""
        return len(self.weights)


@dataclass(frozen=True)
class Batch:
    """What the networks see in one step; the first axis runs over members, then pools."""

    features: Tensor
    classes: Tensor
    weights: Tensor


class Batches:
    """Endless shuffled batches of shape `(n_members * n_pools, batch_size, ...)`.

    Args:
        features: `(n, d)` scaled features.
        pools: One per problem; all with the same number of members. Network `k * n_pools + p` is member
            `k` of pool `p`.
        batch_size: Events per network and step; a smaller pool is repeated within
            the batch.
        generator: Source of the shuffles, on the device of the features.
    """

    def __init__(
        self, features: Tensor, pools: Sequence[Pool], batch_size: int, generator: torch.Generator
    ) -> None:
        self.features = features
        self.pools = pools
        self.batch_size = min(batch_size, self.largest_pool)
        self.generator = generator

    @property
    def largest_pool(self) -> int:
        """Events in the largest pool."""
        return max(len(pool) for pool in self.pools)

    def __iter__(self) -> Iterator[Batch]:
        streams = [self._positions(pool) for pool in self.pools]
        while True:
            parts = [self._gather(pool, next(at)) for pool, at in zip(self.pools, streams, strict=True)]
            if len(parts) == 1:
                yield parts[0]
                continue
            yield Batch(
                torch.stack([part.features for part in parts], dim=1).flatten(0, 1),
                torch.stack([part.classes for part in parts], dim=1).flatten(0, 1),
                torch.stack([part.weights for part in parts], dim=1).flatten(0, 1),
            )

    def _positions(self, pool: Pool) -> Iterator[Tensor]:
        """Yield `(n_members, batch_size)` positions; members start evenly spread over one shuffle."""
        n_events, n_members = len(pool), pool.n_members
        device = self.features.device
        offsets = torch.arange(n_members, device=device)[:, None] * (n_events // n_members)
        window = torch.arange(self.batch_size, device=device)[None, :] + offsets
        while True:
            shuffled = torch.randperm(n_events, generator=self.generator, device=device)
            for start in range(0, max(1, n_events - self.batch_size + 1), self.batch_size):
                if n_members == 1 and n_events >= self.batch_size:
                    yield shuffled[None, start : start + self.batch_size]
                else:
                    yield shuffled[(window + start) % n_events]

    def _gather(self, pool: Pool, positions: Tensor) -> Batch:
        flat = positions.flatten()
        events = flat if pool.events is None else pool.events.index_select(0, flat)
        shape = positions.shape
        if pool.n_members == 1:
            weights = pool.weights[0].index_select(0, flat).view(shape)
        else:
            weights = pool.weights.gather(1, positions)
        return Batch(
            self.features.index_select(0, events).view(*shape, -1),
            pool.classes.index_select(0, flat).view(shape),
            weights,
        )
