"""Names for unfinished files: beside their place, with their owner in the name.

What a process that was killed has left is recognised by its owner, who is gone, and removed by whoever writes to
the same directory next. Owners on other machines are left alone, unless they have not written for days.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_alive", "remove_stale", "scratch_directory", "scratch_path"]

_NAME = re.compile(r"\.quasiratio-(?:([0-9a-f]{8})-(\d{1,9})-)?\w+")
_ABANDONED_SECONDS = 2 * 86400.0


def scratch_path(directory: Path) -> Path:
    """Return a name in `directory` that nobody has, and remove what killed processes have left there.

    Example:
        >>> scratch_path(Path("models")).name.startswith(".quasiratio-")
        True
    """
    remove_stale(directory)
    return directory / f".quasiratio-{_this_machine()}-{os.getpid()}-{secrets.token_hex(6)}"


@contextlib.contextmanager
def scratch_directory(directory: Path) -> Iterator[Path]:
    """Make a directory inside `directory`, and remove it with all that is left in it when the block ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as here:
        ...     with scratch_directory(Path(here)) as workspace:
        ...         _ = (workspace / "part").write_text("")
        ...     os.listdir(here)
        []
    """
    path = scratch_path(directory)
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_stale(directory: Path) -> None:
    """Remove unfinished files and directories whose owners are gone."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(directory)):
            match = _NAME.fullmatch(entry.name)
            if match is not None and _is_stale(Path(entry.path), match[1], match[2]):
                _remove(Path(entry.path))


def is_alive(pid: int) -> bool:
    """Whether a process of this machine is running; those of other users count.

    Example:
        >>> is_alive(os.getpid())
        True
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_stale(path: Path, machine: str | None, pid: str | None) -> bool:
    if machine == _this_machine() and pid is not None:
        return not is_alive(int(pid))
    try:
        times = [path.lstat().st_mtime, *(one.lstat().st_mtime for one in path.rglob("*"))]
    except OSError:  # its owner has just finished
        return False
    return time.time() - max(times) > _ABANDONED_SECONDS


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _this_machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
