"""Where benchmark results are kept: one JSON file per benchmark, one row per measurement."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

EPOCH_SIZE = 100_000
"""Events of an epoch in the published schedule; rows of it that say nothing else have this."""
DIRECTORY = Path(__file__).parent / "results"


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows measured so far."""
    path = DIRECTORY / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def write_rows(name: str, rows: list[dict[str, Any]]) -> None:
    """Replace the rows, one per line, without ever leaving half a file."""
    DIRECTORY.mkdir(exist_ok=True)
    path = DIRECTORY / f"{name}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    os.replace(temporary, path)  # noqa: PTH105


def append_row(name: str, row: dict[str, Any]) -> None:
    """Add one row at once, so that an interrupted run loses nothing; two runs may share a file."""
    with (DIRECTORY / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_rows(name, [*read_rows(name), row])
