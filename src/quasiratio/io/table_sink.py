"""What a writer of one format offers, and how the arrays it is given are described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np

from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.elements import is_awkward

__all__ = ["Compression", "TableSink", "column_of", "is_utf8"]

Compression = Literal["zstd", "lz4", "zlib"]

_OBJECT = np.dtype(object)


class TableSink(Protocol):
    """A file that grows by chunks of events. Its name is temporary; the caller moves it when it is complete."""

    def unwritable(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> list[str]:
        """Return the columns of the first chunk that this format cannot hold."""
        ...

    def append(self, columns: Mapping[str, Column], chunk: Mapping[str, Any]) -> None:
        """Write the events of one chunk; the columns are the same each time."""
        ...

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write what comes last, and close the file."""
        ...

    def abandon(self) -> None:
        """Close the file without completing it."""
        ...


def column_of(name: str, values: Any) -> Column:  # noqa: ANN401 - NumPy or awkward
    """Describe an array that is to be written.

    Example:
        >>> column_of("pt", np.zeros(3, "f4")).kind, column_of("p", np.zeros((3, 4))).kind
        ('float', 'jagged')
    """
    if not is_awkward(values):
        dtype = values.dtype.newbyteorder("=")
        numeric = kind_of_dtype(dtype) in {"float", "integer", "boolean"}
        if values.ndim == 2 and numeric:
            return Column(name, "jagged", dtype)
        return Column(name, kind_of_dtype(dtype) if values.ndim == 1 else "other", dtype)
    import awkward as ak  # noqa: PLC0415 - optional

    content = ak.type(values).content
    if isinstance(content, ak.types.OptionType) and content.content.parameters.get("__array__") == "string":
        return Column(name, "text", _OBJECT)
    if content.parameters.get("__array__") == "string":
        return Column(name, "text", _OBJECT)
    is_list = isinstance(content, ak.types.ListType | ak.types.RegularType)
    inner = content.content if is_list else content
    if isinstance(inner, ak.types.UnknownType) and is_list:
        return Column(name, "jagged", np.dtype(np.float64))
    if not isinstance(inner, ak.types.NumpyType) or inner.parameters.get("__array__") is not None:
        return Column(name, "other", _OBJECT)
    dtype = np.dtype(inner.primitive)
    kind = kind_of_dtype(dtype)
    if is_list and kind in {"float", "integer", "boolean"}:
        return Column(name, "jagged", dtype)
    return Column(name, kind, dtype) if kind != "other" and not is_list else Column(name, "other", _OBJECT)


def is_utf8(name: str) -> bool:
    r"""Whether a name can be encoded; names read from damaged or old files sometimes cannot.

    Example:
        >>> is_utf8("p\u2081"), is_utf8("p\udcff")
        (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
