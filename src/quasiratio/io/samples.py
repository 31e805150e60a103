"""From files to a `WeightedSample`: straight into one array, in float32 where that is enough, chunk by chunk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import (
    FeatureMatrix,
    needs_double,
    nonfinite_features,
    nonfinite_weights,
    require_usable_scale,
)
from quasiratio.errors import InvalidInputError
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.features import default_features
from quasiratio.io.formulas import Feature, parse_features
from quasiratio.io.locations import Spec
from quasiratio.io.table import Table, open_table
from quasiratio.io.weight_names import require_named_weight
from quasiratio.sample import WeightedSample
from quasiratio.tasks import WorkerPool, ordered_results
from quasiratio.wording import shortened

__all__ = ["read_sample"]


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
    if table.n_events == 0:
        msg = f"Got {table.label!r}, which has no events; expected at least one. Check what wrote it."
        raise InvalidInputError(msg)
    weighting = None if weight is None else parse_expression(weight)
    condition = None if selection is None else parse_expression(selection)
    table.require_numbers([*(weighting.names if weighting else ()), *(condition.names if condition else ())])
    if features is None:
        chosen = [Feature(name, name) for name in default_features([table], weighting, condition)]
    else:
        chosen = parse_features(features, [table])
    require_named_weight(table, weight)
    plan = _Plan(table, tuple(chosen), weighting, condition)
    for dtype in (np.float32, np.float64):
        sample = _Filling(table, chosen, weighting, np.dtype(dtype))
        if plan.fill(sample, pool):
            break
    return sample.finished(condition)


@dataclass(frozen=True)
class _Plan:
    """What is read of a table, and in which chunks: the same for one process and for many."""

    table: Table
    features: tuple[Feature, ...]
    weight: Expression | None
    selection: Expression | None
    chunk_events: int | None = None

    @property
    def columns(self) -> list[str]:
        columns = [name for feature in self.features for name in feature.columns]
        return [*columns, *(self.weight.names if self.weight is not None else ())]

    def fill(self, sample: _Filling, pool: WorkerPool | None = None) -> bool:
        """Read all events into a sample; false where they need more than its precision."""
        if pool is None or pool.in_process or len(self.table.files) == 1:
            chunks = self.table.chunks(
                self.columns,
                chunk_events=self.chunk_events,
                selection=self.selection,
                may_miss=sample.may_miss,
            )
            return all(sample.append(chunk) for chunk in chunks)
        tested = self.selection.names if self.selection is not None else ()
        chunk_events = self.table.chunk_events([*self.columns, *tested])
        plans = [replace(self, table=part, chunk_events=chunk_events) for part in self.table.parts()]
        dtype = sample.features.dtype
        parts = ordered_results(pool, _read_part, [(plan, dtype) for plan in plans])
        with contextlib.closing(parts):
            return all(part is not None and sample.take(*part) for part in parts)


def _read_part(
    arguments: tuple[_Plan, np.dtype[Any]],
) -> tuple[FeatureMatrix, npt.NDArray[np.float64]] | None:
    """Read one file in a worker, or return nothing where it needs more than this precision."""
    plan, dtype = arguments
    sample = _Filling(plan.table, list(plan.features), plan.weight, dtype)
    if not plan.fill(sample):
        return None
    return sample.features[: sample.n_filled], sample.weights[: sample.n_filled]


class _Filling:
    """A sample in the making. Memory that was reserved and not used is given back at the end."""

    def __init__(
        self, table: Table, features: list[Feature], weight: Expression | None, dtype: np.dtype[Any]
    ) -> None:
        self.table, self.parts, self.weight = table, features, weight
        self.names = [feature.name for feature in features]
        required = {name for feature in features for name in feature.columns if name not in feature.may_miss}
        required |= set(weight.names if weight else ())
        self.may_miss = {name for feature in features for name in feature.may_miss} - required
        try:
            self.features = np.empty((table.n_events, len(features)), dtype)
            self.weights = np.empty(table.n_events)
        except MemoryError as error:
            n_bytes = table.n_events * (dtype.itemsize * len(features) + 8)
            msg = (
                f"Got {table.n_events} events with {len(features)} features in {table.label!r}, which need "
                f"{n_bytes / 1e9:.1f} GB of memory; expected a sample that fits. Use fewer features or files."
            )
            raise InvalidInputError(msg) from error
        self.n_filled = 0
        self.n_bad = np.zeros(len(features), int)
        self.n_bad_weights = 0

    def append(self, chunk: Mapping[str, Any]) -> bool:
        """Take the events of a chunk, or return `False` where these need more than float32."""
        n_events = len(next(iter(chunk.values())))
        block = self.features[self.n_filled : self.n_filled + n_events]
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite, and is counted as such
            for index, feature in enumerate(self.parts):
                values = feature.values(chunk, n_events)
                if self.features.dtype == np.float32 and needs_double(values):
                    return False
                block[:, index] = values
        weights = self.weights[self.n_filled : self.n_filled + n_events]
        weights[...] = 1.0 if self.weight is None else self.weight.evaluate(chunk, n_events)
        self.n_filled += n_events
        self._count_bad(block, weights)
        return True

    def take(self, block: FeatureMatrix, weights: npt.NDArray[np.float64]) -> bool:
        """Take the events of a file that another process has read."""
        here = slice(self.n_filled, self.n_filled + len(block))
        self.features[here], self.weights[here] = block, weights
        self.n_filled += len(block)
        self._count_bad(block, weights)
        return True

    def _count_bad(self, block: FeatureMatrix, weights: npt.NDArray[np.float64]) -> None:
        is_finite = np.isfinite(block)
        if not is_finite.all():
            self.n_bad += np.sum(~is_finite, axis=0)
        self.n_bad_weights += int(np.sum(~np.isfinite(weights)))

    def finished(self, selection: Expression | None) -> WeightedSample:
        if self.n_filled == 0 and selection is not None:
            msg = (
                f"Got the selection {shortened(selection.text)!r}, which keeps none of the {self.table.n_events} events of "
                f"{self.table.label!r}; expected at least one. Loosen it, or check its units and signs."
            )
            raise InvalidInputError(msg)
        if self.n_bad.any():
            raise nonfinite_features(dict(zip(self.names, self.n_bad.tolist(), strict=True)))
        if self.n_bad_weights and self.weight is not None:
            raise nonfinite_weights(self.n_bad_weights, f"the expression {shortened(self.weight.text)!r}")
        if self.weight is not None:
            require_usable_scale(
                self.weights[: self.n_filled], f"the expression {shortened(self.weight.text)!r}"
            )
        if self.n_filled < len(self.weights):
            self.features.resize((self.n_filled, len(self.names)), refcheck=False)
            self.weights.resize(self.n_filled, refcheck=False)
        fill = {feature.name: feature.fill for feature in self.parts if feature.fill is not None}
        return WeightedSample.adopt(self.features, self.weights, self.names, fill)
