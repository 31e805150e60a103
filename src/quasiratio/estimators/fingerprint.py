r"""What a model was trained on, in a few numbers: enough to recognise the data, too little to rebuild them.

Training events are recognised from a few of their hashes. A model keeps, of all hashes of its training events, the $k$
smallest (a *bottom-k sketch*). They are a random choice of events that everybody makes in the same way: of any other
events, look at those whose hash is not above the largest one kept, $\tau$. An event among them was trained on if and only
if its hash is in the sketch, so that

$$\text{share seen} \approx \frac{\#\{i : h_i \le \tau,\ h_i \in \text{sketch}\}}{\#\{i : h_i \le \tau\}}.$$

Hashes cannot be turned back into events.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, model_validator

from quasiratio.columns import FeatureMatrix
from quasiratio.io.event_store import EventStore
from quasiratio.metrics.duplicates import row_hashes
from quasiratio.model_files.document import Count, Document, Name, refuse_if
from quasiratio.sample import WeightedSample

__all__ = [
    "SKETCH_SIZE",
    "DataFingerprint",
    "EventSketch",
    "FingerprintDocument",
    "SeenEvents",
    "data_fingerprint",
    "event_sketch",
    "joined_fingerprint",
    "stored_fingerprint",
]

SKETCH_SIZE = 512
_N_SMALLEST = 4 * SKETCH_SIZE
_MOST_REPEATS = 1.5
_FEWEST_HITS = 5
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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
    smallest = np.partition(hashes, _N_SMALLEST)[:_N_SMALLEST] if len(hashes) > _N_SMALLEST else hashes
    distinct, counts = np.unique(smallest, return_counts=True)
    distinct, counts = distinct[:SKETCH_SIZE], counts[:SKETCH_SIZE]
    if counts.sum() > _MOST_REPEATS * len(distinct):
        return EventSketch()
    is_complete = len(hashes) <= _N_SMALLEST and len(np.unique(smallest)) <= SKETCH_SIZE
    return EventSketch(tuple(distinct.tolist()), is_complete)


def _sketches_by_label(
    features: FeatureMatrix, labels: npt.NDArray[np.bool_] | None
) -> tuple[EventSketch, ...]:
    """Return one sketch of the reference and one of the target, or one of all where there are no labels."""
    hashes = row_hashes(features)
    return (
        (event_sketch(hashes),)
        if labels is None
        else (event_sketch(hashes[~labels]), event_sketch(hashes[labels]))
    )


class SketchDocument(Document):
    """`EventSketch`: 16 hexadecimal digits per hash, increasing."""

    hashes: Annotated[str, Field(pattern=r"^([0-9a-f]{16})*$", max_length=16 * 4096)]
    is_complete: bool

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = [self.hashes[start : start + 16] for start in range(0, len(self.hashes), 16)]
        refuse_if(any(a >= b for a, b in itertools.pairwise(parts)), "the hashes of events do not increase")
        return self


class FingerprintDocument(Document):
    """What the training data were."""

    n_events: Count
    sum_of_weights: float
    ranges: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]]
    sha256: Sha256
    sketches: list[SketchDocument] = Field(default_factory=list, max_length=2)


@dataclass(frozen=True)
class DataFingerprint:
    """The events of a fit.

    Attributes:
        n_events: Number of events, both classes together.
        sum_of_weights: Sum of their signed weights.
        ranges: Smallest and largest value of each feature.
        sha256: Checksum of features, labels and weights, in the order of the events.
        sketches: Sketch of the reference and of the target events (or of all, where there is one class); empty for
            models of older versions.
    """

    n_events: int
    sum_of_weights: float
    ranges: dict[str, tuple[float, float]]
    sha256: str
    sketches: tuple[EventSketch, ...] = ()

    def seen(self, X: Any) -> SeenEvents:  # noqa: ANN401 - what `WeightedSample` takes
        """Count the events that are recognised; add up the counts of parts of a sample."""
        hashes = row_hashes(WeightedSample(X).features)
        counted = [sketch.counted(hashes) for sketch in self.sketches]
        return SeenEvents(tuple(within for within, _ in counted), tuple(hits for _, hits in counted))

    def share_seen(self, X: Any) -> float:  # noqa: ANN401
        """Estimate which share of these events took part in the training.

        An event is recognised by its features, from a sample of the training events; zero where fewer than five
        are. For events that a model has seen its ratio shares their fluctuations: use
        `Reweighter(ratio, n_folds=5)` to predict every event by a model that has not.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(4000, 2)).astype(np.float32)
            >>> fingerprint = data_fingerprint(["x", "y"], X, None, np.ones(4000))
            >>> fingerprint.share_seen(X), fingerprint.share_seen(rng.normal(size=(4000, 2)))
            (1.0, 0.0)
        """
        return self.seen(X).share

    def document(self) -> FingerprintDocument:
        """Describe the training data."""
        return FingerprintDocument(
            n_events=self.n_events,
            sum_of_weights=self.sum_of_weights,
            ranges={name: list(bounds) for name, bounds in self.ranges.items()},
            sha256=self.sha256,
            sketches=[
                SketchDocument(
                    hashes="".join(f"{value:016x}" for value in sketch.hashes), is_complete=sketch.is_complete
                )
                for sketch in self.sketches
            ],
        )

    @classmethod
    def stored(cls, document: FingerprintDocument) -> Self:
        """Make the summary of the training data again."""
        ranges = {name: (low, high) for name, (low, high) in document.ranges.items()}
        sketches = tuple(
            EventSketch(
                tuple(
                    int(sketch.hashes[start : start + 16], 16) for start in range(0, len(sketch.hashes), 16)
                ),
                sketch.is_complete,
            )
            for sketch in document.sketches
        )
        return cls(document.n_events, document.sum_of_weights, ranges, document.sha256, sketches)


def stored_fingerprint(store: EventStore) -> DataFingerprint:
    """Summarise the events of a store, block by block; the checksum is that of the store.

    Example:
        >>> import tempfile
        >>> from quasiratio.io import create_store
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", x=[1.0, 3.0])
        ...     np.savez(f"{directory}/b.npz", x=[2.0, 5.0])
        ...     store = create_store(f"{directory}/s", f"{directory}/a.npz", f"{directory}/b.npz")
        ...     stored_fingerprint(store).ranges
        {'x': (1.0, 5.0)}
    """
    smallest: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64), np.empty(0, np.uint64)]
    n_kept = _N_SMALLEST + 1  # one more than a sketch looks at, so that it knows of others
    for start, stop in store.stretches():
        features, labels, _ = store.read(start, stop)
        hashes = row_hashes(features)
        for label, chosen in enumerate((~labels, labels)):
            together = np.concatenate([smallest[label], hashes[chosen]])
            smallest[label] = np.partition(together, n_kept)[:n_kept] if len(together) > n_kept else together
    bounds = zip(
        store.names,
        np.minimum(store.reference.lowest, store.target.lowest).tolist(),
        np.maximum(store.reference.highest, store.target.highest).tolist(),
        strict=True,
    )
    return DataFingerprint(
        len(store),
        store.reference.sum_of_weights + store.target.sum_of_weights,
        {name: (low, high) for name, low, high in bounds},
        store.sha256,
        tuple(event_sketch(hashes) for hashes in smallest),
    )


def joined_fingerprint(parts: Sequence[DataFingerprint]) -> DataFingerprint:
    """Summarise events of which several processes have summarised their own.

    Example:
        >>> parts = [data_fingerprint(["x"], np.array([[x]], np.float32), None, np.ones(1)) for x in (1.0, 3.0)]
        >>> joined = joined_fingerprint(parts)
        >>> joined.n_events, joined.ranges, joined.share_seen([[1.0], [3.0]] * 3)
        (2, {'x': (1.0, 3.0)}, 1.0)
    """
    ranges = {
        name: (min(one.ranges[name][0] for one in parts), max(one.ranges[name][1] for one in parts))
        for name in parts[0].ranges
    }
    checksum = hashlib.sha256("".join(one.sha256 for one in parts).encode()).hexdigest()
    sketches = tuple(
        _joined_sketch(several) for several in zip(*(one.sketches for one in parts), strict=True)
    )
    n_events, total = sum(one.n_events for one in parts), sum(one.sum_of_weights for one in parts)
    return DataFingerprint(n_events, total, ranges, checksum, sketches)


def _joined_sketch(sketches: Sequence[EventSketch]) -> EventSketch:
    """Return the smallest hashes of all; none where those of one part tell nothing."""
    if any(not sketch.hashes and not sketch.is_complete for sketch in sketches):
        return EventSketch()
    together = sorted({value for sketch in sketches for value in sketch.hashes})
    is_complete = len(together) <= SKETCH_SIZE and all(sketch.is_complete for sketch in sketches)
    return EventSketch(tuple(together[:SKETCH_SIZE]), is_complete)


def data_fingerprint(
    names: Sequence[str],
    features: FeatureMatrix,
    labels: npt.NDArray[np.bool_] | None,
    weights: npt.NDArray[np.float64],
) -> DataFingerprint:
    """Summarise checked events. All bytes enter the checksum, which takes about a second per gigabyte.

    Example:
        >>> data_fingerprint(["x"], np.array([[1.0], [3.0]], np.float32), None, np.ones(2)).ranges
        {'x': (1.0, 3.0)}
    """
    checksum = hashlib.sha256(np.array(features.shape, dtype="<i8").tobytes())
    checksum.update(np.ascontiguousarray(features, dtype=features.dtype.newbyteorder("<")).data)
    if labels is not None:
        checksum.update(np.ascontiguousarray(labels, dtype="u1").data)
    checksum.update(np.ascontiguousarray(weights, dtype="<f8").data)
    columns = torch.from_numpy(
        np.require(features, requirements=["C", "W"])
    )  # NumPy is slow along a long first axis
    lowest, highest = columns.amin(dim=0).tolist(), columns.amax(dim=0).tolist()
    ranges = {name: (low, high) for name, low, high in zip(names, lowest, highest, strict=True)}
    sketches = _sketches_by_label(features, labels)
    return DataFingerprint(len(features), float(weights.sum()), ranges, checksum.hexdigest(), sketches)
