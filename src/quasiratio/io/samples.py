"""From files to features and signed weights, chunk by chunk, and to a `WeightedSample` of all of them.

`SampleReading` is what both ways share: which columns are read, how they become numbers, and what is wrong with them.
`read_sample` collects its chunks in one array, in float32 where that is enough; a store on disk takes them one by one
(`store_conversion.py`).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from quasiratio.columns import (
    FeatureMatrix,
    FloatArray,
    needs_double,
    nonfinite_features,
    nonfinite_weights,
    require_usable_scale,
)
from quasiratio.errors import InvalidInputError, NoEventsError
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.features import default_features
from quasiratio.io.formulas import Feature, parse_features
from quasiratio.io.locations import Spec
from quasiratio.io.table import Table, open_table
from quasiratio.io.weight_names import require_named_weight
from quasiratio.sample import WeightedSample
from quasiratio.tasks import WorkerPool, ordered_results
from quasiratio.wording import shortened

__all__ = ["NeedsDouble", "SampleReading", "read_sample"]

Value = TypeVar("Value")


def read_sample(
    spec: Spec | Table,
    *,
    features: Sequence[str | Feature] | None = None,
    weight: str | Expression | None = None,
    selection: str | Expression | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    pool: WorkerPool | None = None,
) -> WeightedSample:
    """Read features and signed weights of all (selected) events.

    Memory is that of the sample and one chunk; the file is never held as a whole. Where a pool reads several files at
    once, add the parts that wait for their turn.

    Args:
        spec: What `open_table` takes, or a table.
        features: Names, elements (`jet_pt[0]`), glob patterns (`jet_*`) or formulas with or without a name
            (`"mll=sqrt(2*pt1*pt2*(cosh(eta1-eta2)-cos(phi1-phi2)))"`, `"fill(jet_pt[0], 0)"`); by default those of
            `default_features`. What `fill` declares is in the `fill` of the sample.
        weight: An expression such as `"w_gen * w_pu"`. May be left out where no column is named like a weight;
            `"1"` leaves the events unweighted whatever the columns are called.
        selection: A condition such as `"pt > 30 and abs(eta) < 2.5"`; all events when left out.
        tree: The tree of ROOT files whose path names none.
        allow_large: As for `open_table`.
        pool: Who reads the files, such as `quasiratio.tasks.local_workers` yields; this process when left out. The sample
            is the same, bit by bit.

    Example:
        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", pt=[30.0, 50.0, 40.0], w=[1.0, -0.5, 1.0])
        ...     read_sample(f"{directory}/a.npz", weight="w", selection="pt < 45")
        WeightedSample(2 events, features ['pt'], sum of weights 2, negative fraction 0)
    """
    table = spec if isinstance(spec, Table) else open_table(spec, tree=tree, allow_large=allow_large)
    reading = SampleReading(table, features=features, weight=weight, selection=selection)
    try:
        return _collected(reading, np.dtype(np.float32), pool)
    except NeedsDouble:
        return _collected(reading, np.dtype(np.float64), pool)


class NeedsDouble(Exception):
    """Some feature would lose in float32 what tells its events apart.

    Args:
        feature: Its name.
    """

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


class SampleReading:
    """Features and signed weights of a table, read chunk by chunk.

    Args:
        table: The events.
        features: As for `read_sample`.
        weight: As for `read_sample`.
        selection: As for `read_sample`.

    Attributes:
        features: The features in order.
        n_read: Events so far, in this pass; of whole files where others read them.
    """

    def __init__(
        self,
        table: Table,
        *,
        features: Sequence[str | Feature] | None = None,
        weight: str | Expression | None = None,
        selection: str | Expression | None = None,
    ) -> None:
        if table.n_events == 0:
            msg = f"Got {table.label!r}, which has no events; expected at least one. Check what wrote it."
            raise NoEventsError(msg)
        self.table = table
        self.weight = None if weight is None else parse_expression(weight)
        self.selection = None if selection is None else parse_expression(selection)
        conditions = [expression for expression in (self.weight, self.selection) if expression is not None]
        table.require_numbers([name for expression in conditions for name in expression.names])
        if features is None:
            require_named_weight(table, weight)
            found = default_features([table], self.weight, self.selection)
            self.features = [Feature(name, name) for name in found]
        else:
            self.features = parse_features(features, [table])
        require_named_weight(table, weight)
        required = {
            name for feature in self.features for name in feature.columns if name not in feature.may_miss
        }
        required |= set(self.weight.names if self.weight else ())
        self._may_miss = {name for feature in self.features for name in feature.may_miss} - required
        self._start()

    def _start(self) -> None:
        self.n_read = 0
        self._n_bad = np.zeros(len(self.features), int)
        self._n_bad_weights = 0
        self._largest = 0.0

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @property
    def fill(self) -> dict[str, float]:
        """What stands for missing values, by feature."""
        return {feature.name: feature.fill for feature in self.features if feature.fill is not None}

    def chunks(
        self, dtype: np.dtype[Any], pool: WorkerPool | None = None
    ) -> Iterator[tuple[FeatureMatrix, FloatArray]]:
        """Read the selected events from the first on; `require_usable` then says what was wrong with them.

        Args:
            dtype: Of the features: float32 or float64.
            pool: Who reads the files, each as a whole; this process when left out.

        Raises:
            NeedsDouble: float32 is not enough.
        """
        if pool is None or pool.in_process or len(self.table.files) == 1:
            self._start()
            yield from self._counted(self.blocks(dtype))
            return
        files: Generator[list[Any], None, None] = self.each_file(dtype, pool, list)
        with contextlib.closing(files):
            for blocks in files:
                yield from blocks

    def each_file(
        self,
        dtype: np.dtype[Any],
        pool: WorkerPool,
        function: Callable[..., Value],
        *common: Any,  # noqa: ANN401 - what the function takes
        own: Sequence[Any] | None = None,
    ) -> Generator[Value, None, None]:
        """Yield what a function makes of the chunks of each file, in their order; `require_usable` is for afterwards.

        Args:
            dtype: As for `chunks`.
            pool: Who reads the files, in the chunks in which this process would read them, and calls the function.
            function: Takes the chunks of a file and the arguments; a function of a module, so that other processes find it.
            common: Arguments for all files.
            own: One further argument for each file.

        Raises:
            NeedsDouble: float32 is not enough.
        """
        self._start()
        tested = self.selection.names if self.selection is not None else ()
        chunk_events = self.table.chunk_events([*self._columns, *tested])
        plans = []
        for number, part in enumerate(self.table.parts()):
            reading = copy.copy(self)
            reading.table = part
            arguments = common if own is None else (*common, own[number])
            plans.append(_FilePlan(reading, dtype, chunk_events, function, arguments))
        found = ordered_results(pool, _FilePlan.result, plans)
        with contextlib.closing(found):
            for one in found:
                if isinstance(one, str):
                    raise NeedsDouble(one)
                value, counts = one
                self._add(counts)
                yield value

    def blocks(
        self, dtype: np.dtype[Any], chunk_events: int | None = None
    ) -> Iterator[tuple[FeatureMatrix, FloatArray]]:
        """Read the selected events without counting what is wrong with them."""
        chunks = self.table.chunks(
            self._columns, chunk_events=chunk_events, selection=self.selection, may_miss=self._may_miss
        )
        for chunk in chunks:
            n_events = len(next(iter(chunk.values())))
            block = np.empty((n_events, len(self.features)), dtype)
            with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is counted as such
                for index, feature in enumerate(self.features):
                    values = feature.values(chunk, n_events)
                    if dtype == np.float32 and needs_double(values):
                        raise NeedsDouble(feature.name)
                    block[:, index] = values
            weights = np.empty(n_events)
            weights[...] = 1.0 if self.weight is None else self.weight.evaluate(chunk, n_events)
            yield block, weights

    @property
    def _columns(self) -> list[str]:
        columns = [name for feature in self.features for name in feature.columns]
        return [*columns, *(self.weight.names if self.weight else ())]

    def _counted(
        self, blocks: Iterable[tuple[FeatureMatrix, FloatArray]]
    ) -> Iterator[tuple[FeatureMatrix, FloatArray]]:
        """Count what is wrong with the events that pass."""
        for block, weights in blocks:
            is_finite = np.isfinite(block)
            n_bad = 0 if is_finite.all() else np.sum(~is_finite, axis=0)
            n_bad_weights = int(np.sum(~np.isfinite(weights)))
            largest = max(weights.max(initial=0.0), -weights.min(initial=0.0))
            self._add((len(weights), n_bad, n_bad_weights, largest))
            yield block, weights

    def _add(self, counts: tuple[int, Any, int, float]) -> None:
        n_read, n_bad, n_bad_weights, largest = counts
        self.n_read += n_read
        self._n_bad = self._n_bad + n_bad
        self._n_bad_weights += n_bad_weights
        self._largest = max(self._largest, largest)

    def of_one_file(
        self,
        dtype: np.dtype[Any],
        chunk_events: int,
        function: Callable[..., Value],
        arguments: Sequence[Any],
    ) -> tuple[Value, tuple[int, Any, int, float]]:
        """Do in a worker what `each_file` asks for; return also what was counted."""
        self._start()
        value = function(self._counted(self.blocks(dtype, chunk_events)), *arguments)
        return value, (self.n_read, self._n_bad, self._n_bad_weights, self._largest)

    def require_usable(self) -> None:
        """Raise where all events together are not what can be learned from."""
        if self.n_read == 0 and self.selection is not None:
            msg = (
                f"Got the selection {shortened(self.selection.text)!r}, which keeps none of the {self.table.n_events} events of "
                f"{self.table.label!r}; expected at least one. Loosen it, or check its units and signs."
            )
            raise NoEventsError(msg)
        if self._n_bad.any():
            raise nonfinite_features(dict(zip(self.names, self._n_bad.tolist(), strict=True)))
        if self.weight is None:
            return
        source = f"the expression {shortened(self.weight.text)!r}"
        if self._n_bad_weights:
            raise nonfinite_weights(self._n_bad_weights, source)
        require_usable_scale(np.array([self._largest]), source)


class _FilePlan(NamedTuple):
    """What a worker is to do with one file."""

    reading: SampleReading
    dtype: np.dtype[Any]
    chunk_events: int
    function: Callable[..., Any]
    arguments: Sequence[Any]

    def result(self) -> tuple[Any, Any] | str:
        """Return what was found; the name of a feature instead, where that needs more than this precision."""
        try:
            return self.reading.of_one_file(self.dtype, self.chunk_events, self.function, self.arguments)
        except NeedsDouble as needs:
            return needs.feature


def _collected(
    reading: SampleReading, dtype: np.dtype[Any], pool: WorkerPool | None = None
) -> WeightedSample:
    """Read all events into one array. Memory that was reserved and not used is given back at the end."""
    table, n_features = reading.table, len(reading.features)
    try:
        features, weights = np.empty((table.n_events, n_features), dtype), np.empty(table.n_events)
    except MemoryError as error:
        n_bytes = table.n_events * (dtype.itemsize * n_features + 8)
        msg = (
            f"Got {table.n_events} events with {n_features} features in {table.label!r}, which need "
            f"{n_bytes / 1e9:.1f} GB of memory; expected a sample that fits. Use fewer features or files."
        )
        raise InvalidInputError(msg) from error
    start = 0
    for block, chunk_weights in reading.chunks(dtype, pool):
        place = slice(start, start + len(block))
        features[place], weights[place] = block, chunk_weights
        start = place.stop
    reading.require_usable()
    if reading.n_read < len(weights):
        features.resize((reading.n_read, n_features), refcheck=False)
        weights.resize(reading.n_read, refcheck=False)
    return WeightedSample.adopt(features, weights, reading.names, reading.fill)
