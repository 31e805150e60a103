"""Whole or not at all: full disks, interruptions, several processes, and systems that cannot swap."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quasiratio import atomic_files
from quasiratio.atomic_files import write_directory, write_file
from quasiratio.errors import InvalidInputError

OLD, NEW = {"a": b"old", "b": b"old"}, {"a": b"new", "b": b"new"}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def write(path: Path, files: dict[str, bytes]) -> None:
    write_directory(path, files, require_replaceable=lambda _: None)


@pytest.fixture(params=["swap", "two steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to replace a directory; the second is for file systems that cannot swap."""
    if request.param == "two steps":
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_a_directory_is_written_and_replaced(tmp_path: Path) -> None:
    write(tmp_path / "model", OLD)
    write(tmp_path / "model", NEW)
    assert content(tmp_path / "model") == NEW
    assert names(tmp_path) == ["model"]


def test_this_system_can_swap(tmp_path: Path) -> None:
    if sys.platform not in ("linux", "darwin"):
        pytest.skip("no such call")
    for name, files in (("one", OLD), ("two", NEW)):
        write(tmp_path / name, files)
    assert atomic_files._exchange(tmp_path / "one", tmp_path / "two")
    assert content(tmp_path / "one") == NEW
    assert content(tmp_path / "two") == OLD
    with pytest.raises(FileNotFoundError):
        atomic_files._exchange(tmp_path / "one", tmp_path / "none")


@pytest.mark.usefixtures("way")
def test_an_empty_directory_and_a_link_are_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", OLD)
    assert (tmp_path / "link").is_symlink()
    write(tmp_path / "link", NEW)
    assert content(tmp_path / "real") == NEW
    assert names(tmp_path) == ["link", "real"]


def test_others_may_read_what_is_written(tmp_path: Path) -> None:
    """Temporary directories are private by default; a model is not."""
    mask = os.umask(0o022)
    try:
        write(tmp_path / "model", OLD)
        write_file(tmp_path / "graph", b"bytes")
    finally:
        os.umask(mask)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "model" / "a").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "graph").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("moment", ["write", "sync", "rename", "second rename"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_failure_at_any_moment_leaves_the_old(
    moment: str, error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "model", OLD)
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    def fail_on_second(real: Callable[..., Any]) -> Callable[..., Any]:
        calls: list[int] = []

        def rename(*arguments: Any) -> Any:
            calls.append(1)
            return fail() if len(calls) == 3 else real(*arguments)  # taken, aside, in

        return rename

    if moment == "write":
        monkeypatch.setattr(atomic_files, "_write", fail)
    elif moment == "sync":
        monkeypatch.setattr(os, "fsync", fail)
    elif moment == "rename":
        monkeypatch.setattr(Path, "rename", fail)
        monkeypatch.setattr(Path, "replace", fail)
    else:
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
        monkeypatch.setattr(Path, "rename", fail_on_second(Path.rename))
        monkeypatch.setattr(Path, "replace", fail)
    expected = KeyboardInterrupt if error is KeyboardInterrupt else InvalidInputError
    with pytest.raises(expected):
        write(tmp_path / "model", NEW)
    with pytest.raises(expected):
        write_file(tmp_path / "file", b"new")
    monkeypatch.undo()
    assert content(tmp_path / "model") == OLD
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file", "model"]


LIMITED = """
import resource, sys
from pathlib import Path
from quasiratio.errors import InvalidInputError
from quasiratio.atomic_files import write_directory, write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
for write in (
    lambda: write_directory(Path(sys.argv[1], "model"), {"a": b"n" * 9_000, "b": b"n" * 11_000}, require_replaceable=lambda _: None),
    lambda: write_file(Path(sys.argv[1], "file"), b"n" * 11_000),
):
    try:
        write()
    except InvalidInputError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_full_disk_is_one_sentence_and_leaves_the_old(tmp_path: Path) -> None:
    """The system itself refuses to write on, here because of a limit on the size of files."""
    write(tmp_path / "model", OLD)
    (tmp_path / "file").write_bytes(b"old")
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("Could not write") and "untouched" in line for line in lines)
    assert content(tmp_path / "model") == OLD
    assert names(tmp_path) == ["file", "model"]


MANY = """
import sys
from pathlib import Path
from quasiratio import atomic_files
if sys.argv[2] == "two steps":
    atomic_files._exchange = lambda *_: False
for round in range(12):
    files = {name: sys.argv[3].encode() * 1000 for name in "ab"}
    atomic_files.write_directory(Path(sys.argv[1], "model"), files, require_replaceable=lambda _: None)
"""


def _read_together(directory: Path) -> list[bytes]:
    """Read both files of the directory that has the name now."""
    anchor = os.open(directory, os.O_RDONLY)
    try:
        contents = []
        for name in "ab":
            with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=anchor), "rb") as file:
                contents.append(file.read())
        return contents
    finally:
        os.close(anchor)


@pytest.mark.skipif(os.name != "posix", reason="no directory descriptors there")
def test_several_processes_never_mix_their_files(tmp_path: Path, way: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path), way, letter], stderr=subprocess.PIPE)
        for letter in "xyz"
    ]
    try:
        while any(writer.poll() is None for writer in writers):
            time.sleep(0.001)  # leave the processor to the writers
            with contextlib.suppress(FileNotFoundError):  # not there yet, or removed while reading
                assert len(set(_read_together(tmp_path / "model"))) == 1
    finally:
        for writer in writers:
            writer.kill()
        results = [(writer.communicate()[1], writer.returncode) for writer in writers]
    assert results == [(b"", 0)] * 3
    final = content(tmp_path / "model")
    assert final["a"] == final["b"]
    assert names(tmp_path) == ["model"]


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc there")
def test_a_place_that_cannot_be_written_is_one_sentence() -> None:
    for attempt in (lambda: write(Path("/proc/model"), NEW), lambda: write_file(Path("/proc/file"), b"new")):
        with pytest.raises(InvalidInputError, match=r"Could not write '/proc/\w+' \(.*\); expected a place"):
            attempt()
