"""How many threads the work of networks is worth.

The threads of a step wait for each other, spinning. For the small products of a ratio network that waiting costs more
than the arithmetic that is shared, and beside another busy process it costs several times the whole: a step then takes
one thread. Only work with a million values per layer or more is shared. The number follows from the work and from what
this process may use, never from the load of the machine, so that the same seed gives the same bits on a busy machine and
on an idle one.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

__all__ = ["network_threads", "share_of_cores", "threads_for"]

_SHARED_VALUES = 2**20
_MOST_THREADS = 4
_GROUPS = Path("/sys/fs/cgroup")


def threads_for(n_rows: int, width: int) -> int:
    """Return the threads for `n_rows` events of all networks together, with layers of `width`.

    Never more than PyTorch has been given (OMP_NUM_THREADS, `torch.set_num_threads`), than the cores that this process
    may use, nor than four.

    Example:
        >>> threads_for(2048, 64)
        1
    """
    wanted = max(1, n_rows * width // _SHARED_VALUES)
    wanted = wanted if wanted == 1 else 2 * wanted
    return min(wanted, _MOST_THREADS, torch.get_num_threads(), share_of_cores())


@contextmanager
def network_threads(n_threads: int | None, n_rows: int = 0, width: int = 0) -> Iterator[None]:
    """Work with `n_threads`, or with as many as the work is worth; afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads_for(n_rows, width) if n_threads is None else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@functools.cache
def share_of_cores(groups: Path = _GROUPS, of_process: Path = Path("/proc/self/cgroup")) -> int:
    """Return the cores that this process may use: those it is bound to, or less where a control group has a quota.

    Batch systems and containers give a job so much time of all cores together; threads beyond that only wait.

    Args:
        groups: Where the control groups of the system are.
        of_process: File with the groups of this process.

    Example:
        >>> 1 <= share_of_cores() <= os.cpu_count()
        True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas(groups, of_process))]))


def _quotas(groups: Path, of_process: Path) -> Iterator[float]:
    """Yield the quotas, in cores, of the groups of a process and of those around them."""
    lines = []
    with suppress(OSError, ValueError):
        lines = of_process.read_text().splitlines()
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        inner = [Path(path.lstrip("/")), *Path(path.lstrip("/")).parents]
        for group in inner:
            with suppress(OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
                if not controllers:  # version 2
                    quota, period = (groups / group / "cpu.max").read_text().split()
                    yield float(quota) / float(period)
                elif "cpu" in controllers.split(","):
                    place = groups / controllers / group
                    micros = float((place / "cpu.cfs_quota_us").read_text())
                    if micros > 0:  # -1 for none
                        yield micros / float((place / "cpu.cfs_period_us").read_text())
