"""How far long work is: a bar on a terminal, plain lines elsewhere, both on standard error.

`progress_display` is the mechanism. The others say what is counted: the steps of a training (`training_progress`),
the events of a file (`event_progress`), the tasks of a study (`study_progress`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "ShowEvents",
    "ShowTasks",
    "ShowTraining",
    "duration_text",
    "event_progress",
    "progress_display",
    "progress_lines",
    "study_progress",
    "training_progress",
]

_SHARE_TO_EXTRAPOLATE = 0.1
"""The first tasks tell little: they may wait for events that are generated once, or come from the longest fits."""
_TRAINING_LINES: ContextVar[bool] = ContextVar("_TRAINING_LINES", default=False)

Show = Callable[[float, float, str], None]
"""Called with how much of how much is done, and with words about it."""
ShowTraining = Callable[[int, int, float], None]
"""Called with the steps done, the steps at most, and the validation loss."""
ShowEvents = Callable[[int, int], None]
"""Called with the events done and the events at most."""
ShowTasks = Callable[[float, float], None]
"""Called with how much of how much is done."""


@contextmanager
def progress_display(
    description: str,
    *,
    line: str = "{description}: {done:.0f} of {total:.0f}{note}",
    seconds_between_lines: float = 10.0,
    line_at: tuple[Literal["start", "end"], ...] = ("end",),
    clock_starts: Literal["at once", "at first call"] = "at once",
    time_left: bool = True,
) -> Iterator[Show]:
    """Yield a function that shows progress: a bar on a terminal, a line now and then elsewhere.

    Args:
        description: What is going on.
        line: How a line is written, out of `description`, `done`, `total` and `note` (a comma before it).
        seconds_between_lines: How long to be silent in between.
        line_at: Where a line is written in any case.
        clock_starts: From where on the silence before the first line is counted.
        time_left: Whether the bar extrapolates the time that is left; else the note says it.
    """
    if not sys.stderr.isatty():
        last = time.monotonic() if clock_starts == "at once" else None
        yield _Lines(description, line, seconds_between_lines, line_at, last)
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn() if time_left else TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=note)


@dataclass
class _Lines:
    """Writes a line where the last one is long ago."""

    description: str
    line: str
    seconds_between: float
    line_at: tuple[str, ...]
    last: float | None
    last_done: float = -1.0

    def __call__(self, done: float, total: float, note: str) -> None:
        now = time.monotonic()
        self.last = now if self.last is None else self.last
        is_due = now - self.last >= self.seconds_between
        is_due |= (self.last_done < 0 and "start" in self.line_at) or (
            done >= total and "end" in self.line_at
        )
        if not is_due or done == self.last_done:
            return
        self.last, self.last_done = now, done
        note = f", {note}" if note else ""
        text = self.line.format(description=self.description, done=done, total=total, note=note)
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@contextmanager
def progress_lines() -> Iterator[None]:
    """Within this block, trainings that have no terminal write a line every ten seconds.

    Example:
        >>> with progress_lines(), training_progress("bce", verbose=True) as show:
        ...     show is None
        False
    """
    token = _TRAINING_LINES.set(True)
    try:
        yield
    finally:
        _TRAINING_LINES.reset(token)


@contextmanager
def training_progress(description: str, *, verbose: bool) -> Iterator[ShowTraining | None]:
    """Yield a callback for a training, or `None` where nobody looks.

    Without a terminal a training is silent, unless a command asks for lines with `progress_lines`.
    """
    if not verbose or not (sys.stderr.isatty() or _TRAINING_LINES.get()):
        yield None
        return
    with progress_display(description, line="{description}: step {done:.0f} of {total:.0f}{note}") as show:
        yield lambda step, n_steps, loss: show(step, n_steps, f"validation loss {loss:.5f}")


@contextmanager
def event_progress(description: str, *, quiet: bool = False) -> Iterator[ShowEvents | None]:
    """Yield a callback for the events done and the events at most, or `None` where nobody looks."""
    if quiet:
        yield None
        return
    line = "{description}: {done:.0f} of {total:.0f} events{note}"
    with progress_display(description, line=line, line_at=(), clock_starts="at first call") as show:
        yield lambda done, total: show(done, total, "")


@contextmanager
def study_progress(description: str, *, quiet: bool = False) -> Iterator[ShowTasks]:
    """Yield a function that shows how far a study is, and the time that is left."""
    if quiet:
        yield lambda done, total: None  # noqa: ARG005 - nobody looks
        return
    left = _TimeLeft()
    with progress_display(
        description, seconds_between_lines=15.0, line_at=("start", "end"), time_left=False
    ) as show:
        yield lambda done, total: show(done, total, left.text(done, total))


class _TimeLeft:
    """Extrapolates from what was done since the start, not from what an earlier run had stored."""

    def __init__(self) -> None:
        self.start: tuple[float, float] | None = None

    def text(self, done: float, total: float) -> str:
        now = time.monotonic()
        if self.start is None:
            self.start = (now, done)
        began, first = self.start
        if done - first < _SHARE_TO_EXTRAPOLATE * (total - first) or done >= total:
            return ""
        return f"about {duration_text((now - began) * (total - done) / (done - first))} left"


def duration_text(seconds: float) -> str:
    """Return a time for readers.

    Example:
        >>> [duration_text(s) for s in (4.2, 130, 7300, 200_000)]
        ['4 s', '2 min 10 s', '2 h 1 min', '2 days 7 h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} days {whole % 86400 // 3600} h"
