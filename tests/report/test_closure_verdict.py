"""The verdict in words, on evaluations whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import quasiratio as qr
from quasiratio import WeightedSample
from quasiratio.estimators.evaluation import Evaluation
from quasiratio.metrics import ClosureResult
from quasiratio.report.closure_quality import closure_qualities
from quasiratio.report.closure_verdict import evaluation_verdict
from quasiratio.report.evaluated_model import EvaluatedModel, SampleSource

from .conftest import evaluated, exact, shifted


@pytest.fixture(scope="module")
def samples() -> tuple[WeightedSample, WeightedSample]:
    return shifted(20_000)


@pytest.fixture(scope="module")
def good(samples: tuple[WeightedSample, WeightedSample]) -> Evaluation:
    reference, target = samples
    return evaluated(reference, target, exact(reference), exact(target))


def test_the_exact_ratio_closes(good: Evaluation) -> None:
    verdict = evaluation_verdict(good)
    assert verdict.status == "good"
    first, pull, size = verdict.text.split("\n\n")
    assert first.startswith("Closes: the reweighted reference agrees with the target in all 2 observables")
    assert "at least 0.005, which is 0.01 shared among 2 observables" in first
    assert "Before reweighting 1 of 2 agreed; the worst was x with chi2/ndof" in first
    assert "of 40 bins in all" in pull
    kept = good.reweighted.effective_size / good.reference.effective_size
    assert f"{100 * kept:.3g}% of the 20000 that the reference had with its 20000 events" in size
    assert "No weight is negative." in size


def test_no_reweighting_does_not_close_and_says_where(
    samples: tuple[WeightedSample, WeightedSample],
) -> None:
    reference, target = samples
    verdict = evaluation_verdict(evaluated(reference, target, np.ones(20_000), np.ones(20_000)))
    assert verdict.status == "poor"
    assert verdict.text.startswith(
        "Does not close: the reweighted reference differs from the target in 1 of 2 observables: x (chi2/ndof"
    )
    assert "y (" not in verdict.text
    assert "made it worse" not in verdict.text


def test_a_reweighting_that_harms_is_called_so(samples: tuple[WeightedSample, WeightedSample]) -> None:
    reference, target = samples
    verdict = evaluation_verdict(evaluated(reference, target, 1 / exact(reference), 1 / exact(target)))
    assert verdict.status == "poor"
    assert "Reweighting made it worse in x." in verdict.text
    assert "worse than no reweighting at all" in verdict.text


@pytest.mark.parametrize(
    ("power", "status", "opening"), [(0.93, "fair", "Nearly closes: "), (0.85, "poor", "Does not close: ")]
)
def test_what_is_left_of_a_large_difference_may_be_small(power: float, status: str, opening: str) -> None:
    reference, target = shifted(60_000, seed=3)
    evaluation = evaluated(reference, target, exact(reference) ** power, exact(target) ** power)
    before, after = closure_qualities(evaluation.closure["x"], n_observables=2)
    assert not after.agrees
    assert (after.chi2_per_dof < 0.01 * before.chi2_per_dof) == (status == "fair")
    verdict = evaluation_verdict(evaluation)
    assert verdict.status == status
    assert verdict.text.startswith(opening)
    assert ("a small part of the difference" in verdict.text) == (status == "fair")


def test_a_sample_that_agreed_before_is_no_merit() -> None:
    reference, _ = shifted(5000, seed=1)
    target, _ = shifted(5000, seed=2)
    verdict = evaluation_verdict(evaluated(reference, target, np.ones(5000), np.ones(5000)))
    assert verdict.status == "good"
    assert "Before reweighting all of them agreed as well." in verdict.text


def test_negative_weights_are_counted_by_their_causes() -> None:
    case = qr.distributions.signed_gaussian_case("signed")
    reference, target = case.samples(20_000, np.random.default_rng(0))
    ratios = [case.exact_ratio(sample.features) for sample in (reference, target)]
    evaluation = evaluated(reference, target, ratios[0], ratios[1])
    verdict = evaluation_verdict(evaluation)
    assert verdict.status == "good"
    assert np.mean(ratios[0] < 0) > 0
    for fraction, words in (
        (evaluation.reweighted.negative_fraction, "of the reweighted weights are negative"),
        (reference.negative_fraction, "of the reference's own are, and the ratio is negative at"),
        (float(np.mean(ratios[0] < 0)), "of its events. In the target"),
    ):
        assert f"{100 * fraction:.3g}% {words}" in verdict.text


def test_a_positive_ratio_cannot_follow_a_negative_density() -> None:
    case = qr.distributions.signed_gaussian_case("signed")
    samples = [
        WeightedSample(np.hypot(*sample.features.T), sample.weights, names=["r"])
        for sample in case.samples(20_000, np.random.default_rng(0))
    ]
    verdict = evaluation_verdict(evaluated(samples[0], samples[1], np.ones(20_000), np.ones(20_000)))
    assert verdict.status == "poor"
    assert (
        "The target's density is negative in a part of r, but the ratio is negative nowhere" in verdict.text
    )


def test_weights_that_became_positive() -> None:
    reference, target = shifted(4000)
    signs = np.random.default_rng(0).choice([1.0, -1.0], 4000, p=[0.9, 0.1])
    signed = WeightedSample(reference.features, signs, names=list(reference.names))
    evaluation = evaluated(signed, target, signs * exact(reference), exact(target))
    assert "No reweighted weight is negative any more." in evaluation_verdict(evaluation).text


def test_few_events_prove_little() -> None:
    reference, target = shifted(300)
    verdict = evaluation_verdict(evaluated(reference, target, exact(reference), exact(target), n_bins=5))
    assert "only coarse differences could show" in verdict.text


def test_training_that_ran_away_is_not_good(good: Evaluation) -> None:
    model = qr.DirectRatio()
    model.diverged_ = True
    verdict = evaluation_verdict(good, model=EvaluatedModel(model))
    assert verdict.status == "fair"
    assert "The risk ran away during the training" in verdict.text


@pytest.mark.parametrize(
    ("source", "is_same"),
    [
        (SampleSource(["a.npz"], "w", "x > 0", 10), True),
        (SampleSource(["a.npz"], "w", "x < 0", 10), False),
        (SampleSource(["b.npz"], "w", "x > 0", 10), False),
        (SampleSource([], "w", "x > 0", 10), False),
    ],
)
def test_events_of_the_fit_are_a_weaker_test(good: Evaluation, source: SampleSource, is_same: bool) -> None:
    fitted_on = {"reference": SampleSource(["a.npz"], "w", "x > 0", 10), "target": SampleSource()}
    model = EvaluatedModel(qr.DirectRatio(), fitted_on=fitted_on)
    verdict = evaluation_verdict(good, model=model, sources={"reference": source, "target": SampleSource()})
    assert ("These are the events of the fit" in verdict.text) == is_same
    folded = EvaluatedModel(qr.Reweighter(n_folds=2), fitted_on=fitted_on)
    verdict = evaluation_verdict(good, model=folded, sources={"reference": source, "target": SampleSource()})
    assert "events of the fit" not in verdict.text  # each is predicted by a model that has not seen it


def test_the_spread_of_members_is_told(good: Evaluation) -> None:
    entry = good.closure["x"]
    error = np.sqrt(entry["model"].histogram.variances + entry.target.variances)
    for share, words in ((0.25, "so statistics dominate"), (2.0, "not negligible")):
        wide = replace(entry, methods=(replace(entry["model"], member_band=share * error),))
        verdict = evaluation_verdict(replace(good, closure=ClosureResult((wide,))))
        assert words in verdict.text
        assert f"{share:g} of the statistical error" in verdict.text


def test_nothing_to_compare_is_no_success(good: Evaluation) -> None:
    verdict = evaluation_verdict(replace(good, closure=ClosureResult(())))
    assert verdict.status == "info"
    assert verdict.text.startswith("No observable could be compared")


def test_the_largest_pull_and_its_bin(good: Evaluation) -> None:
    entry = good.closure["x"]
    row = closure_qualities(entry, n_observables=1)[1]
    pulls = entry.pulls("model")
    worst = int(np.nanargmax(np.abs(pulls)))
    assert row.largest_pull == pytest.approx(pulls[worst])
    assert row.pull_range == (entry.edges[worst], entry.edges[worst + 1])


def test_events_of_the_fit_are_recognised_whatever_their_file(good: Evaluation) -> None:
    seen = replace(good, seen=(0.0, 0.4))
    verdict = evaluation_verdict(seen, model=EvaluatedModel(qr.DirectRatio()))
    assert "About 40% of the target events took part in the fit." in verdict.text
