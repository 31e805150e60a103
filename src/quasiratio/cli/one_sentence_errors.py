"""Errors on the command line: one sentence, exit code 2, no traceback."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from quasiratio.errors import QuasiratioError

__all__ = ["OneSentenceErrors"]

_USAGE, _INTERRUPTED = 2, 130


class OneSentenceErrors(TyperGroup):
    """A group of commands whose expected errors are printed, not raised.

    A `QuasiratioError` and an option that cannot be read give one sentence on standard error and exit
    code 2; Ctrl-C gives 130. Anything else is a defect of ours and keeps its traceback.
    """

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own class of context
        """Run the command and translate its errors."""
        try:
            return super().invoke(ctx)
        except QuasiratioError as error:
            _fail(str(error), _USAGE)
        except typer.BadParameter as error:
            _fail(error.format_message(), _USAGE)
        except KeyboardInterrupt:
            _fail("Interrupted.", _INTERRUPTED)
        return None


def _fail(sentence: str, code: int) -> None:
    typer.echo(" ".join(f"Error: {sentence}".split()), err=True)
    raise typer.Exit(code)
