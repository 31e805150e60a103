"""Samples from files, described before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quasiratio.io import Feature
from quasiratio.metrics import Inspection, inspect_samples
from quasiratio.tasks import chosen_workers
from quasiratio.workflows.file_parts import FileParts, beyond_memory, first_precision
from quasiratio.workflows.sample_files import Files, SampleFiles, chosen_features

__all__ = ["InspectedFiles", "inspect_files"]

_BYTES_OF_EVENT, _BYTES_OF_VALUE = 40, 4
"""Of a sample in memory: weight, numbers that find repeated events, and their order; each feature."""


@dataclass(frozen=True)
class InspectedFiles:
    """What files hold, and which method suits them.

    Attributes:
        files: The files of each sample.
        inputs: The columns and formulas that were looked at.
        inspection: What was found.
    """

    files: tuple[tuple[str, ...], ...]
    inputs: tuple[Feature, ...]
    inspection: Inspection

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.inputs)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "files": [list(files) for files in self.files],
            "features": list(self.features),
            **self.inspection.as_dict(),
        }


def inspect_files(
    reference: Files,
    target: Files | None = None,
    *,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    reference_weight: str | None = None,
    target_weight: str | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    say: Callable[[str], None] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> InspectedFiles:
    """Describe one sample, or two and their overlap, and recommend a method, as `quasiratio inspect` does.

    Args:
        reference: Files of the reference, or of the only sample.
        target: Files of the target; left out, one sample is described.
        features: Columns and formulas to look at; every numeric column that all have, but weights and identifiers.
        weight: Expression of the signed weight; one when left out, if no column is named like a weight.
        reference_weight: Weight of the reference, where it differs.
        target_weight: Weight of the target, where it differs.
        selection: Events to use; all when left out.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        say: Called with lines for people: columns that were left out because they are named like weights, and whether the
            events stay in their files, as they do where they would need more than half of the memory that is available.
        jobs: Processes of this machine that read, file by file; the numbers are the same.
        scheduler: Address of a Dask scheduler instead.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from quasiratio.workflows import inspect_files
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", pt=np.arange(4.0), w=[1.0, 1.0, 1.0, -1.0])
        ...     found = inspect_files(f"{directory}/a.npz", weight="w")
        >>> found.features, found.inspection.reference.weights.negative_fraction
        (('pt',), 0.25)
    """
    samples = [SampleFiles(reference, reference_weight or weight, selection, tree, allow_large)]
    if target is not None:
        samples.append(SampleFiles(target, target_weight or weight, selection, tree, allow_large))
    tables = [sample.open() for sample in samples]
    names = chosen_features(features, samples, tables, say)
    why = beyond_memory(tables, _BYTES_OF_EVENT + _BYTES_OF_VALUE * len(names))
    if why is not None and say is not None:
        say(why)
    with chosen_workers(jobs, scheduler, default=1) as pool:
        pairs = list(zip(samples, tables, strict=True))
        if why is None:
            result = inspect_samples(*(sample.read(table, names, pool=pool) for sample, table in pairs))
        else:
            result = first_precision(
                lambda dtype: inspect_samples(*(FileParts.of(*pair, names, pool, dtype) for pair in pairs))
            )
    return InspectedFiles(tuple(tuple(table.sources) for table in tables), tuple(names), result)
