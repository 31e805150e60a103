"""Where a fit writes: the model appears when it is complete, and an interrupted fit leaves its state beside it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quasiratio.atomic_files import is_alive, names_inside, scratch_path
from quasiratio.errors import InvalidInputError, LostRankError
from quasiratio.outputs import (
    create_output_directory,
    require_output_directory,
    require_output_name,
)

__all__ = ["FitDirectory"]

_MODEL_FILES = {"model.json", "weights.safetensors", "times.json"}
_LOCK, _LONGEST_LOCK = "lock", 10_000
_STATE = re.compile(r"stage-\d+\.safetensors")
_UNFINISHED = re.compile(r"\.quasiratio-[\w-]+")


@dataclass(frozen=True)
class FitDirectory:
    """The directory of a model, and `<name>.partial` beside it while a fit is running.

    Args:
        path: Directory of the model.

    Example:
        >>> FitDirectory(Path("models/v1")).partial.name
        'v1.partial'
    """

    path: Path

    @property
    def partial(self) -> Path:
        """Where the state of a fit is kept until it is complete."""
        return self.path.with_name(f"{self.path.name}.partial")

    @property
    def has_state(self) -> bool:
        """Whether an interrupted fit has left a state to go on from."""
        return any(_STATE.fullmatch(name) for name in names_inside(self.partial))

    def require_writable(self, *, overwrite: bool) -> None:
        """Raise unless a model may be written here."""
        require_output_name(self.path, "directory for the model")
        require_output_directory(self.path)
        require_output_directory(self.partial)
        self._require_own_state()
        names = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        if not names:
            return
        if "model.json" not in names or names - _MODEL_FILES:
            msg = (
                f"Got the output directory {str(self.path)!r}, which holds something else than a model; expected a "
                "new name, an empty directory or a model."
            )
            raise InvalidInputError(msg, advice="Choose another with `output`.")
        if not overwrite:
            msg = f"Got the output directory {str(self.path)!r}, which holds a model already; expected a new name."
            advice = "Choose another with `output`, or replace it with `overwrite=True`."
            raise InvalidInputError(msg, advice=advice)

    @contextmanager
    def working(self, *, resume: bool) -> Iterator[Path]:
        """Yield the directory of the state, for this process alone.

        The state is removed when the block ends or fails. Ctrl-C, or the end of the process or of another that shares the
        fit, leaves it, and so does a fit that was to go on and could not.
        """
        self._require_own_state()
        create_output_directory(self.partial)
        lock = self._locked()
        try:
            if not resume:
                self._remove(_STATE)
            yield self.partial
        except BaseException as error:
            is_kept = resume or isinstance(error, KeyboardInterrupt | SystemExit | LostRankError)
            lock.unlink(missing_ok=True)
            if not (is_kept and self.has_state):
                self._remove_partial()
            raise
        self._remove_partial()

    def _require_own_state(self) -> None:
        """Raise where the directory of the state holds what no fit has written."""
        if not self.partial.is_dir():
            return
        others = sorted(name for name in names_inside(self.partial) if not _is_own(name))
        if others:
            msg = (
                f"Got the output {str(self.path)!r}, beside which {str(self.partial)!r} holds something else than the "
                f"state of a fit ({others[0]!r}); a fit keeps its state there."
            )
            raise InvalidInputError(msg, advice="Choose another with `output`, or move that directory away.")

    def _remove_partial(self) -> None:
        """Remove the state, and its directory unless somebody else has put something there."""
        self._remove(_STATE, _UNFINISHED)
        with contextlib.suppress(OSError):
            (self.partial / _LOCK).unlink()
        with contextlib.suppress(OSError):
            self.partial.rmdir()

    def _remove(self, *patterns: re.Pattern[str]) -> None:
        for name in names_inside(self.partial):
            if any(pattern.fullmatch(name) for pattern in patterns):
                path = self.partial / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        path.unlink()

    def _locked(self) -> Path:
        lock = self.partial / _LOCK
        for _ in range(2):
            try:
                _create_lock(lock, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            except FileExistsError:
                self._require_stale(lock)
                lock.unlink(missing_ok=True)
                continue
            except OSError as error:
                msg = f"Got {str(self.partial)!r}, which cannot be written ({error.strerror})."
                raise InvalidInputError(msg, advice="Choose another with `output`.") from error
            return lock
        raise self._fit_of()

    def _require_stale(self, lock: Path) -> None:
        """Raise unless the process that holds the lock is known to have ended."""
        try:
            with os.fdopen(
                os.open(lock, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            ) as file:  # a pipe must not block
                is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                text = file.read(_LONGEST_LOCK) if is_regular else "neither"
            if not text.strip():  # its process was killed before it had written its number
                return
            holder = json.loads(text)
            pid, host = int(holder["pid"]), str(holder["host"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            raise self._fit_of() from None
        if host != socket.gethostname() or is_alive(pid):
            raise self._fit_of(pid, host)

    def _fit_of(self, pid: int | None = None, host: str = "") -> InvalidInputError:
        who = "another process" if pid is None else f"process {pid} on {host}"
        return InvalidInputError(
            f"Got the output directory {str(self.path)!r}, into which {who} is fitting; expected one fit at a time.",
            advice=f"Choose another with `output`, or wait; if no fit is running, delete {str(self.partial / _LOCK)!r}.",
        )


def _is_own(name: str) -> bool:
    return name == _LOCK or any(pattern.fullmatch(name) for pattern in (_STATE, _UNFINISHED))


def _create_lock(lock: Path, content: str) -> None:
    """Create the file with its content in one step, where the file system can; raise if it is there."""
    staged = scratch_path(lock.parent)
    staged.write_text(content)
    try:
        os.link(staged, lock)  # fails where the name is taken, which a rename does not
    except FileExistsError:
        raise
    except OSError:  # no hard links here
        with lock.open("x") as file:
            file.write(content)
    finally:
        staged.unlink(missing_ok=True)
