"""Run a study: its tasks, in the store of its directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quasiratio.progress import ShowTasks
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.study import Study
from quasiratio.tasks import LEASE_SECONDS, Outcome, ResultStore, Settings, WorkerPool, run_tasks

__all__ = ["STORE_NAME", "run_study"]

STORE_NAME = "results.sqlite"


def run_study(
    study: Study,
    settings: Settings,
    directory: Path,
    pool: WorkerPool,
    *,
    show: ShowTasks | None = None,
    lease: float = LEASE_SECONDS,
) -> Outcome:
    """Compute what is not stored yet.

    Args:
        study: What to run.
        settings: With which settings.
        directory: Where the store is, or will be.
        pool: Who computes.
        show: Called with rows (or tasks) done and in all.
        lease: Seconds after which the claims of a runner that died are taken over.
    """
    tasks = list(study.tasks(settings))
    if study.uses_directory:
        place = {"directory": str(directory.resolve())}
        tasks = [replace(task, arguments={**task.arguments, **place}) for task in tasks]
    with ResultStore(directory / STORE_NAME, study.name, settings, Provenance.here()) as store:
        return run_tasks(study.compute, tasks, store, pool, show=show, lease=lease)
