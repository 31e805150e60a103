"""A directory of outputs: what its list of files may reach, and what is left of a command before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.outputs import output_directory, publish_directory, require_output_name


def finished(here: Path, *names: str) -> Path:
    directory = here / ".quasiratio-finished"
    directory.mkdir()
    for name in names:
        (directory / name).write_text("new")
    return directory


def listed(report: Path, files: Any) -> None:
    (report / ".quasiratio.json").write_text(json.dumps({"command": "evaluate", "files": files}))


def test_files_of_the_run_before_are_removed_and_others_kept(tmp_path: Path) -> None:
    report = tmp_path / "report"
    publish_directory(finished(tmp_path, "report.html", "old.png"), report, command="evaluate")
    (report / "mine.txt").write_text("mine")
    publish_directory(finished(tmp_path, "report.html"), report, command="evaluate")
    assert {path.name for path in report.iterdir()} == {".quasiratio.json", "mine.txt", "report.html"}


def test_a_list_that_was_edited_reaches_nothing_outside_its_directory(tmp_path: Path) -> None:
    report = tmp_path / "report"
    (report / "inside").mkdir(parents=True)
    victims = [tmp_path / "victim.txt", report / "inside" / "deep.txt"]
    for victim in victims:
        victim.write_text("years of work")
    names = [
        "../victim.txt",
        str(victims[0]),
        "inside/deep.txt",
        "inside",
        "",
        ".",
        "..",
        7,
        None,
        ["x"],
        "a\0b",
    ]
    listed(report, names)
    publish_directory(finished(tmp_path, "report.html"), report, command="evaluate")
    assert [victim.read_text() for victim in victims] == ["years of work"] * 2
    assert json.loads((report / ".quasiratio.json").read_text())["files"] == ["report.html"]


@pytest.mark.parametrize("files", [["../mine.txt"], 3, None, {"mine.txt": 1}.__repr__(), [["mine.txt"]]])
def test_a_list_that_names_no_files_owns_none(tmp_path: Path, files: Any) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    listed(tmp_path, files)
    with pytest.raises(InvalidInputError, match=r"mine\.txt"):
        output_directory(tmp_path, command="evaluate", overwrite=False)


@pytest.mark.parametrize("name", ["", " ", "\t", "\n", "a\nb", "a\0b", "a\x1b[2J", ".", "..", "/"])
def test_names_that_nobody_means_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="expected the name of a directory"):
        require_output_name(name, "directory")


def test_names_with_spaces_quotes_and_letters_of_any_kind_are_names() -> None:
    for name in ("my model", "it's", "\N{GREEK SMALL LETTER PHI}", "`"):
        assert require_output_name(name, "directory").name == name
