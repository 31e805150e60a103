"""`study all`: every study in its folder, one page, what is missing named; and a study that is one folder."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import quasiratio.studies
from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.studies import Presentation, Result, Row, Study, Task
from quasiratio.studies.engine import all_studies
from quasiratio.studies.engine.all_studies import conduct_all_studies
from quasiratio.studies.engine.conduct import StudyOptions
from quasiratio.studies.engine.registry import study_by_name, study_names

NEW_STUDY = """
from quasiratio.studies import Presentation, Row, Study, Task

def tasks(settings):
    return [Task(f"seed-{s}", {"seed": s}, rows=[f"square-{s}"]) for s in range(settings["seeds"])]

def compute(arguments):
    yield Row(f"square-{arguments['seed']}", {"value": arguments["seed"] ** 2})

def present(settings, rows):
    return Presentation(f"{len(rows)} squares.")

STUDY = Study("squares-of-seeds", "What are squares?", {"smoke": {"seeds": 3}}, tasks, compute, present)
"""


@pytest.fixture
def new_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A study that is one folder, and nothing else."""
    folder = tmp_path / "elsewhere" / "squares_of_seeds"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(NEW_STUDY)
    monkeypatch.setattr(
        quasiratio.studies, "__path__", [*quasiratio.studies.__path__, str(tmp_path / "elsewhere")]
    )
    monkeypatch.delitem(sys.modules, "quasiratio.studies.squares_of_seeds", raising=False)
    return "squares-of-seeds"


def test_a_study_is_one_folder(new_study: str) -> None:
    assert study_names()[-1] == new_study
    assert study_by_name(new_study).question == "What are squares?"
    found = study_by_name(new_study)
    rows = [row for task in found.tasks({"seeds": 2}) for row in found.compute(dict(task.arguments))]
    assert found.present({}, rows) is not None
    assert study_names()[:-1] == ["signed-gaussians", "loss-landscapes", "weight-variance", "smeft-hh"]


def squares(name: str) -> Study:
    return Study(name, f"What are {name}?", {"smoke": {"seeds": 3}}, tasks, compute, present)


def tasks(settings):
    return [Task(f"seed-{s}", {"seed": s}, rows=[f"square-{s}"]) for s in range(settings["seeds"])]


def compute(arguments):
    yield Row(f"square-{arguments['seed']}", {"value": arguments["seed"] ** 2})


def present(settings, rows):
    from quasiratio.plots import weight_figure
    from quasiratio.report import Picture

    picture = Picture(weight_figure({"weights": [1.0, -0.5]}), "Weights.", f"Weights of {settings['seeds']}")
    total = float(sum(row.values["value"] for row in rows))
    return Presentation(f"{len(rows)} squares.", pictures={"w": picture}, results=[Result("sum", total)])


def no_extra(_):
    raise MissingExtraError("Got no pythia8mc; expected the extra gghh.")


@pytest.fixture
def two_studies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Study]:
    known = {"squares": squares("squares"), "cubes": replace(squares("cubes"), tasks=no_extra)}
    monkeypatch.setattr(all_studies, "study_names", lambda: list(known))
    monkeypatch.setattr(all_studies, "study_by_name", known.__getitem__)
    return known


def run(directory: Path, **options) -> tuple[bool, list[str]]:
    said: list[str] = []
    chosen = StudyOptions(preset="smoke", jobs=1, **options)
    complete = conduct_all_studies(
        directory, chosen, command="quasiratio study all", say=said.append, quiet=True
    )
    return complete, said


@pytest.mark.usefixtures("two_studies")
def test_one_page_links_every_report_and_shows_every_figure(tmp_path: Path) -> None:
    complete, said = run(tmp_path / "out")
    assert not complete
    assert any("extra gghh" in line for line in said)
    page = (tmp_path / "out" / "index.html").read_text()
    assert re.findall(r'<a href="([^#"][^"]*)"', page) == ["squares/report.html"]
    assert (tmp_path / "out" / "squares" / "report.html").exists()
    assert page.count("<img src=") == 1
    assert "Weights of 3" in page
    assert "1 of 2 studies are complete" in page
    assert "expected the extra gghh" in page


@pytest.mark.slow
def test_what_was_missing_is_resumed_and_what_is_there_is_not_computed_again(
    tmp_path: Path, two_studies: dict[str, Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run(out)
    store = out / "squares" / "results.sqlite"
    before = store.stat().st_mtime_ns
    with pytest.raises(InvalidInputError, match="holds results of a study"):
        run(out)
    assert store.stat().st_mtime_ns == before
    two_studies["cubes"] = squares("cubes")
    monkeypatch.setattr(all_studies, "study_by_name", two_studies.__getitem__)
    complete, _ = run(out, resume=True)
    assert complete
    assert "2 of 2 studies are complete" in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("options", "match"), [({"methods": ["mlp"]}, "methods"), ({"seeds": 0}, "at least 1")]
)
def test_what_belongs_to_one_study_is_refused(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    chosen = StudyOptions(preset="smoke", jobs=1, **options)
    with pytest.raises(InvalidInputError, match=match):
        conduct_all_studies(tmp_path / "out", chosen, command="", say=print)
    assert not (tmp_path / "out").exists()
