"""Rows of a study in one small file: a run goes on elsewhere from where it was, and says where its rows come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.study_rows import load_rows, save_rows, show_rows

from quasiratio.provenance import Provenance
from quasiratio.studies.engine.conduct import STORE_NAME, run_study
from quasiratio.studies.engine.study import Row
from quasiratio.studies.output.study_files import RESULTS_NAME, write_study_files
from quasiratio.studies.weight_variance import STUDY, tasks
from quasiratio.tasks.executors import local_workers
from quasiratio.tasks.store import ResultStore

OTHER = Provenance({"python": "3.0", "torch": "1.0"}, "an-older-commit", "elsewhere")


def stored(directory: Path) -> list[dict[str, Any]]:
    with ResultStore.joined(directory / STORE_NAME, run=0) as store:
        return store.records()


def test_a_run_goes_on_from_a_file_of_its_rows(tmp_path: Path) -> None:
    from tests.studies import toy_study

    settings = toy_study.settings(tmp_path)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    with ResultStore(first / STORE_NAME, "toy", settings, OTHER) as store:
        for part in range(2):
            store.add("task-1", Row(f"square-1-{part}", {"square": 1, "part": part}), seconds=2.5, seed=1)
    assert save_rows(first, tmp_path / "rows.jsonl.gz") == 2
    assert load_rows(tmp_path / "rows.jsonl.gz", second) == 2
    assert load_rows(tmp_path / "rows.jsonl.gz", second) == 0  # they are there
    with local_workers(1) as pool:
        outcome = run_study(toy_study.STUDY, settings, second, pool)
    computed = (tmp_path / "computed.log").read_text().split()[::2]
    assert sorted(computed) == [f"square-{n}-{part}" for n in (0, 2, 3) for part in range(2)]
    assert len(outcome.rows) == 8
    by_key = {record["key"]: record for record in stored(second)}
    assert by_key["square-1-0"]["commit"] == "an-older-commit"
    assert by_key["square-1-0"]["seconds"] == 2.5
    assert by_key["square-0-0"]["commit"] == Provenance.here().commit

    write_study_files(toy_study.STUDY, settings, outcome, second, "quasiratio study toy")
    results = json.loads((second / RESULTS_NAME).read_text())
    assert results["commit"] == f"an-older-commit, {Provenance.here().commit}"
    assert results["machine"].startswith("elsewhere, ")


def test_the_same_rows_are_the_same_file(tmp_path: Path) -> None:
    with ResultStore(tmp_path / STORE_NAME, "toy", {"seeds": 1}, OTHER) as store:
        store.add("t", Row("a", {"x": 1.5}), seconds=1.0)
    for name in ("one", "two"):
        save_rows(tmp_path, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_curves_of_the_tuning_are_left_out_and_those_that_are_drawn_kept(tmp_path: Path) -> None:
    settings = {**STUDY.presets["smoke"], "preset": "smoke"}
    values = {"area": 0.1, "validation_loss": [0.7, 0.6]}
    with ResultStore(tmp_path / STORE_NAME, STUDY.name, settings, OTHER) as store:
        for task in tasks(settings)[::2]:
            model = task.arguments["model"]
            store.add(task.key, Row(task.rows[0], values | {"model": model}), seconds=1.0, seed=0)
    save_rows(tmp_path, tmp_path / "rows")
    load_rows(tmp_path / "rows", tmp_path / "again")
    by_model = {record["result"]["model"]: record["result"] for record in stored(tmp_path / "again")}
    assert by_model["mlp"]["validation_loss"] == [0.7, 0.6]
    assert by_model["rosmm_r"] == {"area": 0.1, "model": "rosmm_r"}


def test_a_part_of_a_run_can_be_shown(tmp_path: Path) -> None:
    settings = {**STUDY.presets["smoke"], "preset": "smoke"}
    values = {"area": 0.1, "area_to_last_epoch": 0.1, "entropy": 0.01, "epochs": 2, "hit_limit": False}
    with ResultStore(tmp_path / STORE_NAME, STUDY.name, settings, OTHER) as store:
        for task in tasks(settings):
            if task.arguments["model"] == "mlp":
                for key, (sigma_w, eta) in zip(task.rows, task.arguments["points"], strict=True):
                    own = {
                        "sigma_w": sigma_w,
                        "eta": eta,
                        "seed": 0,
                        "model": "mlp",
                        "validation_loss": [0.7, 0.6],
                    }
                    store.add(task.key, Row(key, values | own), seconds=1.0, seed=0)
    assert show_rows(tmp_path) == 7
    results = json.loads((tmp_path / RESULTS_NAME).read_text())
    assert results["complete"] is False
    assert results["commit"] == "an-older-commit"
    assert "rows are not computed yet" in (tmp_path / "report.html").read_text()


def test_a_directory_without_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"without results\.sqlite"):
        save_rows(tmp_path, tmp_path / "rows")
