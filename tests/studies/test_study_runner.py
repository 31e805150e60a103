"""The runner: rows, failures, workers that die, what is left of an interrupted run, and the files of a study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.progress import study_progress
from quasiratio.studies.engine.conduct import StudyOptions, conduct_study, resolved_settings, run_study
from quasiratio.studies.engine.registry import study_by_name, study_names
from quasiratio.tasks.executors import dask_workers, local_workers

HERE = Path(__file__).parent


def run(directory: Path, *, jobs: int = 1, show=None, **options):
    from tests.studies import toy_study

    with local_workers(jobs) as pool:
        return run_study(
            toy_study.STUDY, toy_study.settings(directory, **options), directory, pool, show=show
        )


def test_every_row_is_stored_and_progress_reaches_the_end(tmp_path: Path) -> None:
    seen: list[tuple[float, float]] = []
    outcome = run(tmp_path, jobs=2, show=lambda done, total: seen.append((done, total)))
    assert outcome.is_complete
    assert {row.key: row.values["square"] for row in outcome.rows} == {
        f"square-{n}-{part}": n**2 for n in range(4) for part in range(2)
    }
    assert (seen[0], seen[-1]) == ((0, 8), (8, 8))


def test_a_task_that_raises_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    outcome = run(tmp_path, fail=2)
    assert outcome.failures == {"task-2": "ValueError: no square of 2"}
    assert len(outcome.rows) == 6


def test_a_worker_that_dies_is_replaced_and_its_task_repeated(tmp_path: Path) -> None:
    outcome = run(tmp_path, jobs=2, die=1)
    assert outcome.is_complete
    assert len(outcome.rows) == 8
    assert (tmp_path / "died").exists()


def test_a_finished_study_is_not_computed_again(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path)
    assert len((tmp_path / "computed.log").read_text().splitlines()) == 8


@pytest.mark.slow
def test_workers_end_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    from tests.studies import toy_study

    settings = json.dumps(toy_study.settings(tmp_path, pause=0.2))
    command = [sys.executable, str(HERE / "run_toy.py"), str(tmp_path), settings, "30"]
    runner = subprocess.Popen(command)
    log = tmp_path / "computed.log"
    deadline = time.monotonic() + 120
    while not log.exists() or not log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    worker = int(log.read_text().split()[1])
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    while _lives(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")  # a zombie whose parent is gone is dead enough
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_a_study_leaves_its_numbers_tables_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.studies import toy_study

    out = tmp_path / "out"
    study = toy_study.STUDY
    monkeypatch.setitem(study.presets, "smoke", toy_study.settings(tmp_path))
    said: list[str] = []
    options = StudyOptions(preset="smoke", jobs=1)
    conduct_study(study, out, options, command="quasiratio study toy", say=said.append, quiet=True)
    assert "8 of 8 squares." in said
    numbers = json.loads((out / "results.json").read_text())
    assert numbers["results"] == [
        {"name": "sum of squares", "value": 28.0, "spread": 1.0, "n_seeds": 1, "published": None}
    ]
    assert numbers["settings"]["n_tasks"] == 4
    assert "| sum of squares |  | 28 | 1 | 1 |  |" in (out / "results.md").read_text()
    assert "8 of 8 squares." in (out / "report.html").read_text()
    with pytest.raises(InvalidInputError, match="holds results of a study"):
        conduct_study(study, out, options, command="", say=said.append, quiet=True)
    resumed = StudyOptions(preset="smoke", jobs=1, resume=True)
    conduct_study(study, out, resumed, command="", say=said.append, quiet=True)
    assert len((tmp_path / "computed.log").read_text().splitlines()) == 8


def test_a_failure_is_reported_and_tried_again_on_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.studies import toy_study

    study = toy_study.STUDY
    said: list[str] = []
    settings = toy_study.settings(tmp_path, fail=1)
    monkeypatch.setitem(study.presets, "smoke", settings)
    options = StudyOptions(preset="smoke", jobs=1)
    outcome, _ = conduct_study(study, tmp_path / "out", options, command="", say=said.append, quiet=True)
    assert not outcome.is_complete
    assert "Missing: task-1 (ValueError: no square of 1)" in said
    assert "no square of 1" in (tmp_path / "out" / "report.html").read_text()


def test_options_change_the_settings_of_a_preset_and_are_checked() -> None:
    study = study_by_name("weight-variance")
    settings = resolved_settings(study, StudyOptions(preset="quick", seeds=2, methods=["mlp"]))
    assert (settings["seeds"], settings["methods"], settings["preset"]) == (2, ["mlp"], "quick")
    for options, match in (
        (StudyOptions(preset="huge"), "preset 'huge'; expected one of smoke, quick, full"),
        (StudyOptions(methods=["magic"]), "method 'magic'; expected some of mlp, rosmm_r"),
        (StudyOptions(seeds=0), "seeds=0"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            resolved_settings(study, options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (StudyOptions(jobs=0), "jobs=0"),
        (StudyOptions(jobs=2, scheduler="tcp://a:1"), "both `jobs` and"),
    ],
)
def test_impossible_workers_are_refused(tmp_path: Path, options: StudyOptions, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        conduct_study(study_by_name("weight-variance"), tmp_path / "out", options, command="", say=print)
    assert not (tmp_path / "out").exists()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"quasiratio\[cluster\]"), dask_workers("tcp://127.0.0.1:1"):
        pass


def test_every_registered_study_has_its_three_presets() -> None:
    for name in study_names():
        study = study_by_name(name)
        assert study.name == name
        assert list(study.presets) == ["smoke", "quick", "full"]
        for preset in study.presets:
            tasks = study.tasks(resolved_settings(study, StudyOptions(preset=preset)))
            keys = [task.key for task in tasks]
            assert len(set(keys)) == len(keys) > 0
            json.dumps([dict(task.arguments) for task in tasks])


def test_progress_is_plain_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with study_progress("toy") as show:
        show(0, 4)
        show(4, 4)
    assert capsys.readouterr().err.splitlines() == ["toy: 0 of 4", "toy: 4 of 4"]
