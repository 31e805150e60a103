"""JSON without loopholes: one reading of every document, and one checksum.

Python's reader takes NaN, repeated keys and any depth; here each of them is an error. The checksum is that
of the canonical form (sorted keys, no spaces), so that it does not depend on the layout of the file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from quasiratio.errors import InvalidInputError

__all__ = ["json_checksum", "parse_object"]


def parse_object(content: bytes, what: str) -> dict[str, Any]:
    """Read a JSON object, or raise with a sentence that names `what`.

    Example:
        >>> parse_object(b'{"a": [1, 2.5]}', "model.json")
        {'a': [1, 2.5]}
        >>> parse_object(b'{"a": NaN}', "model.json")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got model.json, which is no valid JSON (NaN is no JSON number)...
    """
    try:
        document = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        msg = (
            f"Got {what}, which is no valid JSON ({reason}); it is truncated or damaged. "
            "Restore it from a copy, or save the model again."
        )
        raise InvalidInputError(msg) from None
    if not isinstance(document, dict):
        msg = f"Got {what} with a JSON {type(document).__name__}; expected an object. Save the model again."
        raise InvalidInputError(msg)
    return document


def json_checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical form.

    Example:
        >>> json_checksum({"b": 1, "a": 2}) == json_checksum({"a": 2, "b": 1})
        True
    """
    try:
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"Got a document that JSON cannot hold ({error}); expected finite numbers, strings and lists."
        raise InvalidInputError(msg) from None
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        msg = "a key occurs twice"
        raise ValueError(msg)
    return document


def _no_constant(name: str) -> float:
    msg = f"{name} is no JSON number"
    raise ValueError(msg)
