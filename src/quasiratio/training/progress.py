"""A progress bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quasiratio.training.trainer import ProgressCallback

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(description: str, *, verbose: bool) -> Iterator[ProgressCallback | None]:
    """Yield a callback that advances a bar on standard error, or `None` where there is no terminal."""
    if not (verbose and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, loss="")

        def show(step: int, n_steps: int, loss: float) -> None:
            bar.update(task, completed=step, total=n_steps, loss=f"validation loss {loss:.5f}")

        yield show
