"""A progress bar on a terminal; elsewhere silence, or plain lines where a command asks for them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quasiratio.training.trainer import ProgressCallback

__all__ = ["progress_bar", "progress_lines"]

_SECONDS_BETWEEN_LINES = 10.0
_LINES: ContextVar[bool] = ContextVar("_LINES", default=False)


@contextmanager
def progress_lines() -> Iterator[None]:
    """Within this block, trainings that have no terminal write a line every ten seconds.

    Example:
        >>> with progress_lines(), progress_bar("bce", verbose=True) as show:
        ...     show is None
        False
    """
    token = _LINES.set(True)
    try:
        yield
    finally:
        _LINES.reset(token)


@contextmanager
def progress_bar(description: str, *, verbose: bool) -> Iterator[ProgressCallback | None]:
    """Yield a callback that shows the progress on standard error, or `None` where nobody looks."""
    if not verbose or not (sys.stderr.isatty() or _LINES.get()):
        yield None
        return
    if not sys.stderr.isatty():
        yield _lines(description)
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, loss="")

        def show(step: int, n_steps: int, loss: float) -> None:
            bar.update(task, completed=step, total=n_steps, loss=f"validation loss {loss:.5f}")

        yield show


def _lines(description: str) -> ProgressCallback:
    """Return a callback that writes a line now and then, and one at the end."""
    last = time.monotonic()

    def show(step: int, n_steps: int, loss: float) -> None:
        nonlocal last
        if step >= n_steps or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            sys.stderr.write(f"{description}: step {step} of {n_steps}, validation loss {loss:.5f}\n")
            sys.stderr.flush()

    return show
