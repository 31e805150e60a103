"""Run tasks: claim them, send them to workers, keep what they find, and say what is missing.

The runner holds no result in memory: what it returns is what is stored. Several runners, on several machines
if they share the directory, may work on one store; each claims what the others have not.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from quasiratio.errors import InvalidInputError, QuasiratioError
from quasiratio.progress import ShowTasks
from quasiratio.provenance import Provenance
from quasiratio.tasks.executors import WorkerPool
from quasiratio.tasks.store import LEASE_SECONDS, ResultStore
from quasiratio.tasks.submissions import Finished, Submissions
from quasiratio.tasks.task import Row, Task
from quasiratio.tasks.worker import EventSink, StoreSink, compute_task

__all__ = ["Outcome", "run_tasks"]

_POLL_SECONDS = 0.5
_HEARTBEATS_PER_LEASE = 6


@dataclass(frozen=True)
class Outcome:
    """What is stored when a run ends.

    Args:
        rows: All rows.
        failures: Why tasks failed, by their keys.
        n_tasks: Tasks there were.
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


def run_tasks(
    compute: Callable[[dict[str, Any]], Iterable[Row]],
    tasks: Sequence[Task],
    store: ResultStore,
    pool: WorkerPool,
    *,
    show: ShowTasks | None = None,
    lease: float = LEASE_SECONDS,
    n_ahead: int = 0,
) -> Outcome:
    """Compute what is not stored yet.

    Args:
        compute: Does one task in a worker and yields its rows; a function of a module, so that other processes find it.
        tasks: What to do.
        store: Where rows are kept.
        pool: Who computes.
        show: Called with rows (or tasks) done and in all.
        lease: Seconds after which the claims of a runner that died are taken over.
        n_ahead: Tasks to claim beyond those that workers are at: for short ones, as other runners cannot have them.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from quasiratio.tasks import own_process
        >>> def square(arguments):
        ...     yield Row(f"square-{arguments['x']}", {"value": arguments["x"] ** 2})
        >>> tasks = [Task(f"task-{x}", {"x": x}) for x in (1, 2)]
        >>> with tempfile.TemporaryDirectory() as directory, own_process() as pool:
        ...     with ResultStore(Path(directory) / "r.sqlite", "toy", {}, Provenance.here()) as store:
        ...         [row.values["value"] for row in run_tasks(square, tasks, store, pool).rows]
        [1, 4]
    """
    with _heartbeat(store, lease):
        run = _Run(compute, {task.key: task for task in tasks}, store, pool, lease)
        try:
            run.until_done(show, n_ahead)
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
        self,
        compute: Callable[[dict[str, Any]], Iterable[Row]],
        tasks: dict[str, Task],
        store: ResultStore,
        pool: WorkerPool,
        lease: float,
    ) -> None:
        self.compute, self.tasks, self.store, self.pool, self.lease = compute, tasks, store, pool, lease
        self.open = [task for task in tasks.values() if not self._is_stored(task, store.known())]
        for task in tasks.values():
            if task not in self.open:
                store.finish(task.key)
        self.sink: StoreSink | EventSink = StoreSink(store.path.resolve(), store.run)
        if not pool.sees_store:
            self.sink = EventSink(f"quasiratio-{uuid4().hex}")
            if pool.subscribe is not None:
                pool.subscribe(self.sink.topic, self._add_event)

    def until_done(self, show: ShowTasks | None, n_ahead: int) -> None:
        """Submit, collect and wait, until every task is done or has failed."""
        with Submissions(self.pool, n_ahead) as calls:
            while self.open or len(calls):
                self._report(show, len(calls))
                self._submit(calls)
                if not len(calls):  # other runners have what is left
                    threading.Event().wait(_POLL_SECONDS)
                    continue
                for finished in calls.finished():
                    self._collect(finished, self.tasks[finished.key])
            self._report(show, 0)

    def _submit(self, calls: Submissions) -> None:
        """Claim as many tasks as there are workers; leave out what others have done."""
        states = self.store.states()
        known = self.store.known()
        for task in list(self.open):
            if calls.is_full:
                break
            if self._is_stored(task, known) or not self.store.claim(task.key, lease=self.lease):
                state = states.get(task.key, ("",))[0]
                if self._is_stored(task, known) or state == "done" or self._failed_now(task):
                    self.open.remove(task)
                continue
            self.open.remove(task)
            already = tuple(key for key in task.rows if key in known)
            if not calls.submit(task.key, compute_task, self.compute, task, already, self.sink):
                self._reopen(task)  # the pool broke since the last look
                return

    def _reopen(self, task: Task) -> None:
        self.store.release(task.key)
        self.open.append(task)

    def _collect(self, finished: Finished, task: Task) -> None:
        """Take in what a worker returned."""
        if finished.is_lost:
            self._reopen(task)
            return
        if finished.error is not None:  # kept with its task; the work goes on
            self.store.fail(task.key, _sentence(finished.error))
            return
        for key, values, seconds in finished.value:
            self.store.add(task.key, Row(key, values), seconds=seconds, seed=task.arguments.get("seed"))
        self.store.finish(task.key)

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

    def _report(self, show: ShowTasks | None, n_running: int) -> None:
        if show is None:
            return
        if all(task.rows for task in self.tasks.values()):
            known = self.store.known()
            keys = [key for task in self.tasks.values() for key in task.rows]
            show(sum(key in known for key in keys), len(keys))
        else:
            show(len(self.tasks) - len(self.open) - n_running, len(self.tasks))


def _sentence(error: BaseException) -> str:
    """Return what is kept of an error; those of our own are sentences."""
    return str(error) if isinstance(error, QuasiratioError) else f"{type(error).__name__}: {error}"


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
