"""Files and directories that appear whole or not at all.

Content is written under a temporary name beside its place, forced to disk, and renamed. A directory that is
already there is swapped with the new one in one step where the system can (Linux and macOS on local disks);
elsewhere it is moved aside first, and moved back if the second step fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.scratch import scratch_path

__all__ = ["write_directory", "write_file"]

_ATTEMPTS = 100
_OCCUPIED = (
    {errno.ENOTEMPTY, errno.EEXIST, errno.EACCES} if os.name == "nt" else {errno.ENOTEMPTY, errno.EEXIST}
)
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_AT_CURRENT_DIRECTORY, _EXCHANGE = -100, 2


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or leave what was there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     write_file(Path(directory) / "a.bin", b"content")
        ...     os.listdir(directory)
        ['a.bin']
    """
    with _sentences(path):
        staged = _beside(path)
        try:
            _write(staged, content)
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
        _sync_directory(path.parent)


def write_directory(
    path: Path, files: Mapping[str, bytes], *, require_replaceable: Callable[[Path], None]
) -> None:
    """Write a directory of files, or leave what was there; several processes may do so at once.

    Args:
        path: Where the directory will be.
        files: Names and contents.
        require_replaceable: Raises where something stands at `path` that must not be replaced.
    """
    path = Path(os.path.realpath(path))  # through a symbolic link to what it points at
    require_replaceable(path)
    with _sentences(path):
        staged = _beside(path)
        try:
            staged.mkdir()
            for name, content in files.items():
                _write(staged / name, content)
            _sync_directory(staged)
            _put(staged, path, require_replaceable)
        finally:
            shutil.rmtree(staged, ignore_errors=True)  # after a swap, what was there before
        _sync_directory(path.parent)


def _put(staged: Path, path: Path, require_replaceable: Callable[[Path], None]) -> None:
    """Rename, or swap with what is there, whichever the other processes allow."""
    for _ in range(_ATTEMPTS):
        require_replaceable(path)
        with contextlib.suppress(FileNotFoundError):  # another process moved it aside just now
            if _rename(staged, path) or _exchange(staged, path) or _rename_in_two_steps(staged, path):
                return
    msg = f"Got {str(path)!r}, which other processes keep replacing; expected one of them at a time."
    raise InvalidInputError(msg)


def _rename(staged: Path, path: Path) -> bool:
    """Rename to a name that is free (or an empty directory); false where it is taken."""
    try:
        staged.rename(path)
    except OSError as error:
        if error.errno in _OCCUPIED:
            return False
        raise
    return True


def _exchange(staged: Path, path: Path) -> bool:
    """Swap two directories in one step; false where the system cannot."""
    library: Any = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(staged), os.fsencode(path)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        here = ctypes.c_int(_AT_CURRENT_DIRECTORY)
        failed = library.renameat2(here, names[0], here, names[1], ctypes.c_uint(_EXCHANGE))
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, ctypes.c_uint(_EXCHANGE))
    else:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(path))


def _rename_in_two_steps(staged: Path, path: Path) -> bool:
    """Move the old directory aside and the new one in; false where another process came in between."""
    aside = _beside(path)
    path.rename(aside)
    try:
        if _rename(staged, path):
            return True
    except BaseException:
        with contextlib.suppress(OSError):  # another process has put its own there
            aside.rename(path)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return False


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Force new names to disk; some file systems cannot, and Windows need not."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beside(path: Path) -> Path:
    return scratch_path(path.parent)


@contextlib.contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = (
            f"Could not write {str(path)!r} ({error.strerror or error}); expected a place that can be written, with "
            "enough room. What was there before is untouched."
        )
        raise InvalidInputError(msg) from error
