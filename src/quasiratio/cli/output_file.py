"""Where a command may write a file of events: found out before the work begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quasiratio.cli.output_directory import require_output_directory, require_output_name
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.io import Table

__all__ = ["OutputFile", "output_file"]

_SUFFIXES = (".root", ".parquet", ".npz")


class OutputFile:
    """A file to be written, and its tree where it has one.

    Example:
        >>> OutputFile("out.root:reweighted").tree
        'reweighted'
    """

    def __init__(self, text: str) -> None:
        head, separator, tree = text.rpartition(".root:")
        self.path = Path(f"{head}.root" if separator else text)
        self.tree = tree if separator else None

    def tree_like(self, table: Table) -> str:
        """Return the tree that was named, else that of the input, else `events`."""
        source, path = table.sources[0], str(table.files[0].path)
        named = source[len(path) + 1 :] if source.startswith(f"{path}:") else ""
        return self.tree or named.partition(";")[0] or "events"  # a new file begins with cycle 1


def output_file(text: str, *, force: bool, suffixes: Sequence[str] = _SUFFIXES) -> OutputFile:
    """Return the output that an option names, or say why it cannot be written.

    Args:
        text: What was given.
        force: Replace a file that is there.
        suffixes: Formats that can be written.
    """
    output = OutputFile(text)
    path = require_output_name(output.path if text else text, "file")
    if path.suffix.lower() not in suffixes:
        expected = ", ".join(suffixes[:-1]) + (" or " if suffixes[:-1] else "") + suffixes[-1]
        msg = f"Got the output {text!r} with the suffix {path.suffix!r}; expected {expected}. Choose another with -o."
        raise InvalidInputError(msg)
    if not path.parent.is_dir():
        msg = (
            f"Got the output {text!r}, but there is no directory {str(path.parent)!r}; expected one that "
            "exists. Create it, or choose another with -o."
        )
        raise InvalidInputError(msg)
    if path.is_dir():
        msg = f"Got the output {text!r}, which is a directory; expected a file. Choose another with -o."
        raise InvalidInputError(msg)
    if os.path.lexists(path) and not force:
        msg = f"Got the output {text!r}, which exists; expected a new file. Choose another with -o, or add --force."
        raise InvalidInputError(msg)
    require_output_directory(path.parent)
    return output
