"""The generated table of hostile command lines: exit code 0 or 2, one sentence of ours, nothing lost and nothing left."""

from __future__ import annotations

import io
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import typer
from tests.cli.hostile_cases import Case, hostile_cases, make_files

from quasiratio.cli.main import app

CASES = hostile_cases()
FOREIGN = re.compile(
    r"Traceback|pydantic|validation error|torch\.|numpy\.|yaml\.|Errno|\w(Error|Exception)\b|object at 0x"
)
"""What other libraries say, and nobody should read."""
PROGRESS = re.compile(r"^(Warning: |fitted |.{,40}: step \d+ of \d+|.{,60}\d+ of \d+)")
COMMAND: Any = typer.main.get_command(app)
LONGEST, PART, COSTLY_PART = 800, 4, 10
"""One cheap case in so many is tried by `make test`, all by `make test-all`."""


@pytest.fixture(scope="module")
def place(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a model and everything that cases read."""
    directory = tmp_path_factory.mktemp("hostile")
    shutil.copytree(prepared / "model", directory / "model")
    make_files(directory)
    return directory


def listing(directory: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file, and the directories."""
    found = {}
    for path in directory.rglob("*"):
        status = path.lstat()
        is_directory = path.is_dir() and not path.is_symlink()
        found[str(path.relative_to(directory))] = (
            (0, 0) if is_directory else (status.st_size, status.st_mtime_ns)
        )
    return found


def run(arguments: list[str]) -> tuple[int | None, BaseException | None, str]:
    """Return code, exception and standard error of a command, without making all commands anew as a runner does."""
    err = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        try:
            return COMMAND.main(args=arguments, standalone_mode=False), None, err.getvalue()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            return None, error, err.getvalue()


def broken_laws(case: Case, place: Path) -> list[str]:
    """Run a case and return what it did that no case may do."""
    for name, content in (case.files or {}).items():
        (place / name).write_text(content, encoding="utf-8")
    before = listing(place)
    code, error, text = run(case.arguments)
    after = listing(place)
    lines = [line for line in text.splitlines() if not PROGRESS.match(line)]
    broken = []
    if error is not None:
        broken.append(f"raised {error!r}")
    elif code == 2:
        if len(lines) != 1 or not lines[0].startswith("Error: "):
            broken.append(f"said {text!r}")
        elif FOREIGN.search(lines[0]) or len(lines[0]) > LONGEST:
            broken.append(f"used other people's words, or many: {lines[0]}")
    elif code != 0:
        broken.append(f"ended with {code}")
    elif lines or case.is_refused:
        broken.append(f"passed, and said {text!r}")
    changed = [name for name in before if after.get(name) != before[name]]
    made = [name for name in after if name not in before]
    asked = [value for option, value in pairwise(case.arguments) if option == "-o"]
    asked += [one.removeprefix("--cache=") for one in case.arguments if one.startswith("--cache=")]
    names = ("out", *(re.split(r"[/:]", value)[0] or value for value in asked if value.strip("/")))
    if changed:
        broken.append(f"changed {changed}")
    if code != 0 and made:
        broken.append(f"left {made}")
    if not all(name.startswith(names) for name in made):
        broken.append(f"made {made}")
    for name in sorted([*made, *(case.files or {})], reverse=True):
        path = place / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return broken


def test_no_cheap_case_breaks_a_law(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right with one of these options, files and texts is right with most; the whole table is slow."""
    monkeypatch.chdir(place)
    cases = [case for case in CASES if case.is_cheap][::PART]
    assert len(cases) > 250
    broken = {case.name: found for case in cases if (found := broken_laws(case, place))}
    assert not broken


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PART))
def test_no_other_cheap_case_breaks_a_law(place: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.chdir(place)
    cases = [case for case in CASES if case.is_cheap][part::PART]
    assert not {case.name: found for case in cases if (found := broken_laws(case, place))}


@pytest.mark.slow  # each of them trains or generates; all of them would take an hour
def test_no_costly_case_of_a_sample_breaks_a_law(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    # By name, so that a new option does not choose others.
    cases = [case for case in CASES if not case.is_cheap and crc32(case.name.encode()) % COSTLY_PART == 0]
    assert len(cases) > 50
    assert not {case.name: found for case in cases if (found := broken_laws(case, place))}


def test_every_command_is_in_the_table() -> None:
    """A new command needs a line in BASE; its options are then tried by themselves."""
    assert len(CASES) > 4000
    assert len({case.name for case in CASES}) == len(CASES)
