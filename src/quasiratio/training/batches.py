"""Mini-batches from events in random order.

A `Pool` lists the events one kind of network trains on, with their classes and weights. They are laid out
once in random order; a batch is then a stretch of memory, and every member reads from its own place. There
is no loader, no worker process and no per-event Python.

Where the events come from is nothing to `Batches`: it asks every `TrainingPool` for its `Stretches`. A `Pool` lays
tensors out in memory; a `StoredPool` (`stored_pool.py`) reads from a store that was shuffled on disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from quasiratio.training.ranks import Ranks

__all__ = ["Batch", "Batches", "Pool", "Stretches", "TrainingPool"]

_COLUMNS = ("features", "classes", "weights")


class Stretches(Protocol):
    """Events in random order, of which batches are stretches.

    Attributes:
        first: Where the present pass over the events began.
        n_used: How many of them it has used.
    """

    first: int
    n_used: int

    def take(self, size: int) -> Batch:
        """Return the next batch, of one row per member."""
        ...


class TrainingPool(Protocol):
    """Events of one training problem, wherever they are."""

    def __len__(self) -> int: ...

    @property
    def n_members(self) -> int:
        """Length of the member axis."""
        ...

    def shuffled(self, features: Tensor, generator: torch.Generator) -> Stretches:
        """Return the events in random order.

        Args:
            features: Scaled features in memory, of which a pool has some.
            generator: Source of all random numbers.
        """
        ...

    def class_sums(self, n_classes: int) -> Tensor:
        """Return the sum of the weights of each class, for the first member."""
        ...


@dataclass(frozen=True)
class Pool:
    """Events of one training problem.

    Attributes:
        events: Indices into the feature tensor, or `None` for all events in order.
        classes: Label or class of each event, `(n,)`, or what is to be learned of it, `(n, n_targets)`.
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

    def shuffled(self, features: Tensor, generator: torch.Generator) -> Stretches:
        """Copy the events once in random order."""
        return _ShuffledPool(features, self, generator)

    def class_sums(self, n_classes: int) -> Tensor:
        """Return the sum of the weights of each class, for the first member."""
        return torch.zeros(n_classes).index_add_(0, self.classes.cpu(), self.weights[0].cpu())


@dataclass(frozen=True)
class Batch:
    """What the networks see in one step; the first axis runs over members, then pools.

    Attributes:
        n_events: Events of the batch that this is the share of a rank in; `None` for a batch of its own.
    """

    features: Tensor
    classes: Tensor
    weights: Tensor
    n_events: int | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return self.classes.shape[1]

    @property
    def n_of_all(self) -> int:
        """Events of the batch, of all ranks together."""
        return len(self) if self.n_events is None else self.n_events

    def parts(self, n_events: int) -> Iterator[Batch]:
        """Cut into batches of at most `n_events`."""
        for start in range(0, len(self), n_events):
            chosen = slice(start, start + n_events)
            yield Batch(self.features[:, chosen], self.classes[:, chosen], self.weights[:, chosen])

    def padded(self, length: int) -> Batch:
        """Return a longer batch, whose further events weigh nothing."""
        columns = (getattr(self, name) for name in _COLUMNS)
        n_more = length - len(self)
        return Batch(
            *(torch.cat([one, one.new_zeros(len(one), n_more, *one.shape[2:])], 1) for one in columns)
        )


