"""Landscapes: the risk on the grid is the risk of the recombined ratio, and all figures are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from quasiratio.losses import Mse, Pare
from quasiratio.studies.engine.registry import study_by_name
from quasiratio.studies.engine.study import Row
from quasiratio.studies.loss_landscapes.risk_grid import risk_grid

STUDY = study_by_name("loss-landscapes")
SETTINGS = {
    **STUDY.presets["smoke"],
    "seeds": 1,
    "sizes": [600, 300, 1500],
    "smeft_sizes": [600, 300, 1500],
    "n_points": 5,
    "training": {"max_steps": 20, "batch_size": 300},
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for task in STUDY.tasks(SETTINGS) for row in STUDY.compute(dict(task.arguments))]


def test_risk_is_that_of_the_recombined_ratio() -> None:
    rng = np.random.default_rng(0)
    labels, weights = np.repeat([0, 1], 50), rng.choice([1.0, -0.5], 100, p=[0.8, 0.2])
    logs = {(a, b): rng.normal(size=100) for a in (1, -1) for b in (1, -1)}
    r = {pair: np.exp(values) for pair, values in logs.items()}
    c0, c1 = 1.2, 1.7
    ratio = c1 / (c0 / r[1, 1] + (1 - c0) / r[-1, 1]) + (1 - c1) / (c0 / r[1, -1] + (1 - c0) / r[-1, -1])
    scaled = np.concatenate([w * 50 / w.sum() for w in (weights[:50], weights[50:])])
    for loss in (Mse(), Pare()):
        raw = loss.link.raw(torch.from_numpy(ratio))
        expected = float((loss.per_event(raw, torch.from_numpy(labels).double()).numpy() * scaled).mean())
        found = risk_grid(logs, labels, weights, np.array([1.1, c0]), np.array([1.3, 1.5, c1]), loss)
        assert found.shape == (2, 3)
        assert found[1, 2] == pytest.approx(expected, rel=1e-6)


def test_pare_is_lowest_at_the_true_coefficients() -> None:
    from quasiratio.distributions import signed_gaussian_case

    case = signed_gaussian_case("nonnegative")
    reference, target = case.samples(40_000, np.random.default_rng(1))
    points = np.vstack([reference.features, target.features])
    t = np.square(points.astype(float)).sum(axis=1) / 2
    log_density = {
        (label, sign): -t / sigma**2 - 2 * np.log(sigma)
        for label, mixture in ((0, case.reference), (1, case.target))
        for sign, sigma in ((1, mixture.sigma_1), (-1, mixture.sigma_2))
    }
    logs = {(a, b): log_density[1, b] - log_density[0, a] for a in (1, -1) for b in (1, -1)}
    c1 = np.linspace(1.4, 2.6, 13)
    weights = np.concatenate([reference.weights, target.weights])
    risks = risk_grid(logs, np.repeat([0, 1], 40_000), weights, np.array([4 / 3]), c1, Pare())
    assert abs(c1[np.argmin(risks[0])] - 2.0) < 0.25


def test_all_figures_and_the_table(rows) -> None:
    presentation = STUDY.present(SETTINGS, rows)
    assert set(presentation.pictures) == {
        "landscapes-nonnegative",
        "landscapes-signed",
        "c1-landscapes-smeft",
    }
    assert [row[:2] for row in presentation.tables["minima"].rows] == [
        [case, loss] for case in ("nonnegative", "signed", "smeft") for loss in ("MSE", "PARE")
    ]
    titles = [axes.get_title("left") for axes in presentation.pictures["landscapes-signed"].figure.axes]
    assert titles[0].startswith("MSE")
    assert titles[1].startswith("PARE")
    smeft = next(row.values for row in rows if row.key == "smeft/seed-0/PARE")
    assert smeft["c0"] == [1.0]
    assert smeft["nominal"][0] == 1.0


def test_smeft_is_named_where_it_is_missing(rows) -> None:
    presentation = STUDY.present(SETTINGS, [row for row in rows if row.values["case"] != "smeft"])
    assert any("quasiratio[gghh]" in note for note in presentation.notes)
