"""Events of both samples on disk, in random order: what a fit reads that does not fit into memory.

A store is a directory with one file per kind of number and a header, `store.json`:

- `features.f32`: float32, one row per event, as the networks take them;
- `weights.f64`: signed weights. In float64, because sums of weights of both signs cancel, and because they are what the
  normalisation, the effective sizes and the notes of a model are made of; it costs four bytes per event;
- `labels.u8`: 0 for the reference, 1 for the target.

Events stand in a random order (see `store_conversion`), so that any stretch of them is a random choice, and a batch, a
validation sample or a subsample is read in one piece. The header has the sums of weights of all events, what the store was
made of, and a checksum of every block of every file. A block is checked when it is first read, which costs little beside
the training on it; the header is checked when the store is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.sample import positive_sum, size_of_sums

__all__ = [
    "BLOCK_EVENTS",
    "COLUMN_FILES",
    "HEADER_FILE",
    "STORE_VERSION",
    "EventStore",
    "StoreHeader",
    "StoredRows",
    "StoredSample",
]

BLOCK_EVENTS = 2**16
"""Events that share a checksum, and that are read at a time."""
STORE_VERSION = 1
HEADER_FILE = "store.json"
COLUMN_FILES = {"features": "features.f32", "weights": "weights.f64", "labels": "labels.u8"}
_ITEM_BYTES = {"features": 4, "weights": 8, "labels": 1}
_LARGEST_HEADER = 2**28


class StoredRows(NamedTuple):
    """Consecutive events of a store, as arrays in memory."""

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]


@dataclass(frozen=True)
class StoredSample:
    """What is known of all events of one sample in a store; the names are those of `WeightedSample`.

    Attributes:
        n_events: Number of events.
        n_negative: Those with a negative weight.
        positive_sum: Sum of the weights that are not negative.
        negative_sum: Sum of the absolute values of those that are.
        sum_of_squares: Sum of the squared weights.
        largest: The weight that is largest in absolute value.
        largest_number: Number of its event, counted through the reference and then the target, as read.
        lowest: Smallest value of each feature.
        highest: Largest value of each feature.
    """

    n_events: int
    n_negative: int
    positive_sum: float
    negative_sum: float
    sum_of_squares: float
    largest: float
    largest_number: int
    lowest: tuple[float, ...]
    highest: tuple[float, ...]

    def __len__(self) -> int:
        return self.n_events

    @property
    def sum_of_weights(self) -> float:
        """Signed sum."""
        return self.positive_sum - self.negative_sum

    @property
    def sum_of_abs_weights(self) -> float:
        """Sum of the absolute weights."""
        return self.positive_sum + self.negative_sum

    @property
    def negative_fraction(self) -> float:
        """Fraction of events whose weight is negative."""
        return self.n_negative / self.n_events

    @property
    def effective_size(self) -> float:
        """The unweighted events that would carry the same statistical error."""
        return size_of_sums(self.sum_of_weights, self.sum_of_squares)

    @property
    def mixture_coefficient(self) -> float:
        """Share of the positive weights in the signed sum, at least one."""
        return max(1.0, self.positive_sum / self.require_positive_sum("sample"))

    def require_positive_sum(self, role: str) -> float:
        """Return the sum of weights, or raise."""
        return positive_sum(self.sum_of_weights, role)


@dataclass(frozen=True)
class StoreHeader:
    """What `store.json` says.

    Attributes:
        names: Names of the features.
        fill: What stands for a missing value, by feature.
        request: What the store was made of: files, features, weights and selections.
        reference: What is known of the reference.
        target: The same of the target.
        checksums: One for each block of each file.
    """

    names: tuple[str, ...]
    fill: dict[str, float]
    request: dict[str, Any]
    reference: StoredSample
    target: StoredSample
    checksums: dict[str, tuple[int, ...]]

    @property
    def n_events(self) -> int:
        """Events of both samples."""
        return len(self.reference) + len(self.target)

    def content(self) -> bytes:
        """Return the file, with a checksum of its own."""
        body = {"version": STORE_VERSION, **asdict(self)}
        return json.dumps({**body, "sha256": _digest(body)}, indent=1).encode()

    @classmethod
    def parsed(cls, content: bytes) -> Self:
        """Read it again.

        Raises:
            ValueError: It is not what `content` returned.
        """
        body = json.loads(content)
        if not isinstance(body, dict) or body.pop("sha256", None) != _digest(body):
            msg = "its checksum is wrong"
            raise ValueError(msg)
        if body.pop("version") != STORE_VERSION:
            msg = "it is of another version of quasiratio"
            raise ValueError(msg)
        return cls(
            tuple(body["names"]),
            body["fill"],
            body["request"],
            _sample(body["reference"]),
            _sample(body["target"]),
            {name: tuple(values) for name, values in body["checksums"].items()},
        )


class EventStore:
    """Events of a reference and a target on disk, in random order. Make one with `create_store`.

    Nothing but the header is held in memory; the files are mapped, and read in blocks.

    Args:
        path: Directory of the store.

    Attributes:
        path: Directory of the store.
        header: What the store was made of, and the sums over all events.

    Raises:
        InvalidInputError: There is no store, or it is damaged.

    Example:
        >>> import tempfile
        >>> from quasiratio.io import create_store
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for name in ("a", "b"):
        ...         np.savez(f"{directory}/{name}.npz", pt=[30.0, 50.0, 40.0], w=[1.0, -0.5, 1.0])
        ...     pair = f"{directory}/a.npz", f"{directory}/b.npz"
        ...     store = create_store(f"{directory}/store", *pair, weight="w")
        ...     len(store), store.names, store.target.sum_of_weights, sorted(store.read(0, 6).weights.tolist())
        (6, ('pt',), 1.5, [-0.5, -0.5, 1.0, 1.0, 1.0, 1.0])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with (self.path / HEADER_FILE).open("rb") as file:
                self.header = StoreHeader.parsed(file.read(_LARGEST_HEADER))
        except FileNotFoundError:
            msg = f"Got {str(self.path)!r}, which is no store of events; expected a directory with {HEADER_FILE}."
            raise InvalidInputError(msg) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unusable(HEADER_FILE, f"cannot be read: {error}") from None
        self._arrays = {name: self._mapped(name) for name in COLUMN_FILES}
        self._checked: dict[str, set[int]] = {name: set() for name in COLUMN_FILES}

    def __len__(self) -> int:
        return self.header.n_events

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.header.names

    @property
    def fill(self) -> Mapping[str, float]:
        """What stands for a missing value, by feature."""
        return self.header.fill

    @property
    def reference(self) -> StoredSample:
        """What is known of the reference."""
        return self.header.reference

    @property
    def target(self) -> StoredSample:
        """What is known of the target."""
        return self.header.target

    @property
    def sha256(self) -> str:
        """Checksum of features, labels and weights, wherever they were read from."""
        return _digest({"names": self.names, "fill": self.fill, "checksums": self.header.checksums})

    def read(self, start: int, stop: int) -> StoredRows:
        """Read consecutive events into memory.

        Args:
            start: First row.
            stop: Row behind the last.

        Raises:
            InvalidInputError: A block does not have its checksum.
        """
        features, labels, weights = (
            np.array(self._rows(name, start, stop)) for name in ("features", "labels", "weights")
        )
        return StoredRows(features, labels.astype(np.bool_), weights)

    def read_weights(self, start: int, stop: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
        """Read labels and weights of consecutive events, without their features."""
        labels, weights = (np.array(self._rows(name, start, stop)) for name in ("labels", "weights"))
        return labels.astype(np.bool_), weights

    def stretches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield first row and row behind the last of every block, or what is of it, from row `start` to before `end`."""
        end = len(self) if end is None else end
        while start < end:
            stop = min((start // BLOCK_EVENTS + 1) * BLOCK_EVENTS, end)
            yield start, stop
            start = stop

    def _rows(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows of a mapped file, whose blocks are checked the first time."""
        checked, array = self._checked[name], self._arrays[name]
        for block in range(start // BLOCK_EVENTS, -(-stop // BLOCK_EVENTS)):
            if block not in checked:
                content = array[block * BLOCK_EVENTS : (block + 1) * BLOCK_EVENTS]
                if zlib.crc32(content.data) != self.header.checksums[name][block]:
                    raise self._unusable(COLUMN_FILES[name], f"block {block} does not have its checksum")
                checked.add(block)
        rows: npt.NDArray[Any] = array[start:stop]
        return rows

    def _mapped(self, name: str) -> npt.NDArray[Any]:
        path = self.path / COLUMN_FILES[name]
        shape: tuple[int, ...] = (len(self), len(self.names)) if name == "features" else (len(self),)
        dtype = {"features": "<f4", "weights": "<f8", "labels": "u1"}[name]
        expected = int(np.prod(shape)) * _ITEM_BYTES[name]
        try:
            size = path.stat().st_size
            if size == expected:
                return np.memmap(path, dtype=dtype, mode="r", shape=shape)
        except (OSError, ValueError) as error:
            raise self._unusable(path.name, f"cannot be read: {error}") from None
        raise self._unusable(path.name, f"{size} bytes instead of {expected}")

    def _unusable(self, name: str, problem: str) -> InvalidInputError:
        return InvalidInputError(
            f"Got the store of events {str(self.path)!r}, which is damaged ({name}: {problem}); expected what was "
            "written. Delete it, and it is made again."
        )


def _sample(document: dict[str, Any]) -> StoredSample:
    lowest, highest = tuple(document.pop("lowest")), tuple(document.pop("highest"))
    return StoredSample(**document, lowest=lowest, highest=highest)


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
