"""The SMEFT study on a few hundred showered events: samples, tables and figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh import FEATURES
from quasiratio.io import create_table
from quasiratio.studies.engine.conduct import StudyOptions, resolved_settings
from quasiratio.studies.engine.registry import study_by_name
from quasiratio.studies.engine.study import Presentation, Row
from quasiratio.studies.ratio_methods import fit_family
from quasiratio.studies.smeft_hh.hh_events import ALL_OBSERVABLES, generated_columns, hh_events

STUDY = study_by_name("smeft-hh")
METHODS = [
    "mlp",
    "rosmm",
    "rosmm_c",
    "rosmm_r",
    "sign-resolved",
    "sign-resolved-objects",
    "exact",
]
FIGURES = {
    "weights",
    "m_hh-hard-scattering",
    *(
        f"closure-{what}-{group}"
        for what in ("m_hh", "hh", "jet", "muons")
        for group in ("published", "ours")
    ),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("smeft")
    return path


@pytest.fixture(scope="module")
def settings():
    return {
        **STUDY.presets["smoke"],
        "seeds": 2,
        "events": 600,
        "part_events": 500,
        "methods": METHODS,
        "training": {"max_steps": 5, "batch_size": 300},
    }


@pytest.fixture(scope="module")
def rows(settings, directory) -> list[Row]:
    found = []
    for task in STUDY.tasks(settings):
        of_task = list(STUDY.compute({**task.arguments, "directory": str(directory)}))
        assert {row.key for row in of_task} == set(task.rows)
        found += of_task
    return found


@pytest.fixture(scope="module")
def presentation(settings, rows) -> Presentation:
    return STUDY.present(settings, rows)


@pytest.mark.usefixtures("rows")
def test_samples_are_kept_and_found_again(directory) -> None:
    parts = sorted((directory / "samples").glob("*.npz"))
    assert len(parts) == 4  # 600 events need two parts of 500 generated ones, in each class
    times = [path.stat().st_mtime_ns for path in parts]
    columns = generated_columns(directory / "samples", "linear", 600, seed=1, part_events=500)
    assert len(columns["weight"]) == 600
    assert set(np.unique(columns["weight"])) == {-1.0, 1.0}
    assert [path.stat().st_mtime_ns for path in parts] == times


@pytest.mark.usefixtures("rows")
def test_parts_are_independent(directory) -> None:
    columns = generated_columns(directory / "samples", "sm", 600, seed=1, part_events=500)
    assert len(np.unique(columns["m_hh"])) == 600


def test_every_figure_of_the_application_has_a_name(presentation) -> None:
    assert set(presentation.pictures) == FIGURES
    assert len(presentation.pictures["closure-muons-published"].figure.axes) == 24
    assert len(presentation.pictures["closure-jet-ours"].figure.axes) == 8


def test_tables_have_eight_observables_beside_the_published(presentation) -> None:
    table = presentation.tables["chi2"]
    assert table.columns[2:] == ["mu1_pt", "mu2_pt", "mu3_pt", "mu4_pt", "jet_pt", "jet_m", "hh_pt", "m_hh"]
    lines = {(row[0], row[1]): row[2:] for row in table.rows}
    assert lines["RoSMM_r", "published"][-1] == 3.35
    difference = lines["RoSMM_r", "ours"][-1] - 3.35
    assert lines["RoSMM_r", "difference / spread"][-1] == pytest.approx(
        difference / lines["RoSMM_r", "spread"][-1]
    )
    assert ("sign-resolved", "published") not in lines
    of_both = [row for row in table.rows if row[1] != "above the hard process"]
    assert len(presentation.tables["entropy"].rows) == len(of_both)
    assert any("next-to-leading order" in note for note in presentation.notes)


def test_methods_stand_beside_the_hard_process(presentation, rows) -> None:
    chi2 = {row.key: row.values["chi2"]["hh_pt"] for row in rows if "chi2" in row.values}
    table = presentation.tables["chi2"]
    lines = {(row[0], row[1]): row[2:] for row in table.rows}
    place = table.columns.index("hh_pt") - 2
    above = [chi2[f"seed-{seed}/sign-resolved-objects"] - chi2[f"seed-{seed}/exact"] for seed in range(2)]
    assert lines["sign-resolved, objects", "above the hard process"][place] == pytest.approx(np.mean(above))
    assert ("hard process", "above the hard process") not in lines
    assert "hard process" not in presentation.verdict
    assert chi2["seed-0/sign-resolved"] != chi2["seed-0/sign-resolved-objects"]


@pytest.mark.usefixtures("rows")
def test_with_objects_the_hardest_muon_has_no_azimuth(settings, directory) -> None:
    (task,) = [task for task in STUDY.tasks(settings) if task.rows == ["seed-0/sign-resolved-objects"]]
    arguments = {**task.arguments, "directory": str(directory)}
    events = hh_events(arguments)
    fits = fit_family(
        ["sign-resolved"],
        events.training,
        events.validation,
        seed=0,
        parameters={"direct": {**arguments["parameters"]["direct"], **arguments["parameters"]["objects"]}},
    )
    ((_, estimator, _),) = fits
    turned = events.reference_features.copy()
    turned[:, [FEATURES.index(name) for name in FEATURES if name.endswith("_phi")]] += 1.0
    ratios = estimator.predict_ratio(events.reference_features)
    np.testing.assert_allclose(estimator.predict_ratio(turned), ratios, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("rows")
def test_split_keeps_all_events(settings, directory) -> None:
    task = STUDY.tasks(settings)[1]
    events = hh_events({**task.arguments, "directory": str(directory)})
    assert sum(map(len, events.training)) == 780
    assert sum(map(len, events.validation)) == 180
    assert len(events.reference["weight"]) == len(events.target["weight"]) == 120
    assert events.training[0].n_features == 16


@pytest.mark.usefixtures("rows")
def test_given_samples_are_used(settings, directory, tmp_path) -> None:
    columns = generated_columns(directory / "samples", "sm", 600, seed=1, part_events=500)
    with create_table(tmp_path / "sm.npz") as writer:
        writer.append({name: columns[name] for name in (*ALL_OBSERVABLES, "weight")})
    with create_table(tmp_path / "bad.npz") as writer:
        writer.append({"weight": columns["weight"]})
    paths = [str(tmp_path / "sm.npz")] * 2
    (task, *_) = STUDY.tasks(settings | {"samples": paths})
    (row,) = STUDY.compute(dict(task.arguments))
    assert row.values["n_events"] == {"sm": 600, "linear": 600}
    assert "hard_m_hh" not in row.values
    (task, *_) = STUDY.tasks(settings | {"samples": [paths[0], str(tmp_path / "bad.npz")]})
    with pytest.raises(InvalidInputError, match="without the columns hh_pt"):
        list(STUDY.compute(dict(task.arguments)))


def test_infinite_ratios_do_not_stop_the_study(settings, rows) -> None:
    broken = [
        Row(row.key, {**row.values, "infinite_fraction": 1.0})
        for row in rows
        if row.values["method"] == "mlp"
    ]
    presentation = STUDY.present(settings, broken)
    assert "infinite ratios for 100.0%" in presentation.verdict
    assert not presentation.pictures  # the samples are missing


def test_given_samples_come_from_the_command_line() -> None:
    options = StudyOptions(preset="smoke", samples=(Path("sm.npz"), Path("linear.npz")))
    assert resolved_settings(STUDY, options)["samples"] == [
        str(Path.cwd() / n) for n in ("sm.npz", "linear.npz")
    ]
    with pytest.raises(InvalidInputError, match="`samples`, which the study 'loss-landscapes' does not have"):
        resolved_settings(study_by_name("loss-landscapes"), options)
