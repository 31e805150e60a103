"""Reports of real models: single, ensemble, mixture, automatic and cross-fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.report import Facts, Picture, Report, Section, Table, Text
from quasiratio.report.chapters import evaluation_report
from quasiratio.report.evaluation import evaluate_model
from quasiratio.report.model_section import model_section
from quasiratio.report.origins import EvaluatedModel, SampleSource

from .conftest import Page, shifted

EVIL = "<script>alert(1)</script>"
N_EVENTS = 2000
FAST: dict[str, Any] = {"max_steps": 30, "batch_size": 1024, "random_state": 5}
QUIET = [
    pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning"),
    pytest.mark.filterwarnings("ignore::quasiratio.errors.NegativeDensityWarning"),
]
pytestmark = QUIET


def signed() -> tuple[qr.WeightedSample, qr.WeightedSample]:
    rng = np.random.default_rng(1)
    reference, target = (
        qr.WeightedSample(sample.features, rng.choice([1.0, -0.5], N_EVENTS, p=[0.9, 0.1]), names=[EVIL, "y"])
        for sample in shifted(N_EVENTS)
    )
    return reference, target


def report_of(model: Any) -> Report:
    reference, target = signed()
    X = np.concatenate([reference.features, target.features])
    w = np.concatenate([reference.weights, target.weights])
    if isinstance(model, qr.Reweighter):
        model.fit(reference, target, reference.weights, target.weights)
    else:
        model.fit(qr.WeightedSample(X, w, [EVIL, "y"]), np.repeat([0, 1], N_EVENTS), w)
    source = SampleSource([f"{EVIL}.npz", "b.npz"], "w * 2", "y > 0", N_EVENTS)
    return evaluation_report(
        evaluate_model(model, reference, target, n_bins=10),
        model=EvaluatedModel(model, "model", "some-method", {"torch": "2.x"}, {"reference": source}),
        reference=reference,
        target=target,
        command="quasiratio evaluate",
        sources={"reference": source, "target": source},
    )


def section(report: Report, title: str) -> Section:
    return next(section for section in report.sections if section.title == title)


def blocks(report: Report, title: str, kind: type) -> list[Any]:
    return [block for block in section(report, title).blocks if isinstance(block, kind)]


@pytest.fixture(scope="module")
def ensemble() -> Report:
    return report_of(qr.SignResolvedRatio(n_members=2, **FAST))


def test_everything_that_the_issue_asks_for(ensemble: Report) -> None:
    titles = [section.title for section in ensemble.sections]
    assert titles == ["Closure", "Observables", "Weights", "Ratio", "Training", "Model", "Data"]
    table, sizes, omnibus = blocks(ensemble, "Closure", Table)
    assert omnibus.caption.startswith("Omnibus test")
    assert [row[0] for row in sizes.rows] == [EVIL, "y"]
    assert "with training" in table.columns
    assert [row[:2] for row in table.rows] == [
        [EVIL, "before"],
        [EVIL, "model"],
        ["y", "before"],
        ["y", "model"],
    ]
    assert table.columns[-1] == "members/stat"
    assert [picture.title for picture in blocks(ensemble, "Observables", Picture)] == [EVIL, "y"]
    (weights,) = blocks(ensemble, "Weights", Table)
    assert [row[0] for row in weights.rows] == ["reference", "reweighted", "target"]
    assert [picture.title for picture in blocks(ensemble, "Ratio", Picture)] == ["Calibration", "Support"]
    (training,) = blocks(ensemble, "Training", Picture)
    assert training.caption.startswith("30 steps in ")
    (facts,) = blocks(ensemble, "Model", Facts)
    assert facts.entries["seed"] == 5
    assert facts.entries["method"] == "some-method"
    assert facts.entries["n_members"] == 2
    assert facts.entries["fitted with"] == "torch 2.x"
    (features,) = blocks(ensemble, "Model", Table)
    assert [row[0] for row in features.rows] == [EVIL, "y"]
    (data,) = blocks(ensemble, "Data", Table)
    assert data.rows[0] == ["reference", f"{EVIL}.npz\nb.npz", "w * 2", "y > 0", N_EVENTS]
    assert [row[0] for row in data.rows] == ["reference", "target", "reference of the fit"]
    assert "These are the events of the fit" in ensemble.verdict


def test_its_page_is_whole_and_the_feature_stays_text(
    ensemble: Report, written: Callable[[Report], Page]
) -> None:
    page = written(ensemble)
    assert len(page.all("script")) == 1
    assert EVIL in page.texts("h3")
    assert EVIL in page.texts("th", scope="row")
    assert len(page.source) < 1_500_000


def test_a_mixture_names_its_sub_ratios() -> None:
    report = report_of(qr.SignedMixtureRatio(**FAST, tune="coefficients"))
    pictures = blocks(report, "Training", Picture)
    labels = [axes.get_ylabel() for axes in pictures[0].figure.axes]
    assert labels[:4] == ["Loss, $r_{++}$", "Loss, $r_{+-}$", "Loss, $r_{-+}$", "Loss, $r_{--}$"]
    assert len(pictures) == 2


def test_an_automatic_choice_is_explained() -> None:
    candidates = {"one": qr.SignResolvedRatio(**FAST), "two": qr.DirectRatio("lsif", **FAST)}
    report = report_of(qr.AutoRatio(candidates=candidates, random_state=5))
    choice, _ = blocks(report, "Model", Table)
    assert [row[0] for row in choice.rows] == ["one", "two"]
    assert any(text.paragraph.startswith("Choice: ") for text in blocks(report, "Model", Text))
    assert [picture.title.split(",")[0] for picture in blocks(report, "Training", Picture)] == ["one", "two"]


def test_a_cross_fitted_reweighter_shows_its_folds() -> None:
    report = report_of(qr.Reweighter(qr.DirectRatio("lsif", **FAST), n_folds=2))
    assert [picture.title.split(",")[0] for picture in blocks(report, "Training", Picture)] == [
        "fold 1",
        "fold 2",
    ]
    (facts,) = blocks(report, "Model", Facts)
    assert (facts.entries["n_folds"], facts.entries["seed"], facts.entries["ratio__loss"]) == (2, 5, "lsif")


def test_a_reweighter_with_the_default_ratio_has_a_model_section() -> None:
    reference, target = signed()
    model = qr.Reweighter(qr.DirectRatio("lsif", **FAST)).fit(reference, target)
    model.set_params(ratio=None)  # as in Reweighter(), whose own fit would take long
    model.ratios_[0].set_params(random_state=None)
    (facts,) = [block for block in model_section(EvaluatedModel(model)).blocks if isinstance(block, Facts)]
    assert facts.entries["seed"] == "not fixed"
    assert facts.entries["class"] == "Reweighter"
