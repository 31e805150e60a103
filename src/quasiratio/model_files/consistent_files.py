"""Files of one directory, opened together and read only if their sizes can be right.

A model directory is replaced as a whole. Whoever opens its two files one after the other by name may get one
of the old and one of the new; here the directory is held on to while they are opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from quasiratio.errors import InvalidInputError

__all__ = ["checked_path", "names_inside", "opened_together", "sized_content"]

_ATTEMPTS = 20
_CAN_HOLD = os.open in os.supports_dir_fd


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that can be one of a directory, or raise."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""  # type: ignore[redundant-expr]
    if not isinstance(text, str) or not text or "\0" in text:  # type: ignore[redundant-expr]
        msg = f"Got {path!r} as the place of a model; expected the path of a directory."
        raise InvalidInputError(msg)
    return Path(text)


def sized_content(file: BinaryIO, shown: str, *, at_least: int, at_most: int) -> bytes:
    """Read a regular file, if its size can be right."""
    again = "Restore it from a copy, or save the model again."
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        msg = f"Got {shown}, which is no regular file. {again}"
        raise InvalidInputError(msg)
    if not at_least <= status.st_size <= at_most:
        msg = (
            f"Got {shown} of {status.st_size} bytes; expected at least {at_least} and at most {at_most}. It is "
            f"truncated, or not what `save` wrote. {again}"
        )
        raise InvalidInputError(msg)
    try:
        return file.read(status.st_size)
    except OSError as error:
        msg = f"Could not read {shown} ({error.strerror or error}). {again}"
        raise InvalidInputError(msg) from None


@contextlib.contextmanager
def opened_together(
    path: str | os.PathLike[str], *names: str, optional: str | None = None
) -> Iterator[list[BinaryIO]]:
    """Open files of one and the same directory, also while other processes replace it.

    Args:
        path: The directory.
        names: Files that must be there.
        optional: A file that comes last, if it is there.
    """
    directory = checked_path(path)
    for attempts_left in reversed(range(_ATTEMPTS)):
        anchor = None
        with contextlib.ExitStack() as stack:
            try:
                anchor = _anchor(directory, stack)
                files = [stack.enter_context(_open(directory, name, anchor)) for name in names]
                if optional is not None:
                    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                        files.append(stack.enter_context(_open(directory, optional, anchor)))
            except FileNotFoundError as error:
                if attempts_left and _was_replaced(directory, anchor):
                    continue
                raise _unreadable(directory, error) from None
            except OSError as error:
                raise _unreadable(directory, error) from None
            yield files
            return


def names_inside(directory: Path) -> set[str]:
    """List a directory, also while other processes replace it; nothing for one that is gone."""
    names: set[str] = set()
    for _ in range(_ATTEMPTS):
        try:
            if not _CAN_HOLD:
                return set(os.listdir(directory))  # noqa: PTH208 - as below
            with contextlib.ExitStack() as stack:
                anchor = os.open(directory, os.O_RDONLY)
                stack.callback(os.close, anchor)
                names = set(os.listdir(anchor))  # noqa: PTH208 - of an open directory
                if not _was_replaced(directory, anchor):  # else it may be half removed already
                    return names
        except FileNotFoundError:
            names = set()
    return names


def _anchor(directory: Path, stack: contextlib.ExitStack) -> int | None:
    """Hold on to the directory that now has this name, where the system can."""
    if not os.path.isdir(directory):  # noqa: PTH112 - false, not an error, for impossible names
        what = "is a file" if os.path.exists(directory) else "does not exist"  # noqa: PTH110
        msg = f"Got the model {str(directory)!r}, which {what}; expected the directory of a saved model."
        raise InvalidInputError(msg)
    if not _CAN_HOLD:
        return None
    anchor = os.open(directory, os.O_RDONLY)
    stack.callback(os.close, anchor)
    return anchor


def _open(directory: Path, name: str, anchor: int | None) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe must not block
    file = os.open(directory / name, flags) if anchor is None else os.open(name, flags, dir_fd=anchor)
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(directory / name))
    return os.fdopen(file, "rb")


def _was_replaced(directory: Path, anchor: int | None) -> bool:
    """Whether another directory has the name now."""
    if anchor is None:
        return _CAN_HOLD
    try:
        return not os.path.samestat(os.fstat(anchor), directory.stat())
    except OSError:
        return True


def _unreadable(directory: Path, error: OSError) -> InvalidInputError:
    name = Path(error.filename).name if isinstance(error.filename, str) else ""
    msg = (
        f"Could not read {str(directory / name)!r} ({error.strerror or error}); expected the directory of a saved "
        "model with all its files."
    )
    return InvalidInputError(msg)
