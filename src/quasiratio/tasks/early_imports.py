"""Local workers that need not import what they use: they are forked from a process that has done so in the meantime.

Importing PyTorch and its company takes seconds. A command that knows it will want workers says so before it imports them
itself; a process that does nothing else then imports the same side by side with it, and workers begin at once. That
process is the `forkserver` of `multiprocessing`: it computes nothing, so that no thread is at work when it forks.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import BaseContext

__all__ = ["import_early", "threads_each", "worker_context", "worker_threads"]

_begun: list[str] = []


def import_early(jobs: int | None, *modules: str) -> None:
    """Begin to import modules for local workers, where there will be several; return at once.

    Elsewhere than on Linux nothing happens, as forking after imports is not safe there: workers then import themselves.

    Args:
        jobs: Local processes that will be asked for.
        modules: Names of modules; one that cannot be imported is left to the workers.
    """
    if jobs is None or jobs < 2 or sys.platform != "linux" or _begun:
        return
    _begun.extend(modules)
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(modules))
    with worker_threads(threads_each(jobs)):
        # Ctrl-C reaches all processes of a terminal; who started the workers decides.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def worker_context() -> BaseContext:
    """Return how processes are started: forked where imports were begun early, else from nothing."""
    return multiprocessing.get_context("forkserver" if _begun else "spawn")


def threads_each(jobs: int) -> int:
    """Return the threads of one of several workers that share the cores; whoever asked for fewer has other plans for them."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n_threads = max(1, n_cores // jobs)
    before = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(n_threads, int(before))) if before.isdigit() else n_threads


@contextmanager
def worker_threads(n_threads: int) -> Iterator[None]:
    """Let processes that are started meanwhile load libraries with so many threads."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("OMP_NUM_THREADS", None)
        else:
            os.environ["OMP_NUM_THREADS"] = before
