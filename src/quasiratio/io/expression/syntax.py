"""The grammar of expressions: Python's own parser, then a walk that lets through what we allow.

Nothing is ever evaluated by Python. The tree that passes the walk holds numbers, column names, the
operators and functions listed here, and nothing else.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import REDUCTIONS
from quasiratio.wording import shortened

__all__ = [
    "COMPARISONS",
    "FUNCTIONS",
    "OPERATORS",
    "ParsedText",
    "error_at",
    "fill_value",
    "one_line",
    "parse_text",
    "place_of",
]

OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


def _delta_phi(first: Any, second: Any) -> Any:  # noqa: ANN401 - arrays
    """Return the difference of two azimuths, between -pi and pi."""
    return np.pi - (np.pi - (first - second)) % (2 * np.pi)


def _delta_r(eta_1: Any, phi_1: Any, eta_2: Any, phi_2: Any) -> Any:  # noqa: ANN401 - arrays
    """Return the distance in pseudorapidity and azimuth."""
    return np.hypot(eta_1 - eta_2, _delta_phi(phi_1, phi_2))


_INVERSES = ("asin", "acos", "atan", "asinh", "acosh", "atanh")
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    **{
        name: (getattr(np, name), 1, 1)
        for name in ("abs", "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{name: (getattr(np, f"arc{name.removeprefix('a')}"), 1, 1) for name in _INVERSES},
    "radians": (np.radians, 1, 1),
    "atan2": (np.arctan2, 2, 2),
    "deltaphi": (_delta_phi, 2, 2),
    "deltar": (_delta_r, 4, 4),
    "min": (np.minimum, 1, 50),
    "max": (np.maximum, 1, 50),
    "sum": (np.add, 1, 1),
    "len": (np.add, 1, 1),
    "where": (np.where, 3, 3),
    "fill": (np.where, 2, 2),
}
"""The functions by name, each with the fewest and the most arguments it takes.

