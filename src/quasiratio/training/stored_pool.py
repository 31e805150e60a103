"""Training events that stay on disk: batches are stretches of a store that is already shuffled.

Everything that a batch needs of an event is made when its block is read: scaled features, its class (of its label and sign)
and its weight for a member (bootstrapped, and normalised by sums over all events). A member holds one block at a time, so
that memory depends neither on the number of events nor, but for those blocks, on the number of members.

As with events in memory, every pass begins at another place, and members read at places spread evenly over the events.

Several ranks have a stretch of the rows each, which is a random choice of the events, and read nothing else. Which events a
member sees, and how often, is the same for any number of them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from quasiratio.io.event_store import BLOCK_EVENTS
from quasiratio.ratios import sign_parts
from quasiratio.training.batches import Batch
from quasiratio.training.bootstrap import block_counts
from quasiratio.training.event_source import TrainingSource
from quasiratio.training.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quasiratio.io import EventStore
    from quasiratio.networks import FeatureScaling

__all__ = ["StoredPool", "StoredTraining"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StoredTraining(TrainingSource):
    """The events of a store that train: all from some row on, those before it being held out.

    Attributes:
        store: The store.
        start: The first row that trains.
        n_members: Members of the ensemble.
        seed: Seed of the bootstrap.
        ranks: The processes that share the training, and have a stretch of these rows each.
    """

    store: EventStore
    start: int
    n_members: int = 1
    seed: int = 0
    ranks: Ranks = field(default_factory=Ranks)

    def __len__(self) -> int:
        return len(self.store) - self.start

    @property
    def own(self) -> range:
        """Rows that this rank reads."""
        first, last = (
            self.start + len(self) * rank // self.ranks.size
            for rank in (self.ranks.rank, self.ranks.rank + 1)
        )
        return range(first, last)

    @functools.cached_property
    def part_sums(self) -> FloatArray:
        """Sums of the absolute weights that each member sees of the four `SIGN_CLASSES`, `(n_members, 4)`."""
        sums = np.zeros((self.n_members, 4))
        for start, stop in self._stretches():
            labels, weights = self.store.read_weights(start, stop)
            parts, sizes = sign_parts(labels, weights), np.abs(weights)
            for member, counts in enumerate(self.counts(start, stop)):
                sums[member] += np.bincount(parts, weights=counts * sizes, minlength=4)
        return self.summed(sums)

    @functools.cached_property
    def effective_sizes(self) -> tuple[float, float]:
        """Effective sizes of the training reference and target."""
        own = np.zeros((2, 2))
        for start, stop in self._stretches():
            labels, weights = self.store.read_weights(start, stop)
            own[0] += np.bincount(labels, weights=weights, minlength=2)
            own[1] += np.bincount(labels, weights=np.square(weights), minlength=2)
        sums, squares = self.summed(own)
        reference, target = (np.square(sums) / squares).tolist()
        return reference, target

    def _stretches(self) -> Iterator[tuple[int, int]]:
        return self.store.stretches(self.own.start, self.own.stop)

    def counts(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """Return how often each member sees the events of these rows of one block."""
        block = start // BLOCK_EVENTS
        n_events = min((block + 1) * BLOCK_EVENTS, len(self.store)) - block * BLOCK_EVENTS
        counts = block_counts(n_events, self.n_members, seed=self.seed, block=block)
        return counts[:, start - block * BLOCK_EVENTS : stop - block * BLOCK_EVENTS]

    def inputs(self, scaling: FeatureScaling) -> Tensor:
        """Return none: pools read the features themselves."""
        return torch.empty(0, scaling.n_inputs, device=scaling.mean.device)

    def pool(
        self, scaling: FeatureScaling, class_of: npt.NDArray[Any], *, absolute: bool = False
    ) -> StoredPool:
        """Return the events, to be read when they are needed."""
        return StoredPool(self, scaling, class_of, absolute=absolute)

    def reference_events(self) -> Iterator[tuple[npt.NDArray[np.float32], FloatArray]]:
        """Yield features and weights of the reference events of this rank, block by block."""
        for start, stop in self._stretches():
            rows = self.store.read(start, stop)
            yield rows.features[~rows.labels], rows.weights[~rows.labels]


class _Block(NamedTuple):
    """Rows from `start` to `stop` as one member sees them."""

    start: int
    stop: int
    features: Tensor
    classes: Tensor
    weights: Tensor


class StoredPool:
    """A `TrainingPool` whose events are read from a store when they are needed.

    Args:
        events: The training events of the store.
        scaling: Turns features into inputs of the networks, on the device where they train.
        class_of: What the networks are told of an event of each of the four `SIGN_CLASSES`.
        absolute: Whether they get the absolute weights.
    """

    def __init__(
        self,
        events: StoredTraining,
        scaling: FeatureScaling,
        class_of: npt.NDArray[np.generic],
        *,
        absolute: bool = False,
    ) -> None:
        self.events, self.scaling, self.class_of, self.is_absolute = events, scaling, class_of, absolute
        self.factors = events.factors()

    def __len__(self) -> int:
        return len(self.events.own)

    @property
    def n_members(self) -> int:
        """Length of the member axis."""
        return self.events.n_members

    def shuffled(self, features: Tensor, generator: torch.Generator) -> _StoredStretches:  # noqa: ARG002
        """Return the events in the order of the store, which is random."""
        return _StoredStretches(self, generator)

    def class_sums(self, n_classes: int) -> Tensor:
        """Return the sum of the weights of each class, for the first member."""
        return self.events.class_sums(self.class_of, n_classes, absolute=self.is_absolute)

    @torch.no_grad()
    def block(self, member: int, row: int) -> _Block:
        """Read the block of a row, for one member."""
        own, device = self.events.own, self.scaling.mean.device
        start = max(own.start, row // BLOCK_EVENTS * BLOCK_EVENTS)
        stop = min((row // BLOCK_EVENTS + 1) * BLOCK_EVENTS, own.stop)
        features, labels, weights = self.events.store.read(start, stop)
        parts = sign_parts(labels, weights)
        scaled = weights * self.factors[member][labels.astype(np.int64)]
        if self.n_members > 1:
            scaled *= self.events.counts(start, stop)[member]
        if self.is_absolute:
            scaled = np.abs(scaled)
        return _Block(
            start,
            stop,
            self.scaling(torch.from_numpy(features).to(device)),
            torch.from_numpy(self.class_of[parts]).to(device),
            torch.from_numpy(scaled).float().to(device),
        )


class _StoredStretches:
    """Batches from the blocks of a store, one block per member in memory."""

    def __init__(self, pool: StoredPool, generator: torch.Generator) -> None:
        self.pool, self.generator = pool, generator
        self.first, self.n_used = 0, 0
        self._blocks: dict[int, _Block] = {}

    def take(self, size: int) -> Batch:
        """Return the next batch, of one row per member; a pass ends where the next would not fit."""
        n_events, n_members = len(self.pool), self.pool.n_members
        if self.n_used + size > n_events:
            drawn = torch.randint(n_events, (1,), generator=self.generator, device=self.generator.device)
            self.first, self.n_used = int(drawn), 0
        spacing = n_events // n_members
        rows = [
            self._stretch(member, (self.first + self.n_used + member * spacing) % n_events, size)
            for member in range(n_members)
        ]
        self.n_used += size
        if n_members == 1:
            return Batch(*(column[None] for column in rows[0]))
        return Batch(*(torch.stack(columns) for columns in zip(*rows, strict=True)))

    def _stretch(self, member: int, position: int, size: int) -> list[Tensor]:
        """Return features, classes and weights of `size` events from `position` on, beginning anew at the end."""
        parts: list[list[Tensor]] = []
        while size or not parts:  # a rank may have none in a batch
            row = self.pool.events.own[position]
            block = self._blocks.get(member)
            if block is None or not block.start <= row < block.stop:
                self._blocks.pop(member, None)  # its memory first
                block = self._blocks[member] = self.pool.block(member, row)
            chosen = slice(row - block.start, min(row + size, block.stop) - block.start)
            parts.append([column[chosen] for column in (block.features, block.classes, block.weights)])
            n_taken = chosen.stop - chosen.start
            position, size = (position + n_taken) % len(self.pool), size - n_taken
        if len(parts) == 1:
            return parts[0]
        return [torch.cat(columns) for columns in zip(*parts, strict=True)]
