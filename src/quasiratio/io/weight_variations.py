"""Several weights of the same events: which they are (`w_nominal, up=w_nom*sf, w_pdf_*`), and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from quasiratio.columns import nonfinite_weights
from quasiratio.errors import InvalidInputError
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.formulas import shared_numeric, split_name
from quasiratio.io.table import Table
from quasiratio.wording import shortened

__all__ = ["parse_weights", "read_weights"]

_PLAIN = re.compile(r"[\w.]+")


def parse_weights(entries: Sequence[str] | str, tables: Sequence[Table]) -> dict[str, str]:
    """Return the expressions of several weights by name, in the order of the entries; the first is the nominal one.

    Args:
        entries: Columns, patterns such as `w_pdf_*`, or formulas with a name such as `up=w_nominal*sf`.
        tables: Files that must have the columns.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", w=[1.0], pdf_1=[1.1], pdf_2=[0.9])
        ...     parse_weights(["w", "pdf_*", "up=2*w"], [open_table(f"{directory}/a.npz")])
        {'w': 'w', 'pdf_1': 'pdf_1', 'pdf_2': 'pdf_2', 'up': '2*w'}
    """
    weights: dict[str, str] = {}
    for entry in [entries] if isinstance(entries, str) else entries:
        for name, text in _named(entry.strip(), list(tables)):
            if weights.get(name, text) != text:
                msg = f"Got the weight {name!r} twice, {shortened(weights[name])!r} and {shortened(text)!r}; expected different names."
                raise InvalidInputError(msg)
            weights[name] = text
    if len(weights) < 2:
        msg = f"Got the weights {list(weights)}; expected at least two, the nominal one first."
        raise InvalidInputError(msg, advice="Name a single one with `weight`.")
    for table in tables:
        for text in weights.values():
            table.require_numbers(parse_expression(text).names)
    return weights


def _named(entry: str, tables: list[Table]) -> list[tuple[str, str]]:
    if all(entry in table.columns for table in tables):
        text = entry if _PLAIN.fullmatch(entry) else f"`{entry}`"
        return [(entry, text)]
    name, formula = split_name(entry)
    if name is not None:
        if not formula:
            msg = f"Got the weight {entry!r} without a formula; expected one after '=', as in up=w*sf."
            raise InvalidInputError(msg)
        return [(name, formula)]
    if _PLAIN.fullmatch(entry):
        return [(entry, entry)]  # whoever opens the columns says which there are
    found = [column for column in shared_numeric(tables) if fnmatchcase(column, entry)]
    if found:
        return [(column, column if _PLAIN.fullmatch(column) else f"`{column}`") for column in found]
    msg = (
        f"Got the weight {shortened(entry)!r}, which is no column and no pattern of columns; expected one, or a formula with a "
        "name, as in up=w*sf."
    )
    raise InvalidInputError(msg)


def read_weights(
    table: Table, weights: Mapping[str, str], *, selection: str | Expression | None = None
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the values of several weights at all selected events.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", w=[1.0, 2.0])
        ...     read_weights(open_table(f"{directory}/a.npz"), {"nominal": "w", "up": "1.5 * w"})["up"].tolist()
        [1.5, 3.0]
    """
    expressions = {name: parse_expression(text) for name, text in weights.items()}
    columns = list(dict.fromkeys(name for one in expressions.values() for name in one.names))
    condition = None if selection is None else parse_expression(selection)
    parts: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in weights}
    for chunk in table.chunks(columns, selection=condition):
        n_events = len(next(iter(chunk.values())))
        for name, expression in expressions.items():
            parts[name].append(expression.evaluate(chunk, n_events).astype(np.float64))
    values = {name: np.concatenate(found) if found else np.empty(0) for name, found in parts.items()}
    for name, found in values.items():
        n_bad = int(np.sum(~np.isfinite(found)))
        if n_bad:
            raise nonfinite_weights(n_bad, f"the expression {shortened(weights[name])!r}")
    return values
