"""From what the user writes to the files that are meant: `file.root:tree`, a glob, an address, `@files.txt`, several of them.

A list `@files.txt` has one entry per line, blank lines and lines that begin with `#` apart. Its paths are relative to the
directory of the list, wherever the command is started. A list names files, no further lists.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from quasiratio.errors import InvalidInputError
from quasiratio.io.file_format import Location
from quasiratio.io.remote import FilePath, RemotePath, is_address, local_path
from quasiratio.registry import FORMATS
from quasiratio.wording import shortened

__all__ = ["Spec", "locate", "named_twice", "short_text", "suffix_of"]

_LIST_SUFFIXES = (".txt", ".list", ".lst")
_LONGEST_TEXT = 1_000_000

Spec = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def locate(spec: Spec, *, tree: str | None = None, allow_large: bool = False) -> list[Location]:
    """Return the files that `spec` names, in order, globs sorted by name.

    Example:
        >>> locate("nothing*.root:events")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the pattern 'nothing*.root', which matches no file; ...
    """
    specs = [spec] if isinstance(spec, str | os.PathLike) else list(spec)
    if not specs:
        msg = f"Got an empty list of files; expected at least one {FORMATS.suffix_names()} file."
        raise InvalidInputError(msg)
    found = [location for one in specs for location in _expand(os.fspath(one), tree, allow_large=allow_large)]
    _require_distinct(found)
    return found


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a supported format in lower case, or raise.

    Example:
        >>> suffix_of("Events.PARQUET")
        '.parquet'
    """
    suffix = (path.suffix if isinstance(path, RemotePath) else Path(path).suffix).lower()
    if suffix not in FORMATS:
        is_list = suffix in _LIST_SUFFIXES
        what = "Write '@' before the name of a list of files" if is_list else "Rename or convert the file"
        msg = (
            f"Got {os.fspath(path)!r} with the suffix {suffix!r}; expected {FORMATS.suffix_names()}. {what}."
        )
        raise InvalidInputError(msg)
    return suffix


def _expand(text: str, tree: str | None, *, allow_large: bool) -> list[Location]:
    """Return the files of one entry: itself if it exists, those of a list, else those that match it as a pattern."""
    if "\0" in text:
        msg = f"Got the file name {text!r} with a null character; expected the path of a file."
        raise InvalidInputError(msg)
    if text.startswith("@") and not _exists(text):
        return [
            location
            for entry in _entries(Path(os.path.expanduser(text[1:])))  # noqa: PTH111 - `~` stands in a text
            for location in _expand(entry, tree, allow_large=allow_large)
        ]
    path, named_tree = (text, None) if _exists(text) else FORMATS.split_tree(local_path(text))
    if is_address(path):
        return [
            _chosen(match, named_tree, tree, allow_large=allow_large) for match in _remote(RemotePath(path))
        ]
    path = os.path.expanduser(path)  # noqa: PTH111 - the rest is not a path yet, but a pattern
    if _exists(path):
        matches = [path]
    elif glob.has_magic(path):
        matches = sorted(match for match in glob.glob(path, recursive=True) if Path(match).is_file())  # noqa: PTH207
        if not matches:
            raise _matches_nothing(path)
    else:
        msg = f"Got {shortened(path, longest=300)!r}, but there is no such file; expected a {FORMATS.suffix_names()} file. Check the path."
        raise InvalidInputError(msg)
    return [_checked(match, named_tree, tree, allow_large=allow_large) for match in matches]


def _remote(path: RemotePath) -> list[RemotePath]:
    matches = path.matches()
    if not matches:
        raise _matches_nothing(str(path))
    return matches


def _matches_nothing(pattern: str) -> InvalidInputError:
    msg = f"Got the pattern {pattern!r}, which matches no file; expected at least one. Check the directory."
    return InvalidInputError(msg)


