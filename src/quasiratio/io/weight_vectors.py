"""Several weights per event, from as many columns or from one column with a vector: all there, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.io.column import unknown_column
from quasiratio.io.table import Table

if TYPE_CHECKING:
    from quasiratio.io.expression.evaluation import Expression

__all__ = ["read_weight_vectors"]

FloatArray = npt.NDArray[np.float64]
_SHOWN = 5


def read_weight_vectors(
    table: Table,
    n_weights: int,
    *,
    columns: Sequence[str] | None = None,
    branch: str | None = None,
    selection: Expression | None = None,
) -> FloatArray:
    """Return the weights of all (selected) events, `(n, n_weights)`.

    Events whose vector is empty, or has another length, are counted and refused: what is missing is never filled in.

    Args:
        table: Where to read.
        n_weights: Weights of each event.
        columns: One column per weight.
        branch: One column with a vector of all weights, such as `LHEReweightingWeight`.
        selection: Events to read.

    Example:
        >>> import tempfile
        >>> from quasiratio.io import open_table
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/a.npz", w0=[1.0, 2.0], w1=[3.0, -1.0])
        ...     read_weight_vectors(open_table(f"{directory}/a.npz"), 2, columns=["w0", "w1"]).tolist()
        [[1.0, 3.0], [2.0, -1.0]]
    """
    if (columns is None) == (branch is None):
        msg = "Got both columns and a branch of weights, or neither; expected one of them."
        raise InvalidInputError(msg)
    parts: list[FloatArray] = []
    if columns is not None:
        table.require_numbers(columns)
        for chunk in table.chunks(columns, selection=selection):
            parts.append(np.column_stack([np.asarray(chunk[name], dtype=np.float64) for name in columns]))
        return np.concatenate(parts) if parts else np.empty((0, n_weights))
    name = str(branch)
    if name not in table.columns:
        raise unknown_column(name, table.columns, source=table.label)
    if table.columns[name].kind != "jagged":
        msg = f"Got {name!r} as a vector of weights, which is a column of kind {table.columns[name].kind}; expected a vector."
        raise InvalidInputError(msg)
    bad: list[int] = []
    n_empty = n_read = 0
    for chunk in table.chunks([name], selection=selection):
        lengths, values = _vectors(chunk[name])
        wrong = np.flatnonzero(lengths != n_weights)
        n_empty += int(np.sum(lengths == 0))
        bad += (wrong + n_read).tolist()
        n_read += len(lengths)
        if not bad:
            parts.append(values.reshape(-1, n_weights))
    if bad:
        shown = ", ".join(str(number) for number in bad[:_SHOWN])
        msg = (
            f"Got {len(bad)} of {n_read} events of {table.label!r} with other than {n_weights} weights in {name!r} ({n_empty} with "
            f"none), such as number {shown}; expected one weight per point in every event. Check that the points are those of "
            "this sample, or select the events that have them all."
        )
        raise InvalidInputError(msg)
    return np.concatenate(parts) if parts else np.empty((0, n_weights))


def _vectors(values: object) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the number of weights of each event, and all weights in a row."""
    if isinstance(values, np.ndarray):
        return np.full(len(values), values.shape[1]), values.astype(np.float64).reshape(-1)
    import awkward as ak  # noqa: PLC0415 - optional

    return ak.to_numpy(ak.num(values)), ak.to_numpy(ak.flatten(values)).astype(np.float64)
