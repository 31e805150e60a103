"""The configuration of a fit from a YAML file and the options, with a sentence for whatever is wrong.

Files are plain values that know their lines; nothing in them can run or blow up.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from quasiratio.cli.fit_schema import (
    OLD_NAMES,
    FitConfiguration,
    OwnFitConfiguration,
    expected,
    own_parameters,
    parameter_names,
)
from quasiratio.cli.options import listed
from quasiratio.errors import InvalidInputError
from quasiratio.io.locations import short_text
from quasiratio.registry import ESTIMATORS, load_plugins
from quasiratio.wording import value_text

__all__ = ["YamlMapping", "fit_configuration", "partial_configuration", "read_yaml_mapping"]

_MAX_DEPTH = 20


@dataclass(frozen=True)
class _Origin:
    """Where the values came from and under which names, for messages."""

    path: Path | None
    lines: Mapping[str, int]
    overridden: frozenset[str]
    names: Mapping[str, str]

    def given(self, key: str, value: object) -> str:
        shown, name = value_text(value), self.names.get(key, key)
        if self.path is None or key in self.overridden:
            return f"Got --{name.replace('_', '-')} {shown if not isinstance(value, str) else value}"
        return f"Got {name} = {shown} in line {self.lines.get(key, 1)} of {str(self.path)!r}"


def fit_configuration(path: Path | None, options: Mapping[str, Any]) -> FitConfiguration:
    """Return the configuration of a file, if there is one, with the options that were given on top.

    Args:
        path: A YAML file, or `None`.
        options: Values by field name, or by one of the old names; they override those of the file.

    Example:
        >>> options = {"reference": "a.root", "target": "b.root", "output": "model", "members": 0}
        >>> fit_configuration(None, options)
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got --members 0; expected a whole number of at least 1 and at most 1,000.
    """
    values, origin = _merged(path, options)
    plugins = values.get("plugins")
    if isinstance(plugins, str) or (
        isinstance(plugins, list) and all(isinstance(one, str) for one in plugins)
    ):
        load_plugins([plugins] if isinstance(plugins, str) else plugins)
    own = own_parameters(values.get("method"))
    for key in values:
        if key not in FitConfiguration.model_fields and key not in own:
            raise _unknown_key(key, origin, own)
    try:
        configuration = (OwnFitConfiguration if own else FitConfiguration).model_validate(values)
    except ValidationError as error:
        raise _sentence(error, values, origin) from None
    _require_agreement(configuration, origin)
    return configuration


def partial_configuration(path: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file and the options say, checked as far as it goes; samples and output may be missing.

    Example:
        >>> partial_configuration(None, {"members": 8})
        {'n_members': 8}
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
    names: dict[str, str] = {}
    if path is not None:
        read = read_yaml_mapping(path)
        for key, value in read.values.items():
            name = key.replace("-", "_")
            field = OLD_NAMES.get(name, name)
            if field in values:
                msg = (
                    f"Got both {names[field]!r} and {key!r} in lines {lines[field]} and {read.lines[key]} of {str(path)!r}, "
                    "which mean the same; expected one of them. Leave one out."
                )
                raise InvalidInputError(msg)
            values[field], lines[field], names[field] = value, read.lines[key], key
    given = {OLD_NAMES.get(key, key): value for key, value in options.items()}
    names |= {OLD_NAMES.get(key, key): key for key in options}
    # A key without a value is a key left out; one that is unknown is told, whatever its value.
    values = {
        key: value
        for key, value in values.items()
        if value is not None or key not in FitConfiguration.model_fields
    } | given
    return values, _Origin(path, lines, frozenset(given), names)


def _unknown_key(key: str, origin: _Origin, own: list[str]) -> InvalidInputError:
    known = [*FitConfiguration.model_fields, *own]
    nearest = difflib.get_close_matches(key.lower(), known, n=3)
    names = ", ".join(repr(name) for name in nearest or known)
    hint = f"the nearest {'is' if len(nearest) == 1 else 'are'} {names}" if nearest else f"expected {names}"
    return InvalidInputError(
        f"Got the unknown key {origin.names[key]!r} in line {origin.lines[key]} of {str(origin.path)!r}; {hint}. Check the "
        "spelling."
    )


def _sentence(error: ValidationError, values: Mapping[str, Any], origin: _Origin) -> InvalidInputError:
    errors = error.errors(include_url=False, include_context=False)
    first = next((one for one in errors if one["type"] != "missing"), errors[0])
    key = str(first["loc"][0])
    if first["type"] == "missing":
        name = {"reference": "REFERENCE", "target": "TARGET", "output": "-o OUTPUT"}[key]
        place = f"{key!r} in {str(origin.path)!r}" if origin.path is not None else name
        return InvalidInputError(f"Got no {place}; expected {expected(key)}.")
    return InvalidInputError(f"{origin.given(key, values[key])}; expected {expected(key)}.")


def _require_agreement(configuration: FitConfiguration, origin: _Origin) -> None:
    method = configuration.method
    if configuration.loss is not None and not configuration.is_parameter("loss"):
        others = [one for one in ESTIMATORS.methods() if "loss" in parameter_names(one)]
        msg = (
            f"{origin.given('loss', configuration.loss)} with the method {method!r}, which has no loss to choose; "
            f"expected the method {listed([repr(one) for one in others])}. Change --method, or leave the loss out."
        )
        raise InvalidInputError(msg)
    allowed = configuration.tune_choices()
    if configuration.tune not in allowed:
        msg = (
            f"{origin.given('tune', configuration.tune)} with the method {method!r}; "
            f"expected one of {', '.join(allowed)} with this method."
        )
        raise InvalidInputError(msg)


@dataclass(frozen=True)
class YamlMapping:
    """The top level of a YAML file.

    Attributes:
        path: The file.
        values: Plain values by key.
        lines: The line of each key, counted from one.
    """

    path: Path
    values: dict[str, Any]
    lines: dict[str, int]


def read_yaml_mapping(path: Path) -> YamlMapping:
    r"""Read a file whose top level is `key: value`.

    Refused are anchors and aliases (a few lines of which can stand for more than any memory holds), tags,
    repeated keys, deep nesting and files of more than a megabyte.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     file = Path(directory) / "fit.yaml"
        ...     _ = file.write_text("# comment\nmembers: 8\n")
        ...     read_yaml_mapping(file).lines
        {'members': 2}
    """
    text = short_text(path, "configuration", "a YAML file")
    try:
        _refuse_unsafe(yaml.scan(text, Loader=yaml.SafeLoader), path)
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return YamlMapping(path, {}, {})
        if not isinstance(root, yaml.MappingNode):
            raise _error(path, root.start_mark.line, "the file is no mapping; expected lines of 'key: value'")
        return _constructed(loader, root, path)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark is not None else 0
        raise _error(path, line, f"{error.problem}; expected YAML") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n")
        raise _error(
            path, line, "there is a character that YAML does not allow; expected plain text"
        ) from error


def _refuse_unsafe(tokens: Iterator[Any], path: Path) -> None:
    depth = 0
    for token in tokens:
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken):
            raise _error(
                path,
                token.start_mark.line,
                "there is an anchor (&), an alias (*) or a tag (!); write it out, and patterns in quotes",
            )
        depth += isinstance(token, yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken)
        depth += isinstance(token, yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken)
        depth -= isinstance(token, yaml.BlockEndToken | yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken)
        if depth > _MAX_DEPTH:
            raise _error(
                path, token.start_mark.line, "values are nested too deeply; expected plain values and lists"
            )


def _constructed(loader: yaml.SafeLoader, root: yaml.MappingNode, path: Path) -> YamlMapping:
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in root.value:
        line = key.start_mark.line
        if not isinstance(key, yaml.ScalarNode):
            raise _error(path, line, "a key is no plain word; expected lines of 'key: value'")
        if key.value in lines:
            raise _error(path, line, f"the key {key.value!r} stands for the second time; expected it once")
        try:
            values[key.value] = loader.construct_object(value, deep=True)
        except (ValueError, OverflowError) as error:  # dates that do not exist, numbers of any length
            raise _error(
                path, line, f"the value of {key.value!r} cannot be read; put it in quotes"
            ) from error
        lines[key.value] = line + 1
    return YamlMapping(path, values, lines)


def _error(path: Path, line: int, problem: str) -> InvalidInputError:
    return InvalidInputError(f"Got the configuration {str(path)!r}, where in line {line + 1} {problem}.")
