"""A sample in parts: what a sum over events needs to know of where they are.

A number that is a sum (or a minimum, or a count) over events is computed part by part: a function of the events of one part
returns something that adds up. One sample in memory is one part. Files that would not fit into memory are as many parts, read
by other processes and as often as there are passes (`quasiratio.workflows`). The functions are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.sample import WeightedSample

__all__ = ["Blocks", "SampleParts", "WholeSample", "in_parts"]

Blocks = Iterable[tuple[FeatureMatrix, npt.NDArray[np.float64]]]
"""Features and signed weights of some events after the other."""

Value = TypeVar("Value")


class SampleParts(Protocol):
    """Events of one sample, in one or more parts that can be gone through again and again."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        ...

    @property
    def n_events(self) -> int:
        """Number of events, at most: a selection may leave fewer."""
        ...

    def each(
        self,
        function: Callable[..., Value],
        *common: Any,  # noqa: ANN401 - what the function takes
        own: Sequence[Any] | None = None,
    ) -> Iterator[Value]:
        """Yield what a function returns for each part, in their order.

        Args:
            function: Takes the blocks of a part and the arguments; a function of a module, so that other processes find it.
            common: Arguments of all parts.
            own: One further argument for each part.
        """
        ...


class WholeSample:
    """A sample in memory as the only part.

    Args:
        sample: The sample.

    Example:
        >>> def total(blocks):
        ...     return sum(float(weights.sum()) for _, weights in blocks)
        >>> list(WholeSample(WeightedSample([1.0, 2.0], [3.0, -1.0])).each(total))
        [2.0]
    """

    def __init__(self, sample: WeightedSample) -> None:
        self.names, self.n_events = sample.names, len(sample)
        self._blocks = [(sample.features, sample.weights)]

    def each(
        self,
        function: Callable[..., Value],
        *common: Any,  # noqa: ANN401 - what the function takes
        own: Sequence[Any] | None = None,
    ) -> Iterator[Value]:
        """Yield one value."""
        yield function(self._blocks, *common, *(own or ()))


def in_parts(sample: WeightedSample | SampleParts) -> SampleParts:
    """Return the sample as parts."""
    return WholeSample(sample) if isinstance(sample, WeightedSample) else sample
