"""Where a command may write: found out before the work begins, created when it is done."""

from __future__ import annotations

import tempfile
from pathlib import Path

from quasiratio.errors import InvalidInputError

__all__ = ["create_output_directory", "require_output_directory"]


def require_output_directory(path: Path) -> None:
    """Raise unless `path` is a directory that can be written, or one can be made there.

    Nothing is created, so that an error later leaves no trace.
    """
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        msg = (
            f"Got the output directory {str(path)!r}, but {str(nearest)!r} is a file; "
            "expected a directory, or a name that is free. Choose another with -o."
        )
        raise InvalidInputError(msg)
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def create_output_directory(path: Path) -> Path:
    """Create the directory where it is missing, and return it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> InvalidInputError:
    msg = (
        f"Got the output directory {str(path)!r}, which cannot be written ({error.strerror}); "
        "expected one that can. Choose another with -o."
    )
    return InvalidInputError(msg)
