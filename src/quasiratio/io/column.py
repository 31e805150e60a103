"""What a column of a file holds, and how its values are named: `pt`, `jet_pt[0]` for one element, `len(jet_pt)`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = [
    "REDUCTIONS",
    "Column",
    "ColumnKind",
    "Pick",
    "element_column",
    "kind_of_dtype",
    "require_numbers",
    "split_element",
    "unknown_column",
]

ColumnKind = Literal["float", "integer", "boolean", "jagged", "text", "other"]

REDUCTIONS = ("len", "sum", "min", "max")
"""What can be made of all elements of an event."""

Pick = int | str | None
"""An element by its number, a reduction by its name, or the column itself."""

_REDUCED = re.compile(rf"(?P<reduction>{'|'.join(REDUCTIONS)})\((?P<column>.+)\)", re.DOTALL)
_ELEMENT = re.compile(r"(?P<column>.+)\[(?P<index>\d{1,9})\]", re.DOTALL)
_N_SUGGESTIONS = 3


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: The name in the file.
        kind: `"float"`, `"integer"` and `"boolean"` have one value per event. `"jagged"` columns have
            several numbers per event, as many as the event needs or a fixed number. `"text"` and `"other"`
            (objects, lists of lists, dates) can be copied to where the format allows it, not used.
        dtype: The type of the numbers, in the byte order of this machine; `object` where there are none.

    Example:
        >>> Column("jet_pt", "jagged", np.dtype("f4")).is_numeric
        False
    """

    name: str
    kind: ColumnKind
    dtype: np.dtype[np.generic]

    @property
    def is_numeric(self) -> bool:
        """Whether there is one number (or boolean) per event."""
        return self.kind in {"float", "integer", "boolean"}


def kind_of_dtype(dtype: npt.DTypeLike) -> ColumnKind:
    """Return the kind of a column with one value of `dtype` per event.

    Example:
        >>> kind_of_dtype("uint8"), kind_of_dtype("<U5"), kind_of_dtype("complex64")
        ('integer', 'text', 'other')
    """
    kinds: dict[str, ColumnKind] = {
        "f": "float",
        "i": "integer",
        "u": "integer",
        "b": "boolean",
        "U": "text",
        "S": "text",
    }
    return kinds.get(np.dtype(dtype).kind, "other")


def split_element(name: str, columns: Mapping[str, Column]) -> tuple[str, Pick]:
    """Split `jet_pt[0]` into column and index, and `len(jet_pt)` into column and reduction.

    A column that has the whole name goes first.

    Example:
        >>> jets = {"jet_pt": Column("jet_pt", "jagged", np.dtype("f4"))}
        >>> split_element("jet_pt[1]", jets), split_element("len(jet_pt)", jets), split_element("jet_pt", jets)
        (('jet_pt', 1), ('jet_pt', 'len'), ('jet_pt', None))
    """
    parts = None if name in columns else _pick(name)
    column, pick = (name, None) if parts is None else parts
    if column not in columns:
        raise unknown_column(column, columns)
    if pick is not None and columns[column].kind != "jagged":
        msg = (
            f"Got {name!r}, but {column!r} is a column of kind {columns[column].kind} without elements; expected "
            f"{'an index' if isinstance(pick, int) else repr(pick)} on jagged columns only. Write {column!r}."
        )
        raise InvalidInputError(msg)
    return column, pick


def element_column(name: str) -> str:
    """Return the column of a name such as `jet_pt[0]` or `len(jet_pt)`.

    Example:
        >>> element_column("jet_pt[0]"), element_column("len(jet_pt)"), element_column("pt")
        ('jet_pt', 'jet_pt', 'pt')
    """
    parts = _pick(name)
    return name if parts is None else parts[0]


def _pick(name: str) -> tuple[str, int | str] | None:
    match = _ELEMENT.fullmatch(name)
    if match is not None:
        return match["column"], int(match["index"])
    match = _REDUCED.fullmatch(name)
    return None if match is None else (match["column"], match["reduction"])


def unknown_column(name: str, columns: Iterable[str], *, source: str = "") -> InvalidInputError:
    """Return the error about a column that is not there, with the nearest names that are.

    Example:
        >>> print(unknown_column("jet_pf", ["jet_pt", "met"]))
        Got the column 'jet_pf', which does not exist; the nearest is 'jet_pt'. Check the spelling.
    """
    known = list(columns)
    lowered = {column.lower(): column for column in known}
    nearest = difflib.get_close_matches(name, known, n=_N_SUGGESTIONS)
    nearest = nearest or [
        lowered[key] for key in difflib.get_close_matches(name.lower(), lowered, n=_N_SUGGESTIONS)
    ]
    if nearest:
        listed = ", ".join(repr(column) for column in nearest)
        hint = f"the nearest {'is' if len(nearest) == 1 else 'are'} {listed}"
    else:
        listed = ", ".join(repr(column) for column in known[:10]) + (", ..." if len(known) > 10 else "")
        hint = f"expected one of {listed}" if known else "there are no columns at all"
    place = f" in {source!r}" if source else ""
    return InvalidInputError(
        f"Got the column {name!r}, which does not exist{place}; {hint}. Check the spelling."
    )


def require_numbers(names: Iterable[str], columns: Mapping[str, Column]) -> None:
    """Raise unless each name is a column with one number per event, or an element or reduction of a jagged one.

    Example:
        >>> require_numbers(["pt"], {"pt": Column("pt", "float", np.dtype("f4"))})
    """
    for name in names:
        column, pick = split_element(name, columns)
        kind = columns[column].kind
        if kind == "jagged" and pick is None:
            msg = (
                f"Got the jagged column {column!r}, which has several values per event; expected one number "
                f"per event. Pick an element, as in '{column}[0]', or write len, sum, min or max of it."
            )
            raise InvalidInputError(msg)
        if kind in {"text", "other"}:
            held = "text" if kind == "text" else f"neither numbers nor booleans ({columns[column].dtype})"
            msg = (
                f"Got the column {column!r}, which holds {held}; expected one number per event. "
                "Choose another column, or encode its values as numbers."
            )
            raise InvalidInputError(msg)
