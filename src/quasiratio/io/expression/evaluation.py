"""Arithmetic of columns, such as `w_gen * w_pu` or `pt > 30 and abs(eta) < 2.5`; parsed, never evaluated by Python."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import unknown_column
from quasiratio.io.expression.syntax import (
    COMPARISONS,
    FUNCTIONS,
    OPERATORS,
    ParsedText,
    error_at,
    fill_value,
    one_line,
    parse_text,
    place_of,
)
from quasiratio.wording import shortened

__all__ = ["Expression", "parse_expression"]

Values = npt.NDArray[np.float64] | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Expression:
    """An expression of column names that was checked, and can be computed on arrays.

    Known are `+ - * / % **`, comparisons (also `20 < pt < 50`), `and or not` and `& | ~` between
    conditions, parentheses, numbers, and the functions `abs sqrt exp log log10 sin cos tan sinh cosh tanh asin acos
    atan asinh acosh atanh radians atan2 deltaphi deltar min max where`; `deltaphi(phi1, phi2)` lies between -pi and pi, and `deltar` takes eta1, phi1, eta2,
    phi2. A column is a plain or dotted name, an element of a jagged column (`jet_pt[0]`), one of `len sum min max` of a
    jagged column (`len(jet_pt)`), or any name in backticks. `fill(jet_pt[0], 0)` is zero in events without that
    element. All numbers are computed in double precision.

    Attributes:
        text: What was written.
        names: The columns it uses, in order, elements as `jet_pt[0]` and reductions as `len(jet_pt)`.

    Example:
        >>> import numpy as np
        >>> expression = parse_expression("w_gen * w_pu")
        >>> expression.names
        ('w_gen', 'w_pu')
        >>> expression.evaluate({"w_gen": np.array([1.0, -1.0]), "w_pu": np.array([0.5, 2.0])})
        array([ 0.5, -2. ])
    """

    text: str
    names: tuple[str, ...]
    _parsed: ParsedText = field(repr=False, compare=False)

    @property
    def filled(self) -> tuple[str, ...]:
        """The columns that may be NaN, as they stand within `fill` only."""
        return self._parsed.filled

    @property
    def fill(self) -> float | None:
        """The number of a `fill` that is the whole expression, else `None`."""
        return self._parsed.fill

    def evaluate(self, columns: Mapping[str, Any], n_events: int | None = None) -> Values:
        """Compute the expression for every event.

        Args:
            columns: An array for each of `names`; others are ignored.
            n_events: Number of events; needed only where no columns are given.

        Returns:
            Numbers in float64, or booleans for a condition; one per event. Where the arithmetic has no
            result (division by zero, logarithm of a negative number) there is infinity or NaN.
        """
        for name in self.names:
            if name not in columns:
                raise unknown_column(name, columns)
        with np.errstate(all="ignore"):
            values = self._compute(self._parsed.body, columns)
        if values.ndim == 0:
            length = n_events if n_events is not None else len(next(iter(columns.values()), ()))
            values = np.full(length, values)
        return values

    def evaluate_filled(
        self, columns: Mapping[str, Any], n_events: int
    ) -> tuple[Values, npt.NDArray[np.bool_]]:
        """Compute an expression that is a `fill`, and say where its number stands for a missing value.

        Example:
            >>> parse_expression("fill(pt, 0)").evaluate_filled({"pt": np.array([np.nan, 30.0])}, 2)
            (array([ 0., 30.]), array([ True, False]))
        """
        values = self.evaluate(columns, n_events)
        if not isinstance(self._parsed.body, ast.Call) or self.fill is None:
            return values, np.zeros(len(values), dtype=np.bool_)
        with np.errstate(all="ignore"):
            inner = _as_float(self._compute(self._parsed.body.args[0], columns))
        return values, np.broadcast_to(np.isnan(inner), values.shape)

    def evaluate_mask(self, columns: Mapping[str, Any], n_events: int | None = None) -> npt.NDArray[np.bool_]:
        """Compute a condition for every event, or raise if the expression is none.

        Example:
            >>> parse_expression("pt > 30").evaluate_mask({"pt": [20.0, 50.0]})
            array([False,  True])
        """
        values = self.evaluate(columns, n_events)
        mask = values.astype(np.bool_, copy=False)
        if values.dtype != np.bool_:
            msg = (
                f"Got the selection {shortened(self.text)!r}, which is a number; expected a condition. "
                f"Compare it with something, as in '({shortened(self.text)}) > 0'."
            )
            raise InvalidInputError(msg)
        return mask

    def _compute(self, node: ast.AST, columns: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Compute one node; the walk in `expression_syntax` has let no other kinds pass."""
        compute = functools.partial(self._compute, columns=columns)
        name = self._column(node)
        if name is not None:
            return self._numbers(node, columns[name], name)
        match node:
            case ast.Constant(value=value):
                return np.asarray(value) if isinstance(value, bool) else np.asarray(value, np.float64)
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return np.logical_not(self._condition(operand, columns))
            case ast.UnaryOp(op=op, operand=operand):
                return (np.negative if isinstance(op, ast.USub) else np.positive)(_as_float(compute(operand)))
            case ast.BoolOp(op=op, values=operands):
                combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return functools.reduce(combine, [self._condition(operand, columns) for operand in operands])
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
                combine = np.logical_and if isinstance(op, ast.BitAnd) else np.logical_or
                return np.asarray(combine(self._condition(left, columns), self._condition(right, columns)))
            case ast.BinOp(left=left, op=op, right=right):
                return np.asarray(OPERATORS[type(op)](_as_float(compute(left)), _as_float(compute(right))))
            case ast.Compare(left=left, ops=ops, comparators=others):
                terms = [compute(term) for term in (left, *others)]
                pairs = zip(ops, terms[:-1], terms[1:], strict=True)
                return functools.reduce(np.logical_and, [COMPARISONS[type(op)](a, b) for op, a, b in pairs])
            case ast.Call(func=ast.Name(id="where"), args=[condition, *choices]):
                return np.where(
                    self._condition(condition, columns), *[_as_float(compute(c)) for c in choices]
                )
            case ast.Call(func=ast.Name(id="fill"), args=[inner, number]):
                values = _as_float(compute(inner))
                return np.where(np.isnan(values), np.asarray(fill_value(number)), values)
            case ast.Call(func=ast.Name(id="deltar"), args=coordinates):
                return np.asarray(FUNCTIONS["deltar"][0](*[_as_float(compute(one)) for one in coordinates]))
            case ast.Call(func=ast.Name(id=function), args=[first, *others]):
                operation, start = FUNCTIONS[function][0], _as_float(compute(first))
                if not others:
                    return np.asarray(operation(start))
                return functools.reduce(operation, [_as_float(compute(other)) for other in others], start)
        raise self._error(node, "this cannot be computed")

    def _column(self, node: ast.AST) -> str | None:
        return self._parsed.columns.get(place_of(node))

    def _numbers(self, node: ast.AST, values: Any, name: str) -> npt.NDArray[Any]:  # noqa: ANN401 - any array
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            problem = f"the column {name!r} of type {array.dtype} is used; expected one number per event"
            raise self._error(node, problem)
        return array if array.dtype.kind == "b" else array.astype(np.float64, copy=False)

    def _condition(self, node: ast.AST, columns: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        values = self._compute(node, columns)
        if values.dtype != np.bool_:
            problem = "this is a number where a condition is expected; put comparisons in parentheses, or write '!= 0'"
            raise self._error(node, problem)
        return values

    def _error(self, node: ast.AST, problem: str) -> InvalidInputError:
        return error_at(self.text, self._parsed.position(node), problem)


def parse_expression(text: str | Expression) -> Expression:
    """Parse an expression of column names; see `Expression` for what may stand in it.

    Example:
        >>> parse_expression("__import__('os').system('true')")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the expression "__import__('os').system('true')" with an error ...
    """
    if isinstance(text, Expression):
        return text
    stripped = one_line(text)
    if not stripped:
        msg = "Got an empty expression; expected arithmetic of column names, such as 'w_gen * w_pu'."
        raise InvalidInputError(msg)
    parsed = parse_text(stripped)
    return Expression(stripped, parsed.names, parsed)


def _as_float(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return values.astype(np.float64, copy=False)
