"""The numbers of a smoke run of one seed; `python -m tests.studies.smoke_numbers` stores them in `reference/`."""

from __future__ import annotations

import json
import math
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_info

from quasiratio.provenance import Provenance
from quasiratio.studies.engine.registry import study_by_name, study_names

REFERENCE = Path(__file__).parent / "reference"
SHORTER: dict[str, dict[str, Any]] = {
    # A thousand steps at its rate amplify rounding until another processor is another seed; a hundred do not.
    "weight-variance": {"max_epochs": 2, "rosmm_max_epochs": 2},
    "smeft-hh": {"events": 1400},
}
Numbers = dict[str, dict[str, float | None]]


def smoke_settings(name: str) -> dict[str, Any]:
    """Return the settings of the preset with one seed, and with what keeps its trainings short."""
    return {**study_by_name(name).presets["smoke"], "seeds": 1, **SHORTER.get(name, {})}


def smoke_numbers(name: str, directory: Path) -> Numbers:
    """Run the study and return, by the keys of its rows, every number that is judged."""
    study = study_by_name(name)
    rows = [
        row
        for task in study.tasks(smoke_settings(name))
        for row in study.compute({**task.arguments, "directory": str(directory)})
    ]
    return {row.key: judged_numbers(dict(row.values)) for row in rows}


def judged_numbers(values: dict[str, Any]) -> dict[str, float | None]:
    """Return one number per name: that of a scalar, the root mean square of a list or a table.

    Histograms are left out, since chi2 and entropy are computed from them, and so is what a clock says.
    """
    found: dict[str, float | None] = {}
    for name, numbers in _lists(values):
        if name.startswith(("closure", "seconds")) or not numbers:
            continue
        mean_square = sum(value * value for value in numbers) / len(numbers)
        alone = numbers[0] if len(numbers) == 1 else math.sqrt(mean_square)
        found[name] = float(f"{alone:.10g}") if math.isfinite(alone) else None
    return found


def _lists(values: Any, path: str = "") -> Iterator[tuple[str, list[float]]]:
    if isinstance(values, dict):
        for name, inner in values.items():
            yield from _lists(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, list(_numbers(values))


def _numbers(values: Any) -> Iterator[float]:
    if isinstance(values, list | tuple):
        for inner in values:
            yield from _numbers(inner)
    elif isinstance(values, int | float):
        yield float(values)


def this_platform() -> dict[str, str]:
    """Return what decides the rounding of a training."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "system": platform.system(),
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        # NumPy's own library, which takes a processor of one name for another on some machines.
        "blas": ", ".join(sorted({str(one.get("architecture")) for one in threadpool_info()})),
    }


def _processor() -> str:
    """Return the name of the processor, by which libraries choose their instructions, where Linux tells it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.is_file() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def main(names: list[str], target: Path) -> None:
    """Store the numbers of these studies."""
    torch.set_num_threads(1)
    for name in names or study_names():
        with tempfile.TemporaryDirectory() as directory:
            numbers = smoke_numbers(name, Path(directory))
        content = {
            "study": name,
            "settings": smoke_settings(name),
            "platform": this_platform(),
            "commit": Provenance.here().commit,
            "numbers": numbers,
        }
        (target / f"{name}-smoke.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:], REFERENCE)
