"""Run a study: claim tasks, send them to workers, keep what they find, and say what is missing.

The runner holds no result in memory: what it presents is what is stored. Several runners, on several machines
if they share the directory, may work on one store; each claims what the others have not.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from quasiratio.errors import InvalidInputError
from quasiratio.progress import ShowTasks
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.store import LEASE_SECONDS, ResultStore
from quasiratio.studies.engine.study import Row, Study, Task
from quasiratio.studies.engine.worker import EventSink, StoreSink, TimedRow, compute_task

if TYPE_CHECKING:
    from quasiratio.studies.engine.executors import WorkerPool
    from quasiratio.studies.engine.study import Settings

__all__ = ["STORE_NAME", "Outcome", "run_study"]

STORE_NAME = "results.sqlite"
_POLL_SECONDS = 0.5
_ATTEMPTS = 4
_HEARTBEATS_PER_LEASE = 6
_WORKER_DEATHS = ("BrokenProcessPool", "KilledWorker", "FutureCancelledError", "CancelledError")


@dataclass(frozen=True)
class Outcome:
    """What is stored when a run ends.

    Args:
        rows: All rows.
        failures: Why tasks failed, by their keys.
        n_tasks: Tasks of the study.
        seconds: Time that workers took for all rows, in all runs.
        sources: What the rows were computed with.

    Example:
        >>> Outcome([], {"seed-1": "ValueError: no"}, n_tasks=2).is_complete
        False
    """

    rows: Sequence[Row]
    failures: Mapping[str, str]
    n_tasks: int
    seconds: float = 0.0
    sources: Sequence[Provenance] = ()

    @property
    def is_complete(self) -> bool:
        """Whether no task failed."""
        return not self.failures


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
    store = ResultStore(directory / STORE_NAME, study.name, settings, Provenance.here())
    with store, _heartbeat(store, lease):
        run = _Run(study, {task.key: task for task in tasks}, store, pool, lease)
        try:
            run.until_done(show)
        finally:
            store.release()
        states = store.states()
        failures = {
            task.key: states[task.key][1] or ""
            for task in tasks
            if states.get(task.key, ("",))[0] == "failed"
        }
        return Outcome(store.rows(), failures, len(tasks), store.seconds(), store.sources())


class _Run:
    """One runner at work on its store."""

    def __init__(
        self, study: Study, tasks: dict[str, Task], store: ResultStore, pool: WorkerPool, lease: float
    ) -> None:
        self.study, self.tasks, self.store, self.pool, self.lease = study, tasks, store, pool, lease
        self.futures: dict[Future[list[TimedRow]], Task] = {}
        self.n_deaths: dict[str, int] = {}
        self.open = [task for task in tasks.values() if not self._is_stored(task, store.known())]
        for task in tasks.values():
            if task not in self.open:
                store.finish(task.key)
        self.sink: StoreSink | EventSink = StoreSink(store.path.resolve(), store.run)
        if not pool.sees_store:
            self.sink = EventSink(f"quasiratio-{uuid4().hex}")
            if pool.subscribe is not None:
                pool.subscribe(self.sink.topic, self._add_event)

    def until_done(self, show: ShowTasks | None) -> None:
        """Submit, collect and wait, until every task is done or has failed."""
        executor = self.pool.make_executor()
        try:
            while self.open or self.futures:
                self._report(show)
                executor = self._submit(executor)
                if not self.futures:  # other runners have what is left
                    threading.Event().wait(_POLL_SECONDS)
                    continue
                done, _ = wait(self.futures, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                is_broken = False
                for future in done:
                    is_broken |= self._collect(future, self.futures.pop(future))
                if is_broken:
                    executor.shutdown(wait=False)
                    executor = self.pool.make_executor()
            self._report(show)
            executor.shutdown(wait=True)
        except BaseException:
            for future in self.futures:
                future.cancel()
            executor.shutdown(wait=False)
            raise

    def _submit(self, executor: Executor) -> Executor:
        """Claim as many tasks as there are workers; leave out what others have done."""
        states = self.store.states()
        known = self.store.known()
        for task in list(self.open):
            if len(self.futures) >= self.pool.capacity():
                break
            if self._is_stored(task, known) or not self.store.claim(task.key, lease=self.lease):
                state = states.get(task.key, ("",))[0]
                if self._is_stored(task, known) or state == "done" or self._failed_now(task):
                    self.open.remove(task)
                continue
            self.open.remove(task)
            already = tuple(key for key in task.rows if key in known)
            try:
                future = executor.submit(compute_task, self.study.compute, task, already, self.sink)
            except RuntimeError:  # the pool broke since the last look
                self.store.release(task.key)
                self.open.append(task)
                return self.pool.make_executor()
            self.futures[future] = task
        return executor

    def _collect(self, future: Future[list[TimedRow]], task: Task) -> bool:
        """Take in what a worker returned; true where the worker died and the pool is broken."""
        try:
            rows = future.result()
        except (Exception, CancelledError) as error:  # noqa: BLE001 - kept with its task; the study goes on
            if type(error).__name__ in _WORKER_DEATHS:
                self.n_deaths[task.key] = self.n_deaths.get(task.key, 0) + 1
                if self.n_deaths[task.key] < _ATTEMPTS:
                    self.store.release(task.key)
                    self.open.append(task)
                else:
                    self.store.fail(task.key, f"Its worker died {_ATTEMPTS} times; perhaps memory ran out.")
                return isinstance(error, BrokenExecutor)
            self.store.fail(task.key, f"{type(error).__name__}: {error}")
            return False
        for key, values, seconds in rows:
            self.store.add(task.key, Row(key, values), seconds=seconds, seed=task.arguments.get("seed"))
        self.store.finish(task.key)
        return False

    def _add_event(self, message: str) -> None:
        """Take in a row that a remote worker sent while its task goes on."""
        task_key, key, values, seconds = json.loads(message)
        seed = self.tasks[task_key].arguments.get("seed")
        with ResultStore.joined(self.store.path, self.store.run) as store:
            store.add(task_key, Row(key, values), seconds=seconds, seed=seed)

    def _failed_now(self, task: Task) -> bool:
        return self.store.states().get(task.key, ("",))[0] == "failed"

    def _is_stored(self, task: Task, known: frozenset[str]) -> bool:
        return bool(task.rows) and known.issuperset(task.rows)

    def _report(self, show: ShowTasks | None) -> None:
        if show is None:
            return
        if all(task.rows for task in self.tasks.values()):
            known = self.store.known()
            keys = [key for task in self.tasks.values() for key in task.rows]
            show(sum(key in known for key in keys), len(keys))
        else:
            show(len(self.tasks) - len(self.open) - len(self.futures), len(self.tasks))


@contextmanager
def _heartbeat(store: ResultStore, lease: float) -> Iterator[None]:
    """Keep renewing the claims of a run, from a thread and a connection of its own."""
    over = threading.Event()

    def beat() -> None:
        with ResultStore.joined(store.path, store.run) as own:
            while not over.wait(lease / _HEARTBEATS_PER_LEASE):
                with suppress(InvalidInputError):  # the file is busy; there are more beats in a lease
                    own.renew(lease=lease)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
