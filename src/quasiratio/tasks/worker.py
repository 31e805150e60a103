"""What happens in a worker: one task is computed, and every row handed on as soon as it is known."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol

from quasiratio import errors
from quasiratio.errors import QuasiratioWarning
from quasiratio.tasks.store import ResultStore
from quasiratio.tasks.task import Row, Task

__all__ = [
    "EventSink",
    "RowSink",
    "StoreSink",
    "compute_task",
    "exit_with_parent",
    "kept_warnings",
    "say_again",
]

TimedRow = tuple[str, dict[str, Any], float]
"""Key, values, and the seconds since the row before."""


class RowSink(Protocol):
    """Where a worker puts a row that has just become known."""

    def put(self, task: Task, row: Row, seconds: float) -> None:
        """Hand on a row."""
        ...


@dataclass(frozen=True)
class StoreSink:
    """Write to the store directly: for workers on the machine of the store."""

    path: Path
    run: int

    def put(self, task: Task, row: Row, seconds: float) -> None:
        """Write the row."""
        with ResultStore.joined(self.path, self.run) as store:
            store.add(task.key, row, seconds=seconds, seed=task.arguments.get("seed"))


@dataclass(frozen=True)
class EventSink:
    """Send to the client through the Dask scheduler: for workers that cannot see the store."""

    topic: str

    def put(self, task: Task, row: Row, seconds: float) -> None:
        """Send the row."""
        from distributed import get_worker  # noqa: PLC0415 - there is one, or this is no Dask worker

        get_worker().log_event(self.topic, json.dumps([task.key, row.key, dict(row.values), seconds]))


def compute_task(
    compute: Callable[[dict[str, Any]], Iterable[Row]],
    task: Task,
    known: tuple[str, ...],
    sink: RowSink | None,
) -> list[TimedRow]:
    """Compute one task; return its rows, which the sink has got already.

    Args:
        compute: The function of the work.
        task: What to do.
        known: Keys of rows that need not be computed.
        sink: Where rows go at once, or `None`.

    Example:
        >>> compute_task(lambda _: [Row("a", {"x": 1})], Task("t", {}), (), None)[0][:2]
        ('a', {'x': 1})
    """
    arguments = dict(task.arguments) | ({"known": list(known)} if task.rows else {})
    rows: list[TimedRow] = []
    start = time.perf_counter()
    for row in compute(arguments):
        now = time.perf_counter()
        if sink is not None:
            sink.put(task, row, now - start)
        rows.append((row.key, dict(row.values), now - start))
        start = now
    return rows


def kept_warnings(caught: Sequence[warnings.WarningMessage], known: Collection[str] = ()) -> list[list[str]]:
    """Return the warnings of ours that a worker keeps for whoever started it, as kinds and texts.

    Args:
        caught: What `warnings.catch_warnings(record=True)` yields.
        known: Texts to leave out.
    """
    found = [one.message for one in caught if isinstance(one.message, QuasiratioWarning)]
    texts = {str(one): type(one).__name__ for one in found if str(one) not in known}
    return [[kind, text] for text, kind in texts.items()]


def say_again(kept: Iterable[Sequence[str]]) -> None:
    """Warn here of what workers were warned of: the first of each kind, and how many there were."""
    texts: dict[str, list[str]] = {}
    for kind, text in dict.fromkeys((kind, text) for kind, text in kept):
        texts.setdefault(kind, []).append(text)
    for kind, (text, *others) in texts.items():
        more = f" There are {len(others)} more warnings of this kind." if others else ""
        warnings.warn(getattr(errors, kind, QuasiratioWarning)(text + more), stacklevel=3)


def exit_with_parent(n_threads: int) -> None:
    """Prepare a local worker: its threads, and its end when the process that started it ends it or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; who started the workers decides
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    torch = sys.modules.get(
        "torch"
    )  # it may have come with the function that was sent; else it reads the variable
    if torch is not None:
        torch.set_num_threads(n_threads)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
