"""What a file format offers: a reader, a writer, and what may be chosen for it.

A format is one file in `io/formats` with a `FileFormat`, and a line in `FORMATS` of `quasiratio.registry`. Which suffixes
there are, where a tree may be named and which compressions are known is read from there, by everything. Whatever a
library raises about a file becomes one sentence here (`reading`), for all formats.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from quasiratio.errors import InvalidInputError, MissingExtraError, QuasiratioError
from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.elements import is_awkward
from quasiratio.io.remote import FilePath

__all__ = [
    "Chunk",
    "Compression",
    "FileFormat",
    "Location",
    "NewFile",
    "TableFile",
    "TableSink",
    "column_of",
    "is_utf8",
    "reading",
]

Chunk = dict[str, Any]
"""Columns of consecutive events: NumPy arrays, and awkward arrays where events have several values."""

Compression = Literal["zstd", "lz4", "zlib"]

_OBJECT = np.dtype(object)


@dataclass(frozen=True)
class Location:
    """One file, and what was said about reading it.

    Attributes:
        path: The file.
        tree: Which of its tables, if one was named and the format has several.
        allow_large: Whether a small file may unpack to gigabytes.

    Example:
        >>> Location(Path("events.npz")).suffix
        '.npz'
    """

    path: FilePath
    tree: str | None = None
    allow_large: bool = False

    @property
    def suffix(self) -> str:
        """The suffix in lower case, which says the format."""
        return self.path.suffix.lower()

    @property
    def text(self) -> str:
        """What names the file and its tree from everywhere: an absolute path, or an address."""
        path = self.path.absolute() if isinstance(self.path, Path) else self.path
        return f"{path}:{self.tree}" if self.tree is not None else str(path)


class NewFile(NamedTuple):
    """A file to be written: its temporary path, the name of its table, and how to compress it."""

    path: Path
    tree: str
    compression: Compression | None


class TableFile(Protocol):
    """One file, opened far enough to know its columns. It holds no open handle between reads."""

    @property
    def path(self) -> FilePath:
        """The file."""
        ...

    @property
    def source(self) -> str:
        """The path, with the tree where there is one."""
        ...

    @property
    def n_events(self) -> int:
        """Number of events."""
        ...

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns in the order of the file."""
        ...

    @property
    def unreadable(self) -> frozenset[str]:
        """Columns that are there but cannot be read, such as objects of a C++ class."""
        ...

    def bytes_per_event(self, names: Sequence[str]) -> float:
        """Mean size of an event in memory, with these columns only."""
        ...

    def chunks(self, names: Sequence[str], chunk_events: int) -> Iterator[Chunk]:
        """Read these columns, at most `chunk_events` events at a time."""
        ...

    def metadata(self) -> dict[str, Any]:
        """What the writer stored beside the events, empty if nothing."""
        ...


class TableSink(Protocol):
    """A file that grows by chunks of events. Its name is temporary; the caller moves it when it is complete."""

    def unwritable(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> list[str]:
        """Return the columns of the first chunk that this format cannot hold."""
        ...

    def append(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        """Write the events of one chunk; the columns are the same each time."""
        ...

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write what comes last, and close the file."""
        ...

    def abandon(self) -> None:
        """Close the file without completing it."""
        ...


@dataclass(frozen=True)
class FileFormat:
    """One format of files.

    Args:
        open: Opens a file far enough to know its columns.
        sink: Begins a new file.
        compressions: What `create_table` takes, the default first; `None` is no compression.
        has_trees: Whether a file holds several tables, so that `file.suffix:tree` names one.

    Example:
        >>> from quasiratio.registry import FORMATS
        >>> [suffix for suffix, file_format in FORMATS.items() if file_format.has_trees]
        ['.root']
    """

    open: Callable[[Location], TableFile]
    sink: Callable[[NewFile], TableSink]
    compressions: tuple[Compression | None, ...] = ("zstd", "lz4", "zlib", None)
    has_trees: bool = False


def column_of(name: str, values: Any) -> Column:  # noqa: ANN401 - NumPy or awkward
    """Describe an array that is to be written.

    Example:
        >>> column_of("pt", np.zeros(3, "f4")).kind, column_of("p", np.zeros((3, 4))).kind
        ('float', 'jagged')
    """
    if not is_awkward(values):
        dtype = values.dtype.newbyteorder("=")
        numeric = kind_of_dtype(dtype) in {"float", "integer", "boolean"}
        if values.ndim == 2 and numeric:
            return Column(name, "jagged", dtype)
        return Column(name, kind_of_dtype(dtype) if values.ndim == 1 else "other", dtype)
    import awkward as ak  # noqa: PLC0415 - optional

    content = ak.type(values).content
    if isinstance(content, ak.types.OptionType) and content.content.parameters.get("__array__") == "string":
        return Column(name, "text", _OBJECT)
    if content.parameters.get("__array__") == "string":
        return Column(name, "text", _OBJECT)
    is_list = isinstance(content, ak.types.ListType | ak.types.RegularType)
    inner = content.content if is_list else content
    if isinstance(inner, ak.types.UnknownType) and is_list:
        return Column(name, "jagged", np.dtype(np.float64))
    if not isinstance(inner, ak.types.NumpyType) or inner.parameters.get("__array__") is not None:
        return Column(name, "other", _OBJECT)
    dtype = np.dtype(inner.primitive)
    kind = kind_of_dtype(dtype)
    if is_list and kind in {"float", "integer", "boolean"}:
        return Column(name, "jagged", dtype)
    return Column(name, kind, dtype) if kind != "other" and not is_list else Column(name, "other", _OBJECT)


def is_utf8(name: str) -> bool:
    r"""Whether a name can be encoded; names read from damaged or old files sometimes cannot.

    Example:
        >>> is_utf8("p\u2081"), is_utf8("p\udcff")
        (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


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
