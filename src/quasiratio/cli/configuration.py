"""The configuration of a fit from a YAML file and the options, with a sentence for whatever is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quasiratio.cli.configuration_fields import FitConfiguration
from quasiratio.cli.yaml_file import read_yaml_mapping
from quasiratio.errors import InvalidInputError

__all__ = ["FitConfiguration", "fit_configuration", "partial_configuration"]

_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class _Origin:
    """Where the values came from, for messages."""

    path: Path | None
    lines: Mapping[str, int]
    overridden: frozenset[str]

    def given(self, key: str, value: object) -> str:
        shown = _shown(value)
        if self.path is None or key in self.overridden:
            return f"Got --{key.replace('_', '-')} {shown if not isinstance(value, str) else value}"
        return f"Got {key} = {shown} in line {self.lines.get(key, 1)} of {str(self.path)!r}"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        return "a very large number"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def fit_configuration(path: Path | None, options: Mapping[str, Any]) -> FitConfiguration:
    """Return the configuration of a file, if there is one, with the options that were given on top.

    Args:
        path: A YAML file, or `None`.
        options: Values by field name; they override those of the file.

    Example:
        >>> options = {"reference": "a.root", "target": "b.root", "output": "model", "members": 0}
        >>> fit_configuration(None, options)
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got --members 0; expected a whole number of at least 1 and at most 1000.
    """
    values, origin = _merged(path, options)
    try:
        configuration = FitConfiguration.model_validate(values)
    except ValidationError as error:
        raise _sentence(error, values, origin) from None
    _require_agreement(configuration, origin)
    return configuration


def partial_configuration(path: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file and the options say, checked as far as it goes; samples and output may be missing.

    Example:
        >>> partial_configuration(None, {"members": 8})
        {'members': 8}
    """
    values, _ = _merged(path, options)
    placeholders = {"reference": "reference.root", "target": "target.root", "output": "model"}
    fit_configuration(
        path, {key: value for key, value in placeholders.items() if key not in values} | dict(options)
    )
    return values


def _merged(path: Path | None, options: Mapping[str, Any]) -> tuple[dict[str, Any], _Origin]:
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    if path is not None:
        read = read_yaml_mapping(path)
        for key, value in read.values.items():
            name = key.replace("-", "_")
            if name not in FitConfiguration.model_fields:
                raise _unknown_key(key, read.lines[key], path)
            values[name], lines[name] = value, read.lines[key]
    # A key without a value is a key left out.
    values = {key: value for key, value in values.items() if value is not None} | dict(options)
    return values, _Origin(path, lines, frozenset(options))


def _unknown_key(key: str, line: int, path: Path) -> InvalidInputError:
    known = list(FitConfiguration.model_fields)
    nearest = difflib.get_close_matches(key.replace("-", "_").lower(), known, n=3)
    names = ", ".join(repr(name) for name in nearest or known)
    hint = f"the nearest {'is' if len(nearest) == 1 else 'are'} {names}" if nearest else f"expected {names}"
    return InvalidInputError(
        f"Got the unknown key {key!r} in line {line} of {str(path)!r}; {hint}. Check the spelling."
    )


def _sentence(error: ValidationError, values: Mapping[str, Any], origin: _Origin) -> InvalidInputError:
    errors = error.errors(include_url=False, include_context=False)
    first = next((one for one in errors if one["type"] != "missing"), errors[0])
    key = str(first["loc"][0])
    extra = FitConfiguration.model_fields[key].json_schema_extra
    expected = extra["expected"] if isinstance(extra, dict) else "another value"
    if first["type"] == "missing":
        name = {"reference": "REFERENCE", "target": "TARGET", "output": "-o OUTPUT"}[key]
        place = f"{key!r} in {str(origin.path)!r}" if origin.path is not None else name
        return InvalidInputError(f"Got no {place}; expected {expected}.")
    return InvalidInputError(f"{origin.given(key, values[key])}; expected {expected}.")


def _require_agreement(configuration: FitConfiguration, origin: _Origin) -> None:
    method = configuration.method
    if configuration.loss is not None and method != "direct":
        msg = (
            f"{origin.given('loss', configuration.loss)} with the method {method!r}, which has no loss to choose; "
            "expected the method 'direct'. Add --method direct, or leave the loss out."
        )
        raise InvalidInputError(msg)
    allowed = {"sign-resolved": ("none", "all"), "rosmm": ("none", "coefficients", "all")}.get(
        method, ("none",)
    )
    if configuration.tune not in allowed:
        msg = (
            f"{origin.given('tune', configuration.tune)} with the method {method!r}; "
            f"expected one of {', '.join(allowed)} with this method."
        )
        raise InvalidInputError(msg)
