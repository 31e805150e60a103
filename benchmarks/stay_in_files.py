"""`inspect` and `evaluate` on samples that stay in their files: anonymous memory, and the numbers of one merged sample.

    python -m benchmarks.stay_in_files --events 40000000 --work /data/beyond

looks at samples with 16 features (those of `beyond_memory`) file by file, as is done where they would need more than half of
the memory, with `--events` and with `--compare` events; the latter once more in memory, from one merged file each, and all
numbers are compared. Every part runs in a process of its own, which does the work of the workers too. Rows go to
`results/stay_in_files.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import quasiratio as qr
from benchmarks.beyond_memory import files, measured
from benchmarks.results import append_row
from quasiratio.workflows import evaluate_parts, file_parts

_MUST = 1e-12
_COMMANDS = ("inspect", "evaluate")


def merged(pair: list[list[str]]) -> list[list[str]]:
    """Write one file for each sample, where it is not there yet."""
    found = []
    for paths in pair:
        path = Path(paths[0]).with_name(f"merged-{len(paths)}-{Path(paths[0]).name}")
        if not path.exists():
            parts = [dict(np.load(one)) for one in paths]
            columns: dict[str, Any] = {
                name: np.concatenate([one[name] for one in parts]) for name in parts[0]
            }
            np.savez(path, **columns)
        found.append([str(path)])
    return found


def fitted(work: Path) -> Path:
    """Fit a small ensemble to a few events, where there is none yet."""
    path = work / "model"
    if not path.exists():
        pair = files(work, 200_000)
        qr.workflows.fit_files(*pair, path, weight="w", max_steps=200, n_members=2, random_state=0)
    return path


def numbers(found: Any) -> list[float]:
    """Return all numbers of plain values, in their order."""
    if isinstance(found, dict):
        return [number for value in found.values() for number in numbers(value)]
    if isinstance(found, list | tuple | np.ndarray):
        return [number for value in found for number in numbers(value)]
    return [float(found)] if isinstance(found, int | float | np.number) else []


def run_part(command: str, way: str, work: Path, n_events: int) -> dict[str, Any]:
    """Look at the samples in memory or in their files; return a row, and the numbers that must agree."""
    import torch  # noqa: F401, PLC0415 - belongs to the interpreter

    import quasiratio.plots  # noqa: F401, PLC0415 - likewise

    warnings.simplefilter("ignore")
    pair, model = files(work, n_events), fitted(work)
    if way == "memory":
        pair = merged(pair)
    file_parts.available_memory = lambda: 0 if way == "files" else None  # type: ignore[assignment]
    row: dict[str, Any] = {"command": command, "way": way, "events": n_events, "files": sum(map(len, pair))}
    with measured(row):
        if command == "inspect":
            kept: Any = qr.workflows.inspect_files(*pair, weight="w").inspection.as_dict()
        else:
            done = qr.workflows.evaluate_files(
                model, *pair, work / f"report-{way}", weight="w", overwrite=True
            )
            for bins in done.values[
                "histograms"
            ].values():  # differences of contents are known to the digits of those
                bins["member_band"] = bins["reweighted"] + bins["member_band"]
            names = ("closure", "quality", "histograms", "reweighted", "share_seen_in_training")
            kept = [done.values[name] for name in names]
            kept += [sample["weights"] for sample in done.values["samples"].values()]
            row["judged"] = done.evaluation.n_judged
    return row | {"numbers": numbers(kept)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=40_000_000, help="events of both samples together")
    parser.add_argument("--compare", type=int, default=4_000_000, help="events that fit into memory")
    parser.add_argument("--work", type=Path, default=Path("beyond-memory"), help="files")
    parser.add_argument("--commands", nargs="+", choices=_COMMANDS, default=_COMMANDS)
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--no-row", action="store_true", help="print only, for a trial")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.part is not None:
        print("ROW " + json.dumps(run_part(*options.part, options.work, options.events)))
        return
    for name in options.commands:
        compared = []
        for way, n_events in (
            ("memory", options.compare),
            ("files", options.compare),
            ("files", options.events),
        ):
            common = ["--work", str(options.work), "--events", str(n_events), "--part", name, way]
            command = [sys.executable, "-m", "benchmarks.stay_in_files", *common]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            row = json.loads(output.rpartition("ROW ")[2])
            found = np.array(row.pop("numbers"))
            compared.append(found)
            if len(compared) == 2:
                scale = np.maximum(
                    np.abs(compared[0]), 1.0
                )  # shares, entropies and bands have the digits of one
                row["n_numbers"] = len(found)
                row["largest_difference"] = float((np.abs(found - compared[0]) / scale).max())
            print(json.dumps(row), flush=True)
            if not options.no_row:
                append_row("stay_in_files", row)
    print(
        f"numbers must agree to {_MUST:g}; at most {evaluate_parts.MOST_JUDGED} events of a sample are kept"
    )


if __name__ == "__main__":
    main()
