"""What this process may use of its machine: cores and memory, as batch systems and containers limit them."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory", "share_of_cores"]

_GROUPS = Path("/sys/fs/cgroup")
_OF_PROCESS = Path("/proc/self/cgroup")
_MEMORY = Path("/proc/meminfo")
_NO_LIMIT = 2**60
"""Version 1 of control groups writes a number beyond any machine where there is no limit."""


@functools.cache
def share_of_cores(groups: Path = _GROUPS, of_process: Path = _OF_PROCESS) -> int:
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


def available_memory(
    groups: Path = _GROUPS, of_process: Path = _OF_PROCESS, of_machine: Path = _MEMORY
) -> int | None:
    """Return the bytes that this process can still take, or `None` where the system does not say.

    That is what the machine has available, or less where a control group leaves less; what a group holds of files can be
    given up, and counts as free.

    Args:
        groups: Where the control groups of the system are.
        of_process: File with the groups of this process.
        of_machine: File with the memory of the machine.

    Example:
        >>> available = available_memory()
        >>> available is None or available > 0
        True
    """
    found = list(_left_in_groups(groups, of_process))
    with suppress(OSError, ValueError):
        found.append(1024 * _named(of_machine, "MemAvailable:"))
    return max(0, min(found)) if found else None


def _groups_of(controller: str, groups: Path, of_process: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the groups of a process that have a controller, those around them, and whether they are of version 2."""
    lines = []
    with suppress(OSError, ValueError):
        lines = of_process.read_text().splitlines()
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        for group in (Path(path.lstrip("/")), *Path(path.lstrip("/")).parents):
            yield groups / controllers / group, not controllers


def _quotas(groups: Path, of_process: Path) -> Iterator[float]:
    """Yield the quotas, in cores, of the groups of a process and of those around them."""
    for group, is_second in _groups_of("cpu", groups, of_process):
        with suppress(OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
            if is_second:
                quota, period = (group / "cpu.max").read_text().split()
                yield float(quota) / float(period)
            else:
                micros = float((group / "cpu.cfs_quota_us").read_text())
                if micros > 0:  # -1 for none
                    yield micros / float((group / "cpu.cfs_period_us").read_text())


def _left_in_groups(groups: Path, of_process: Path) -> Iterator[int]:
    """Yield what the groups of a process, and those around them, leave of their limits."""
    for group, is_second in _groups_of("memory", groups, of_process):
        limit, used, files = (
            ("memory.max", "memory.current", "inactive_file")
            if is_second
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        with suppress(OSError, ValueError):  # no such file, or "max"
            most = int((group / limit).read_text())
            if most < _NO_LIMIT:
                yield most - int((group / used).read_text()) + _named(group / "memory.stat", files)


def _named(path: Path, name: str) -> int:
    """Return the number behind a name at the beginning of a line."""
    for line in path.read_text().splitlines():
        first, *rest = line.split()
        if first == name:
            return int(rest[0])
    raise ValueError(name)
