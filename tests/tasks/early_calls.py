"""Calls in workers that were forked from a process with its imports done: early_calls.py CASE DIRECTORY."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path

from quasiratio.tasks import Submissions, import_early, local_workers, ordered_results


def knows(_: object) -> tuple[bool, int, str]:
    """Return whether a module is there that nobody here imports, the parent process, and the threads."""
    return "colorsys" in sys.modules, os.getppid(), os.environ["OMP_NUM_THREADS"]


def dies_once(argument: tuple[str, int]) -> int:
    """End the worker the hard way, the first time that the second call is made."""
    directory, number = argument
    if number == 1 and not Path(directory, "died").exists():
        Path(directory, "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def is_deadly(number: int) -> int:
    """End the worker the hard way whenever the second call is made."""
    time.sleep(0.1 if number == 1 else 0.8)
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def waits(directory: str) -> None:
    """Say who waits, and wait."""
    Path(directory, f"pid-{os.getpid()}").touch()
    time.sleep(600)


if __name__ == "__main__":
    case, place = sys.argv[1:]
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background jobs of a shell inherit to ignore it
    import_early(2, "colorsys", "no_such_module")
    import_early(2, "wave")  # too late: there is one such process, and it has begun
    with local_workers(2) as pool:
        if case == "knows":
            print(json.dumps([os.getpid(), list(ordered_results(pool, knows, [0] * 6))]))
        elif case == "dies":
            arguments = [(place, number) for number in range(6)]
            print(json.dumps(list(ordered_results(pool, dies_once, arguments))))
        elif case == "deadly":
            with Submissions(pool, n_ahead=1) as calls:
                left, found = deque(range(3)), {}
                while left or len(calls):
                    while left and not calls.is_full and calls.submit(str(left[0]), is_deadly, left[0]):
                        left.popleft()
                    for one in calls.finished():
                        if one.is_lost:  # the deadly one goes first
                            (left.appendleft if one.key == "1" else left.append)(int(one.key))
                        else:
                            found[one.key] = str(one.error) if one.error is not None else one.value
            print(json.dumps(found))
        else:
            list(ordered_results(pool, waits, [place] * 2))
