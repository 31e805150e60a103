"""A study on a real Dask cluster on loopback: a worker is killed in the middle, and the table is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quasiratio.errors import InvalidInputError, LostSchedulerError
from quasiratio.studies.engine.conduct import run_study
from quasiratio.tasks import executors
from quasiratio.tasks.executors import dask_workers, local_workers

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SCRIPT = Path(__file__).parents[2] / "docs" / "how-to" / "study_on_cluster.py"


@pytest.fixture
def address() -> Iterator[str]:
    """Start a scheduler and two worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def test_a_killed_worker_changes_nothing(tmp_path: Path, address: str) -> None:
    from tests.studies import toy_study

    on_cluster, alone = tmp_path / "cluster", tmp_path / "alone"
    for directory in (on_cluster, alone):
        directory.mkdir()
    log = on_cluster / "computed.log"
    killed: list[int] = []

    def kill_one_in_mid_study() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (log.exists() and log.read_text().count("\n") >= 3):
            time.sleep(0.02)
        killed.append(int(log.read_text().splitlines()[-1].split()[1]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one_in_mid_study)
    killer.start()
    with dask_workers(address) as pool:
        assert "2 workers" in pool.description
        settings = toy_study.settings(on_cluster, n_tasks=8, pause=0.2)
        outcome = run_study(toy_study.STUDY, settings, on_cluster, pool)
    killer.join()
    with local_workers(1) as pool:
        expected = run_study(toy_study.STUDY, toy_study.settings(alone, n_tasks=8), alone, pool)
    assert outcome.is_complete
    assert outcome.rows == expected.rows
    workers = {int(line.split()[1]) for line in log.read_text().splitlines()}
    assert len(workers) >= 2
    assert killed


def test_rows_arrive_before_their_task_ends(tmp_path: Path, address: str) -> None:
    from tests.studies import toy_study

    seen: list[float] = []
    with dask_workers(address) as pool:
        settings = toy_study.settings(tmp_path, n_tasks=1, pause=1.5)
        run_study(toy_study.STUDY, settings, tmp_path, pool, show=lambda done, _: seen.append(done))
    assert 1 in seen  # the first of its two rows alone


def test_a_task_that_raises_on_the_cluster_is_named(tmp_path: Path, address: str) -> None:
    from tests.studies import toy_study

    with dask_workers(address) as pool:
        outcome = run_study(toy_study.STUDY, toy_study.settings(tmp_path, fail=0), tmp_path, pool)
    assert outcome.failures == {"task-0": "ValueError: no square of 0"}
    assert len(outcome.rows) == 6


def test_a_scheduler_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", "1s")
    with pytest.raises(InvalidInputError, match="does not answer"), dask_workers("tcp://127.0.0.1:9"):
        pass


def test_a_scheduler_that_ends_is_one_sentence_and_what_is_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.studies import toy_study

    monkeypatch.setattr(executors, "_CONNECT_SECONDS", "2s")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )

    def end(done: float, _total: float) -> None:
        if done >= 2:
            cluster.close()

    settings = toy_study.settings(tmp_path, n_tasks=6, pause=0.2)
    with (
        pytest.raises(LostSchedulerError, match=r"Lost the scheduler 'tcp://127.0.0.1.*`resume=True`"),
        dask_workers(cluster.scheduler_address) as pool,
    ):
        run_study(toy_study.STUDY, settings, tmp_path, pool, show=end)
    with local_workers(1) as pool:
        outcome = run_study(toy_study.STUDY, settings, tmp_path, pool)
    assert outcome.is_complete
    n_computed = (tmp_path / "computed.log").read_text().count("\n")
    assert n_computed <= len(outcome.rows) + 2


@pytest.mark.slow
def test_the_script_of_the_documentation_runs_a_study(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "local", "2", "--"]
    study = ["weight-variance", "--preset", "smoke", "--method", "mlp", "-o", str(tmp_path / "out")]
    done = subprocess.run([*command, *study], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "6 of 6 points." in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()
