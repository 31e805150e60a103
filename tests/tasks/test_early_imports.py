"""Workers that are forked from a process which has done their imports: what they know, deaths, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers import themselves")


def start(case: str, directory: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "3"}
    command = [
        sys.executable,
        "-W",
        "error",
        str(Path(__file__).with_name("early_calls.py")),
        case,
        str(directory),
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_workers_have_the_imports_and_their_share_of_threads(tmp_path: Path) -> None:
    with start("knows", tmp_path) as run:
        parent, found = json.loads(run.communicate()[0])
    assert all(knows for knows, _, _ in found)
    servers = {server for _, server, _ in found}
    assert len(servers) == 1
    assert servers != {parent}
    n_cores = len(os.sched_getaffinity(0))
    assert {threads for _, _, threads in found} == {str(max(1, min(3, n_cores // 2)))}


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with start("dies", tmp_path) as run:
        printed, complaints = run.communicate()
    assert json.loads(printed) == [number**2 for number in range(6)]
    assert not complaints


def test_a_call_that_always_kills_is_the_only_one_to_fail(tmp_path: Path) -> None:
    with start("deadly", tmp_path) as run:
        found = json.loads(run.communicate()[0])
    assert "died 4 times" in found.pop("1")
    assert found == {str(number): number**2 for number in (0, 2)}


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_command(ending: signal.Signals, tmp_path: Path) -> None:
    with start("waits", tmp_path) as run:
        deadline = time.monotonic() + 60
        while len(pids := [int(path.name[4:]) for path in tmp_path.glob("pid-*")]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if ending == signal.SIGINT:
            os.killpg(run.pid, ending)  # as a terminal does: to all of them
        else:
            os.kill(run.pid, ending)
        try:
            complaints = run.communicate(timeout=60)[1]
        finally:
            run.kill()
    assert complaints.count("KeyboardInterrupt") == (ending == signal.SIGINT)  # of the command alone
    deadline = time.monotonic() + 30
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
