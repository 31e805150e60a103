"""Options that several commands share, each written once, and options with two names.

Hyperparameters have the names of Python, `--n-members` for `n_members`. The short names of old, `--members`, mean the
same; whoever gives both is asked which one is meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from quasiratio.errors import InvalidInputError
from quasiratio.registry import ACTIVATIONS as REGISTERED_ACTIVATIONS
from quasiratio.registry import DEFAULT_METHOD, ESTIMATORS
from quasiratio.registry import LOSSES as REGISTERED_LOSSES

__all__ = [
    "ACTIVATIONS",
    "DEFAULT_METHOD",
    "INCOMPLETE",
    "LOSSES",
    "METHODS",
    "AllowLarge",
    "Features",
    "Jobs",
    "Json",
    "Labels",
    "NamePattern",
    "NamedOnce",
    "Output",
    "OutputDir",
    "Plugins",
    "Quiet",
    "ReferenceWeight",
    "Resume",
    "Scheduler",
    "Selection",
    "TargetWeight",
    "Tree",
    "Weight",
    "Weights",
    "choices",
    "listed",
    "named",
    "one_place",
    "require_unused",
    "split_files",
    "split_list",
]

METHODS, LOSSES, ACTIVATIONS = (
    tuple(name for name in registry.built_in if name not in getattr(registry, "other_fits", ()))
    for registry in (ESTIMATORS, REGISTERED_LOSSES, REGISTERED_ACTIVATIONS)
)
"""Our own of the registries, for texts of help; those of others are found when they are named."""
INCOMPLETE = 1
"""Exit code where some tasks of a study, or some of many files, failed and the rest is done."""
_NAMED = "quasiratio.cli.options.named"

Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="NAMES",
        help="Columns, patterns such as 'jet_*', elements such as 'fill(jet_pt[0], 0)' and formulas such as "
        "'ptg=pt/1000', with commas or repeated. "
        "Default: every numeric column but weights and identifiers.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=TEXT",
        help="What to call a feature or observable in figures and tables, such as 'mll=m_ll [GeV]'; may be repeated.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", metavar="EXPR", help="Signed weight, such as 'w_gen*w_pu'; 1 for none."),
]
Weights = Annotated[
    list[str] | None,
    typer.Option("--weights", metavar="NAMES", help="Several weights, the nominal one first, or patterns."),
]
Selection = Annotated[
    str | None, typer.Option("--selection", metavar="EXPR", help="Events to use, such as 'pt > 30'.")
]
ReferenceWeight = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Weight of the reference, where it differs.")
]
TargetWeight = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Weight of the target, where it differs.")
]
Tree = Annotated[
    str | None, typer.Option("--tree", metavar="NAME", help="Tree of ROOT files, where the path names none.")
]
AllowLarge = Annotated[
    bool, typer.Option("--allow-large", help="Read small .npz files that unpack to gigabytes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugins", metavar="MODULES", help="Modules with estimators, losses or activations of your own."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]


Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", help="Work file by file with N local processes.")
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Dask scheduler instead, such as tcp://node1:8786."),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="OUT", help="New .root, .parquet or .npz file of all events."),
]
OutputDir = Annotated[
    str | None,
    typer.Option(
        "--output-dir", metavar="DIR", help="Directory with one new file for each IN, instead of OUT."
    ),
]
NamePattern = Annotated[
    str | None,
    typer.Option(
        "--name-pattern",
        metavar="PATTERN",
        help="Names in DIR, out of {stem}, {suffix}, {parent} and {number}.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what an earlier run has left in DIR.")]


class NamedOnce(TyperCommand):
    """A command that knows under which of its names an option was given, and refuses two of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's context
        """Note the names in use, then parse as usual."""
        words = [word.partition("=")[0] for word in args[: args.index("--") if "--" in args else None]]
        named: dict[str, str] = {}
        for parameter in self.params:
            used = [name for name in parameter.opts if name.startswith("--") and name in words]
            if len(used) > 1:
                msg = f"Got both {used[0]} and {used[1]}, which mean the same; expected one of them. Leave one out."
                raise typer.BadParameter(msg, ctx=ctx)
            if used and parameter.name is not None:
                named[parameter.name] = used[0]
        ctx.meta[_NAMED] = named
        return super().parse_args(ctx, args)


def named(context: typer.Context, parameter: str) -> str:
    """Return the option by the name under which it was given, else by its first long one."""
    names: dict[str, str] = context.meta.get(_NAMED, {})
    options = next(one.opts for one in context.command.params if one.name == parameter)
    return names.get(parameter) or next((name for name in options if name.startswith("--")), options[-1])


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence.

    Example:
        >>> listed(["none", "coefficients", "all"])
        'none, coefficients or all'
    """
    return " or ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)


def choices(*names: str) -> Callable[[], list[str]]:
    """Return what the shell offers to complete an option with.

    Example:
        >>> choices("warn", "raise")()
        ['warn', 'raise']
    """
    return lambda: list(names)


def split_list(values: list[str] | None) -> list[str] | None:
    """Split repeated options with commas into single names; commas within brackets or backticks stay.

    Example:
        >>> split_list(["pt, eta", "max(a, b)"])
        ['pt', 'eta', 'max(a, b)']
    """
    if not values:
        return None
    return [name for value in values for name in _split(value)]


def split_files(value: str) -> list[str]:
    """Split a list of files at its commas, unless a file has that very name.

    Example:
        >>> split_files("a.root:events,b.root:events")
        ['a.root:events', 'b.root:events']
    """
    if "," not in value or os.path.exists(value):  # noqa: PTH110 - false, not an error, for impossible names
        return [value]
    return [name.strip() for name in value.split(",") if name.strip()]


def _split(text: str) -> list[str]:
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == "`"
        if not quoted:
            depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def early_workers(jobs: int | None) -> None:
    """Let a process import for the workers what takes seconds, while this one still looks at its input and imports."""
    if jobs is not None and jobs > 1:
        from quasiratio.tasks import import_early  # noqa: PLC0415 - keeps --help fast

        import_early(jobs, "quasiratio.cli.main", "quasiratio.workflows", "uproot")


def one_place(context: typer.Context, output: str | None, output_dir: str | None) -> None:
    """Raise unless one output was named, for all events or for each file, with options that belong to it."""
    if (output is None) == (output_dir is None):
        given = "both -o and --output-dir" if output is not None else "neither -o nor --output-dir"
        msg = f"Got {given}; expected one of them: a file for all events, or a directory with a file for each input."
        raise InvalidInputError(msg)
    if output is not None:
        for name in ("resume", "name_pattern"):
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                msg = (
                    f"Got {named(context, name)} with -o, which writes one file, whole or not at all; expected it with "
                    "--output-dir. Leave it out, or choose a directory."
                )
                raise InvalidInputError(msg)


def require_unused(context: typer.Context, names: tuple[str, ...]) -> None:
    """Raise where an option was given that means nothing for this kind of model."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            what = "a second sample" if name == "target" else named(context, name)
            msg = f"Got {what}, which means nothing for this kind of model; expected none. Leave it out."
            raise InvalidInputError(msg)
