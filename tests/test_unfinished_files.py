"""Unfinished files know their owner: those of processes that are gone are removed, all others are left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from quasiratio.atomic_files import remove_stale, scratch_directory, scratch_path
from quasiratio.io import create_table

KILLED = """
import os, signal, sys
from pathlib import Path
from quasiratio.atomic_files import scratch_path
path = scratch_path(Path(sys.argv[1]))
path.mkdir()
(path / "part.npz").write_text("half")
print(path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def left_by_a_killed_process(directory: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, directory], capture_output=True, text=True, check=False
    )
    left = Path(done.stdout.strip())
    assert left.is_dir()
    return left


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    left_by_a_killed_process(tmp_path)
    with create_table(tmp_path / "new.npz") as writer:
        writer.append({"x": np.ones(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["new.npz"]


def test_what_a_running_process_writes_is_left_alone(tmp_path: Path) -> None:
    with scratch_directory(tmp_path) as mine:
        remove_stale(tmp_path)
        assert mine.is_dir()
    other_machine = tmp_path / ".quasiratio-00000000-1-abc"
    unknown = tmp_path / ".quasiratio-abcdefgh"
    for path in (other_machine, unknown):
        path.mkdir()
    mine_too = tmp_path / ".quasiratio.json"
    mine_too.write_text("{}")
    remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {other_machine.name, unknown.name, mine_too.name}
    days_ago = time.time() - 5 * 86400
    for path in (other_machine, unknown, mine_too):
        os.utime(path, (days_ago, days_ago))
    remove_stale(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {mine_too.name}


def test_names_are_short_and_never_the_same(tmp_path: Path) -> None:
    names = {scratch_path(tmp_path).name for _ in range(100)}
    assert len(names) == 100
    assert max(map(len, names)) < 60
