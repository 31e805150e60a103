"""Workers behind `concurrent.futures.Executor`: this process, local processes, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from quasiratio.errors import InvalidInputError, LostSchedulerError, MissingExtraError
from quasiratio.tasks.early_imports import threads_each, worker_context, worker_threads
from quasiratio.tasks.worker import exit_with_parent

__all__ = ["WorkerPool", "chosen_workers", "dask_workers", "local_workers", "own_process"]

_MOST_JOBS = 1024

_CONNECT_SECONDS = "15s"
_END_SECONDS = 10.0


@dataclass
class WorkerPool:
    """An executor, and what the runner must know of it.

    Args:
        make_executor: Makes the executor; called again where local processes died.
        capacity: How many tasks can run at once.
        description: For messages.
        sees_store: Whether workers can write to the store themselves.
        subscribe: Where they cannot: calls a function with each message on a topic.
        in_process: Whether the work is done in this process, one call after the other.
    """

    make_executor: Callable[[], Executor]
    capacity: Callable[[], int]
    description: str
    sees_store: bool = True
    subscribe: Callable[[str, Callable[[Any], None]], None] | None = None
    in_process: bool = False


def chosen_workers(
    jobs: int | None, scheduler: str | None, *, default: int | None = None
) -> AbstractContextManager[WorkerPool]:
    """Return the workers that two arguments name: local processes, or those of a Dask scheduler.

    Args:
        jobs: Local processes.
        scheduler: Address of a Dask scheduler instead.
        default: Processes where nothing was said, one per core when left out; with one the work is done in this process.

    Example:
        >>> with chosen_workers(None, None, default=1) as pool:
        ...     pool.description
        'this process'
    """
    if scheduler is not None:
        if jobs is not None:
            advice = "Got both `jobs` and `scheduler`; expected one of them. Leave `jobs` out on a cluster."
            raise InvalidInputError(advice=advice)
        return dask_workers(scheduler)
    if jobs is not None and not 1 <= jobs <= _MOST_JOBS:
        raise InvalidInputError(advice=f"Got `jobs={jobs}`; expected at least 1 and at most {_MOST_JOBS:,}.")
    if (jobs or default) == 1 and default == 1:
        return own_process()
    return local_workers(jobs or default or os.cpu_count() or 1)


@contextmanager
def own_process() -> Iterator[WorkerPool]:
    """Yield a pool that does the work here, when it is submitted.

    Example:
        >>> with own_process() as pool:
        ...     pool.make_executor().submit(abs, -3).result()
        3
    """
    yield WorkerPool(_OwnProcess, lambda: 1, "this process", in_process=True)


class _OwnProcess(Executor):
    """An executor without processes or threads of its own."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future has it
            future.set_exception(error)
        return future


@contextmanager
def local_workers(jobs: int) -> Iterator[WorkerPool]:
    """Yield a pool of processes of this machine, which share its cores.

    Example:
        >>> with local_workers(1) as pool:
        ...     pool.description
        '1 local process'
    """
    n_threads = threads_each(jobs)

    def make() -> Executor:
        return ProcessPoolExecutor(
            jobs, mp_context=worker_context(), initializer=exit_with_parent, initargs=(n_threads,)
        )

    running = {child.pid for child in multiprocessing.active_children()}
    try:
        with worker_threads(n_threads):  # the children read it when they load torch
            yield WorkerPool(make, lambda: jobs, f"{jobs} local process{'es' if jobs > 1 else ''}")
    finally:
        # Those that still compute for an interrupted run. What they leave can be removed when they have ended.
        ended = [child for child in multiprocessing.active_children() if child.pid not in running]
        for child in ended:
            child.terminate()
        for child in ended:
            child.join(_END_SECONDS)


@contextmanager
def dask_workers(address: str) -> Iterator[WorkerPool]:
    """Yield the workers of a Dask scheduler, such as `tcp://node1:8786`.

    Example:
        >>> with dask_workers("node1"):
        ...     pass
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the scheduler 'node1'; expected an address such as tcp://node1:8786.
    """
    if "://" not in address:
        msg = f"Got the scheduler {address!r}; expected an address such as tcp://{address.partition(':')[0]}:8786."
        raise InvalidInputError(msg)
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = (
            "A Dask scheduler needs the extra 'cluster'; install it with: pip install 'quasiratio[cluster]'."
        )
        raise MissingExtraError(msg) from error
    try:
        client: Any = Client(address, timeout=_CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        msg = (
            f"Got the scheduler {address!r}, which does not answer ({error}); expected a running one. "
            "Start it with 'dask scheduler', and workers with 'dask worker'."
        )
        raise InvalidInputError(msg) from error
    try:
        yield WorkerPool(
            # The default, pure=True, would let Dask remember a task by its arguments.
            lambda: client.get_executor(pure=False),
            lambda: max(1, _n_workers(client, address)),
            f"the Dask scheduler {address} with {_n_workers(client, address)} workers",
            sees_store=False,
            subscribe=lambda topic, put: client.subscribe_topic(topic, lambda event: put(event[1])),
        )
    finally:
        client.close()


def _n_workers(client: Any, address: str) -> int:  # noqa: ANN401 - Dask's client has no types
    """Return how many tasks the workers can do at once, or raise where the client has given up its scheduler."""
    try:
        workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        msg = f"Lost the scheduler {address!r}: it has ended, or cannot be reached any more."
        advice = "Start it again, and repeat the command, with `resume=True` where it has such an option."
        raise LostSchedulerError(msg, advice=advice) from error
    return sum(int(worker["nthreads"]) for worker in workers.values())