def _entries(path: Path) -> list[str]:
    """Return what a list of files names, relative paths as they are seen from here."""
    shown = f"@{path}"
    if not os.path.isfile(path):  # noqa: PTH113 - false, not an error; a pipe would wait for a writer
        what = "is no regular file" if _exists(str(path)) else "does not exist"
        msg = f"Got the list {shown!r}, but {str(path)!r} {what}; expected a text file with one path per line. Check the path."
        raise InvalidInputError(msg)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError) as error:
        msg = f"Got the list {shown!r}, which cannot be read as text ({error}); expected one path per line."
        raise InvalidInputError(msg) from error
    entries = [line for line in lines if line and not line.startswith("#")]
    if not entries:
        msg = f"Got the list {shown!r}, which names no file; expected one path per line."
        raise InvalidInputError(msg)
    for entry in entries:
        if entry.startswith("@"):
            msg = (
                f"Got the list {shown!r}, which names the list {shortened(entry)!r}; expected files. Write the files "
                "of both into one list, or give both."
            )
            raise InvalidInputError(msg)
    own = os.path.expanduser
    return [entry if "://" in entry else os.path.join(path.parent, own(entry)) for entry in entries]  # noqa: PTH118


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - false, not an error, for names that no file can have


def _checked(path: str, named_tree: str | None, tree: str | None, *, allow_large: bool) -> Location:
    if Path(path).is_dir():
        msg = f"Got the directory {path!r}; expected a {FORMATS.suffix_names()} file. Name a file in it, or a pattern such as '*.root'."
        raise InvalidInputError(msg)
    suffix_of(path)
    if not Path(path).is_file():  # opening a pipe would wait for somebody to write into it
        msg = f"Got {path!r}, which is no regular file but a pipe, socket or device; expected a {FORMATS.suffix_names()} file. Copy it."
        raise InvalidInputError(msg)
    return _chosen(Path(path), named_tree, tree, allow_large=allow_large)


def _chosen(path: FilePath, named_tree: str | None, tree: str | None, *, allow_large: bool) -> Location:
    if named_tree == "":
        msg = f"Got {str(path) + ':'!r} without a tree after the colon; expected '{path}:tree', or no colon."
        raise InvalidInputError(msg)
    chosen = named_tree if named_tree is not None else tree
    return Location(path, chosen if FORMATS[suffix_of(path)].has_trees else None, allow_large)


def _require_distinct(locations: list[Location]) -> None:
    seen: set[tuple[FilePath, str | None]] = set()
    for location in locations:
        key = (location.path.resolve(), location.tree)
        if key in seen:
            raise named_twice(location.path)
        seen.add(key)


def named_twice(path: FilePath) -> InvalidInputError:
    """Return the error about events that would be read twice."""
    return InvalidInputError(
        f"Got the file {str(path)!r} twice; expected each once. Its events would count double."
    )


def short_text(path: Path, what: str, expected: str) -> str:
    """Read a text that a person has written, such as a configuration; never wait for a pipe or read a device to its end.

    Args:
        path: The file.
        what: What it should be, for messages: `"configuration"`.
        expected: What is expected of it: `"a YAML file"`.

    Example:
        >>> short_text(Path("/dev/zero"), "points", "a YAML file")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the points '/dev/zero', which is no regular file; expected a YAML file. ...
    """
    given = f"Got the {what} {shortened(str(path), longest=300)!r}"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody to write into it
            msg = f"{given}, which is no regular file; expected {expected}. Check the path."
            raise InvalidInputError(msg)
        if status.st_size > _LONGEST_TEXT:
            msg = f"{given} of more than a megabyte; expected {expected}, and a short one."
            raise InvalidInputError(msg)
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"{given}, which is no UTF-8 text; expected {expected}."
        raise InvalidInputError(msg) from error
    except (OSError, ValueError) as error:  # the latter for a name that no file can have
        if isinstance(error, InvalidInputError):
            raise
        reason = getattr(error, "strerror", None) or "no file can have this name"
        msg = f"{given}, which cannot be read ({reason}). Check the path."
        raise InvalidInputError(msg) from error
