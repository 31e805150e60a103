"""Files that cannot be read: whatever the format's library raises becomes one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from quasiratio.errors import InvalidInputError, MissingExtraError, QuasiratioError

__all__ = ["reading"]


@contextlib.contextmanager
def reading(path: str, file_format: str) -> Iterator[None]:
    """Translate errors while a file is read: truncated and foreign files raise nearly anything.

    Example:
        >>> with reading("events.npz", "NPZ"):
        ...     raise EOFError("no data left")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got 'events.npz', which cannot be read as NPZ (no data left); ...
    """
    try:
        yield
    except QuasiratioError:
        raise
    except ImportError as error:  # a codec that was not needed until now
        msg = f"Got {path!r}, which needs a package that is missing: {' '.join(str(error).split())}"
        raise MissingExtraError(msg) from error
    except PermissionError as error:
        msg = f"Got {path!r}, which may not be read ({error.strerror}); expected a readable file. Check its mode."
        raise InvalidInputError(msg) from error
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0].strip().rstrip(".:;,")[:120] if lines else type(error).__name__
        msg = (
            f"Got {path!r}, which cannot be read as {file_format} ({reason}); expected a complete {file_format} "
            "file. It may be truncated, damaged or of another format: copy or write it again."
        )
        raise InvalidInputError(msg) from error
