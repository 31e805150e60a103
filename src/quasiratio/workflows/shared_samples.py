"""Two samples from files of which several processes read a part each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quasiratio.errors import InvalidInputError, NoEventsError
from quasiratio.estimators.rank_totals import totals_of_all
from quasiratio.estimators.training_data import stacked_samples
from quasiratio.io import Feature, StoredSample, Table
from quasiratio.io.table_part import table_part
from quasiratio.sample import WeightedSample
from quasiratio.training import Ranks
from quasiratio.workflows.sample_files import SampleFiles

__all__ = ["ReadSamples", "SharedSamples", "read_shares"]


@dataclass(frozen=True)
class ReadSamples:
    """Two samples in memory, with the same features."""

    samples: list[WeightedSample]

    @property
    def names(self) -> Sequence[str]:
        """Names of the features."""
        return self.samples[0].names

    @property
    def fill(self) -> Mapping[str, float]:
        """What stands for missing values, by feature."""
        return self.samples[0].fill


@dataclass(frozen=True)
class SharedSamples(ReadSamples):
    """What one process has read of two samples.

    Attributes:
        samples: Its events of both, perhaps none of one of them.
        totals: What is known of the events of all processes.
        ranks: The processes.
    """

    totals: list[StoredSample]
    ranks: Ranks

    def contents(self) -> Iterator[Any]:
        """Yield a checksum of what each process has read: other events, or others of them in a process, are another fit."""
        own = hashlib.blake2b(digest_size=16)
        for sample in self.samples:
            for array in (sample.features, sample.weights):
                own.update(np.ascontiguousarray(array).data)
        yield from self.ranks.gathered(own.digest())

    def fit(self, estimator: Any) -> None:  # noqa: ANN401 - any ratio estimator
        """Fit an estimator to the events of all processes."""
        estimator.fit(*stacked_samples(*self.samples))


def read_shares(
    files: Sequence[SampleFiles],
    tables: Sequence[Table],
    features: Sequence[Feature],
    ranks: Ranks,
) -> SharedSamples:
    """Read the part that this process has of both samples into memory.

    Raises:
        InvalidInputError: In all processes, where one of them meets what cannot be used.
    """
    samples, empty = [], list[NoEventsError]()
    with ranks.agreed():
        for sample, table in zip(files, tables, strict=True):
            try:
                samples.append(sample.read(table_part(table, ranks.rank, ranks.size), features))
            except NoEventsError as error:
                empty.append(error)
                samples.append(_no_events(features))
    totals = [totals_of_all(sample.weights, ranks) for sample in samples]
    with ranks.agreed():
        if not all(total.n_events for total in totals):
            raise empty[0]
        if not any(len(sample) for sample in samples):
            msg = (
                f"Got no events for process {ranks.rank} of {ranks.size}; expected some for each. Use fewer processes, or loosen "
                "the selection."
            )
            raise InvalidInputError(msg)
    return SharedSamples(samples, totals, ranks)


def _no_events(features: Sequence[Feature]) -> WeightedSample:
    names = [one.name for one in features]
    fill = {one.name: one.fill for one in features if one.fill is not None}
    return WeightedSample.adopt(np.empty((0, len(names)), np.float32), np.empty(0), names, fill)
