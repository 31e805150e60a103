"""The command that is running, as it would be typed again."""

from __future__ import annotations

import shlex
from typing import Any

import typer

__all__ = ["repeat_command"]


def repeat_command(context: typer.Context) -> str:
    """Return the command with the arguments and options that were given, quoted for a shell.

    Example:
        >>> from typer.testing import CliRunner
        >>> example = typer.Typer()
        >>> @example.command()
        ... def show(context: typer.Context, name: str, times: int = 1, loud: bool = False) -> None:
        ...     print(repeat_command(context))
        >>> result = CliRunner().invoke(example, ["a b", "--times", "2", "--loud"], prog_name="quasiratio show")
        >>> result.stdout.strip()
        "quasiratio show 'a b' --times 2 --loud"
    """
    command = ["quasiratio", *context.command_path.split()[1:]]  # however it was started
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value: Any = context.params[name]
        values = [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        if parameter.param_type_name == "argument":
            arguments += values
        elif isinstance(value, bool):
            options.append(parameter.opts[-1] if value else parameter.secondary_opts[-1])
        else:
            options += [word for one in values for word in (parameter.opts[-1], one)]
    if any(word.startswith("-") for word in arguments):
        return shlex.join([*command, *options, "--", *arguments])
    return shlex.join([*command, *arguments, *options])
