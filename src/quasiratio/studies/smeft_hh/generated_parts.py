"""Generated samples in parts, which several workers make together and every later run finds again.

A part is a file whose name says all that decides its events. A worker that needs a sample makes the parts that
are missing and that nobody else is making; what another has in hand it waits for at the end. The lock of a
worker that dies is released by the operating system.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "generated_columns"]

Columns = dict[str, npt.NDArray[np.float64]]
SampleName = Literal["sm", "linear"]

_SELECTED = 0.74
"""Slightly less than the share of generated events that pass the selection."""

_MOST_PARTS = 1000


def generated_columns(
    directory: Path, sample: SampleName, n_events: int, *, seed: int, part_events: int
) -> Columns:
    """Return the first `n_events` selected events of a sample, generating what is not there yet.

    Args:
        directory: Where the parts are kept.
        sample: `"sm"` or `"linear"`.
        n_events: Selected events.
        seed: First seed of the generator; every part has its own.
        part_events: Events to generate for each part, of which three quarters are selected.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = [
        directory / f"{sample}-seed-{seed}-events-{part_events}-part-{k:04d}.npz" for k in range(_MOST_PARTS)
    ]
    n_likely = math.ceil(n_events / (_SELECTED * part_events))
    for wait in (False, True):
        for k, path in enumerate(paths[:n_likely]):
            _ensure(path, sample, part_events, seed * _MOST_PARTS + k, wait=wait)
    parts: list[Columns] = []
    n_found = 0
    for k, path in enumerate(paths):
        _ensure(path, sample, part_events, seed * _MOST_PARTS + k, wait=True)
        with np.load(path, allow_pickle=False) as file:
            parts.append({name: file[name] for name in file.files if not name.startswith("_")})
        n_found += len(parts[-1]["weight"])
        if n_found >= n_events:
            break
    return {name: np.concatenate([part[name] for part in parts])[:n_events] for name in parts[0]}


def _ensure(path: Path, sample: SampleName, part_events: int, seed: int, *, wait: bool) -> None:
    """Make a part unless it is there, or, without `wait`, unless another worker is making it."""
    if path.exists():
        return
    with _lock(path.with_suffix(".lock"), wait=wait) as is_mine:
        if not is_mine or path.exists():
            return
        from quasiratio.generators.gg_hh import generate  # noqa: PLC0415
        from quasiratio.io import create_table  # noqa: PLC0415

        generated = generate(sample, part_events, seed, chunk_size=part_events)
        writer = create_table(path, metadata=generated.metadata)
        with writer:
            writer.append(generated.columns)


@contextmanager
def _lock(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock of the operating system; yields false where another process has it and `wait` is not set."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:  # two workers may then make the same part, to the same bytes
        yield True
        return
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
