"""Files that are there whole or not at all, written and read while other processes do the same.

- **Unfinished files** stand beside their place, with their owner in the name (`scratch_path`,
  `scratch_directory`). What a process that was killed has left is recognised by its owner, who is gone, and removed
  by whoever writes to the same directory next. Owners on other machines are left alone, unless they have not written
  for days.
- **Writing** (`write_file`, `write_directory`, `staged_directory`, `staged_file` and `place`): under such a name, forced to disk, and renamed. A directory that is
  already there is swapped with the new one in one step where the system can (Linux and macOS on local disks);
  elsewhere it is moved aside first, and moved back if the second step fails.
- **Reading** (`opened_together`): a directory is replaced as a whole. Whoever opens two of its files one after the
  other by name may get one of the old and one of the new; here the directory is held on to while they are opened.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from quasiratio.errors import InvalidInputError

__all__ = [
    "checked_path",
    "is_alive",
    "names_inside",
    "opened_together",
    "place",
    "remove_stale",
    "scratch_directory",
    "scratch_path",
    "staged_directory",
    "staged_file",
    "write_directory",
    "write_file",
]

_NAME = re.compile(r"\.quasiratio-(?:([0-9a-f]{8})-(\d{1,9})-)?\w+")
_ABANDONED_SECONDS = 2 * 86400.0
_ATTEMPTS_TO_WRITE, _ATTEMPTS_TO_READ = 100, 20
_OCCUPIED = (
    {errno.ENOTEMPTY, errno.EEXIST, errno.EACCES} if os.name == "nt" else {errno.ENOTEMPTY, errno.EEXIST}
)
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_AT_CURRENT_DIRECTORY, _EXCHANGE = -100, 2
_CAN_HOLD = os.open in os.supports_dir_fd


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


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or leave what was there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     write_file(Path(directory) / "a.bin", b"content")
        ...     os.listdir(directory)
        ['a.bin']
    """
    with _sentences(path), staged_file(path) as staged:
        _write(staged, content)


@contextlib.contextmanager
def staged_file(path: Path) -> Iterator[Path]:
    """Yield a name to write to; what is there takes its place when the block ends, and is removed where the block raises.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with staged_file(Path(directory) / "a.txt") as staged:
        ...         _ = staged.write_text("whole")
        ...     os.listdir(directory)
        ['a.txt']
    """
    staged = scratch_path(path.parent)
    try:
        yield staged
        place(staged, path)
    finally:
        staged.unlink(missing_ok=True)


def place(staged: Path, path: Path) -> None:
    """Give a finished file, or a finished directory, the name of its place on the same disk; a file there is replaced.

    Raises:
        OSError: It cannot be done; what was there before is untouched.
    """
    if staged.is_file():
        with staged.open("rb+") as file:
            os.fsync(file.fileno())
    staged.replace(path)
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
    with staged_directory(path, require_replaceable=require_replaceable) as staged:
        for name, content in files.items():
            _write(staged / name, content)


@contextlib.contextmanager
def staged_directory(path: Path, *, require_replaceable: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a directory to fill, whose files must be on disk when the block ends and it takes its place."""
    path = Path(os.path.realpath(path))  # through a symbolic link to what it points at
    require_replaceable(path)
    with _sentences(path):
        staged = scratch_path(path.parent)
        try:
            staged.mkdir()
            yield staged
            _sync_directory(staged)
            _put(staged, path, require_replaceable)
        finally:
            shutil.rmtree(staged, ignore_errors=True)  # after a swap, what was there before
        _sync_directory(path.parent)


def _put(staged: Path, path: Path, require_replaceable: Callable[[Path], None]) -> None:
    """Rename, or swap with what is there, whichever the other processes allow."""
    for _ in range(_ATTEMPTS_TO_WRITE):
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
    aside = scratch_path(path.parent)
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


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that can be one of a directory, or raise."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""  # type: ignore[redundant-expr]
    if not isinstance(text, str) or not text or "\0" in text:  # type: ignore[redundant-expr]
        msg = f"Got {path!r} as the place of a model; expected the path of a directory."
        raise InvalidInputError(msg)
    return Path(text)


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
    for attempts_left in reversed(range(_ATTEMPTS_TO_READ)):
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
    for _ in range(_ATTEMPTS_TO_READ):
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
