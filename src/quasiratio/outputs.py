"""Where a workflow may write, one rule for all of them: found out before the work begins.

A name that is free, or an empty directory, may be used. A directory that the same command has written before may
be written again: it holds a list of the files that are ours. Anything else needs `overwrite=True`, and even then only
files of the same names are replaced. A model is one thing, and is swapped as a whole: so it never goes among files of
others, with `overwrite=True` neither.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from quasiratio.atomic_files import place, remove_stale, staged_file
from quasiratio.errors import InvalidInputError
from quasiratio.registry import FORMATS

__all__ = [
    "OutputFile",
    "create_output_directory",
    "output_directory",
    "output_file",
    "publish_directory",
    "require_output_directory",
    "require_output_name",
]

_LIST_NAME = ".quasiratio.json"
_LONGEST_NAME = 200  # bytes; leaves room for what is added to names of unfinished files
_LONGEST_PART = 255
_ANOTHER = "Choose another with `output`."


def require_output_name(text: str | os.PathLike[str], what: str, *, option: str = "output") -> Path:
    """Return the path that an option names, or say why nothing can have that name.

    Args:
        text: What was given.
        what: What it names, for messages.
        option: The argument that names it.

    Example:
        >>> require_output_name("reports/one", "directory").name
        'one'
    """
    given, role = os.fspath(text), option.replace("_", " ")
    if not given.strip():
        msg = f"Got an empty {role}; expected the name of a {what}."
        raise InvalidInputError(msg, advice=f"Choose one with `{option}`.")
    path = Path(given)
    if any(ord(letter) < ord(" ") for letter in given) or path.name in ("", ".", ".."):
        msg = f"Got the {role} {given!r}; expected the name of a {what}."
        raise InvalidInputError(msg, advice=f"Choose one with `{option}`.")
    n_bytes = len(os.fsencode(path.name))
    if n_bytes > _LONGEST_NAME or any(len(os.fsencode(part)) > _LONGEST_PART for part in path.parts):
        n_bytes = max(len(os.fsencode(part)) for part in path.parts)
        msg = f"Got the {role} with a name of {n_bytes} bytes; expected at most {_LONGEST_NAME}."
        raise InvalidInputError(msg, advice=f"Choose another with `{option}`.")
    return path


def output_directory(text: str | os.PathLike[str], *, command: str, overwrite: bool) -> Path:
    """Return the directory that an option names, if `command` may write there.

    Args:
        text: What was given.
        command: Who asks; directories that it has written before are its own.
        overwrite: Also take a directory with files of others.
    """
    path = require_output_name(text, "directory")
    require_output_directory(path)
    others = sorted(_names(path) - {_LIST_NAME} - _own_names(path, command))
    if others and not overwrite:
        listed = ", ".join(repr(name) for name in others[:3]) + (", ..." if len(others) > 3 else "")
        msg = (
            f"Got the output directory {str(path)!r}, which holds files that 'quasiratio {command}' has not written "
            f"({listed}); expected an empty one or a free name."
        )
        raise InvalidInputError(msg, advice="Choose another with `output`, or add `overwrite=True`.")
    return path


def require_output_directory(path: Path, *, option: str = "output") -> None:
    """Raise unless `path` is a directory that can be written, or one can be made there.

    Nothing is created, so that an error later leaves no trace.
    """
    nearest = path
    try:
        while not (nearest.exists() or nearest.is_symlink()) and nearest != nearest.parent:
            nearest = nearest.parent
    except OSError as error:
        raise _unwritable(path, error, option) from error
    if not nearest.is_dir():
        msg = (
            f"Got the output directory {str(path)!r}, but {str(nearest)!r} is {_what_it_is(nearest)}; "
            "expected a directory, or a name that is free."
        )
        raise InvalidInputError(msg, advice=f"Choose another with `{option}`.")
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise _unwritable(path, error, option) from error


def _what_it_is(path: Path) -> str:
    return "a file" if path.exists() else "a link that leads nowhere"


def create_output_directory(path: Path, *, option: str = "output") -> Path:
    """Create the directory that an option names where it is missing, and return it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error, option) from error
    return path


