"""Finished parts of a long run, kept on disk so that an interrupted run can go on.

One `.npz` file per chunk, written under a temporary name and renamed, so that a file is either whole or
absent. Each file carries a fingerprint of the settings that made it; a directory never mixes two.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.atomic_files import staged_file
from quasiratio.errors import InvalidInputError

__all__ = ["Chunk", "ChunkStore", "fingerprint"]

FloatArray = npt.NDArray[np.float64]


class Chunk(NamedTuple):
    """Selected events of one part of a run, and how many were generated for them.

    Attributes:
        columns: Arrays of one length, by name.
        n_generated: Events before the selection, without those the shower could not finish.
        n_failed: Events that the shower could not finish.
    """

    columns: dict[str, FloatArray]
    n_generated: int
    n_failed: int


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return a hash of settings that can be written as JSON."""
    text = json.dumps(settings, sort_keys=True, allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class ChunkStore:
    """A directory of chunks made with the same settings.

    Attributes:
        directory: Where the files are; created at the first save.
        key: Fingerprint of the settings.
    """

    directory: Path
    key: str

    def load(self, index: int, n_events: int) -> Chunk | None:
        """Return a finished chunk of `n_events`, or nothing where it has to be made.

        A chunk of another length is the last one of a shorter run and is made again.
        """
        path = self._path(index)
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            key, n_generated, n_failed = (arrays.pop(name) for name in ("_key", "_generated", "_failed"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # not written by us, or damaged: made again
        if str(key) != self.key:
            msg = (
                f"Got the chunk directory {str(self.directory)!r}, whose {path.name} was made with other settings; "
                "expected those of this run. Name another directory, or delete the files in this one."
            )
            raise InvalidInputError(msg)
        if int(n_generated) + int(n_failed) != n_events:
            return None
        return Chunk(arrays, int(n_generated), int(n_failed))

    def save(self, index: int, chunk: Chunk) -> None:
        """Write a chunk; at no time is there a file with part of it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = dict(chunk.columns)
        arrays |= {"_key": self.key, "_generated": chunk.n_generated, "_failed": chunk.n_failed}
        with staged_file(self._path(index)) as staged, staged.open("wb") as file:
            np.savez(file, **arrays)

    def _path(self, index: int) -> Path:
        return self.directory / f"chunk-{index:06d}.npz"
