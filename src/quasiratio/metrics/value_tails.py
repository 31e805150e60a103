"""What the edges of an observable depend on: the ends of its values, which parts of a sample can be asked for and add up.

Many events may share the smallest or the largest value, which then stands for a missing one, or for none (the sum of no
jets): a bin of its own is what it needs, and the range of the others is what the bins are for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quasiratio.metrics.arrays import FloatArray

__all__ = ["Bulk", "Tail", "ValueTails", "bulk_of"]

_TAIL = 1e-3
_MANY = 0.01
_GAP_BINS = 2.0


@dataclass
class Tail:
    """The smallest values of many, with how often the very smallest occurs.

    Attributes:
        n_kept: How many of the others are kept.
        extreme: The smallest value.
        n_shared: How often it occurs.
        others: The smallest of the values that are larger.

    Example:
        >>> tail = Tail(2)
        >>> tail.add(np.array([3.0, 1.0, 2.0, 1.0, 4.0]))
        >>> tail.extreme, tail.n_shared, sorted(tail.others.tolist())
        (1.0, 2, [2.0, 3.0])
    """

    n_kept: int
    extreme: float = np.inf
    n_shared: int = 0
    others: FloatArray = field(default_factory=lambda: np.empty(0))

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values."""
        if len(values):
            is_other = values != values.min()
            self._take(float(values.min()), len(values) - int(np.count_nonzero(is_other)), values[is_other])

    def merge(self, other: Tail) -> None:
        """Add what was found in other values."""
        self._take(other.extreme, other.n_shared, other.others)

    def _take(self, extreme: float, n_shared: int, others: npt.NDArray[Any]) -> None:
        larger = [self.others, others]
        if extreme == self.extreme:
            self.n_shared += n_shared
        else:
            if extreme < self.extreme:
                self.extreme, self.n_shared, extreme, n_shared = (
                    extreme,
                    n_shared,
                    self.extreme,
                    self.n_shared,
                )
            larger.append(np.full(min(n_shared, self.n_kept), extreme))
        joined = np.concatenate(larger)
        kept = np.partition(joined, self.n_kept)[: self.n_kept] if len(joined) > self.n_kept else joined
        self.others = kept.astype(np.float64)

    def percentile(self, n_values: int, *, with_extreme: bool = True) -> float:
        """Return the percentile where the bins begin, between values as those of NumPy.

        Args:
            n_values: Number of all values.
            with_extreme: Whether the smallest value is one of those whose percentile it is.
        """
        first = np.full(min(self.n_shared, self.n_kept), self.extreme) if with_extreme else np.empty(0)
        ordered = np.concatenate([first, np.sort(self.others)])
        position = (n_values - (0 if with_extreme else self.n_shared) - 1) * _TAIL
        before = int(position)
        after = min(before + 1, len(ordered) - 1)
        return float(ordered[before] + (ordered[after] - ordered[before]) * (position - before))


