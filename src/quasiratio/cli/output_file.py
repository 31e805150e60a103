"""Where a command may write a file of events: found out before the work begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quasiratio.cli.output_directory import require_output_directory
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
        return self.tree or named or "events"


def output_file(text: str, *, force: bool) -> OutputFile:
    """Return the output that an option names, or say why it cannot be written."""
    output = OutputFile(text)
    if output.path.suffix.lower() not in _SUFFIXES:
        msg = (
            f"Got the output {text!r} with the suffix {output.path.suffix!r}; expected .root, .parquet or .npz. "
            "Choose another with -o."
        )
        raise InvalidInputError(msg)
    if output.path.is_dir():
        msg = f"Got the output {text!r}, which is a directory; expected a file. Choose another with -o."
        raise InvalidInputError(msg)
    if output.path.exists() and not force:
        msg = f"Got the output {text!r}, which exists; expected a new file. Choose another with -o, or add --force."
        raise InvalidInputError(msg)
    if not output.path.parent.is_dir():
        msg = (
            f"Got the output {text!r}, but there is no directory {str(output.path.parent)!r}; expected one that "
            "exists. Create it, or choose another with -o."
        )
        raise InvalidInputError(msg)
    require_output_directory(output.path.parent)
    return output
