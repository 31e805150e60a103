"""Errors on the command line: one sentence, exit code 2, no traceback."""

from __future__ import annotations

import difflib
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from quasiratio.cli.terminal import advised, printable, warning_lines
from quasiratio.errors import QuasiratioError
from quasiratio.wording import shortened

__all__ = ["OneSentenceErrors"]

_USAGE, _INTERRUPTED, _BROKEN_PIPE, _TERMINATED = 2, 130, 141, 143
_MONSTER = re.compile(r"\S{300,}")  # words that nobody reads; paths may be long
_UsageError: Any = typer.BadParameter.__mro__[1]  # click's class; typer keeps it in a private place


class OneSentenceErrors(TyperGroup):
    """A group of commands whose expected errors are printed, not raised.

    A `QuasiratioError` and a command line that cannot be understood give one sentence on standard error and
    exit code 2; Ctrl-C gives 130. Warnings of quasiratio are one line each. Anything else is a defect of
    ours and keeps its traceback.
    """

    def main(self, args: Any = None, prog_name: Any = None, **extra: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run the command line and translate what was wrong with it."""
        _open_missing_streams()
        for stream in (sys.stdout, sys.stderr):  # names of columns may not fit the terminal's encoding
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, prog_name, **extra | {"standalone_mode": False})
        except _UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command
                typer.echo(error.ctx.get_help())
                code = 0
            else:
                _print_error(_usage_sentence(error))
                code = _USAGE
        except OSError as error:
            if not _is_about_printing(error):
                raise
            code = _output_failed(error)
        code = code if isinstance(code, int) else 0
        if extra.get("standalone_mode", True):
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own class of context
        """Run the command and translate its errors."""
        try:
            with warning_lines(), _orderly_termination():
                return super().invoke(ctx)
        except QuasiratioError as error:
            if error.is_told:  # by the first of several processes
                raise typer.Exit(_USAGE) from error
            _fail(advised(error), _USAGE)
        except MemoryError:
            _fail(
                "Got more events than fit into memory; expected fewer. Use fewer features or files.", _USAGE
            )
        except KeyboardInterrupt as error:
            _drop_half_made(error)
            _fail(advised(error) or "Interrupted.", _INTERRUPTED)
        except SystemExit as error:
            _drop_half_made(error)
            raise


def _open_missing_streams() -> None:
    """Give a process that was started without standard streams empty ones.

    Their numbers would else go to the next files that are opened, and libraries would print into these.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - stays open


def _is_about_printing(error: OSError) -> bool:
    """Whether the error came from printing: those of files are sentences by now, or defects of ours."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_printing = any(
        code.co_name == "echo" or f"{os.sep}rich{os.sep}" in code.co_filename for code in frames
    )
    return is_printing or _is_broken(sys.stdout) or _is_broken(sys.stderr)


def _is_broken(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return True
    return False


def _output_failed(error: OSError) -> int:
    """Say that nobody could be told, and let what is still buffered go nowhere."""
    for stream in (sys.stdout, sys.stderr):
        if stream is sys.stdout or _is_broken(stream):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            with suppress(OSError, ValueError):  # a stream of a test has no number
                os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    if isinstance(error, BrokenPipeError):  # a reader such as head has seen enough
        return _BROKEN_PIPE
    _print_error(
        f"Could not write to standard output ({error.strerror}); files that were to be written before are complete."
    )
    return _USAGE


def _usage_sentence(error: Any) -> str:  # noqa: ANN401 - click's class of usage errors
    command = error.ctx.command_path if error.ctx is not None else ""
    hint = f" See '{command} --help'." if command else ""
    unknown = getattr(error, "option_name", None)
    if unknown is None or not hasattr(error, "possibilities"):
        message = str(error.format_message())
        return message + ("" if message.endswith((".", "?")) else ".") + hint
    nearest = difflib.get_close_matches(unknown, error.possibilities or (), n=1, cutoff=0.0)
    advice = f"; the nearest is {nearest[0]!r}" if nearest else ""
    return f"Got the option {unknown!r}, which {command!r} does not have{advice}.{hint}"


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Let a batch system's SIGTERM clean up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit_on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(_TERMINATED)


def _drop_half_made(error: BaseException) -> None:
    """Release what an interruption left unfinished; objects that complain of that are not worth a traceback."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        traceback.clear_frames(error.__traceback__)
    finally:
        sys.unraisablehook = before


def _print_error(sentence: str) -> None:
    readable = _MONSTER.sub(lambda found: shortened(found[0]), f"Error: {sentence}")
    with suppress(OSError):  # standard error may be full as well
        typer.echo(printable(readable), err=True)


def _fail(sentence: str, code: int) -> NoReturn:
    _print_error(sentence)
    raise typer.Exit(code)
