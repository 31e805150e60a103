r"""The fold of an event as ONNX operations: a hash of the bits of its features.

ONNX of this opset cannot look at the bits of a float, but they follow from its value: with
$a = |x|$, $E = \max(\lfloor\log_2 a\rfloor, -126)$ and $p = 2^E$ the bits below the sign are
$2^{23}\,(a/p + E + 126)$, an exact number in double precision also where $x$ is subnormal or zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = ["add_folds"]

# Of `metrics.duplicates.row_hashes` and `estimators.reweighter.fold_of_events`, with which a test compares.
_START, _FACTOR, _HASH_SHIFT, _FOLD_SHIFT = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 29, 11
_LOWEST, _HIGHEST = -126, 127


def add_folds(graph: OnnxGraph, features: str, n_features: int, n_folds: int) -> str:
    """Add the fold of each event: `(n, d)` features in double precision to `(n,)` whole numbers."""
    single = graph.cast(features, np.float32)  # folds do not look at more, whatever the type of the input
    bits = _add_bits(graph, graph.cast(single, np.float64))
    state = graph.constant(np.array(_START, dtype=np.uint64))
    factor = graph.constant(np.array(_FACTOR, dtype=np.uint64).view(np.int64))
    for column in range(n_features):
        of_column = graph.add("Gather", bits, graph.constant(np.array(column)), axis=1)
        mixed = graph.add("BitwiseXor", state, graph.cast(of_column, np.uint64))
        # Runtimes multiply signed numbers; modulo 2^64 the product is the same.
        product = graph.cast(graph.add("Mul", graph.cast(mixed, np.int64), factor), np.uint64)
        state = graph.add("BitwiseXor", product, _shifted(graph, product, _HASH_SHIFT))
    number = graph.constant(np.array(n_folds, dtype=np.uint64))
    return graph.cast(graph.add("Mod", _shifted(graph, state, _FOLD_SHIFT), number), np.int64)


def _add_bits(graph: OnnxGraph, features: str) -> str:
    size = graph.add("Abs", features)
    normal = graph.add("Max", size, 2.0**_LOWEST)
    guess = graph.add("Floor", graph.add("Div", graph.add("Log", normal), math.log(2.0)))
    guess = graph.add("Min", graph.add("Max", guess, float(_LOWEST)), float(_HIGHEST))
    power = _add_power(graph, guess)
    too_large = graph.cast(graph.add("Greater", power, normal), np.float64)
    too_small = graph.cast(graph.add("LessOrEqual", graph.add("Mul", power, 2.0), normal), np.float64)
    exponent = graph.add("Add", graph.add("Sub", guess, too_large), too_small)
    mantissa = graph.add("Div", size, _add_power(graph, exponent))
    below_sign = graph.add(
        "Mul", graph.add("Add", mantissa, graph.add("Add", exponent, float(-_LOWEST))), 2.0**23
    )
    is_negative = graph.cast(graph.add("Less", features, 0.0), np.float64)
    return graph.cast(graph.add("Add", below_sign, graph.add("Mul", is_negative, 2.0**31)), np.int64)


def _add_power(graph: OnnxGraph, exponent: str) -> str:
    """Add two to a whole power, exactly, from a table."""
    table = graph.constant(2.0 ** np.arange(_LOWEST, _HIGHEST + 1))
    return graph.add("Gather", table, graph.cast(graph.add("Add", exponent, float(-_LOWEST)), np.int64))


def _shifted(graph: OnnxGraph, value: str, n_bits: int) -> str:
    return graph.add("BitShift", value, graph.constant(np.array(n_bits, dtype=np.uint64)), direction="RIGHT")
