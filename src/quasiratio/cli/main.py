"""The `quasiratio` command.

Each command is a function in a file of its own that imports what it needs when it runs, so that
`quasiratio --help` stays fast. To add one: write `cli/commands/<name>.py` and register it below.
"""

from __future__ import annotations

from typing import Annotated

import typer

from quasiratio.cli.commands.apply import apply
from quasiratio.cli.commands.demo import demo
from quasiratio.cli.commands.eft import eft_app
from quasiratio.cli.commands.evaluate import evaluate
from quasiratio.cli.commands.export import export
from quasiratio.cli.commands.fit import fit
from quasiratio.cli.commands.generate import generate_app
from quasiratio.cli.commands.inspect import inspect
from quasiratio.cli.commands.models import models_app
from quasiratio.cli.commands.positive import positive
from quasiratio.cli.commands.study import study
from quasiratio.cli.one_sentence_errors import OneSentenceErrors
from quasiratio.cli.options import NamedOnce

__all__ = ["app"]

app = typer.Typer(
    name="quasiratio",
    cls=OneSentenceErrors,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        import quasiratio  # noqa: PLC0415 - only here

        typer.echo(f"quasiratio {quasiratio.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def quasiratio_command(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Likelihood ratios and event reweighting when weights and densities may be negative."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("demo", cls=NamedOnce)(demo)
app.command("inspect", cls=NamedOnce)(inspect)
app.add_typer(generate_app, name="generate")
app.command("fit", cls=NamedOnce)(fit)
app.command("apply", cls=NamedOnce)(apply)
app.command("evaluate", cls=NamedOnce)(evaluate)
app.command("positive", cls=NamedOnce)(positive)
app.command("study", cls=NamedOnce)(study)
app.command("export", cls=NamedOnce)(export)
app.add_typer(models_app, name="models")
app.add_typer(eft_app, name="eft")
