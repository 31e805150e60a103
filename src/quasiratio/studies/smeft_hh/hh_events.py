"""The events of the study: generated or given, and split into training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import FEATURES, OBSERVABLES
from quasiratio.sample import WeightedSample
from quasiratio.studies.smeft_hh.generated_parts import Columns, generated_columns

__all__ = ["ALL_OBSERVABLES", "HHEvents", "hh_events", "hh_samples"]

ALL_OBSERVABLES = (*OBSERVABLES, *FEATURES)
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


def _read(path: Path, n_events: int) -> Columns:
    from quasiratio.io import open_table  # noqa: PLC0415

    table = open_table(path)
    needed = (*ALL_OBSERVABLES, "weight")
    missing = [name for name in needed if name not in table.columns]
    if missing:
        msg = (
            f"Got {str(path)!r} without the columns {', '.join(missing)}; expected a sample such as "
            "'quasiratio generate gg-hh' writes, with features, pair observables and weight."
        )
        raise InvalidInputError(msg)
    names = [*needed, *(["truth_m_hh"] if "truth_m_hh" in table.columns else [])]
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
