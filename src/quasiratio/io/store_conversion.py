r"""From files to an `EventStore`: every event once, in a uniformly random order, in bounded memory.

Two passes shuffle on disk (Rao 1961, Sandelius 1962). The first reads the files and puts every event into one of $K$ buckets
at random; the second reads bucket after bucket, each small enough for memory, shuffles it and appends it to the store. As
buckets are drawn independently and every bucket is shuffled uniformly, all orders of the events are equally likely.

The seed of the shuffle is fixed: the same events in the same files make the same store, so that a fit of a store that was
lost and made again ends in the same bits.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from quasiratio.atomic_files import names_inside, staged_directory
from quasiratio.columns import FeatureMatrix, FloatArray
from quasiratio.errors import InvalidInputError
from quasiratio.io.event_store import (
    BLOCK_EVENTS,
    COLUMN_FILES,
    HEADER_FILE,
    STORE_VERSION,
    EventStore,
    StoredSample,
    StoreHeader,
)
from quasiratio.io.expression.evaluation import Expression
from quasiratio.io.features import default_features
from quasiratio.io.file_format import TableFile
from quasiratio.io.formulas import Feature
from quasiratio.io.locations import Spec
from quasiratio.io.samples import NeedsDouble, SampleReading
from quasiratio.io.table import Table, open_table
from quasiratio.outputs import create_output_directory, require_output_directory, require_output_name
from quasiratio.progress import ShowEvents, event_progress

__all__ = ["create_store", "store_bytes"]

_ROLES = ("reference", "target")
_BUCKET_BYTES = 2**26
_SEED = 20260101
_SPARE = 1.1
"""Of the size of a store, for the buckets that are there at the same time."""


def store_bytes(n_events: int, n_features: int) -> int:
    """Return the size of a store on disk.

    Example:
        >>> store_bytes(100_000_000, 16) / 1e9
        7.3
    """
    return n_events * _record(n_features).itemsize


def create_store(
    path: str | os.PathLike[str],
    reference: Spec | Table,
    target: Spec | Table,
    *,
    features: Sequence[str | Feature] | None = None,
    weight: str | Expression | None = None,
    reference_weight: str | Expression | None = None,
    target_weight: str | Expression | None = None,
    selection: str | Expression | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    say: Callable[[str], None] | None = None,
    quiet: bool = True,
) -> EventStore:
    """Convert two samples to a store of shuffled events, or open the store that was made of them before.

    A store that stands there and was made of something else, or of files that have changed, is replaced. Memory is that of a
    chunk of the files, or of a bucket of 64 MB, whatever the number of events.

    Args:
        path: Directory of the store.
        reference: What `open_table` takes, or a table: events of label 0.
        target: The same for label 1.
        features: As for `read_sample`; by default what `default_features` finds in both.
        weight: Expression of the signed weight, as for `read_sample`.
        reference_weight: Weight of the reference, where it differs.
        target_weight: Weight of the target, where it differs.
        selection: Events to use; all when left out.
        tree: The tree of ROOT files whose path names none.
        allow_large: As for `open_table`.
        say: Called with a line that says whether the store is made or used again.
        quiet: Show no progress.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for name in ("a", "b"):
        ...         np.savez(f"{directory}/{name}.npz", pt=np.arange(5.0), w=np.ones(5))
        ...     store = create_store(f"{directory}/s", f"{directory}/a.npz", f"{directory}/b.npz", weight="w")
        ...     store.reference.n_events, store.names
        (5, ('pt',))
    """
    tables = [
        spec if isinstance(spec, Table) else open_table(spec, tree=tree, allow_large=allow_large)
        for spec in (reference, target)
    ]
    weights = [weight if own is None else own for own in (reference_weight, target_weight)]
    if features is None:
        offered = [
            default_features([table], own, selection) for table, own in zip(tables, weights, strict=True)
        ]
        features = [name for name in offered[0] if name in offered[1]]
    readings = [
        SampleReading(table, features=features, weight=own, selection=selection)
        for table, own in zip(tables, weights, strict=True)
    ]
    place = require_output_name(path, "directory for the store", option="cache")
    say = say or (lambda _: None)
    request = _request(readings)
    known = EventStore(place).header.request if (place / HEADER_FILE).is_file() else None
    if known == request:
        say(f"Store of events: {place}, which was made of the same files before")
        return EventStore(place)
    require_output_directory(place.parent, option="cache")
    missing = [parent for parent in place.parents if not parent.exists()]
    _require_room((missing[-1] if missing else place).parent, readings)
    _require_replaceable(place)
    size = store_bytes(sum(reading.table.n_events for reading in readings), len(readings[0].features))
    replaced = "" if known is None else f", in place of one with {_difference(known, request)}"
    say(f"Store of events: {place}, converted and shuffled now ({size / 1e9:.2g} GB at most{replaced})")
    create_output_directory(place.parent, option="cache")
    try:
        with event_progress("conversion", quiet=quiet) as show:
            _convert(place, readings, request, show)
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        raise
    return EventStore(place)


def _difference(known: dict[str, Any], request: dict[str, Any]) -> str:
    """Say in what a store differs from what is asked for."""
    if known["features"] != request["features"]:
        return "other features"
    pairs = list(zip(known["samples"], request["samples"], strict=True))
    kinds = {"weight": "another weight", "selection": "another selection"}
    return next(
        (text for kind, text in kinds.items() if any(old[kind] != new[kind] for old, new in pairs)),
        "other files",
    )


def _request(readings: list[SampleReading]) -> dict[str, Any]:
    """Describe what decides the contents of a store; files that were written again are other files."""
    return {
        "version": STORE_VERSION,
        "features": [[feature.name, feature.text] for feature in readings[0].features],
        "samples": [
            {
                "files": [_identity(file) for file in reading.table.files],
                "weight": None if reading.weight is None else reading.weight.text,
                "selection": None if reading.selection is None else reading.selection.text,
            }
            for reading in readings
        ],
    }


def _identity(file: TableFile) -> list[Any]:
    path = file.path
    if not isinstance(path, Path):
        return [file.source, file.n_events, path.described()]
    source = str(path.resolve()) + file.source.removeprefix(str(path))
    status = path.stat()
    return [source, file.n_events, status.st_size, status.st_mtime_ns]


def _require_room(directory: Path, readings: list[SampleReading]) -> None:
    n_events = sum(reading.table.n_events for reading in readings)
    needed = _SPARE * store_bytes(n_events, len(readings[0].features)) + _BUCKET_BYTES
    free = shutil.disk_usage(directory).free
    if needed > free:
        msg = (
            f"Got {n_events} events with {len(readings[0].features)} features for a store in {str(directory)!r}, which "
            f"needs {needed / 1e9:.1f} GB; expected so much room, and there are {free / 1e9:.1f} GB."
        )
        raise InvalidInputError(msg, advice="Choose another disk with `cache`.")


def _require_replaceable(path: Path) -> None:
    """Raise where something else than a store stands."""
    if not path.exists():
        return
    others = (
        sorted(names_inside(path) - {HEADER_FILE, *COLUMN_FILES.values()}) if path.is_dir() else ["a file"]
    )
    if others:
        msg = (
            f"Got {str(path)!r} for a store of events, which holds something else ({others[0]!r}); expected a new name, "
            "an empty directory or a store."
        )
        raise InvalidInputError(msg, advice="Choose another with `cache`.")


def _convert(
    path: Path, readings: list[SampleReading], request: dict[str, Any], show: ShowEvents | None
) -> None:
    rng = np.random.default_rng(_SEED)
    n_events, n_features = sum(reading.table.n_events for reading in readings), len(readings[0].features)
    samples: dict[str, StoredSample] = {}
    with staged_directory(path, require_replaceable=_require_replaceable) as staged:
        buckets = _Buckets(staged / "buckets", n_events, n_features, rng)
        n_before = 0
        for label, (role, reading) in enumerate(zip(_ROLES, readings, strict=True)):
            tally = _Tally(n_features, n_before)
            try:
                for features, weights in reading.chunks(np.dtype(np.float32)):
                    tally.add(features, weights)
                    buckets.add(features, weights, label)
                    if show is not None:
                        show(
                            (n_before + reading.n_read) // 2, n_events
                        )  # read is half of it, shuffled the other
            except NeedsDouble as found:
                raise _not_single(found.feature) from None
            reading.require_usable()
            samples[role] = tally.sample()
            samples[role].require_positive_sum(role)
            n_before += reading.n_read
        checksums = _append_shuffled(staged, buckets, n_before, show)
        header = StoreHeader(
            tuple(readings[0].names), readings[0].fill, request, **samples, checksums=checksums
        )
        with _ColumnFile(staged / HEADER_FILE, 1) as file:
            file.append(header.content())


def _append_shuffled(
    staged: Path, buckets: _Buckets, n_events: int, show: ShowEvents | None
) -> dict[str, tuple[int, ...]]:
    """Write the columns of the store bucket by bucket, and return their checksums."""
    row_bytes = {"features": 4 * buckets.n_features, "weights": 8, "labels": 1}
    files = {name: _ColumnFile(staged / COLUMN_FILES[name], row_bytes[name]) for name in COLUMN_FILES}
    n_written = 0
    try:
        for rows in buckets.shuffled():
            for name, file in files.items():
                file.append(np.ascontiguousarray(rows[name]).reshape(-1).view(np.uint8).data)
            n_written += len(rows)
            if show is not None:
                show((n_events + n_written) // 2, n_events)
    finally:
        for file in files.values():
            file.close()
    return {name: tuple(file.checksums) for name, file in files.items()}


def _not_single(feature: str) -> InvalidInputError:
    return InvalidInputError(
        f"Got the feature {feature!r}, whose events differ by less than float32 can tell, for a store of float32; expected "
        f"features that fit. Subtract a constant in a formula, such as '{feature}_0={feature}-1.7e9', or multiply by one where values are "
        "tiny or huge, or leave it out."
    )


def _record(n_features: int) -> np.dtype[Any]:
    return np.dtype([("features", "<f4", (n_features,)), ("weights", "<f8"), ("labels", "u1")])


class _Tally:
    """Sums over the events of one sample."""

    def __init__(self, n_features: int, first_number: int) -> None:
        self.n_events, self.n_negative, self.first_number = 0, 0, first_number
        self.positive, self.negative, self.squares = 0.0, 0.0, 0.0
        self.largest, self.largest_number = 0.0, first_number
        self.lowest, self.highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)

    def add(self, features: FeatureMatrix, weights: FloatArray) -> None:
        if not len(weights):
            return
        is_negative = weights < 0
        place = int(np.argmax(np.abs(weights)))
        if abs(weights[place]) > abs(self.largest):
            self.largest = float(weights[place])
            self.largest_number = self.first_number + self.n_events + place
        self.n_events += len(weights)
        self.n_negative += int(is_negative.sum())
        self.positive += float(weights[~is_negative].sum())
        self.negative -= float(weights[is_negative].sum())
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused afterwards
            self.squares += float(np.square(weights).sum())
        self.lowest = np.minimum(self.lowest, features.min(axis=0))
        self.highest = np.maximum(self.highest, features.max(axis=0))

    def sample(self) -> StoredSample:
        return StoredSample(
            self.n_events,
            self.n_negative,
            self.positive,
            self.negative,
            self.squares,
            self.largest,
            self.largest_number,
            tuple(self.lowest.tolist()),
            tuple(self.highest.tolist()),
        )


class _Buckets:
    """Files into which events are thrown at random, each small enough to be shuffled in memory."""

    def __init__(self, directory: Path, n_events: int, n_features: int, rng: np.random.Generator) -> None:
        self.record, self.n_features, self.rng = _record(n_features), n_features, rng
        n_buckets = max(1, math.ceil(n_events * self.record.itemsize / _BUCKET_BYTES))
        self.paths = [directory / str(number) for number in range(n_buckets)]
        self.directory = directory
        directory.mkdir()

    def add(self, features: FeatureMatrix, weights: FloatArray, label: int) -> None:
        rows = np.empty(len(weights), self.record)
        rows["features"], rows["weights"], rows["labels"] = features, weights, label
        bucket = self.rng.integers(len(self.paths), size=len(rows), dtype=np.uint16)
        order = np.argsort(bucket, kind="stable")
        rows = rows[order]
        bounds = np.searchsorted(bucket[order], np.arange(len(self.paths) + 1)).tolist()
        for path, start, stop in zip(self.paths, bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                with path.open("ab") as file:
                    file.write(rows[start:stop].view(np.uint8).data)

    def shuffled(self) -> Iterator[npt.NDArray[np.void]]:
        """Yield the events of bucket after bucket in random order, and remove it."""
        for path in self.paths:
            if path.exists():
                rows = np.fromfile(path, self.record)
                path.unlink()
                yield rows[self.rng.permutation(len(rows))]
        self.directory.rmdir()


class _ColumnFile:
    """A file that grows, with a checksum for every block of events."""

    def __init__(self, path: Path, row_bytes: int) -> None:
        self.file: BinaryIO = path.open("xb")
        self.block_bytes = BLOCK_EVENTS * row_bytes
        self.n_bytes, self.checksums = 0, list[int]()

    def append(self, content: bytes | memoryview) -> None:
        self.file.write(content)
        view = memoryview(content)
        while view:
            inside = self.n_bytes % self.block_bytes
            part = view[: self.block_bytes - inside]
            if inside == 0:
                self.checksums.append(0)
            self.checksums[-1] = zlib.crc32(part, self.checksums[-1])
            self.n_bytes += len(part)
            view = view[len(part) :]

    def close(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
