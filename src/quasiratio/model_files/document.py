"""What every document in a model file has in common: strict types, and nothing unknown."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quasiratio.errors import InvalidInputError

__all__ = [
    "Count",
    "Document",
    "Measured",
    "Name",
    "PositiveFloat",
    "TensorSpec",
    "as_measured",
    "from_measured",
    "one_sentence",
    "refuse_if",
]

Count = Annotated[int, Field(ge=1, le=2**31)]
PositiveFloat = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(max_length=10_000)]
Measured = float | Literal["nan", "inf", "-inf"]
"""A number of a report, which may be infinite or undefined; JSON has no such numbers."""

_LONGEST_MESSAGE = 300


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


def refuse_if(is_wrong: bool, complaint: str) -> None:
    """Complain in the way pydantic expects of a validator."""
    if is_wrong:
        raise ValueError(complaint)


def one_sentence(error: ValidationError, what: str, fix: str) -> InvalidInputError:
    """Turn the first complaint of pydantic into an error of ours."""
    first: Any = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "the document"
    detail = " ".join(f"{place}: {first['msg']}".split())
    if len(detail) > _LONGEST_MESSAGE:
        detail = detail[:_LONGEST_MESSAGE] + "..."
    others = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return InvalidInputError(f"Got {what} with an invalid entry ({detail}{others}); {fix}")