`len`, `sum`, `min` and `max` of one argument are those of the elements of a jagged column. `fill(x, 0)` is zero in
events where x has no value.
"""

_MAX_CHARACTERS = 4000
_MAX_DEPTH = 100
_QUOTED = re.compile(r"`([^`]+)`")
_FOREIGN = re.compile(r"&&|\|\||!(?!=)|\^|(?<![<>=!])=(?!=)")
_OURS = {"&&": "and", "||": "or", "!": "not", "^": "**", "=": "=="}
_ALLOWED = (
    "allowed are + - * / % **, comparisons, and, or, not, & | ~, numbers, column names (others than plain words in "
    f"backticks) and the functions {', '.join(FUNCTIONS)}"
)


@dataclass(frozen=True)
class ParsedText:
    """A checked syntax tree.

    Attributes:
        body: The tree.
        source: The text with every quoted name replaced by underscores, which is what the tree refers to.
        columns: The column of each node that stands for one, by the positions where the node begins and ends.
        names: The columns in the order in which they appear, elements as `jet_pt[0]`, reductions as `len(jet_pt)`.
        filled: Those that stand within `fill` wherever they appear, and may miss in an event.
        fill: The number of a `fill` that is the whole of the text.
    """

    body: ast.expr
    source: str
    columns: dict[tuple[int, int], str]
    names: tuple[str, ...]
    filled: tuple[str, ...] = ()
    fill: float | None = None

    def position(self, node: ast.AST) -> int:
        """Return where a node begins, in characters (Python counts bytes)."""
        return _position(self.source, node)


def parse_text(text: str) -> ParsedText:
    """Parse and check an expression.

    Example:
        >>> parse_text("w_gen * abs(`pile-up`) * (jet.pt[0] > 30)").names
        ('w_gen', 'pile-up', 'jet.pt[0]')
    """
    if len(text) > _MAX_CHARACTERS:
        msg = f"Got an expression of {len(text)} characters; expected at most {_MAX_CHARACTERS}. Split it."
        raise InvalidInputError(msg)
    quoted = {match.start(): match[1] for match in _QUOTED.finditer(text)}
    source = _QUOTED.sub(lambda match: "_" * len(match[0]), text)  # every position stays where it is
    foreign = _FOREIGN.search(source)
    if foreign is not None:
        raise error_at(
            text, foreign.start(), f"{foreign[0]!r} is not known here; write {_OURS[foreign[0]]!r}"
        )
    if "#" in source:  # for Python the beginning of a comment
        problem = "'#' may stand in names in backticks only; write the column as `name`"
        raise error_at(text, source.index("#"), problem)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about style: what matters is refused below
            body = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise error_at(text, error.offset - 1 if error.offset else len(text), error.msg) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise error_at(
            text, 0, "it is nested too deeply, or holds a character or a number that is none"
        ) from error
    walk = _Walk(text, source, quoted)
    walk.visit(body, depth=0)
    names = tuple(dict.fromkeys(walk.columns.values()))
    filled = tuple(name for name in names if name not in walk.required)
    fill = fill_value(body.args[1]) if _is_fill(body) else None
    return ParsedText(body, source, walk.columns, names, filled, fill)


def _is_fill(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fill"


def error_at(text: str, position: int, problem: str) -> InvalidInputError:
    """Return the error that points into the text.

    Example:
        >>> print(error_at("a b", 2, "invalid syntax"))
        Got the expression 'a b' with an error at character 3 ('b'): invalid syntax.
    """
    rest = text[position : position + 20]
    where = f"at character {position + 1} ({rest!r})" if rest else "at the end"
    return InvalidInputError(
        f"Got the expression {shortened(text)!r} with an error {where}: {problem.rstrip('.')}."
    )


def one_line(text: str) -> str:
    r"""Return the text with single blanks for white space, but as it is within backticks.

    Example:
        >>> one_line(" a *\n `b  c` ")
        'a * `b  c`'
    """
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if index % 2 else re.sub(r"\s+", " ", part) for index, part in enumerate(parts)
    ).strip()


def fill_value(node: ast.AST) -> float | None:
    """Return the number that a node is, `None` where it is something else."""
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = fill_value(operand)
            return -value if value is not None and isinstance(sign, ast.USub) else value
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
    return None


def place_of(node: ast.AST) -> tuple[int, int]:
    """Return where a node begins and ends, in bytes."""
    return getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)


def _position(source: str, node: ast.AST) -> int:
    return len(source.encode()[: getattr(node, "col_offset", 0)].decode())


class _Walk:
    """One pass over the tree that collects columns and refuses everything unknown."""

    def __init__(self, text: str, source: str, quoted: dict[int, str]) -> None:
        self.text, self.source, self.quoted = text, source, quoted
        self.columns: dict[tuple[int, int], str] = {}
        self.required: set[str] = set()

    def error(self, node: ast.AST, problem: str) -> InvalidInputError:
        return error_at(self.text, _position(self.source, node), problem)

    def visit(self, node: ast.AST, depth: int, *, filled: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise self.error(node, f"it is nested more than {_MAX_DEPTH} levels deep; use fewer terms")
        name = self.column_name(node)
        if name is not None:
            self.columns[place_of(node)] = name
            if not filled:
                self.required.add(name)
            return
        for child in self.operands(node):
            self.visit(child, depth + 1, filled=filled or _is_fill(node))

    def operands(self, node: ast.AST) -> list[ast.expr]:
        """Return the parts of an allowed operation, in order, or raise."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                if abs(value) > sys.float_info.max:
                    raise self.error(node, "the number is beyond the range of floats")
                return []
            case ast.BinOp(left=left, op=op, right=right) if type(op) in {*OPERATORS, ast.BitAnd, ast.BitOr}:
                return [left, right]
            case ast.UnaryOp(operand=operand):
                return [operand]
            case ast.BoolOp(values=values):
                return values
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in COMPARISONS for op in ops
            ):
                return [left, *others]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                self.require_arguments(node, name, args)
                return args
        raise self.error(node, f"this is not arithmetic of columns; {_ALLOWED}")

    def require_arguments(self, node: ast.AST, name: str, args: list[ast.expr]) -> None:
        if name not in FUNCTIONS:
            raise self.error(node, f"{name!r} is called, which is no function here; {_ALLOWED}")
        _, fewest, most = FUNCTIONS[name]
        if not fewest <= len(args) <= most:
            expected = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self.error(node, f"{name!r} is called with {len(args)} arguments instead of {expected}")
        if len(args) == 1 and name in REDUCTIONS:
            raise self.error(
                node, f"{name!r} of one argument takes the name of a jagged column, as in {name}(jet_pt)"
            )
        if name == "fill" and fill_value(args[1]) is None:
            raise self.error(
                args[1], "the second argument of 'fill' is no number; write one, as in fill(jet_pt[0], 0)"
            )

    def column_name(self, node: ast.AST) -> str | None:
        """Return the column that a name, a dotted name, `name[0]` or `len(name)` stands for."""
        match node:
            case ast.Call(
                func=ast.Name(id=reduction), args=[ast.Name() | ast.Attribute() as inner], keywords=[]
            ) if reduction in REDUCTIONS:
                name = self.column_name(inner)
                return None if name is None else f"{reduction}({name})"
            case ast.Name():
                start = _position(self.source, node)
                as_written = self.source.encode()[node.col_offset : node.end_col_offset].decode()
                return self.quoted.get(start, as_written)  # node.id has its letters normalised by Python
            case ast.Attribute(value=ast.Name() | ast.Attribute() as before, attr=attr):
                name = self.column_name(before)
                return None if name is None else f"{name}.{attr}"
            case ast.Subscript(
                value=ast.Name() | ast.Attribute() as before, slice=ast.Constant(value=int() as index)
            ):
                name = None if isinstance(index, bool) else self.column_name(before)
                return None if name is None else f"{name}[{index}]"
        return None
