"""Files on other machines, through fsspec: an address that can be opened, sized and listed, and what is missing for it.

Which protocols there are depends on what is installed: `https://` needs aiohttp, `s3://` s3fs, `root://` fsspec-xrootd. They
are read where they are, in ranges; nothing is copied, and nothing is written there.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.io.extras import require_extra

__all__ = ["FilePath", "RemotePath", "is_address", "local_path"]

_WITHOUT_LISTING = ("http", "https")


@dataclass(frozen=True, order=True)
class RemotePath:
    """The address of a file, with as much of `pathlib.Path` as readers need.

    Args:
        url: What fsspec takes, such as `https://host/events.root`.

    Example:
        >>> path = RemotePath("https://host:8080/data/events.root?token=1")
        >>> path.name, path.stem, path.suffix, path.parent_name
        ('events.root', 'events', '.root', 'data')
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    @property
    def protocol(self) -> str:
        """What stands before `://`."""
        return self.url.partition("://")[0]

    @property
    def _place(self) -> PurePosixPath:
        return PurePosixPath(urlsplit(self.url).path)

    @property
    def name(self) -> str:
        """The last part, without what follows a question mark."""
        return self._place.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._place.stem

    @property
    def suffix(self) -> str:
        """The suffix of the name."""
        return self._place.suffix

    @property
    def parent_name(self) -> str:
        """Name of the directory that holds the file; empty at the top."""
        return self._place.parent.name

    def resolve(self) -> RemotePath:
        """Return itself: an address is what it is."""
        return self

    def open(self, mode: str = "rb", *, ahead: int | None = None) -> IO[bytes]:
        """Open the file for reading, in ranges as they are asked for.

        Args:
            mode: As for `open`.
            ahead: Bytes to fetch beyond those that are asked for; by default some megabytes, for a file that is read on.
        """
        with self._sentences():
            system, place = _file_system(self.url)
            opened: IO[bytes] = system.open(place, mode, block_size=ahead)
            return opened

    def described(self) -> dict[str, Any]:
        """Return what the server says of the file: its size and, where it tells, a tag or a time."""
        with self._sentences():
            system, place = _file_system(self.url)
            known = system.info(place)
        kept = ("size", "ETag", "etag", "mtime", "LastModified", "Last-Modified", "last_modified")
        return {name: _plain(known[name]) for name in kept if known.get(name) is not None}

    def matches(self) -> list[RemotePath]:
        """Return the files that match a pattern, sorted; itself where a protocol cannot list or there is no pattern."""
        if self.protocol in _WITHOUT_LISTING or not any(mark in self.url for mark in "*?["):
            return [self]
        with self._sentences():
            system, place = _file_system(self.url)
            return sorted(RemotePath(system.unstrip_protocol(match)) for match in system.glob(place))

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:  # fsspec raises it for a server that does not answer, too
            cause = " ".join(str(error.__cause__ or "no such file").split())[:200]
            msg = (
                f"Got {self.url!r}, which is not there, or whose server does not answer ({cause}); expected a file that "
                "can be read. Check the address."
            )
            raise InvalidInputError(msg) from error
        except (OSError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            msg = (
                f"Got {self.url!r}, which cannot be reached ({reason}); expected an address that can be read. Check it, "
                "or copy the file."
            )
            raise InvalidInputError(msg) from error


FilePath = Path | RemotePath
"""Where a file is: here, or at an address."""


def is_address(text: str) -> bool:
    """Whether a text is an address and no local path.

    Example:
        >>> is_address("s3://bucket/a.root"), is_address("file:///a.root"), is_address("C:/a.root")
        (True, False, False)
    """
    return "://" in text and not text.startswith("file://")


def local_path(text: str) -> str:
    """Return a path without the `file://` that may stand before it.

    Example:
        >>> local_path("file:///data/a.root"), local_path("a.root")
        ('/data/a.root', 'a.root')
    """
    return text.removeprefix("file://")


def _plain(value: Any) -> Any:  # noqa: ANN401 - numbers and text as they are, times as text
    return value if isinstance(value, int | float | str) else str(value)


def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of an address and the place in it; what is missing for it is one sentence."""
    fsspec = require_extra("fsspec", extra="remote", purpose=f"to read {url!r}")
    protocol = url.partition("://")[0].rpartition("::")[2]
    known = importlib.import_module("fsspec.registry").known_implementations
    try:
        system, place = fsspec.core.url_to_fs(url)
    except ImportError as error:
        hint = known.get(protocol, {}).get("err") or str(error)
        msg = (
            f"Got {url!r}, whose protocol {protocol!r} needs a package that is not installed "
            f"({' '.join(hint.split()).rstrip('.')}). Install it, or copy the file."
        )
        raise MissingExtraError(msg) from error
    except ValueError as error:
        if protocol in known:
            raise
        msg = f"Got {url!r} with the protocol {protocol!r}, which fsspec does not know; expected one such as https, s3, root or file."
        raise InvalidInputError(msg) from error
    return system, str(place)
