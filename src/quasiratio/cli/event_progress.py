"""Progress over the events of a file: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

__all__ = ["event_progress"]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def event_progress(description: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback for the events done and the events at most, or `None` where nobody looks."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _lines(description)


def _lines(description: str) -> Callable[[int, int], None]:
    last: float | None = None

    def show(done: int, total: int) -> None:
        nonlocal last
        if last is None:
            last = time.monotonic()
        elif time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            typer.echo(f"{description}: {done} of {total} events", err=True)

    return show
