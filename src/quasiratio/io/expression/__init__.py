"""Arithmetic of column names: parsed, never evaluated as Python."""

from quasiratio.io.expression.evaluation import Expression, parse_expression

__all__ = ["Expression", "parse_expression"]
