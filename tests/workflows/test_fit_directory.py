"""One fit at a time in a directory, stale locks, and what an interruption leaves."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.workflows.fit_directory import FitDirectory


@pytest.fixture
def directory(tmp_path: Path) -> FitDirectory:
    return FitDirectory(tmp_path / "model")


def leave_state(directory: FitDirectory) -> None:
    (directory.partial / "stage-001.safetensors").write_text("state")


def fit_that_ends_with(end: type[BaseException], directory: FitDirectory) -> None:
    with directory.working(resume=False):
        leave_state(directory)
        raise end


def test_nothing_is_left_after_success_or_failure(directory: FitDirectory, tmp_path: Path) -> None:
    with directory.working(resume=False) as state:
        assert state.is_dir()
        leave_state(directory)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError):
        fit_that_ends_with(ZeroDivisionError, directory)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_the_state_and_no_lock(
    directory: FitDirectory, end: type[BaseException]
) -> None:
    with pytest.raises(end):
        fit_that_ends_with(end, directory)
    assert [path.name for path in directory.partial.iterdir()] == ["stage-001.safetensors"]
    with directory.working(resume=True):
        assert directory.has_state
    with pytest.raises(end):
        fit_that_ends_with(end, directory)
    with directory.working(resume=False):
        assert not directory.has_state


def test_a_fit_that_cannot_go_on_keeps_the_state(directory: FitDirectory) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit_that_ends_with(KeyboardInterrupt, directory)
    with pytest.raises(InvalidInputError), directory.working(resume=True):
        raise InvalidInputError
    assert [path.name for path in directory.partial.iterdir()] == ["stage-001.safetensors"]


def test_an_interruption_before_the_first_epoch_leaves_nothing(
    directory: FitDirectory, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt), directory.working(resume=False):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_second_fit_is_refused_while_the_first_runs(directory: FitDirectory) -> None:
    with directory.working(resume=False):
        with pytest.raises(InvalidInputError, match=f"process {os.getpid()} on .* is fitting"):
            directory.working(resume=False).__enter__()
        assert (directory.partial / "lock").is_file()


def test_the_lock_of_a_process_that_ended_does_not_count(directory: FitDirectory) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    lock = {"pid": int(ended.stdout), "host": socket.gethostname()}
    directory.partial.mkdir()
    (directory.partial / "lock").write_text(json.dumps(lock))
    leave_state(directory)
    with directory.working(resume=True):
        assert directory.has_state
        assert json.loads((directory.partial / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_lock_was_left_by_a_process_that_was_killed(directory: FitDirectory, content: str) -> None:
    directory.partial.mkdir()
    (directory.partial / "lock").write_text(content)
    leave_state(directory)
    with directory.working(resume=True):
        assert directory.has_state
        assert json.loads((directory.partial / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", ['{"pid": 1, "host": "elsewhere"}', "[]", '{"pid": "x", "host": 1}'])
def test_a_lock_that_tells_nothing_counts(directory: FitDirectory, content: str) -> None:
    directory.partial.mkdir()
    (directory.partial / "lock").write_text(content)
    with pytest.raises(InvalidInputError, match="if no fit is running, delete"):
        directory.working(resume=False).__enter__()
    assert (directory.partial / "lock").read_text() == content


def test_a_model_is_replaced_by_force_only_and_other_files_never(directory: FitDirectory) -> None:
    directory.require_writable(overwrite=False)
    directory.path.mkdir()
    directory.require_writable(overwrite=False)
    for name in ("thesis.tex", "model.json"):  # alone, then beside a model
        (directory.path / name).write_text("years of work")
        for overwrite in (False, True):
            with pytest.raises(InvalidInputError, match="something else than a model"):
                directory.require_writable(overwrite=overwrite)
    (directory.path / "thesis.tex").unlink()
    directory.require_writable(overwrite=True)
    with pytest.raises(InvalidInputError, match="overwrite=True"):
        directory.require_writable(overwrite=False)


@pytest.mark.parametrize("name", ["thesis.tex", "stage-notes", "stage-1.txt", ".hidden"])
def test_a_directory_of_the_user_that_is_called_partial_is_refused_and_kept(
    directory: FitDirectory, name: str
) -> None:
    directory.partial.mkdir()
    theirs = directory.partial / name
    theirs.write_text("years of work")
    leave_state(directory)
    for overwrite in (False, True):
        with pytest.raises(InvalidInputError, match=re.escape(name)):
            directory.require_writable(overwrite=overwrite)
    for resume in (False, True):
        with pytest.raises(InvalidInputError, match=re.escape(name)):
            directory.working(resume=resume).__enter__()
    assert theirs.read_text() == "years of work"


def test_what_appears_beside_the_state_during_a_fit_is_kept(directory: FitDirectory) -> None:
    with directory.working(resume=False):
        leave_state(directory)
        (directory.partial / ".quasiratio-0-77-abc").write_text("of a process that was killed")
        (directory.partial / "thesis.tex").write_text("years of work")
    assert [path.name for path in directory.partial.iterdir()] == ["thesis.tex"]


def test_a_pipe_as_the_lock_does_not_hang(directory: FitDirectory) -> None:
    directory.partial.mkdir()
    os.mkfifo(directory.partial / "lock")
    with pytest.raises(InvalidInputError, match="if no fit is running, delete"):
        directory.working(resume=False).__enter__()


@pytest.mark.parametrize("path", ["", ".", "..", "/"])
def test_needs_a_name(path: str) -> None:
    with pytest.raises(InvalidInputError, match="expected the name of a directory"):
        FitDirectory(Path(path)).require_writable(overwrite=True)
