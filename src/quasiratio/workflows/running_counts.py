"""Counts over the chunks of a file of any length, or over many files: they add up, whoever counted them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.estimators.fingerprint import SeenEvents
from quasiratio.metrics.weights import WeightSums
from quasiratio.wording import percent

__all__ = ["EventCounts", "OutsideRange", "RangeCount"]

_NOTABLE_FRACTION = 1e-3


@dataclass(frozen=True)
class OutsideRange:
    """Events outside the training range of one feature.

    Attributes:
        name: Name of the feature.
        lowest: Smallest value in the training data.
        highest: Largest value there.
        outside: Fraction of the events outside of it.
        far_outside: Fraction of the events that are farther outside than the range is wide.
    """

    name: str
    lowest: float
    highest: float
    outside: float
    far_outside: float

    @property
    def is_notable(self) -> bool:
        """Whether more than a thousandth lies outside, or anything far outside."""
        return self.outside > _NOTABLE_FRACTION or self.far_outside > 0

    def __str__(self) -> str:
        far = (
            f", {percent(self.far_outside, digits=3)} farther than the range is wide"
            if self.far_outside > 0
            else ""
        )
        return f"{self.name!r} ({percent(self.outside, digits=3)} outside {self.lowest:.5g} .. {self.highest:.5g}{far})"


class RangeCount:
    """Count, chunk by chunk, the events outside the ranges of the training data.

    Args:
        ranges: Smallest and largest value of each feature, in the order of the features.
        counts: Events outside and far outside, by feature, that were counted before.
        n_events: Events that were looked at before.

    Example:
        >>> count = RangeCount({"pt": (20.0, 500.0)})
        >>> count.add(np.array([[30.0], [510.0], [30000.0], [40.0]], dtype=np.float32))
        >>> print(count.result()[0])
        'pt' (50.000% outside 20 .. 500, 25.000% farther than the range is wide)
    """

    def __init__(
        self, ranges: Mapping[str, tuple[float, float]], counts: npt.ArrayLike = 0, n_events: int = 0
    ) -> None:
        self.ranges = dict(ranges)
        self._bounds = np.array([self.ranges[name] for name in self.ranges]).reshape(-1, 2)
        self._counts = np.zeros((2, len(self.ranges)), dtype=np.int64) + np.asarray(counts, dtype=np.int64)
        self._n_events = n_events

    def add(self, features: FeatureMatrix) -> None:
        """Count the events of one chunk, `(n, d)`."""
        self._n_events += len(features)
        if not len(features):
            return
        lowest, highest = self._bounds[:, 0], self._bounds[:, 1]
        width = highest - lowest
        # Most chunks lie inside; then the extremes are all there is to look at.
        smallest, largest = features.min(axis=0), features.max(axis=0)
        for column in np.flatnonzero((smallest < lowest) | (largest > highest)):
            values = features[:, column].astype(np.float64)
            beyond = np.maximum(lowest[column] - values, values - highest[column])
            self._counts[:, column] += [int((beyond > 0).sum()), int((beyond > width[column]).sum())]

    def merge(self, other: RangeCount) -> None:
        """Add the counts of other events for the same ranges."""
        self._counts += other._counts
        self._n_events += other._n_events

    def document(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"ranges": self.ranges, "counts": self._counts.tolist(), "n_events": self._n_events}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Make the counts of what `document` returned."""
        ranges = {name: (low, high) for name, (low, high) in document["ranges"].items()}
        return cls(ranges, document["counts"], int(document["n_events"]))

    def result(self) -> tuple[OutsideRange, ...]:
        """Return the fractions so far, one entry per feature."""
        fractions = self._counts / max(self._n_events, 1)
        return tuple(
            OutsideRange(name, *bounds, float(fractions[0, column]), float(fractions[1, column]))
            for column, (name, bounds) in enumerate(self.ranges.items())
        )


@dataclass
class EventCounts:
    """All that is counted while a model passes over events.

    Attributes:
        before: Sums of the weights as they were.
        after: Sums of the new weights, without infinite ratios.
        ranges: Events outside the training range.
        lowest: Smallest finite ratio.
        highest: Largest finite ratio.
        n_nonpositive: Events where the estimated reference density is zero or negative.
        n_infinite: Events whose ratio is infinite or undefined.
        n_unselected: Events that the selection of the fit would have left out.
        seen: Events that the model was trained on.

    Example:
        >>> first, second = EventCounts(lowest=0.5, highest=2.0), EventCounts(lowest=0.1, highest=1.0, n_infinite=1)
        >>> first.merge(EventCounts.of_document(second.document()))
        >>> first.lowest, first.highest, first.n_infinite
        (0.1, 2.0, 1)
    """

    before: WeightSums = field(default_factory=WeightSums)
    after: WeightSums = field(default_factory=WeightSums)
    ranges: RangeCount = field(default_factory=lambda: RangeCount({}))
    lowest: float = math.inf
    highest: float = -math.inf
    n_nonpositive: int = 0
    n_infinite: int = 0
    n_unselected: int = 0
    seen: SeenEvents = field(default_factory=SeenEvents)

    def add(
        self,
        features: FeatureMatrix,
        weights: npt.NDArray[np.float64],
        new_weights: npt.NDArray[np.float64],
        ratio: npt.NDArray[np.float64],
    ) -> None:
        """Count the events of one chunk."""
        is_finite = np.isfinite(ratio)
        n_infinite = int(len(ratio) - np.count_nonzero(is_finite))
        if n_infinite:
            self.n_infinite += n_infinite
            new_weights, ratio = new_weights[is_finite], ratio[is_finite]
        self.before.add(weights)
        self.after.add(new_weights)
        if len(ratio):
            self.lowest = min(self.lowest, float(ratio.min()))
            self.highest = max(self.highest, float(ratio.max()))
        if self.ranges.ranges:
            self.ranges.add(features)

    def merge(self, other: EventCounts) -> None:
        """Add the counts of other events."""
        self.before.merge(other.before)
        self.after.merge(other.after)
        self.ranges.merge(other.ranges)
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.n_nonpositive += other.n_nonpositive
        self.n_infinite += other.n_infinite
        self.n_unselected += other.n_unselected
        self.seen += other.seen

    def document(self) -> dict[str, Any]:
        """Return everything as plain values, from which `of_document` makes the same counts."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        parts = {name: asdict(part) for name, part in (("before", self.before), ("after", self.after))}
        return {**plain, **parts, "ranges": self.ranges.document(), "seen": asdict(self.seen)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Make the counts of what `document` returned, or of the same as JSON."""
        seen = SeenEvents(tuple(document["seen"]["within"]), tuple(document["seen"]["hits"]))
        return cls(
            WeightSums(**document["before"]),
            WeightSums(**document["after"]),
            RangeCount.of_document(document["ranges"]),
            seen=seen,
            **{name: document[name] for name in _PLAIN},
        )


_PLAIN = ("lowest", "highest", "n_nonpositive", "n_infinite", "n_unselected")
