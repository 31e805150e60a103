"""Columns that are named like a weight: leaving them out must be said, not happen."""

from __future__ import annotations

import re

from quasiratio.errors import InvalidInputError
from quasiratio.io.expression.evaluation import Expression
from quasiratio.io.table import Table
from quasiratio.wording import first_of

__all__ = ["is_named_like_a_weight", "require_named_weight", "weight_columns"]

_ANYWHERE = re.compile(r"weight(?!ed|ing)|wgt", re.IGNORECASE)
_QUALIFIERS = {
    "gen",
    "mc",
    "event",
    "evt",
    "lhe",
    "nominal",
    "nom",
    "total",
    "tot",
    "norm",
    "pu",
    "sf",
    "xsec",
    "lumi",
}
_VARIATIONS = {
    "up",
    "down",
    "dn",
    "scale",
    "pdf",
    "muf",
    "mur",
    "isr",
    "fsr",
    "alphas",
    "syst",
    "sys",
    "stat",
    "var",
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_named_like_a_weight(name: str) -> bool:
    """Whether people call the weight of an event so, or a variation of it.

    Example:
        >>> [is_named_like_a_weight(name) for name in ("genWeight", "w", "w_pu", "w_scale_up", "LHEWeight_12")]
        [True, True, True, True, True]
        >>> [is_named_like_a_weight(name) for name in ("w_mass", "width", "pt_weighted_eta")]
        [False, False, False]
    """
    words = {word.lower() for word in _WORDS.findall(name)}
    if _ANYWHERE.search(name) or words in ({"w"}, {"wt"}):
        return True
    letter = {"w", "wt"} & words
    return bool(letter) and words - letter <= _QUALIFIERS | _VARIATIONS


def weight_columns(table: Table) -> list[str]:
    """Return the columns with one number per event that are named like a weight.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", pt=[1.0], mcWeight=[-1.0])
        ...     weight_columns(open_table(f"{directory}/a.npz"))
        ['mcWeight']
    """
    return [
        name
        for name, column in table.columns.items()
        if column.kind in {"float", "integer"} and is_named_like_a_weight(name)
    ]


def require_named_weight(table: Table, weight: str | Expression | None) -> None:
    """Raise where no weight was given but the table has a column that is named like one."""
    found = weight_columns(table) if weight is None else []
    if found:
        msg = (
            f"Got no weight for {table.label!r}, which has the column{'s' if len(found) > 1 else ''} {first_of(found, 3)}; "
            "expected the weight to be named."
        )
        advice = f"Add `weight={found[0]!r}`, or `weight='1'` for unweighted events."
        raise InvalidInputError(msg, advice=advice)
