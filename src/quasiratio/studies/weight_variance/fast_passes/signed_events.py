"""The shared events with the weights of some points: who is negative, what it weighs, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from quasiratio.errors import InvalidInputError
from quasiratio.studies.weight_variance.grid import GridPoint

__all__ = ["SignedEvents", "cyclic"]

_CHUNK = 2**20


@dataclass(eq=False)
class SignedEvents:
    """Events that all points share, and each point's signs.

    Args:
        inputs: `(n, 2)` features.
        labels: `(n,)`, one for the target.
        negative: `(n_points, n)`, where the weight of a point is the negative one.
        weights: `(n_points, 2, 2)` weight by label and sign (0 positive, 1 negative), scaled so that each class
            of each point has the signed sum n/2.

    Example:
        >>> labels = torch.tensor([0.0, 1.0]).repeat(500)
        >>> events = SignedEvents.draw(torch.zeros(1000, 2), labels, [GridPoint(2.0, 0.2)], seed=1, stream=0)
        >>> round(float(events.weights_of(slice(0, 1000)).sum()), 3)
        1000.0
    """

    inputs: Tensor
    labels: Tensor
    negative: Tensor
    weights: Tensor

    @classmethod
    def draw(
        cls, inputs: Tensor, labels: Tensor, points: Sequence[GridPoint], *, seed: int, stream: int
    ) -> SignedEvents:
        """Draw the signs of every point; those of a point depend on the seed and the point alone."""
        negative = torch.empty(len(points), len(labels), dtype=torch.bool)
        weights = torch.empty(len(points), 2, 2)
        for row, point in enumerate(points):
            generator = point_generator(point, seed, stream)
            for start in range(0, len(labels), _CHUNK):
                chunk = negative[row, start : start + _CHUNK]
                chunk.copy_(torch.rand(len(chunk), generator=generator) < point.eta)
            for label in (0, 1):
                in_class = labels == label
                n_class, n_negative = int(in_class.sum()), int((in_class & negative[row]).sum())
                values = (point.weight_if_positive, point.weight_if_negative)
                total = (n_class - n_negative) * values[0] + n_negative * values[1]
                if total <= 0 or (point.sigma_w > 0 and not 0 < n_negative < n_class):
                    msg = (
                        f"Got {n_class} events of a class, of which {n_negative} have negative weights that sum to "
                        f"{total:.4g} with the others, at {point.name}; expected both signs and a positive sum. "
                        "Use more events."
                    )
                    raise InvalidInputError(msg)
                weights[row, label] = torch.tensor(values, dtype=torch.float64) * (len(labels) / 2 / total)
        return cls(inputs, labels, negative, weights)

    def weights_of(self, events: slice) -> Tensor:
        """Return the signed weights `(n_points, n)` of a stretch of events."""
        return weights_by_code(self.weights, self.labels[events], self.negative[:, events])

    def parts(self, row: int, label: int, *, negative: bool) -> Tensor:
        """Return the events of one class and sign of a point."""
        chosen = (self.labels == label) & (self.negative[row] == negative)
        return torch.nonzero(chosen)[:, 0].int()

    def keep(self, points: Tensor) -> None:
        """Go on with some of the points."""
        self.negative, self.weights = self.negative[points], self.weights[points]


def weights_by_code(weights: Tensor, labels: Tensor, negative: Tensor) -> Tensor:
    """Look up the weights of events by label and sign."""
    by_label = torch.where(labels[None, :, None] > 0, weights[:, None, 1], weights[:, None, 0])
    return torch.where(negative, by_label[..., 1], by_label[..., 0])


def point_generator(point: GridPoint, seed: int, stream: int) -> torch.Generator:
    """Return the generator of one purpose at one point."""
    entropy = [seed, stream, round(point.sigma_w * 1e6), round(point.eta * 1e6)]
    return torch.Generator().manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))


def cyclic(start: int, n_taken: int, n_events: int) -> list[slice]:
    """Return the stretches that make up `n_taken` events from `start` on, beginning anew at the end.

    Example:
        >>> cyclic(8, 5, 10)
        [slice(8, 10, None), slice(0, 3, None)]
    """
    stretches = []
    place = start % n_events
    while n_taken > 0:
        n_here = min(n_taken, n_events - place)
        stretches.append(slice(place, place + n_here))
        n_taken, place = n_taken - n_here, 0
    return stretches
