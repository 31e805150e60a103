"""The events of the study: generated or given, and split into training, validation and test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import FEATURES, OBSERVABLES
from quasiratio.sample import WeightedSample

__all__ = [
    "ALL_OBSERVABLES",
    "Columns",
    "HHEvents",
    "generated_columns",
    "hard_process_ratio",
    "hh_events",
    "hh_samples",
]

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


ALL_OBSERVABLES = (*OBSERVABLES, *FEATURES)
_TRUTH = "truth_ratio_linear"
SamplePair = tuple[WeightedSample, WeightedSample]

_FRACTIONS = (0.65, 0.15, 0.20)


class HHEvents(NamedTuple):
    """Reference and target to train and to validate on, and the two test samples by column."""

    training: SamplePair
    validation: SamplePair
    reference: Columns
    target: Columns

    @property
    def reference_features(self) -> npt.NDArray[np.float32]:
        """Features of the test reference, in the order of the fit."""
        return _matrix(self.reference)


def hh_samples(arguments: Mapping[str, Any]) -> tuple[Columns, Columns]:
    """Return the Standard-Model and the linear sample: those given, or else generated."""
    given = arguments.get("samples")
    if given:
        first, second = (_read(Path(path), arguments["events"]) for path in given)
        return first, second
    directory = Path(arguments["directory"]) / "samples"
    sm, linear = (
        generated_columns(
            directory,
            name,
            arguments["events"],
            seed=arguments["generator_seed"],
            part_events=arguments["part_events"],
        )
        for name in ("sm", "linear")
    )
    return sm, linear


def hh_events(arguments: Mapping[str, Any]) -> HHEvents:
    """Return the events of one seed, split 65/15/20 at random."""
    rng = np.random.default_rng(arguments["seed"])
    splits = [_split(sample, rng) for sample in hh_samples(arguments)]
    training, validation, test = zip(*splits, strict=True)
    return HHEvents(_pair(training), _pair(validation), *test)


def hard_process_ratio(columns: Columns) -> npt.NDArray[np.float64]:
    """Return the ratio of the hard process behind each event, which no detector sees."""
    if _TRUTH not in columns:
        msg = (
            f"Got samples without {_TRUTH!r}, the ratio of the hard process; expected those of "
            "`quasiratio.generators.gg_hh`. Leave the method 'exact' out for other samples."
        )
        raise InvalidInputError(msg)
    return columns[_TRUTH]


def _read(path: Path, n_events: int) -> Columns:
    from quasiratio.io import open_table  # noqa: PLC0415

    table = open_table(path)
    needed = (*ALL_OBSERVABLES, "weight")
    missing = [name for name in needed if name not in table.columns]
    if missing:
        msg = (
            f"Got {str(path)!r} without the columns {', '.join(missing)}; expected a sample such as "
            "`quasiratio.generators.gg_hh` writes, with features, pair observables and weight."
        )
        raise InvalidInputError(msg)
    names = [*needed, *(name for name in ("truth_m_hh", _TRUTH) if name in table.columns)]
    chunks = list(table.chunks(names))
    return {name: np.concatenate([chunk[name] for chunk in chunks])[:n_events] for name in names}


def _split(columns: Columns, rng: np.random.Generator) -> list[Columns]:
    n_events = len(columns["weight"])
    bounds = np.round(np.cumsum(_FRACTIONS)[:-1] * n_events).astype(int)
    parts = np.split(rng.permutation(n_events), bounds)
    return [{name: values[part] for name, values in columns.items()} for part in parts]


def _pair(classes: Sequence[Columns]) -> SamplePair:
    reference, target = (WeightedSample(_matrix(c), c["weight"], FEATURES) for c in classes)
    return reference, target


def _matrix(columns: Columns) -> npt.NDArray[np.float32]:
    return np.column_stack([columns[name] for name in FEATURES]).astype(np.float32)
