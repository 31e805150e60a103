"""Calls at work in a pool of processes that may die: those that lost their worker are tried again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from quasiratio.errors import QuasiratioError
from quasiratio.tasks.executors import WorkerPool

__all__ = ["Finished", "Submissions", "ordered_results"]

_ATTEMPTS = 4
_WAIT_SECONDS = 0.5
_WORKER_DEATHS = ("BrokenProcessPool", "KilledWorker", "FutureCancelledError", "CancelledError")

Argument = TypeVar("Argument")
Value = TypeVar("Value")


class Finished(NamedTuple):
    """A call that is over.

    Attributes:
        key: Its name.
        value: What it returned, where it did.
        error: What it raised, or `None`.
        is_lost: Whether its worker died and it is worth another attempt.
    """

    key: str
    value: Any
    error: BaseException | None = None
    is_lost: bool = False


class Submissions:
    """Calls that a pool is at, each with a name; a context manager that ends the pool's executor.

    Args:
        pool: Who computes.
        n_ahead: Calls that wait in the pool, so that a worker that is done need not wait for this process.

    Example:
        >>> from quasiratio.tasks import own_process
        >>> with own_process() as pool, Submissions(pool) as calls:
        ...     _ = calls.submit("a", abs, -3)
        ...     [(one.key, one.value) for one in calls.finished()]
        [('a', 3)]
    """

    def __init__(self, pool: WorkerPool, n_ahead: int = 0) -> None:
        self.pool = pool
        self._n_ahead = 0 if pool.in_process else n_ahead
        self._executor = pool.make_executor()
        self._futures: dict[Future[Any], str] = {}
        self._n_deaths: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._futures)

    @property
    def is_full(self) -> bool:
        """Whether every worker has something to do, and as many calls wait as may.

        Nothing follows a call that has lost a worker before until it is over: if it loses another one, whatever is with it is
        lost too, and must not be blamed as often.
        """
        if any(key in self._n_deaths for key in self._futures.values()):
            return True
        return len(self._futures) >= self.pool.capacity() + self._n_ahead

    def submit(self, key: str, function: Callable[..., Any], *arguments: Any) -> bool:  # noqa: ANN401
        """Hand a call to the pool; false where it broke since the last look, and is new now."""
        try:
            self._futures[self._executor.submit(function, *arguments)] = key
        except RuntimeError:
            self._executor = self.pool.make_executor()
            return False
        return True

    def finished(self, *, timeout: float = _WAIT_SECONDS) -> list[Finished]:
        """Wait for the first call that is over, or for the time; return all that are."""
        done, _ = wait(self._futures, timeout=timeout, return_when=FIRST_COMPLETED)
        found = [self._outcome(future, self._futures.pop(future)) for future in done]
        if any(isinstance(one.error, BrokenExecutor) for one in found):
            self._executor.shutdown(wait=False)
            self._executor = self.pool.make_executor()
        return found

    def _outcome(self, future: Future[Any], key: str) -> Finished:
        try:
            return Finished(key, future.result())
        except (Exception, CancelledError) as error:  # noqa: BLE001 - whoever asked decides what it means
            if type(error).__name__ not in _WORKER_DEATHS:
                return Finished(key, None, error)
            self._n_deaths[key] = self._n_deaths.get(key, 0) + 1
            if self._n_deaths[key] < _ATTEMPTS:
                return Finished(key, None, error, is_lost=True)
            msg = f"Its worker died {_ATTEMPTS} times; perhaps memory ran out."
            return Finished(key, None, WorkerDiedError(msg).with_traceback(error.__traceback__))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._futures:
            future.cancel()
        self._executor.shutdown(wait=kind is None)


class WorkerDiedError(QuasiratioError, RuntimeError):
    """A call lost its worker again and again."""


def ordered_results(
    pool: WorkerPool, function: Callable[[Argument], Value], arguments: Sequence[Argument]
) -> Generator[Value, None, None]:
    """Yield what a function returns for each argument, in their order, as many at work as there are workers.

    At most two results per worker wait for their turn. What the function raises is raised here.

    Args:
        pool: Who computes.
        function: A function of a module, so that other processes find it.
        arguments: One per call.

    Example:
        >>> from quasiratio.tasks import own_process
        >>> with own_process() as pool:
        ...     list(ordered_results(pool, abs, [-1, 2, -3]))
        [1, 2, 3]
    """
    open_ones, ready = deque(range(len(arguments))), dict[int, Value]()
    turn = 0
    with Submissions(pool) as calls:
        while turn < len(arguments):
            while open_ones and not calls.is_full and open_ones[0] < turn + 3 * pool.capacity():
                if calls.submit(str(open_ones[0]), function, arguments[open_ones[0]]):
                    open_ones.popleft()
            for one in calls.finished():
                if one.is_lost:
                    open_ones.appendleft(int(one.key))
                elif one.error is not None:
                    raise one.error
                else:
                    ready[int(one.key)] = one.value
            while turn in ready:
                yield ready.pop(turn)
                turn += 1