@dataclass
class ValueTails:
    """Both ends of the values of one part of a sample, or of several.

    Attributes:
        n_values: Number of values.
        lower: The smallest values: those beyond the percentile, and some.
        upper: The largest values, with their signs changed.
        are_whole: Whether all are whole numbers.

    Example:
        >>> values = np.random.default_rng(0).normal(size=5000)
        >>> tails = ValueTails.of(values[:1000], 5000)
        >>> tails.add(values[1000:])
        >>> bool(np.allclose(tails.percentiles, np.percentile(values, [0.1, 99.9]), rtol=1e-14))
        True
    """

    n_values: int
    lower: Tail
    upper: Tail
    are_whole: bool

    @classmethod
    def of(cls, values: FloatArray, n_most: int | None = None) -> Self:
        """Begin with some values, of a sample that has no more than `n_most`; these are all when left out."""
        n_kept = 2 + int((len(values) if n_most is None else n_most) * _TAIL)
        tails = cls(0, Tail(n_kept), Tail(n_kept), are_whole=True)
        tails.add(values)
        return tails

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add finite values."""
        self.n_values += len(values)
        self.lower.add(values)
        self.upper.add(-values)
        self.are_whole = self.are_whole and bool(np.array_equal(values, np.floor(values)))

    def merge(self, other: ValueTails) -> None:
        """Add what was found in other values."""
        self.n_values += other.n_values
        self.lower.merge(other.lower)
        self.upper.merge(other.upper)
        self.are_whole = self.are_whole and other.are_whole

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return self.lower.extreme, -self.upper.extreme

    @property
    def percentiles(self) -> tuple[float, float]:
        """The percentiles of `uniform_edges`, between values as those of NumPy."""
        return self.lower.percentile(self.n_values), -self.upper.percentile(self.n_values)


@dataclass(frozen=True)
class Bulk:
    """The values of two samples without one at an end that many events share.

    Attributes:
        low: The larger lower percentile of the two samples.
        high: The smaller upper percentile.
        lowest: The smallest value.
        highest: The largest value.
        leaves_lowest: Whether the smallest value of all is left out.
        leaves_highest: Whether the largest is.
    """

    low: float
    high: float
    lowest: float
    highest: float
    leaves_lowest: bool
    leaves_highest: bool


def bulk_of(samples: Sequence[ValueTails], n_bins: int) -> Bulk | None:
    """Return what is left without values at the ends that many events share, if a gap of two bins follows; else `None`.

    Where many events share the next value as well, as with counts, the gap has to be as wide as all that is left.

    Args:
        samples: What is known of two samples.
        n_bins: Number of bins of the others.

    Example:
        >>> sums = np.append(np.linspace(20.0, 120.0, 900), np.zeros(100))
        >>> bulk = bulk_of([ValueTails.of(sums)] * 2, 50)
        >>> bulk.lowest, bulk.leaves_lowest, bulk.leaves_highest
        (20.0, True, False)
        >>> bulk_of([ValueTails.of(np.linspace(0.0, 1.0, 1000))] * 2, 50) is None
        True
    """
    sizes = [one.n_values for one in samples]
    below, above = (
        _End([one.lower for one in samples], sizes),
        _End([one.upper for one in samples], sizes),
    )
    rest = _rest(below, above, below.is_shared, above.is_shared)
    if rest is None:
        return None
    leaves = [end.is_isolated(rest.high - rest.low, n_bins) for end in (below, above)]
    return _rest(below, above, *leaves) if any(leaves) else None


@dataclass(frozen=True)
class _End:
    """One end of the values of two samples; of the upper end all signs are changed."""

    tails: Sequence[Tail]
    sizes: Sequence[int]

    @property
    def extreme(self) -> float:
        return min(tail.extreme for tail in self.tails)

    @property
    def n_shared(self) -> list[int]:
        """How many events of each sample have the smallest value."""
        return [tail.n_shared if tail.extreme == self.extreme else 0 for tail in self.tails]

    @property
    def is_shared(self) -> bool:
        """Whether many events of a sample have the smallest value."""
        return any(n > _MANY * size for n, size in zip(self.n_shared, self.sizes, strict=True))

    @property
    def nearest(self) -> float:
        """The smallest of the other values."""
        return min(
            float(tail.others.min(initial=np.inf)) if n else tail.extreme
            for tail, n in zip(self.tails, self.n_shared, strict=True)
        )

    def is_isolated(self, width: float, n_bins: int) -> bool:
        """Whether the smallest value should have a bin of its own, where the others are so far apart."""
        next_is_shared = any(
            len(tail.others) == tail.n_kept and bool(np.all(tail.others == self.nearest))
            for tail in self.tails
        )
        least = width if next_is_shared else _GAP_BINS * width / n_bins
        return self.is_shared and 0.0 < least <= self.nearest - self.extreme

    def percentile(self, sizes: Sequence[int], *, without: bool) -> float:
        """Return the larger percentile of the two samples that have so many values, perhaps without the smallest one."""
        return max(
            tail.percentile(size, with_extreme=not (without and n))
            for tail, size, n in zip(self.tails, sizes, self.n_shared, strict=True)
        )


def _rest(below: _End, above: _End, leaves_lowest: bool, leaves_highest: bool) -> Bulk | None:
    """Return what is left without the value at one end or at both, or `None` where a sample has nothing else."""
    gone = (
        [n if leaves_lowest else 0 for n in below.n_shared],
        [n if leaves_highest else 0 for n in above.n_shared],
    )
    if any(low + high >= size for low, high, size in zip(*gone, below.sizes, strict=True)):
        return None
    low = below.percentile(
        [n - of_end for n, of_end in zip(below.sizes, gone[1], strict=True)], without=leaves_lowest
    )
    high = -above.percentile(
        [n - of_end for n, of_end in zip(above.sizes, gone[0], strict=True)], without=leaves_highest
    )
    return Bulk(
        low,
        high,
        below.nearest if leaves_lowest else below.extreme,
        -(above.nearest if leaves_highest else above.extreme),
        leaves_lowest,
        leaves_highest,
    )
