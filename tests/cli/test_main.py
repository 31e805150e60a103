"""The command as a whole: help, version, errors in one sentence, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner

import quasiratio
from quasiratio.cli.main import app
from quasiratio.cli.one_sentence_errors import OneSentenceErrors
from quasiratio.errors import InvalidInputError, MissingExtraError, SupportWarning

SCRIPT = Path(sys.executable).with_name("quasiratio")


def app_that_raises(error: BaseException) -> typer.Typer:
    failing = typer.Typer(cls=OneSentenceErrors, pretty_exceptions_enable=False)

    @failing.callback()
    def group() -> None:
        pass

    @failing.command("fail")
    def fail() -> NoReturn:
        raise error

    return failing


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_the_commands(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "demo" in result.stdout


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"quasiratio {quasiratio.__version__}\n")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (InvalidInputError("Got\n  nothing; expected more."), 2, "Error: Got nothing; expected more.\n"),
        (MissingExtraError("Install it."), 2, "Error: Install it.\n"),
        (typer.BadParameter("no."), 2, "Error: Invalid value: no. See 'root fail --help'.\n"),
        (KeyboardInterrupt(), 130, "Error: Interrupted.\n"),
    ],
)
def test_expected_errors_are_one_sentence(error: BaseException, code: int, sentence: str) -> None:
    result = CliRunner().invoke(app_that_raises(error), ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", sentence)


def test_a_defect_keeps_its_traceback() -> None:
    result = CliRunner().invoke(app_that_raises(ZeroDivisionError("ours")), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--nonsense"],
            "Got the option '--nonsense', which 'quasiratio' does not have. See 'quasiratio --help'.",
        ),
        (["inspekt"], "No such command 'inspekt'. Did you mean 'inspect'? See 'quasiratio --help'."),
        (["demo", "--event", "3"], "the nearest is '--events'. See 'quasiratio demo --help'."),
        (["demo", "--events", "many"], "'--events'"),
        (["models", "show"], "Missing argument 'MODEL'. See 'quasiratio models show --help'."),
    ],
)
def test_bad_usage_is_one_sentence_with_a_hint(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert sentence in result.stderr


def test_a_group_without_a_command_shows_its_help() -> None:
    result = CliRunner().invoke(app, ["models"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "show" in result.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("quasiratio ins", "inspect"),
        ("quasiratio fit --me", "--method"),
        ("quasiratio fit --method ro", "rosmm"),
    ],
)
def test_the_shell_completes_commands_options_and_choices(words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "_QUASIRATIO_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([SCRIPT], env=environment, check=True, capture_output=True, text=True)
    assert expected in done.stdout.split()


def test_other_warnings_come_out_as_python_has_them() -> None:
    warning_app = typer.Typer(cls=OneSentenceErrors)

    @warning_app.callback()
    def group() -> None:
        pass

    @warning_app.command("warn")
    def warn() -> None:
        for _ in range(2):
            warnings.warn("ours\nagain", SupportWarning, stacklevel=1)
        warnings.warn("theirs", ResourceWarning, stacklevel=1)

    with pytest.warns(ResourceWarning, match="theirs"):
        result = CliRunner().invoke(warning_app, ["warn"], catch_exceptions=False)
    assert result.stderr == "Warning: ours again\n"


def imported_by(code: str) -> Callable[[str], bool]:
    listing = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return lambda name: name in listing


def test_help_imports_nothing_heavy() -> None:
    imported = imported_by("import quasiratio.cli.main")
    assert imported("typer")
    heavy = ("torch", "sklearn", "matplotlib", "scipy", "boost_histogram", "numpy", "pandas")
    assert [name for name in heavy if imported(name)] == []


def test_the_installed_script_runs() -> None:
    result = subprocess.run([SCRIPT, "--version"], check=True, capture_output=True, text=True)
    assert result.stdout.startswith("quasiratio ")
    assert result.stderr == ""


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_objects_left_half_made_by_an_interruption_are_dropped_in_silence(
    error: BaseException, code: int
) -> None:
    """As a ZipFile that was interrupted in its constructor, which then cannot be closed."""

    class HalfMade:
        def __init__(self) -> None:
            raise error

        def __del__(self) -> None:
            raise AttributeError("never finished")

    interrupted = typer.Typer(cls=OneSentenceErrors)

    @interrupted.callback()
    def group() -> None:
        pass

    @interrupted.command("write")
    def write() -> None:
        HalfMade()

    complaints: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, complaints.append
    try:
        assert CliRunner().invoke(interrupted, ["write"]).exit_code == code
        error.__traceback__ = None  # whatever the exception still holds goes now
    finally:
        sys.unraisablehook = before
    assert complaints == []


@pytest.mark.parametrize(
    ("command", "name", "old"),
    [
        *(
            ("fit", name, old)
            for name, old in (("n-members", "members"), ("n-folds", "folds"), ("max-steps", "steps"))
        ),
        *(("fit", name, old) for name, old in (("random-state", "seed"), ("n-threads", "threads"))),
        *(("positive", name, old) for name, old in (("n-members", "members"), ("random-state", "seed"))),
        *(("demo", name, old) for name, old in (("random-state", "seed"), ("n-events", "events"))),
        ("evaluate", "n-bins", "bins"),
    ],
)
def test_an_option_with_two_names_is_given_once(command: str, name: str, old: str) -> None:
    result = CliRunner().invoke(app, [command, f"--{name}", "3", f"--{old}=3"])
    assert result.exit_code == 2
    assert f"Got both --{name} and --{old}, which mean the same; expected one of them." in result.stderr


def test_a_wrong_value_is_told_by_the_name_that_was_given() -> None:
    for option in ("--n-members", "--members"):
        result = CliRunner().invoke(app, ["fit", "a.npz", "b.npz", "-o", "m", option, "0"])
        assert f"Got {option} 0; expected a whole number" in result.stderr