def publish_directory(finished: Path, path: Path, *, command: str) -> None:
    """Move a directory of finished files to its place: at once where nothing is there, else file by file.

    Args:
        finished: The files, on the same file system.
        path: Their place.
        command: Whose they are.
    """
    names = {entry.name for entry in finished.iterdir()}
    try:
        if not path.exists():
            _write_list(finished, command, names)
            place(finished, path)
            return
        before = _own_names(path, command)
        _write_list(path, command, names | before)  # whatever happens now, these are ours
        for name in sorted(names, key=lambda name: (name.endswith((".html", ".json")), name)):
            place(finished / name, path / name)
        for name in before - names:
            if not (path / name).is_dir():
                (path / name).unlink(missing_ok=True)
        _write_list(path, command, names)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_list(path: Path, command: str, names: set[str]) -> None:
    content = json.dumps({"command": command, "files": sorted(names)}, indent=1) + "\n"
    with staged_file(path / _LIST_NAME) as staged:
        staged.write_text(content, encoding="utf-8")


def _own_names(path: Path, command: str) -> set[str]:
    """Return the files that the command has written there before."""
    try:
        content = json.loads((path / _LIST_NAME).read_text(encoding="utf-8"))
        if content["command"] == command:
            return {name for name in content["files"] if _is_plain(name)}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()


def _is_plain(name: object) -> bool:
    """Whether this names a file of the directory itself: a list that was edited must not reach further."""
    is_name = isinstance(name, str) and "\0" not in name and name not in ("", ".", "..")
    return is_name and Path(str(name)).name == name


def _names(path: Path) -> set[str]:
    if not path.is_dir():
        return set()
    remove_stale(path)
    try:
        return {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError, option: str = "output") -> InvalidInputError:
    msg = (
        f"Got the output directory {str(path)!r}, which cannot be written ({error.strerror}); "
        "expected one that can."
    )
    return InvalidInputError(msg, advice=f"Choose another with `{option}`.")


class OutputFile:
    """A file to be written, and its tree where it has one.

    Example:
        >>> OutputFile("out.root:reweighted").tree
        'reweighted'
    """

    def __init__(self, text: str) -> None:
        path, self.tree = FORMATS.split_tree(text)
        self.path = Path(path)

    def tree_like(self, source: str, path: str | os.PathLike[str]) -> str:
        """Return the tree that was named, else that of the input (`source` with its `path`), else `events`."""
        path = os.fspath(path)
        named = source[len(path) + 1 :] if source.startswith(f"{path}:") else ""
        return self.tree or named.partition(";")[0] or "events"  # a new file begins with cycle 1


def output_file(text: str, *, overwrite: bool, suffixes: Sequence[str] | None = None) -> OutputFile:
    """Return the output that an option names, or say why it cannot be written.

    Args:
        text: What was given.
        overwrite: Replace a file that is there.
        suffixes: Formats that can be written; by default those of `FORMATS`.
    """
    output = OutputFile(text)
    suffixes = suffixes or list(FORMATS)
    path = require_output_name(output.path if text else text, "file")
    if path.suffix.lower() not in suffixes:
        expected = ", ".join(suffixes[:-1]) + (" or " if suffixes[:-1] else "") + suffixes[-1]
        msg = f"Got the output {text!r} with the suffix {path.suffix!r}; expected {expected}."
        raise InvalidInputError(msg, advice=_ANOTHER)
    if not path.parent.is_dir():
        msg = (
            f"Got the output {text!r}, but there is no directory {str(path.parent)!r}; expected one that "
            "exists."
        )
        raise InvalidInputError(msg, advice="Create it, or choose another with `output`.")
    if path.is_dir():
        msg = f"Got the output {text!r}, which is a directory; expected a file."
        raise InvalidInputError(msg, advice=_ANOTHER)
    if os.path.lexists(path) and not overwrite:
        msg = f"Got the output {text!r}, which exists; expected a new file."
        raise InvalidInputError(msg, advice="Choose another with `output`, or add `overwrite=True`.")
    require_output_directory(path.parent)
    return output
