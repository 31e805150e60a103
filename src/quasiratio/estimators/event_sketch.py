r"""Recognising training events from a few of their hashes.

A model keeps, of all hashes of its training events, the $k$ smallest (a *bottom-k sketch*). They are a random
choice of events that everybody makes in the same way: of any other events, look at those whose hash is not above
the largest one kept, $\tau$. An event among them was trained on if and only if its hash is in the sketch, so that

$$\text{share seen} \approx \frac{\#\{i : h_i \le \tau,\ h_i \in \text{sketch}\}}{\#\{i : h_i \le \tau\}}.$$

Hashes cannot be turned back into events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.metrics.duplicates import row_hashes

__all__ = ["SKETCH_SIZE", "EventSketch", "SeenEvents", "event_sketch", "sketches_by_label"]

SKETCH_SIZE = 512
_MOST_REPEATS = 1.5
_FEWEST_HITS = 5


@dataclass(frozen=True)
class EventSketch:
    """The smallest hashes of a set of events.

    Attributes:
        hashes: Distinct hashes, increasing.
        is_complete: Whether these are the hashes of all events.
    """

    hashes: tuple[int, ...] = ()
    is_complete: bool = False

    def counted(self, hashes: npt.NDArray[np.uint64]) -> tuple[int, int]:
        """Return how many hashes are within the reach of the sketch, and how many of these are in it."""
        if not self.hashes:
            return 0, 0
        known = np.array(self.hashes, dtype=np.uint64)
        within = hashes if self.is_complete else hashes[hashes <= known[-1]]
        places = np.minimum(np.searchsorted(known, within), len(known) - 1)
        return len(within), int(np.count_nonzero(known[places] == within))


@dataclass(frozen=True)
class SeenEvents:
    """How many events were recognised; counts of parts of a sample add up.

    Attributes:
        within: Events within the reach of each sketch.
        hits: Those of them that are in the sketch.
    """

    within: tuple[int, ...] = ()
    hits: tuple[int, ...] = ()

    def __add__(self, other: SeenEvents) -> SeenEvents:
        if not self.within or not other.within:
            return self if self.within else other
        return SeenEvents(
            tuple(a + b for a, b in zip(self.within, other.within, strict=True)),
            tuple(a + b for a, b in zip(self.hits, other.hits, strict=True)),
        )

    @property
    def share(self) -> float:
        """Estimated share of the events that took part in the training, as reference or as target.

        A class of which fewer than five were recognised does not count, as that may be chance; events that were in
        both classes count twice, up to all of them.
        """
        shares = [
            n_hits / n_within
            for n_within, n_hits in zip(self.within, self.hits, strict=True)
            if n_hits >= _FEWEST_HITS
        ]
        return min(1.0, sum(shares, 0.0))


def event_sketch(hashes: npt.NDArray[np.uint64]) -> EventSketch:
    """Return the sketch of a set of events, from the hashes of their features.

    Where the same features come back again and again, as with a few whole numbers, they tell nothing about
    events; the sketch is then empty, and recognises none.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> events = rng.normal(size=(10_000, 3)).astype(np.float32)
        >>> sketch = event_sketch(row_hashes(events))
        >>> within, hits = sketch.counted(row_hashes(events[:5000]))
        >>> within == hits, sketch.counted(row_hashes(rng.normal(size=(5000, 3)).astype(np.float32)))[1]
        (True, 0)
    """
    n_smallest = 4 * SKETCH_SIZE
    smallest = np.partition(hashes, n_smallest)[:n_smallest] if len(hashes) > n_smallest else hashes
    distinct, counts = np.unique(smallest, return_counts=True)
    distinct, counts = distinct[:SKETCH_SIZE], counts[:SKETCH_SIZE]
    if counts.sum() > _MOST_REPEATS * len(distinct):
        return EventSketch()
    is_complete = len(hashes) <= n_smallest and len(np.unique(smallest)) <= SKETCH_SIZE
    return EventSketch(tuple(distinct.tolist()), is_complete)


def sketches_by_label(
    features: FeatureMatrix, labels: npt.NDArray[np.bool_] | None
) -> tuple[EventSketch, ...]:
    """Return one sketch of the reference and one of the target, or one of all where there are no labels."""
    hashes = row_hashes(features)
    return (
        (event_sketch(hashes),)
        if labels is None
        else (event_sketch(hashes[~labels]), event_sketch(hashes[labels]))
    )
