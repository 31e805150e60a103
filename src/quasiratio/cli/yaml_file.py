"""YAML files as plain values that know their lines; nothing in them can run or blow up."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from quasiratio.errors import InvalidInputError

__all__ = ["YamlMapping", "read_yaml_mapping"]

_MAX_BYTES = 1_000_000
_MAX_DEPTH = 20


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
    text = _text(path)
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


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody to write into it
            msg = f"Got the configuration {str(path)!r}, which is no regular file; expected a YAML file. Check the path."
            raise InvalidInputError(msg)
        if status.st_size > _MAX_BYTES:
            msg = f"Got the configuration {str(path)!r} of more than a megabyte; expected a short YAML file."
            raise InvalidInputError(msg)
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"Got the configuration {str(path)!r}, which is no UTF-8 text; expected a YAML file."
        raise InvalidInputError(msg) from error
    except OSError as error:
        msg = f"Got the configuration {str(path)!r}, which cannot be read ({error.strerror}). Check the path."
        raise InvalidInputError(msg) from error


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
