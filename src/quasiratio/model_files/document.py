"""What every document in a model file has in common: strict types, nothing unknown, and JSON without loopholes.

Python's reader takes NaN, repeated keys and any depth; here each of them is an error. The checksum is that of the
canonical form (sorted keys, no spaces), so that it does not depend on the layout of the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from quasiratio.errors import InvalidInputError

__all__ = [
    "Count",
    "Document",
    "Measured",
    "Name",
    "PositiveFloat",
    "TensorSpec",
    "Text",
    "as_measured",
    "by_kind",
    "from_measured",
    "json_checksum",
    "measured_document",
    "measured_numbers",
    "one_sentence",
    "parse_object",
    "refuse_if",
]

Count = Annotated[int, Field(ge=1, le=2**31)]
PositiveFloat = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(max_length=10_000)]
Text = Annotated[str, Field(max_length=10_000)]
Measured = float | Literal["nan", "inf", "-inf"]
"""A number of a report, which may be infinite or undefined; JSON has no such numbers."""

_LONGEST_MESSAGE = 300
SomeDocument = TypeVar("SomeDocument", bound="Document")


class Document(BaseModel):
    """A strict, frozen part of `model.json`: no conversions, no unknown fields, no NaN."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class TensorSpec(NamedTuple):
    """Type (as NumPy calls it) and shape of a stored tensor."""

    dtype: Literal["float32", "float64", "int64"]
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """Size on disk, computed without allocating anything."""
        return math.prod(self.shape) * (4 if self.dtype == "float32" else 8)


def as_measured(value: float) -> Measured:
    """Write a number that may be infinite or undefined.

    Example:
        >>> as_measured(1.5), as_measured(float("-inf"))
        (1.5, '-inf')
    """
    number = float(value)
    if math.isfinite(number):
        return number
    return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")


def from_measured(value: Measured) -> float:
    """Read a number that may be infinite or undefined."""
    return float(value)


def measured_document(kind: type[SomeDocument], values: Any) -> SomeDocument:  # noqa: ANN401
    """Describe a dataclass of numbers by a document with the same fields."""
    return kind(
        **{field.name: as_measured(getattr(values, field.name)) for field in dataclasses.fields(values)}
    )


def measured_numbers(document: Document) -> dict[str, float]:
    """Return the numbers of such a document by name."""
    return {name: from_measured(getattr(document, name)) for name in type(document).model_fields}


def by_kind(find: Callable[[str], type[Document]], *, optional: bool = False) -> PlainValidator:
    """Make an entry of the type `Any` one of several documents: which, its own entry `kind` says.

    Args:
        find: Returns the document of a kind, or raises `InvalidInputError`; it decides what is known, and when asked.
        optional: Whether the entry may be `null`.
    """

    def validated(value: object) -> Document | None:
        if optional and value is None:
            return None
        kind = getattr(value, "kind", None) if isinstance(value, Document) else None
        if isinstance(value, dict):
            kind = value.get("kind")
        if not isinstance(kind, str):
            code = "kind"
            raise PydanticCustomError(code, "Input should be an object with the entry kind")
        try:
            expected = find(kind)
        except InvalidInputError as error:
            code, complaint = "kind", "{reason}"
            raise PydanticCustomError(code, complaint, {"reason": _encodable(str(error))}) from None
        if isinstance(value, expected):
            return value
        try:
            return expected.model_validate(value)
        except ValidationError as error:
            code, complaint = "part", "{detail}"
            raise PydanticCustomError(
                code, complaint, {"detail": _encodable(_first_complaint(error))}
            ) from None

    return PlainValidator(validated)


def _encodable(text: str) -> str:
    """Return a text that pydantic can write: half a surrogate pair, which JSON can hold, cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def refuse_if(is_wrong: bool, complaint: str) -> None:
    """Complain in the way pydantic expects of a validator."""
    if is_wrong:
        raise ValueError(complaint)


def one_sentence(error: ValidationError, what: str, fix: str) -> InvalidInputError:
    """Turn the first complaint of pydantic into an error of ours."""
    detail = _first_complaint(error)
    if len(detail) > _LONGEST_MESSAGE:
        detail = detail[:_LONGEST_MESSAGE] + "..."
    others = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return InvalidInputError(f"Got {what} with an invalid entry ({detail}{others}); {fix}")


def _first_complaint(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "the document"
    return " ".join(f"{place}: {first['msg']}".split())


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
