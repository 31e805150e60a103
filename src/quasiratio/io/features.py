"""Which columns are features: by name, by pattern, or by default all that may be learned from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import split_element
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.formulas import parse_features, shared_numeric
from quasiratio.io.table import Table
from quasiratio.io.weight_names import weight_columns

__all__ = ["default_features", "resolve_features", "unused_weights"]

_IDENTIFIER_WORDS = {
    "id",
    "idx",
    "index",
    "uid",
    "uuid",
    "entry",
    "seed",
    "run",
    "event",
    "evt",
    "lumi",
    "bx",
}
_WHOLE_NAMES = {"luminosityblock", "lumiblock", "runnumber", "eventnumber", "bunchcrossing", "lumisection"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PROBED_EVENTS = 10_000
_FEWEST_EVENTS_FOR_UNIQUENESS = 100


def default_features(
    tables: Iterable[Table], weight: str | Expression | None = None, selection: str | Expression | None = None
) -> list[str]:
    """Return the numeric columns that all tables share and that are not bookkeeping, in the first one's order.

    Left out are the columns of the weight, numbers that are named like another weight (`w_up`, `LHEWeight_12`: their
    signs give that of the weight away, and nothing else would be learned), boolean columns of the selection (constant after it), columns
    whose names begin with `truth_`, and integer columns that identify an event: those with a word such as
    `run`, `event`, `lumi`, `entry`, `index` or `id` in the name (`eventNumber`, `jet_id`), and those without a
    repeated value among the first ten thousand events.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", event=[1, 2], pt=[3.0, 4.0], n_jets=[1, 1], w=[1.0, -1.0])
        ...     default_features([open_table(f"{directory}/a.npz")], weight="w")
        ['pt', 'n_jets']
    """
    listed = list(tables)
    excluded = _columns_of(weight, listed)
    tested = _columns_of(selection, listed)
    shared = shared_numeric(listed)
    weights = {name for table in listed for name in weight_columns(table)}
    names = [
        name
        for name in shared
        if name not in excluded
        and name not in weights
        and not name.lower().startswith("truth_")
        and not (name in tested and any(table.columns[name].kind == "boolean" for table in listed))
        and not _is_integer_identifier(name, listed)
    ]
    names = [name for name in names if name not in _without_repeats(names, listed)]
    if not names:
        msg = (
            f"Got {listed[0].label!r} without a column to use as a feature by default; expected numeric columns that "
            "all files share, besides weights and identifiers. Name the features."
        )
        raise InvalidInputError(msg)
    return names


def unused_weights(tables: Iterable[Table], weight: str | Expression | None = None) -> list[str]:
    """Return the columns that `default_features` leaves out because they are named like a weight and are not it.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", pt=[3.0], w=[1.0], w_up=[1.1])
        ...     unused_weights([open_table(f"{directory}/a.npz")], weight="w")
        ['w_up']
    """
    listed = list(tables)
    used = _columns_of(weight, listed)
    named = {name for table in listed for name in weight_columns(table)}
    return [name for name in shared_numeric(listed) if name in named - used]


def resolve_features(patterns: Sequence[str], tables: Iterable[Table]) -> list[str]:
    """Return the names of the features that `parse_features` finds for names, elements, patterns and formulas.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", met=[1.0], jet_pt=[2.0], jet_eta=[0.3])
        ...     resolve_features(["jet_*", "met"], [open_table(f"{directory}/a.npz")])
        ['jet_pt', 'jet_eta', 'met']
    """
    return [feature.name for feature in parse_features(patterns, tables)]


def _columns_of(text: str | Expression | None, tables: list[Table]) -> set[str]:
    if text is None:
        return set()
    names = parse_expression(text).names
    return {split_element(name, table.columns)[0] for table in tables for name in names}


def _is_integer_identifier(name: str, tables: list[Table]) -> bool:
    if not any(table.columns[name].kind == "integer" for table in tables):
        return False
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(words & _IDENTIFIER_WORDS) or name.lower().replace("_", "") in _WHOLE_NAMES


def _without_repeats(names: list[str], tables: list[Table]) -> set[str]:
    """Return the integer columns whose first values all differ in some table."""
    unique: set[str] = set()
    for table in tables:
        integers = [name for name in names if table.columns[name].kind == "integer"]
        chunk = next(table.chunks(integers, chunk_events=_PROBED_EVENTS), {}) if integers else {}
        for name, values in chunk.items():
            if len(values) >= _FEWEST_EVENTS_FOR_UNIQUENESS and len(np.unique(values)) == len(values):
                unique.add(name)
    return unique
