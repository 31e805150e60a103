"""The verdict in words, on evaluations whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import quasiratio as qr
from quasiratio import WeightedSample
from quasiratio.metrics import ClosureResult, TrainingError, total_chi_squared
from quasiratio.report.closure_quality import closure_qualities
from quasiratio.report.closure_verdict import evaluation_verdict
from quasiratio.report.evaluation import Evaluation
from quasiratio.report.omnibus import OmnibusTest
from quasiratio.report.origins import EvaluatedModel, SampleSource

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
    assert verdict.summary == "Closes"
    first, omnibus, pull, size, rule = verdict.text.split("\n\n")
    assert first.startswith("Closes: the reweighted reference agrees with the target in all 2 observables")
    assert "at least 0.005, which is 0.01 shared among 2 observables" in rule
    assert "small up to 1% or 10% of what it was" in rule
    assert "Counted are the errors of statistics alone" in rule
    assert "With a confidence of 95% at most" in first
    assert "was not made" in omnibus
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
        "Does not close: the reweighted reference differs from the target in 1 of 2 observables: x (large: "
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
    assert (after.size < 0.1 * before.size) == (status == "fair")
    assert after.grade == {"fair": "small", "poor": "moderate"}[status]
    verdict = evaluation_verdict(evaluation)
    assert after.judgement == after.grade
    assert verdict.status == status
    assert verdict.text.startswith(opening)
    assert ("What is left is small." in verdict.text) == (status == "fair")


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


def test_significant_but_negligible_is_no_failure() -> None:
    reference, target = shifted(400_000, seed=4)
    ratios = [exact(sample) ** 0.98 for sample in (reference, target)]
    evaluation = evaluated(reference, target, ratios[0], ratios[1])
    row = closure_qualities(evaluation.closure["x"], n_observables=2)[1]
    assert not row.agrees
    assert row.grade == "negligible"
    verdict = evaluation_verdict(evaluation)
    assert verdict.status == "good"
    assert verdict.text.startswith(
        "Closes: the reweighted reference differs from the target in 1 of 2 observables: x"
    )
    assert "This is significant, but negligible." in verdict.text


def test_what_could_not_have_been_seen_is_not_called_closure() -> None:
    reference, target = shifted(300, seed=5)
    evaluation = evaluated(reference, target, exact(reference), exact(target))
    assert all(
        closure_qualities(entry, n_observables=2)[1].agrees for entry in evaluation.closure.observables
    )
    verdict = evaluation_verdict(evaluation)
    assert (verdict.status, verdict.summary) == ("info", "Cannot tell")
    assert "nothing significant was found" in verdict.text


def with_training_error(evaluation: Evaluation, error: TrainingError) -> Evaluation:
    entry = evaluation.closure["x"]
    method = entry["model"]
    total = total_chi_squared(method.histogram, entry.target, error)
    counted = replace(entry, methods=(replace(method, training_error=error, total_chi_squared=total),))
    return replace(evaluation, closure=ClosureResult((counted,)))


def test_the_error_of_the_training_sample_decides_what_is_significant() -> None:
    """Wrong by 15%, and so are the members, each in its own way: that is no failure, and no closure either."""
    reference, target = shifted(60_000, seed=3)
    evaluation = evaluated(reference, target, exact(reference) ** 0.6, exact(target) ** 0.6)
    assert evaluation_verdict(evaluation).status == "poor"
    entry = evaluation.closure["x"]
    shift = entry["model"].histogram.values - entry.target.values
    members = entry.target.values + np.array([[-1.0], [0.3], [1.2], [-0.5]]) * shift
    counted = with_training_error(evaluation, TrainingError.of_members(members))
    row = closure_qualities(counted.closure["x"], n_observables=1)[1]
    assert row.agrees
    assert row.total_chi2_per_dof is not None
    assert row.total_chi2_per_dof < 0.1 * row.chi2_per_dof
    verdict = evaluation_verdict(counted)
    assert verdict.status == "info"
    assert "no more than the errors of the test and of the training sample explain" in verdict.text
    assert "the latter as the spread of the ensemble's members" in verdict.text
    assert row.needs_training_error
    sizes = TrainingError.of_sample_sizes(entry["model"].histogram, entry.target, (1000.0, 1000.0))
    told = evaluation_verdict(replace(with_training_error(evaluation, sizes), training_sizes=(60.0, 61.0)))
    assert "effective sizes of 60 and 61 for a single network" in told.text


def omnibus(p_value: float, size: float, size_error: float = 0.001) -> OmnibusTest:
    return OmnibusTest(p_value, 4.0, size, size_error, 0.0, 30_000)


@pytest.mark.parametrize(
    ("given", "status", "opening", "words"),
    [
        (
            omnibus(0.3, 0.02),
            "good",
            "Closes",
            "cannot tell the reweighted reference from the target (p = 0.3",
        ),
        (omnibus(1e-5, 0.1), "poor", "Does not close", "What it shows is 10% ± 0.1% of the weight"),
        (omnibus(1e-5, 0.015), "fair", "Nearly closes", "What it shows is 1.5% ± 0.1%"),
        (omnibus(1e-5, 0.0005, 0.0001), "good", "Closes", "can tell"),
        (omnibus(1e-5, 0.0005, 0.01), "fair", "Nearly closes", "can tell"),
    ],
)
def test_a_classifier_may_see_what_no_observable_shows(
    good: Evaluation, given: OmnibusTest, status: str, opening: str, words: str
) -> None:
    verdict = evaluation_verdict(replace(good, omnibus=given))
    assert (verdict.status, verdict.summary) == (status, opening)
    assert words in verdict.text
    assert ("though every observable agrees" in verdict.text) == (opening != "Closes")


def test_a_moderate_difference_that_the_training_sample_explains_is_told() -> None:
    reference, target = shifted(60_000, seed=3)
    evaluation = evaluated(reference, target, exact(reference) ** 0.85, exact(target) ** 0.85)
    entry = evaluation.closure["x"]
    shift = entry["model"].histogram.values - entry.target.values
    members = entry.target.values + np.array([[-1.0], [0.3], [1.2], [-0.5]]) * shift
    verdict = evaluation_verdict(with_training_error(evaluation, TrainingError.of_members(members)))
    assert (verdict.status, verdict.summary) == ("fair", "Closes within the error of its training sample")
    assert "That error explains it." in verdict.text


def test_the_training_sample_s_part_of_the_omnibus_error_is_told(good: Evaluation) -> None:
    for share in (0.02, 0.8):
        verdict = evaluation_verdict(replace(good, omnibus=replace(omnibus(0.3, 0.0), training_share=share)))
        assert ("80% of its variance is the training sample's" in verdict.text) == (share > 0.1)


@pytest.mark.parametrize("width", [0.1, 20.0])
def test_members_that_differ_by_more_than_the_ensemble_errs_hide_differences(
    good: Evaluation, width: float
) -> None:
    entry = good.closure["x"]
    noise = width * np.sqrt(entry["model"].histogram.variances)
    members = entry.target.values + noise * np.random.default_rng(0).normal(size=(4, len(noise)))
    error = TrainingError.of_members(members)
    counted = with_training_error(good, error).closure["x"]
    banded = replace(
        counted, methods=(replace(counted["model"], member_band=np.std(members, axis=0, ddof=1)),)
    )
    verdict = evaluation_verdict(replace(good, closure=ClosureResult((banded,))))
    assert ("better than the spread of the members allows in x" in verdict.text) == (width > 1)
    assert verdict.status == ("fair" if width > 1 else "good")


def test_events_of_the_fit_are_recognised_whatever_their_file(good: Evaluation) -> None:
    seen = replace(good, seen=(0.0, 0.4))
    verdict = evaluation_verdict(seen, model=EvaluatedModel(qr.DirectRatio()))
    assert "About 40% of the target events took part in the fit." in verdict.text
