"""The toy study at a tiny size: every row, table and figure that belongs to it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.published import PUBLISHED_TRAINING

from quasiratio.report import Picture
from quasiratio.studies.engine.conduct import StudyOptions, resolved_settings
from quasiratio.studies.engine.registry import study_by_name
from quasiratio.studies.engine.study import Presentation, Row
from quasiratio.studies.signed_gaussians.toy_events import toy_events

STUDY = study_by_name("signed-gaussians")
METHODS = ["mlp", "rosmm", "rosmm_c", "rosmm_r", "sign-resolved"]
SETTINGS = {
    **STUDY.presets["smoke"],
    "seeds": 2,
    "sizes": [600, 300, 3000],
    "methods": METHODS,
    "training": {"max_steps": 10, "batch_size": 300},
}
FIGURES = {
    "transforms",
    *(f"density-{name}" for name in ("reference", "nonnegative-target", "signed-target")),
    *(f"radial-distributions-{case}" for case in ("nonnegative", "signed")),
    *(
        f"{kind}-{case}-{group}"
        for kind in ("radial-closure", "radial-ratio", "x-y-closure")
        for case in ("nonnegative", "signed")
        for group in ("published", "ours")
    ),
    *(f"sub-density-closure-{case}" for case in ("nonnegative", "signed")),
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    computed = []
    for task in STUDY.tasks(SETTINGS):
        found = list(STUDY.compute(dict(task.arguments)))
        assert {row.key for row in found} == set(task.rows)
        computed += found
    return computed


@pytest.fixture(scope="module")
def presentation(rows) -> Presentation:
    stored = [
        Row(row.key, json.loads(json.dumps(dict(row.values)))) for row in rows
    ]  # as the store returns them
    return STUDY.present(SETTINGS, stored)


def test_every_figure_of_the_toys_has_a_name(presentation) -> None:
    assert set(presentation.pictures) == FIGURES
    assert all(
        isinstance(one, Picture) and one.caption and one.title for one in presentation.pictures.values()
    )


def test_radial_closure_shows_all_methods_and_the_exact_ratio(presentation) -> None:
    figure = presentation.pictures["radial-closure-signed-published"].figure
    strips = [axes for axes in figure.axes if axes.get_ylabel() == "Pull"]
    assert len(strips) == 5
    assert (
        len(presentation.pictures["sub-density-closure-signed"].figure.axes) == 24
    )  # 4 pairs x 3, two panels


def test_tables_stand_beside_the_published_ones(presentation) -> None:
    table = presentation.tables["radial-chi2"]
    line = next(row for row in table.rows if row[:2] == ["signed", "RoSMM_r"])
    published, ours, spread, pull = line[3:7]
    assert published == 1.14
    assert pull == pytest.approx((ours - published) / spread)
    by_name = {result.name: result for result in presentation.results}
    assert by_name["signed / RoSMM_r / chi2/ndof"].value == ours
    assert len([row for row in table.rows if row[1] == "sign-resolved" and row[3] is None]) == 2
    exact = [row[-1] for row in table.rows if row[1] == "exact ratio"]
    assert exact == [1.0, 1.0]


def test_published_rows_stay_where_nothing_is_computed(rows) -> None:
    some = [row for row in rows if row.values["method"] in ("exact", "samples")]
    table = STUDY.present(SETTINGS, some).tables["radial-chi2"]
    line = next(row for row in table.rows if row[:2] == ["nonnegative", "MLP (BCE)"])
    assert line[2:6] == [0, 21.0, None, None]


def test_nothing_is_computed_yet() -> None:
    presentation = STUDY.present(SETTINGS, [])
    assert presentation.verdict == "Nothing is computed yet."
    assert "transforms" in presentation.pictures


def test_known_rows_are_not_computed_again() -> None:
    task = next(task for task in STUDY.tasks(SETTINGS) if "rosmm_c" in task.key)
    known = [task.rows[0]]
    found = [row.key for row in STUDY.compute({**task.arguments, "known": known})]
    assert set(found) == set(task.rows) - set(known)


def test_published_settings_are_the_papers() -> None:
    tasks = STUDY.tasks({**STUDY.presets["full"], "published_settings": True})
    rosmm = next(task for task in tasks if task.key == "signed/seed-0/rosmm+rosmm_c+rosmm_r")
    parameters = rosmm.arguments["parameters"]
    assert parameters["rosmm"]["hidden_layers"] == [32, 32]
    assert parameters["rosmm"]["balanced_draw"] is True
    assert parameters["direct"]["hidden_layers"] == [64, 64]
    assert {parameters["direct"][name] for name in ("batch_size", "patience")} == {256, 20}
    assert parameters["tuning"] == {"learning_rate": 1e-4}
    assert parameters["direct"]["on_divergence"] == "ignore"
    assert rosmm.arguments["sizes"] == [2_000_000, 600_000, 1_400_000]
    for kind in ("rosmm", "direct"):
        assert {parameters[kind][f"{role}_density"] for role in ("reference", "target")} == {"any"}
    assert {PUBLISHED_TRAINING[f"{role}_density"] for role in ("reference", "target")} == {
        "any"
    }  # of the benchmark


def test_a_failed_fit_has_an_error_although_its_mean_square_is_negative() -> None:
    """One ratio that is far off on a single event of negative weight: an rms of zero would be the best of all."""
    events = toy_events("signed", 0, (500, 200, 3000))
    ratio = events.exact.copy()
    ratio[np.flatnonzero(events.reference.weights < 0)[0]] += 100.0
    assert np.average((ratio - events.exact) ** 2, weights=events.reference.weights) < 0
    assert events.judge(ratio)["rms"] == pytest.approx(100.0 / np.sqrt(3000))


def test_published_settings_have_the_methods_of_the_paper_unless_others_are_named() -> None:
    settings = resolved_settings(STUDY, StudyOptions(preset="full", published_settings=True))
    assert settings["methods"] == ["mlp", "rosmm", "rosmm_c", "rosmm_r"]
    named = StudyOptions(preset="full", published_settings=True, methods=("lsif",))
    assert resolved_settings(STUDY, named)["methods"] == ["lsif"]
    assert "auto" in resolved_settings(STUDY, StudyOptions(preset="full"))["methods"]


def test_published_settings_run() -> None:
    settings = {**SETTINGS, "seeds": 1, "published_settings": True}
    task = next(task for task in STUDY.tasks(settings) if task.key == "signed/seed-0/rosmm+rosmm_c+rosmm_r")
    found = {row.key: row.values for row in STUDY.compute(dict(task.arguments))}
    assert set(found) == set(task.rows)
    assert [len(one) for one in found["signed/seed-0/rosmm_r"]["epochs"]] == [5, 2]


def test_rows_say_how_many_epochs_were_trained_and_kept(rows) -> None:
    (fit, tuning) = next(row for row in rows if row.key == "signed/seed-1/rosmm_r").values["epochs"]
    assert len(fit) == 5  # the number of epochs, and one kept for each of four sub-ratios
    assert len(tuning) == 2
    assert max(fit[1:]) < fit[0]


def test_arguments_are_plain_json() -> None:
    for preset in STUDY.presets.values():
        for task in STUDY.tasks(preset):
            assert json.loads(json.dumps(task.arguments)) == task.arguments