class Batches:
    """Endless shuffled batches of shape `(n_members * n_pools, batch_size, ...)`.

    Args:
        features: `(n, d)` scaled features.
        pools: One per problem; all with the same number of members. Network `k * n_pools + p` is member
            `k` of pool `p`.
        batch_size: Events per network and step at most, of all ranks together; a smaller pool is repeated within the
            batch.
        generator: Source of the shuffles, on the device of the features.
        ranks: Processes that have the other events of the pools; each gives its share to every batch.

    Attributes:
        largest_pool: Events of the largest pool, of all ranks together.
        batch_size: Events per network and step, of all ranks together.
    """

    def __init__(
        self,
        features: Tensor,
        pools: Sequence[TrainingPool],
        batch_size: int,
        generator: torch.Generator,
        ranks: Ranks | None = None,
    ) -> None:
        self.places = (ranks or Ranks()).places([len(pool) for pool in pools])
        self.largest_pool = max(place.total for place in self.places)
        self.batch_size = min(batch_size, self.largest_pool)
        self.generator = generator
        self.n_drawn = 0
        self._shuffled = [pool.shuffled(features, generator) for pool in pools]

    def __iter__(self) -> Iterator[Batch]:
        return self.stream(itertools.repeat(self.batch_size))

    def stream(self, sizes: Iterable[int]) -> Iterator[Batch]:
        """Yield one batch, or the share that this rank has in it, for each of `sizes`, none larger than the largest pool."""
        for size in sizes:
            wanted = min(size, self.batch_size)
            shares = [place.share(wanted, self.n_drawn) for place in self.places]
            parts = [pool.take(share) for pool, share in zip(self._shuffled, shares, strict=True)]
            self.n_drawn += 1
            longest = max(1, *shares)  # networks need an event to have gradients
            parts = [part if len(part) == longest else part.padded(longest) for part in parts]
            if len(parts) == 1:
                yield replace(parts[0], n_events=wanted)
                continue
            yield Batch(
                torch.stack([part.features for part in parts], dim=1).flatten(0, 1),
                torch.stack([part.classes for part in parts], dim=1).flatten(0, 1),
                torch.stack([part.weights for part in parts], dim=1).flatten(0, 1),
                n_events=wanted,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the place in every pool, and the generator."""
        places = [[pool.first, pool.n_used] for pool in self._shuffled]
        return {"places": places, "generator": self.generator.get_state(), "n_drawn": self.n_drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from an earlier place in the same shuffles."""
        for pool, (first, n_used) in zip(self._shuffled, state["places"], strict=True):
            pool.first, pool.n_used = first, n_used
        self.generator.set_state(state["generator"])
        self.n_drawn = state["n_drawn"]


class _ShuffledPool:
    """The events of a pool, copied once in random order, so that a batch is a stretch of memory.

    Every pass over the events begins at another place. Members read at places spread evenly over the pool.
    """

    def __init__(self, features: Tensor, pool: Pool, generator: torch.Generator) -> None:
        order = torch.randperm(len(pool), generator=generator, device=features.device)
        self.n_events, self.n_members, self.generator = len(pool), pool.n_members, generator
        self.features = features.index_select(0, order if pool.events is None else pool.events[order])
        self.classes = pool.classes.index_select(0, order)
        self.weights = pool.weights.index_select(1, order)
        self.first, self.n_used = 0, 0

    def take(self, size: int) -> Batch:
        """Return the next batch, of one row per member; a pass ends where the next would not fit."""
        if self.n_used + size > self.n_events:
            drawn = torch.randint(self.n_events, (1,), generator=self.generator, device=self.features.device)
            self.first, self.n_used = int(drawn), 0
        spacing = self.n_events // self.n_members
        rows = [
            self._stretch(member, (self.first + self.n_used + member * spacing) % max(1, self.n_events), size)
            for member in range(self.n_members)
        ]
        self.n_used += size
        if self.n_members == 1:
            return rows[0]
        return Batch(*(torch.cat([getattr(row, name) for row in rows]) for name in _COLUMNS))

    def _stretch(self, member: int, start: int, size: int) -> Batch:
        """Return `size` events from `start` on, beginning anew at the end of the pool."""
        columns = (self.features, self.classes, self.weights[member])
        if start + size <= self.n_events:
            return Batch(*(column[None, start : start + size] for column in columns))
        positions = torch.arange(start, start + size, device=self.features.device) % self.n_events
        return Batch(*(column[None, positions] for column in columns))
