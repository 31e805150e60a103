"""Features as they are written: a column, an element, or a formula with a name (`mll=sqrt(2*pt1*pt2*...)`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.columns import fills_that_occur
from quasiratio.errors import InvalidInputError
from quasiratio.io.column import REDUCTIONS, element_column, split_element, unknown_column
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.table import Table
from quasiratio.wording import shortened

__all__ = ["Feature", "named_feature", "parse_features", "shared_numeric", "split_name"]

_NAMED = re.compile(r"\s*(?P<name>`[^`]+`|[^\W\d][\w.]*)\s*=(?!=)\s*(?P<text>.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w.]+")
_FROM_THE_END = re.compile(r"(?P<column>[\w.]+)\[\s*-\s*\d+\s*\]")
_ELEMENT = re.compile(rf"[\w.]+\[\d+\]|({'|'.join(REDUCTIONS)})\([\w.]+\)")


@dataclass(frozen=True)
class Feature:
    """One number per event, made of columns.

    Attributes:
        name: What it is called in samples, models and figures.
        text: The column, or the formula.
        expression: The formula; `None` where `text` is a column or an element of one.

    Example:
        >>> feature = named_feature("ptg=fill(jet_pt[0] / 1000, 0)")
        >>> feature.name, feature.columns, feature.may_miss, feature.fill
        ('ptg', ('jet_pt[0]',), ('jet_pt[0]',), 0.0)
    """

    name: str
    text: str
    expression: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns and elements that it is made of."""
        return (self.text,) if self.expression is None else self.expression.names

    @property
    def may_miss(self) -> tuple[str, ...]:
        """Those that an event need not have."""
        return () if self.expression is None else self.expression.filled

    @property
    def fill(self) -> float | None:
        """What stands for a missing value, where one may be missing."""
        return None if self.expression is None else self.expression.fill

    def values(self, chunk: Mapping[str, Any], n_events: int) -> npt.NDArray[Any]:
        """Return the value at each event of a chunk."""
        if self.expression is None:
            return np.asarray(chunk[self.text])
        if self.fill is None:
            return self.expression.evaluate(chunk, n_events)
        values, missing = self.expression.evaluate_filled(chunk, n_events)
        if missing.any():
            fills_that_occur(self.name, self.fill, values[~missing])
        return values


def split_name(text: str) -> tuple[str | None, str]:
    """Split `mll=sqrt(s)` into name and formula; `None` where there is no name.

    Example:
        >>> split_name("mll = sqrt(s)"), split_name("a == b")
        (('mll', 'sqrt(s)'), (None, 'a == b'))
    """
    match = _NAMED.fullmatch(text)
    return (None, text.strip()) if match is None else (match["name"].strip("`"), match["text"].strip())


def named_feature(text: str) -> Feature:
    """Parse a formula with or without a name; without one it is called by its text.

    Example:
        >>> named_feature("cos(phi)").name
        'cos(phi)'
    """
    name, formula = split_name(text)
    if not formula:
        msg = f"Got the feature {shortened(text)!r} without a formula; expected one after '=', as in ptg=pt/1000."
        raise InvalidInputError(msg)
    expression = parse_expression(formula)
    if not expression.names:
        msg = (
            f"Got the feature {shortened(text)!r}, which uses no column; expected a formula of columns, as in "
            "ptg=pt/1000. Check the spelling."
        )
        raise InvalidInputError(msg)
    return Feature(expression.text if name is None else name, expression.text, expression)


def parse_features(entries: Sequence[str | Feature] | str, tables: Iterable[Table]) -> list[Feature]:
    """Return the features that names, elements (`jet_pt[0]`), glob patterns (`jet_*`) and formulas stand for.

    A column of the name goes first, then a pattern that matches, then a formula. Patterns match numeric columns that all
    tables share. The order is that of the entries, then that of the first file; a column that matches twice is taken once.

    Example:
        >>> import tempfile, numpy as np
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", met=[1.0], jet_pt=[2.0], jet_eta=[0.3])
        ...     features = parse_features(["jet_*", "metg=met/1000"], [open_table(f"{directory}/a.npz")])
        >>> [(feature.name, feature.text) for feature in features]
        [('jet_pt', 'jet_pt'), ('jet_eta', 'jet_eta'), ('metg', 'met/1000')]
    """
    listed = list(tables)
    given = [entries] if isinstance(entries, str) else list(entries)
    found = [
        feature
        for entry in given
        for feature in ([entry] if isinstance(entry, Feature) else _matches(entry, listed))
    ]
    features = list({(feature.name, feature.text): feature for feature in found}.values())
    if not features:
        msg = "Got an empty list of features; expected at least one name or pattern."
        raise InvalidInputError(msg)
    names = [feature.name for feature in features]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        msg = f"Got the feature names {repeated} more than once; expected unique names. Name one of them otherwise."
        raise InvalidInputError(msg)
    for table in listed:
        for feature in features:
            table.require_numbers(feature.columns)
    return features


def shared_numeric(tables: list[Table]) -> list[str]:
    """Return the columns with one number per event that all tables have."""
    if not tables:
        msg = "Got no tables; expected at least one to look for features in."
        raise InvalidInputError(msg)
    others = [set(table.numeric_columns()) for table in tables[1:]]
    return [name for name in tables[0].numeric_columns() if all(name in other for other in others)]


def _matches(entry: str, tables: list[Table]) -> list[Feature]:
    is_column = any(entry in table.columns for table in tables)
    if is_column or _PLAIN.fullmatch(entry):
        for table in tables:
            if entry not in table.columns:
                raise unknown_column(entry, table.columns, source=table.label)
        return [Feature(entry, entry)]
    if (from_the_end := _FROM_THE_END.fullmatch(entry)) is not None:
        column = from_the_end["column"]
        msg = (
            f"Got the element {entry!r}; expected one that is counted from the beginning, such as '{column}[0]'. Elements from the "
            f"end are not known; min({column}) is the smallest."
        )
        raise InvalidInputError(msg)
    if _ELEMENT.fullmatch(entry):
        for table in tables:
            split_element(entry, table.columns)
        return [Feature(entry, entry)]
    if split_name(entry)[0] is None and re.search(r"[*?\[]", entry):
        found = [name for name in shared_numeric(tables) if fnmatchcase(name, entry)]
        if found:
            return [Feature(name, name) for name in found]
        if re.fullmatch(r"[\w.*?\[\]-]+", entry) and not _has_known_columns(entry, tables):
            msg = (
                f"Got the feature pattern {entry!r}, which matches no numeric column that all files share; "
                f"expected at least one of {', '.join(map(repr, shared_numeric(tables)[:10]))}. Check the spelling."
            )
            raise InvalidInputError(msg)
    return [named_feature(entry)]


def _has_known_columns(entry: str, tables: list[Table]) -> bool:
    """Whether a text such as `a*b` is a formula of columns rather than a pattern."""
    try:
        names = parse_expression(entry).names
    except InvalidInputError:
        return False
    return bool(names) and any(_is_known(name, table) for name in names for table in tables)


def _is_known(name: str, table: Table) -> bool:
    return name in table.columns or element_column(name) in table.columns
