"""Warnings of the library on the command line: one line each, said once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from quasiratio.cli.printable import printable
from quasiratio.errors import QuasiratioWarning

__all__ = ["warning_lines"]


@contextmanager
def warning_lines() -> Iterator[None]:
    """Print every warning of quasiratio as a line on standard error; others come out as Python has them."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # of NumPy: what is not finite gets a sentence of ours
        warnings.simplefilter("always", QuasiratioWarning)
        as_usual, said = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, QuasiratioWarning):
                as_usual(message, category, filename, lineno, file, line)
                return
            text = printable(f"Warning: {message}")
            if text not in said:
                said.add(text)
                typer.echo(text, err=True)

        warnings.showwarning = show
        yield
