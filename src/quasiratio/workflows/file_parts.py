"""Samples that would not fit into memory, file by file: workers read, and return what adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from quasiratio.io import Feature, Table
from quasiratio.io.samples import NeedsDouble, SampleReading
from quasiratio.machine import available_memory
from quasiratio.tasks import WorkerPool
from quasiratio.workflows.sample_files import SampleFiles

__all__ = ["LARGEST_SHARE", "FileParts", "beyond_memory", "first_precision"]

LARGEST_SHARE = 0.5
"""Of the memory that is available; samples that would need more stay in their files."""

Value = TypeVar("Value")
Result = TypeVar("Result")


@dataclass(frozen=True)
class FileParts:
    """A sample whose parts are its files: `quasiratio.metrics.parts.SampleParts`.

    Args:
        reading: Features and weights of the files.
        pool: Who reads them.
        dtype: Precision of the features.
    """

    reading: SampleReading
    pool: WorkerPool
    dtype: np.dtype[Any]

    @classmethod
    def of(
        cls,
        files: SampleFiles,
        table: Table,
        columns: Sequence[Feature],
        pool: WorkerPool,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> FileParts:
        """Prepare to read these features, and the weights, of all selected events."""
        reading = SampleReading(table, features=columns, weight=files.weight, selection=files.selection)
        return cls(reading, pool, np.dtype(dtype))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.reading.names)

    @property
    def n_events(self) -> int:
        """Number of events in all files, selected or not."""
        return self.reading.table.n_events

    def each(
        self,
        function: Callable[..., Value],
        *common: Any,  # noqa: ANN401 - what the function takes
        own: Sequence[Any] | None = None,
    ) -> Iterator[Value]:
        """Yield what a function makes of each file; what is wrong with the events is raised after the last one."""
        yield from self.reading.each_file(self.dtype, self.pool, function, *common, own=own)
        self.reading.require_usable()


def first_precision(work: Callable[[type[np.floating[Any]]], Result]) -> Result:
    """Return what work gives with float32, or with float64 where a feature needs that."""
    try:
        return work(np.float32)
    except NeedsDouble:
        return work(np.float64)


def beyond_memory(
    tables: Sequence[Table], bytes_per_event: float, available: int | None = None
) -> str | None:
    """Return, for people, why samples stay in their files, or `None` where they belong into memory.

    Args:
        tables: The samples.
        bytes_per_event: What one event needs in memory.
        available: Memory in bytes; what there is when left out.
    """
    n_events = sum(table.n_events for table in tables)
    needed = n_events * bytes_per_event
    available = available_memory() if available is None else available
    if available is None or needed <= LARGEST_SHARE * available:
        return None
    return (
        f"{n_events} events would need about {needed / 1e9:.3g} GB of the {available / 1e9:.3g} GB that are available: "
        "they stay in their files, which are read file by file, several times"
    )
