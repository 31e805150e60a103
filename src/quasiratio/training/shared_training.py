"""Training events of several ranks: each has its own in memory, and sums are those of all.

Weights are normalised by the sums over all ranks, so that a class may have a negative sum, or no event at all, in one of them.
Members of an ensemble draw their bootstrap in every rank anew: the same counts in two ranks would be noise that does not
average out between their events.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from quasiratio.ratios import sign_parts
from quasiratio.training.batches import Pool
from quasiratio.training.bootstrap import block_counts
from quasiratio.training.event_source import TrainingSource
from quasiratio.training.ranks import Ranks

if TYPE_CHECKING:
    from quasiratio.columns import FeatureMatrix
    from quasiratio.networks import FeatureScaling

__all__ = ["SharedTraining"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SharedTraining(TrainingSource):
    """The training events of all ranks, seen from the one that has these.

    Attributes:
        features: Features of this rank's events.
        labels: True for the target.
        weights: Signed weights.
        ranks: The processes that share the training.
        n_members: Members of the ensemble.
        seed: Seed of the bootstrap.
    """

    features: FeatureMatrix
    labels: npt.NDArray[np.bool_]
    weights: FloatArray
    ranks: Ranks
    n_members: int = 1
    seed: int = 0

    def __len__(self) -> int:
        return self._n_events

    @functools.cached_property
    def _n_events(self) -> int:
        return self.ranks.places([len(self.labels)])[0].total

    @functools.cached_property
    def part_sums(self) -> FloatArray:
        """Sums of the absolute weights that each member sees of the four `SIGN_CLASSES`, over all ranks."""
        parts, sizes = sign_parts(self.labels, self.weights), np.abs(self.weights)
        own = [np.bincount(parts, weights=counts * sizes, minlength=4) for counts in self._counts]
        return self.summed(np.array(own))

    @functools.cached_property
    def effective_sizes(self) -> tuple[float, float]:
        """Effective sizes of the training reference and target of all ranks."""
        own = [
            np.bincount(self.labels, weights=values, minlength=2)
            for values in (self.weights, np.square(self.weights))
        ]
        sums, squares = self.summed(np.array(own))
        reference, target = (np.square(sums) / squares).tolist()
        return reference, target

    @property
    def _counts(self) -> npt.NDArray[np.uint8]:
        """How often each member sees each event of this rank."""
        return block_counts(len(self.labels), self.n_members, seed=self.seed, block=self.ranks.rank)

    def inputs(self, scaling: FeatureScaling) -> Tensor:
        """Return the scaled features of this rank's events."""
        scaled: Tensor = scaling(torch.from_numpy(self.features).to(scaling.mean.device))
        return scaled

    def pool(
        self, scaling: FeatureScaling, class_of: npt.NDArray[Any], *, absolute: bool = False
    ) -> _SharedPool:
        """Return the events of this rank, with weights normalised by the sums over all ranks."""
        device, labels = scaling.mean.device, self.labels.astype(np.int64)
        weights = np.empty((self.n_members, len(labels)), dtype=np.float32)
        for member, (counts, factors) in enumerate(zip(self._counts, self.factors(), strict=True)):
            weights[member] = counts * self.weights * factors[labels]
        classes = class_of[sign_parts(self.labels, self.weights)]
        return _SharedPool(
            None,
            torch.from_numpy(classes).to(device),
            torch.from_numpy(np.abs(weights) if absolute else weights).to(device),
            functools.partial(self.class_sums, class_of, absolute=absolute),
        )

    def reference_events(self) -> Iterator[tuple[FeatureMatrix, FloatArray]]:
        """Yield the reference events of this rank."""
        yield self.features[~self.labels], self.weights[~self.labels]


@dataclass(frozen=True)
class _SharedPool(Pool):
    """A pool of one rank that knows the sums of all."""

    sums: functools.partial[Tensor]

    def class_sums(self, n_classes: int) -> Tensor:
        """Return the sum of the weights of each class over all ranks, for the first member."""
        return self.sums(n_classes)
