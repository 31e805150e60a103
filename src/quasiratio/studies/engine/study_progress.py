"""Progress of a study: a bar on a terminal, plain lines elsewhere, with the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["ShowProgress", "duration_text", "study_progress"]

_SECONDS_BETWEEN_LINES = 15.0
_SHARE_TO_EXTRAPOLATE = 0.1
"""The first rows tell little: they may wait for events that are generated once, or come from the longest fits."""

ShowProgress = Callable[[float, float], None]
"""Called with how much of how much is done."""


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


@contextmanager
def study_progress(description: str, *, quiet: bool = False) -> Iterator[ShowProgress]:
    """Yield a function that shows how far a study is, on standard error."""
    if quiet:
        yield lambda done, total: None  # noqa: ARG005 - nobody looks
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        left = _TimeLeft()
        with Progress(
            *columns, TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True
        ) as bar:
            shown = bar.add_task(description, total=None, left="")
            yield lambda done, total: bar.update(
                shown, completed=done, total=total, left=left.text(done, total)
            )
    else:
        yield _lines(description)


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


def _lines(description: str) -> ShowProgress:
    left, last, last_done = _TimeLeft(), 0.0, -1.0

    def show(done: float, total: float) -> None:
        nonlocal last, last_done
        now, text = time.monotonic(), left.text(done, total)
        if done == last_done or (now - last < _SECONDS_BETWEEN_LINES and done < total):
            return
        last, last_done = now, done
        sys.stderr.write(f"{description}: {done:.0f} of {total:.0f}{', ' + text if text else ''}\n")
        sys.stderr.flush()

    return show
