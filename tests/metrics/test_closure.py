"""Closure on the published Gaussian cases, its invariances, its inputs and its outputs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from quasiratio import WeightedSample
from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import ClosureResult, closure, radial_edges, sliced_wasserstein


def radius(features: Any) -> Any:
    return np.hypot(features[:, 0], features[:, 1])


RADIAL: dict[str, Any] = {"observables": {"r": radius}, "edges": {"r": radial_edges}}


@pytest.fixture(scope="module")
def pair() -> tuple[WeightedSample, WeightedSample, Any]:
    case = signed_gaussian_case("signed")
    reference, target = case.samples(20_000, np.random.default_rng(0))
    return reference, target, case.exact_ratio(reference.features)


@pytest.mark.parametrize("name", ["nonnegative", "signed"])
def test_the_exact_ratio_closes_and_a_wrong_one_does_not(name: str) -> None:
    case = signed_gaussian_case(name)
    values: dict[str, list[float]] = {"exact": [], "wrong": []}
    for seed in range(5):  # so large that the nearly empty bins at the origin have counts worth a chi2
        reference, target = case.test_samples(300_000, np.random.default_rng(seed))
        exact = case.exact_ratio(reference.features)
        ratios = {"exact": exact, "wrong": exact + 0.3 * (radius(reference.features) < 2)}
        result = closure(reference, ratios, target, **RADIAL)["r"]
        assert result.edges[0] == 0
        assert result["exact"].chi_squared.n_dof == 98
        for method, collected in values.items():
            collected.append(result[method].chi_squared.value)
        assert result.reference.chi_squared.value > 3
    assert np.mean(values["exact"]) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 98 / 5))
    assert np.min(values["wrong"]) > 3 * np.max(values["exact"])


def test_sizes_and_scales_do_not_matter(pair: Any) -> None:
    reference, target, ratio = pair
    plain = closure(reference, ratio, target).table()
    scaled = closure(
        WeightedSample(reference.features, 7 * reference.weights, reference.names),
        0.01 * ratio,
        WeightedSample(target.features, 300 * target.weights, target.names),
    ).table()
    for one, two in zip(plain, scaled, strict=True):
        assert {k: pytest.approx(v) if isinstance(v, float) else v for k, v in one.items()} == two
    fewer = closure(reference, ratio, target[:5000])["x"]["ratio"].chi_squared  # n1 != n0
    assert fewer.value == pytest.approx(1.0, abs=5 * np.sqrt(2 / fewer.n_dof))


def test_histograms_are_the_reweighted_reference_and_the_target(pair: Any) -> None:
    reference, target, ratio = pair
    edges = np.linspace(-4, 4, 11)
    entry = closure(reference, ratio, target, observables=["y"], edges={"y": edges})["y"]
    np.testing.assert_array_equal(entry.edges, edges)
    y, w = reference.features[:, 1].astype(float), reference.weights * ratio
    expected = np.histogram(y, edges, weights=w)[0] / w.sum()
    np.testing.assert_allclose(entry["ratio"].histogram.values, expected, rtol=1e-10)
    squares = np.histogram(y, edges, weights=w**2)[0] / w.sum() ** 2
    np.testing.assert_allclose(entry["ratio"].histogram.variances, squares, rtol=1e-10)
    raw = np.histogram(y, edges, weights=reference.weights)[0] / reference.sum_of_weights
    np.testing.assert_allclose(entry.reference.histogram.values, raw, rtol=1e-10)
    y_target = target.features[:, 1].astype(float)
    expected = np.histogram(y_target, edges, weights=target.weights)[0] / target.sum_of_weights
    np.testing.assert_allclose(entry.target.values, expected, rtol=1e-10)
    pulls = entry.pulls("ratio")
    assert float(np.sum(pulls**2)) == pytest.approx(entry["ratio"].chi_squared.chi2)
    assert entry["ratio"].member_band is None


def test_members_give_a_correlated_band(pair: Any) -> None:
    reference, target, ratio = pair
    x = reference.features[:, 0].astype(float)
    tilt = np.array([-0.1, 0.0, 0.1])[:, None]
    members = ratio * (1 + tilt * np.tanh(x))  # odd in x: whole bins move together
    result = closure(reference, {"ensemble": members, "mean": members.mean(axis=0)}, target, n_bins=20)
    band = result["x"]["ensemble"].member_band
    assert band is not None
    by_member = [closure(reference, m, target, n_bins=20)["x"]["ratio"].histogram.values for m in members]
    np.testing.assert_allclose(band, np.std(by_member, axis=0, ddof=1), rtol=1e-10)
    ensemble, mean = result["x"]["ensemble"], result["x"]["mean"]
    np.testing.assert_allclose(ensemble.histogram.values, mean.histogram.values, rtol=1e-10)
    assert mean.member_band is None
    # independent per-event errors would all but cancel within a bin
    assert np.median(band / np.abs(ensemble.histogram.values)) > 0.02
    single = closure(reference, members[:1], target)["x"]["ratio"]
    assert single.member_band is None


def test_observables_can_be_named_computed_or_given(pair: Any) -> None:
    reference, target, ratio = pair
    given = (radius(reference.features), radius(target.features))
    result = closure(reference, ratio, target, observables={"r": radius, "given": given, "abscissa": "x"})
    assert [o.name for o in result.observables] == ["r", "given", "abscissa"]
    assert result["r"]["ratio"].chi_squared == result["given"]["ratio"].chi_squared
    everything = closure(reference, ratio, target)
    assert [o.name for o in everything.observables] == ["x", "y"]
    assert result["abscissa"]["ratio"].chi_squared == everything["x"]["ratio"].chi_squared
    swapped = WeightedSample(target.features[:, ::-1], target.weights, ("y", "x"))  # found by name
    assert closure(reference, ratio, swapped).table() == everything.table()


def test_wasserstein_on_request(pair: Any) -> None:
    reference, target, ratio = pair
    result = closure(reference, {"exact": ratio, "negative": -ratio}, target, wasserstein=True)
    expected = sliced_wasserstein(
        reference.features[:, 0],
        target.features[:, 0],
        first_weights=reference.weights * ratio,
        second_weights=target.weights,
    )
    assert result["x"]["exact"].wasserstein == pytest.approx(expected)
    assert np.isnan(result["x"]["negative"].wasserstein or 0.0)
    assert "W1" in str(result)
    assert closure(reference, ratio, target)["x"]["ratio"].wasserstein is None


def test_table_text_and_hist(pair: Any) -> None:
    reference, target, ratio = pair
    result = closure(reference, {"exact": ratio}, target)
    rows = result.table()
    assert [(row["observable"], row["method"]) for row in rows] == [("x", "exact"), ("y", "exact")]
    assert rows[0]["chi2_per_dof"] == result["x"]["exact"].chi_squared.value
    assert rows[0]["relative_entropy"] == result["x"]["exact"].relative_entropy.value
    assert len(result.table(include_reference=True)) == 4
    lines = str(result).splitlines()
    assert lines[0].split() == ["observable", "method", "chi2/ndof", "ndof", "D_S2", "left", "out"]
    assert len(lines) == 5
    assert str(ClosureResult(())) == "no observables"
    hists = result["x"].to_hist()
    assert list(hists) == ["target", "reference", "exact"]
    np.testing.assert_array_equal(hists["exact"].values(), result["x"]["exact"].histogram.values)
    assert hists["exact"].sum(flow=True).value == pytest.approx(1.0)
    assert pickle.loads(pickle.dumps(result)).table() == rows  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: {"a": np.where(np.arange(len(r)) < 3, np.nan, r)}, r"3 of 20000 ratios of method 'a'"),
        (lambda r: np.where(np.arange(len(r)) < 2, np.inf, r), "2 of 20000 ratios of method 'ratio'"),
        (lambda r: r[:-1], r"shape \(19999,\).*expected numbers of shape \(20000,\)"),
        (lambda r: r[:, None], r"shape \(20000, 1\)"),
        (lambda r: r[None, None], "one per reference event"),
        (lambda r: r.astype(str), "expected numbers"),
        (lambda r: {"target": r}, "a method called 'target'"),
        (
            np.zeros_like,
            "Observable 'x': Method 'ratio': The weights of the histogram sum to zero",
        ),
    ],
)
def test_bad_ratios(pair: Any, change: Any, message: str) -> None:
    reference, target, ratio = pair
    with pytest.raises(InvalidInputError, match=message):
        closure(reference, change(ratio), target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observables": ["z"]}, r"observable 'z'; expected a feature among \['x', 'y'\]"),
        ({"observables": {"z": 3.0}}, "float for the observable 'z'"),
        ({"observables": {"r": lambda f: f}}, r"values of 'r' of shape \(20000, 2\)"),
        (
            {"observables": {"r": lambda f: np.log(np.minimum(f[:, 0] * 0, 0) - 1)}},
            "values of 'r' that are NaN",
        ),
        ({"observables": {"r": ([1.0], [2.0])}}, "1 values of 'r' for 20000 events"),
        (
            {"observables": {"one": lambda f: np.ones(len(f))}},
            "Observable 'one': The two samples share no range",
        ),
        ({"edges": {"z": [0, 1]}}, r"edges for \['z'\]"),
        ({"edges": {"x": [1, 0]}}, "Observable 'x'.*increasing order"),
        ({"n_bins": 0}, "positive integer"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_bad_options(pair: Any, options: Any, message: str) -> None:
    reference, target, ratio = pair
    with pytest.raises(InvalidInputError, match=message):
        closure(reference, ratio, target, **options)


def test_unknown_names_and_features(pair: Any) -> None:
    reference, target, ratio = pair
    result = closure(reference, ratio, target)
    with pytest.raises(InvalidInputError, match=r"observable 'z'; expected one of \['x', 'y'\]"):
        result["z"]
    with pytest.raises(InvalidInputError, match=r"method 'mlp'; expected one of \['ratio'\]"):
        result["x"]["mlp"]
    with pytest.raises(InvalidInputError, match="expected the same in both samples"):
        closure(reference, ratio, WeightedSample(target.features, target.weights))
