"""What is said of samples before anything is trained: overlap, duplicates, recommendation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from quasiratio.distributions import signed_gaussian_case, signed_jets_case
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import (
    feature_overlaps,
    inspect_samples,
    n_duplicates,
    n_shared,
    natural_edges,
    recommend_method,
    weight_diagnostics,
)
from quasiratio.metrics.duplicates import row_hashes
from quasiratio.sample import WeightedSample


def normal(mean: float, n_events: int, seed: int) -> WeightedSample:
    return WeightedSample(np.random.default_rng(seed).normal(mean, 1.0, n_events), names=["x"])


def test_distance_and_overlap_of_two_normal_samples() -> None:
    (x,) = feature_overlaps(normal(0.0, 200_000, 0), normal(1.0, 200_000, 1))
    assert x.distance == pytest.approx(0.38292, abs=0.01)  # 2 Phi(1/2) - 1
    assert x.overlap == pytest.approx(1 - 0.38292, abs=0.01)
    assert x.outside < 1e-3
    assert x.reference_range[0] < -3 < 3 < x.reference_range[1]


def test_distance_does_not_depend_on_the_order() -> None:
    low, high = normal(0.0, 50_000, 0), normal(1.0, 50_000, 1)
    (forth,), (back,) = feature_overlaps(low, high), feature_overlaps(high, low)
    assert forth.distance == pytest.approx(back.distance)
    assert forth.overlap == pytest.approx(back.overlap)


def test_samples_that_agree_and_samples_that_never_meet() -> None:
    sample = normal(0.0, 50_000, 0)
    (same,) = feature_overlaps(sample, sample)
    assert (same.distance, same.outside) == (0.0, 0.0)
    assert same.overlap == pytest.approx(1.0)
    (apart,) = feature_overlaps(sample, normal(100.0, 50_000, 1))
    assert apart.distance == pytest.approx(1.0)
    assert apart.outside == 1.0
    assert apart.overlap < 0.03  # the one bin in which both have an end


def test_overlap_counts_weight_and_not_events() -> None:
    values = np.array([0.0, 0.0, 1.0, 5.0])
    target = WeightedSample(values, [1.0, 1.0, -1.0, 3.0], names=["x"])
    (x,) = feature_overlaps(WeightedSample([0.0, 1.0, 1.0], names=["x"]), target)
    assert x.outside == 0.5
    assert x.target_range == (0.0, 5.0)
    # reference 1/3 at 0; target (1 + 1) / 4 at 0 and 1/4 up to 1
    assert x.distance == pytest.approx(0.75)


def test_overlap_needs_the_same_features_and_positive_sums() -> None:
    sample = normal(0.0, 100, 0)
    with pytest.raises(InvalidInputError, match="expected the same in the same order"):
        feature_overlaps(sample, WeightedSample(sample, names=["y"]))
    with pytest.raises(InvalidInputError, match="target sum to -100"):
        feature_overlaps(sample, WeightedSample(sample, -np.ones(100)))


def test_duplicates_are_found_in_any_order_and_zero_has_one_sign() -> None:
    rng = np.random.default_rng(0)
    events = rng.normal(size=(1000, 3)).astype(np.float32)
    assert n_duplicates(WeightedSample(events)) == 0
    assert n_duplicates(WeightedSample(np.concatenate([events, events[::-2]]))) == 500
    assert n_shared(WeightedSample(events), WeightedSample(np.concatenate([events[:7], events + 100]))) == 7
    assert n_duplicates(WeightedSample([[0.0, 1.0], [-0.0, 1.0]])) == 1


def test_the_hash_tells_order_and_last_digits_apart() -> None:
    rows = np.array(
        [[1, 2], [2, 1], [1, np.nextafter(np.float32(2), np.float32(3))], [0, 0]], dtype=np.float32
    )
    assert len(set(row_hashes(rows).tolist())) == 4


def test_recommendation_follows_the_signs_of_the_weights() -> None:
    positive = weight_diagnostics(np.ones(10_000))
    signed = weight_diagnostics(np.where(np.arange(10_000) % 5 == 0, -1.0, 1.0))
    assert (recommend_method(positive, positive).method, recommend_method(positive, positive).loss) == (
        "direct",
        "bce",
    )
    for pair in ((positive, signed), (signed, positive), (signed, signed)):
        recommendation = recommend_method(*pair)
        assert recommendation.method == "sign-resolved"
        assert "20.00% of the" in recommendation.reason
        assert recommendation.cautions == ()


def test_recommendation_warns_of_what_no_method_can_mend() -> None:
    few = weight_diagnostics(np.ones(100))
    cancelling = weight_diagnostics(np.where(np.arange(100_000) % 9 < 4, -1.0, 1.0))
    dominated = weight_diagnostics([1.0] * 10_000 + [2000.0])
    overlaps = feature_overlaps(normal(0.0, 5000, 0), normal(9.0, 5000, 1))
    cautions = " ".join(recommend_method(few, cancelling).cautions)
    assert "effective size of 100 events" in cautions
    assert "cancel strongly in the target (c = 5)" in cautions
    assert "One event carries 16.67%" in recommend_method(dominated, few).cautions[1]
    plain = weight_diagnostics(np.ones(10_000))
    (caution,) = recommend_method(plain, plain, overlaps).cautions
    assert "100.00% of the target weight lies outside the reference's range of 'x'" in caution


def test_counts_and_flags_overlap_as_their_values_do() -> None:
    """Bins of five values each had said of any two flags that they overlap to 100%."""
    rng = np.random.default_rng(0)
    reference, target = (
        WeightedSample({"flag": rng.random(20_000) < share, "n": rng.poisson(4 * share, 20_000)})
        for share in (0.3, 0.8)
    )
    flag, count = feature_overlaps(reference, target)
    assert flag.overlap == pytest.approx(0.5, abs=0.02)
    both = [np.bincount(one.features[:, 1].astype(int), minlength=20) / 20_000 for one in (reference, target)]
    assert count.overlap == pytest.approx(np.minimum(*both).sum(), abs=1e-9)


def test_inspection_of_one_and_of_two_samples() -> None:
    reference, target = normal(0.0, 5000, 0), normal(0.5, 4000, 1)
    alone = inspect_samples(reference)
    assert (alone.target, alone.recommendation, alone.overlaps) == (None, None, ())
    both = inspect_samples(reference, target)
    assert both.target is not None
    assert (both.reference.weights.n_events, both.target.weights.n_events) == (5000, 4000)
    assert both.as_dict()["recommendation"]["method"] == "direct"
    assert both.reference.ranges["x"][0] == pytest.approx(float(reference.features.min()))


def test_inspection_names_the_sample_without_a_positive_sum() -> None:
    with pytest.raises(InvalidInputError, match="weights of the target sum to -4000"):
        inspect_samples(normal(0.0, 5000, 0), WeightedSample(normal(0.0, 4000, 1), -np.ones(4000)))


def test_whole_numbers_get_a_bin_each() -> None:
    assert natural_edges([0, 3], [1, 2], n_bins=4).tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    assert len(natural_edges(np.arange(100), np.arange(100), n_bins=50)) == 51
    assert len(natural_edges(np.linspace(0, 1, 100), np.linspace(0, 1, 100), n_bins=50)) == 51
    with pytest.raises(InvalidInputError, match="share no range"):
        natural_edges([2, 2], [2, 2])


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SAMPLES: dict[str, Callable[[], tuple[WeightedSample, WeightedSample]]] = {
    "jets equal": lambda: signed_jets_case("equal-shares").samples(4000, np.random.default_rng(0)),
    "jets different": lambda: signed_jets_case("different-shares").samples(4000, np.random.default_rng(0)),
    "signed": lambda: signed_gaussian_case("signed").samples(4000, np.random.default_rng(0)),
    "nonnegative": lambda: signed_gaussian_case("nonnegative").samples(4000, np.random.default_rng(0)),
}
NAMES_OF = {"default": "sign-resolved", "sign-resolved in auto": "sign-resolved"}


def measured_errors() -> dict[tuple[str, int], dict[str, list[float]]]:
    """Return the errors of all seeds of every method, by problem and size, from the stored rows of the benchmarks."""
    errors: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in json.loads((RESULTS / "trusted.json").read_text()):
        of = errors.setdefault((row["problem"], row["size"]), {})
        of.setdefault(NAMES_OF.get(row["method"], row["method"]), []).append(row["error"])
    for row in json.loads((RESULTS / "accuracy.json").read_text()):
        if row["method"] not in ("exact", "auto", "sign-resolved x8") and row["rms"] > 0:
            of = errors.setdefault((row["case"], row["sizes"][0]), {})
            of.setdefault(NAMES_OF.get(row["method"], row["method"]), []).append(row["rms"])
    return errors


def test_what_is_recommended_wins_on_the_benchmarks() -> None:
    """What its sentence says; `auto`, which contains it and costs up to three fits, may win by a quarter."""
    compared = 0
    for (problem, size), errors in measured_errors().items():
        if problem not in SAMPLES or len(errors) < 2:
            continue
        advice = inspect_samples(*SAMPLES[problem]()).recommendation
        assert advice is not None
        assert advice.loss is None
        assert "smallest median errors on the benchmarks" in advice.reason
        middle = {name: median(found) for name, found in errors.items()}
        ours, of_auto = middle[advice.method], middle.pop("auto", np.inf)
        assert all(ours <= error for error in middle.values()), (problem, size, middle)
        assert ours <= 1.25 * of_auto, (problem, size, middle)
        compared += 1
    assert compared >= 7
