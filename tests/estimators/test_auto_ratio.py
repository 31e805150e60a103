"""The automatic choice: its table, its stack, its seeds, and what it does with a negative reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from quasiratio.distributions import SignedGaussianMixture, signed_gaussian_case
from quasiratio.errors import InvalidInputError, NegativeDensityWarning, QuasiratioWarning, SupportWarning
from quasiratio.estimators import (
    AutoRatio,
    DirectRatio,
    RatioEstimator,
    SignedMixtureRatio,
    SignResolvedRatio,
)
from quasiratio.estimators.base import RatioPrediction
from quasiratio.estimators.densities import FitData
from quasiratio.metrics import ratio_risk

Events = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float64]]
Toy = Callable[[str, int, int], Events]

NAMES = ["sign-resolved", "rosmm", "revert"]
QUICK: dict[str, Any] = {"max_steps": 20, "batch_size": 512, "hidden_layers": (16, 16), "verbose": False}


@pytest.fixture(scope="module")
def validation(toy: Toy) -> Events:
    return toy("signed", 20_000, 1)


@pytest.fixture(scope="module")
def fitted(toy: Toy, validation: Events) -> AutoRatio:
    features, labels, weights = toy("signed", 20_000, 0)
    return AutoRatio(max_steps=200, batch_size=2048, random_state=0, verbose=False).fit(
        features, labels, sample_weight=weights, validation=validation
    )


def shifted(n: int = 1000, seed: int = 0) -> Events:
    """Two Gaussians with a few negative weights in the target, and none in the reference."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], n)
    features = (rng.normal(size=(2 * n, 2)) + 0.4 * labels[:, None]).astype(np.float32)
    weights = np.where((rng.random(2 * n) < 0.1) & (labels == 1), -1.0, 1.0)
    return features, labels, weights


def negative_reference(n: int, seed: int = 0, sigma_2: float = 0.8) -> Events:
    """A reference whose density is negative at the centre, and an ordinary target."""
    rng = np.random.default_rng(seed)
    reference = SignedGaussianMixture(2.0, 2.0, sigma_2).sample(n, rng)
    target = SignedGaussianMixture(1.0, 2.0, 1.0).sample(n, rng)
    return (
        np.vstack([reference.features, target.features]),
        np.repeat([0, 1], n),
        np.concatenate([reference.weights, target.weights]),
    )


def fit_on_negative_reference(model: RatioEstimator, events: Events) -> RatioEstimator:
    """Fit; large ratios near the zeros of the reference are nothing to complain about here."""
    features, labels, weights = events
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NegativeDensityWarning)
        warnings.simplefilter("ignore", SupportWarning)
        return model.fit(features, labels, sample_weight=weights)


def test_the_table_has_every_candidate_with_its_risk_and_paired_error(
    fitted: AutoRatio, validation: Events
) -> None:
    """With the positive weights of the fit no candidate is below the best; the values are near the signed ones."""
    report = fitted.report_
    assert [row.name for row in report.rows] == list(fitted.candidates_) == NAMES
    features, labels, weights = validation
    is_target = labels == 1
    ratios = {name: model.predict_ratio(features) for name, model in fitted.candidates_.items()}
    for row in report.rows:
        ratio = ratios[row.name]
        risk = ratio_risk(ratio[~is_target], weights[~is_target], ratio[is_target], weights[is_target])
        assert abs(row.risk.value - risk.value) < 3 * (risk.error + row.risk.error)
        assert row.difference.value >= 0
        assert (row.difference.value == 0) == (row.name == report.best)
        if row.name != report.best:
            assert 0 < row.difference.error < 2 * row.risk.error


def test_the_best_candidate_is_the_zero_of_the_table(fitted: AutoRatio) -> None:
    rows = {row.name: row for row in fitted.report_.rows}
    best = rows[fitted.report_.best]
    assert (best.difference.value, best.difference.error) == (0.0, 0.0)
    for row in rows.values():  # nothing is significantly better than the best
        assert row.difference.value >= -2.5 * row.difference.error


def test_the_choice_is_whichever_has_the_lower_cross_validated_risk(fitted: AutoRatio) -> None:
    report, weights = fitted.report_, fitted.stack_weights_
    assert weights.sum() == pytest.approx(1.0)
    assert [row.weight for row in report.rows] == weights.tolist()
    assert report.dropped == ()
    if report.stacked_risk < report.single_risk:
        assert report.reason.startswith("the stack has a lower cross-validated risk")
        assert np.sum(weights != 0) == len(NAMES)
    else:
        chosen = NAMES[int(np.argmax(weights))]  # the first, unless another is better by two errors
        assert report.reason.startswith(f"{chosen} alone has a lower cross-validated risk")
        assert weights.tolist() == [float(name == chosen) for name in NAMES]
    assert report.best in report.reason


def test_the_answer_is_the_weighted_sum_of_the_candidates(fitted: AutoRatio, validation: Events) -> None:
    features = validation[0]
    parts = np.array([model.predict_ratio(features) for model in fitted.candidates_.values()])
    np.testing.assert_allclose(fitted.predict_ratio(features), fitted.stack_weights_ @ parts, rtol=1e-10)


def test_the_answer_is_about_as_good_as_the_best_candidate(fitted: AutoRatio) -> None:
    case = signed_gaussian_case("signed")
    points = case.reference.sample_unweighted(10_000, np.random.default_rng(5)).features
    exact = case.exact_ratio(points)
    errors = {
        name: np.sqrt(np.mean((model.predict_ratio(points) - exact) ** 2))
        for name, model in {**fitted.candidates_, "auto": fitted}.items()
    }
    answer = errors.pop("auto")
    assert answer < 1.2 * min(errors.values())
    assert answer < max(errors.values())


def test_the_report_prints_a_table_and_one_line_of_reason(fitted: AutoRatio) -> None:
    report = fitted.report_
    lines = str(report).splitlines()
    assert "\n" not in report.reason
    assert len(lines) == 1 + len(NAMES) + 1
    for name, line in zip(NAMES, lines[1:-1], strict=True):
        assert line.startswith(name)
        assert " +- " in line
    assert lines[-1] == f"choice: {report.reason}"
    assert len({len(line) for line in lines[:-1]}) == 1  # columns stand below each other


def test_the_candidates_are_a_parameter_and_are_not_touched() -> None:
    features, labels, weights = shifted()
    mine = {
        "one": DirectRatio(loss="lsif", random_state=5, **QUICK),
        "two": SignResolvedRatio(random_state=5, **QUICK),
    }
    model = AutoRatio(candidates=mine, random_state=0).fit(features, labels, sample_weight=weights)
    assert list(model.candidates_) == ["one", "two"]
    assert isinstance(model.candidates_["one"], DirectRatio)
    assert not hasattr(mine["one"], "model_")
    assert mine["one"].random_state == 5
    assert model.candidates_["one"].max_steps == 20
    seeds = [candidate.random_state for candidate in model.candidates_.values()]
    assert len(set(seeds)) == 2


def test_one_candidate_is_taken_as_it_is() -> None:
    features, labels, weights = shifted()
    model = AutoRatio(candidates={"only": SignResolvedRatio(**QUICK)}, random_state=0)
    model.fit(features, labels, sample_weight=weights)
    assert model.report_.reason == "only was the only candidate"
    assert model.stack_weights_.tolist() == [1.0]
    np.testing.assert_array_equal(
        model.predict_ratio(features), model.candidates_["only"].predict_ratio(features)
    )


@pytest.mark.parametrize(
    "candidates",
    [
        {},
        {"x": "lsif"},
        {"x": SignResolvedRatio},
        [SignResolvedRatio()],
        "lsif",
        {"a": SignResolvedRatio(), "b": DirectRatio(n_members=2)},
    ],
)
def test_bad_candidates_raise(candidates: Any) -> None:
    features, labels, weights = shifted(100)
    with pytest.raises(InvalidInputError, match="Got candidates"):
        AutoRatio(candidates=candidates).fit(features, labels, sample_weight=weights)


def test_the_default_candidates_inherit_the_hyperparameters() -> None:
    features, labels, weights = shifted()
    model = AutoRatio(**QUICK, activation="tanh", weight_decay=0.01, random_state=1, normalize=False)
    model.fit(features, labels, sample_weight=weights)
    for candidate in model.candidates_.values():
        for name in ("max_steps", "batch_size", "hidden_layers", "activation", "weight_decay", "normalize"):
            assert getattr(candidate, name) == getattr(model, name), name
    assert len({candidate.random_state for candidate in model.candidates_.values()}) == len(NAMES)


@pytest.mark.filterwarnings("ignore::quasiratio.errors.NegativeDensityWarning")  # so few events
def test_the_same_seed_gives_the_same_bits(toy: Toy) -> None:
    features, labels, weights = toy("signed", 1500, 3)
    first, again, other = (
        AutoRatio(**QUICK, random_state=seed).fit(features, labels, sample_weight=weights)
        for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.predict_ratio(features), again.predict_ratio(features))
    assert str(first.report_) == str(again.report_)
    assert not np.array_equal(first.predict_ratio(features), other.predict_ratio(features))


def test_members_are_stacked_with_the_same_weights() -> None:
    features, labels, weights = shifted()
    model = AutoRatio(**QUICK, n_members=2, random_state=0).fit(features, labels, sample_weight=weights)
    members = model.predict_members(features)
    assert members.shape == (2, len(features))
    parts = np.array([candidate.predict_members(features) for candidate in model.candidates_.values()])
    np.testing.assert_allclose(members, np.einsum("c,cmn->mn", model.stack_weights_, parts), rtol=1e-10)
    ratio, std = model.predict_ratio(features, return_std=True)
    np.testing.assert_array_equal(ratio, model.predict_ratio(features))
    np.testing.assert_allclose(std, members.std(axis=0, ddof=1), rtol=1e-10)
    assert std.min() >= 0
    assert std.mean() > 0


def test_one_member_has_no_spread() -> None:
    features, labels, weights = shifted(300)
    model = AutoRatio(**QUICK, random_state=0).fit(features, labels, sample_weight=weights)
    assert model.predict_members(features).shape == (1, len(features))
    with pytest.raises(InvalidInputError, match="needs an ensemble"):
        model.predict_ratio(features, return_std=True)


def test_columns_in_another_order_raise() -> None:
    features, labels, weights = shifted(300)
    frame = pd.DataFrame(features, columns=["pt", "mass"])
    model = AutoRatio(**QUICK, random_state=0).fit(frame, labels, sample_weight=weights)
    np.testing.assert_array_equal(model.predict_ratio(frame), model.predict_ratio(frame.copy()))
    with pytest.raises(InvalidInputError, match=r"got \['mass', 'pt'\], expected \['pt', 'mass'\]"):
        model.predict_ratio(frame[["mass", "pt"]])


def test_a_negative_reference_drops_what_needs_a_positive_one_and_does_not_stack() -> None:
    events = negative_reference(4000)
    model = AutoRatio(**QUICK, random_state=0)
    fit_on_negative_reference(model, events)
    report = model.report_
    assert report.dropped == ("revert",)
    assert list(model.candidates_) == ["sign-resolved", "rosmm"]
    assert model.stack_weights_.tolist() == [1.0, 0.0]
    assert report.best == "sign-resolved"
    assert np.isnan([report.stacked_risk, report.single_risk]).all()
    assert "the reference density may be negative" in report.reason
    assert "left out revert: it needs a positive reference density" in report.reason
    assert "revert" not in str(report).replace(report.reason, "")


def test_a_negative_reference_takes_the_first_candidate_that_can_learn_it() -> None:
    mine = {
        "lsif": DirectRatio(loss="lsif", **QUICK),
        "mixture": SignedMixtureRatio(**QUICK),
        "resolved": SignResolvedRatio(**QUICK),
    }
    model = AutoRatio(candidates=mine, random_state=0)
    fit_on_negative_reference(model, negative_reference(4000))
    assert (list(model.stack_weights_), model.report_.dropped) == ([1.0, 0.0], ("lsif",))


def test_no_candidate_for_a_negative_reference_raises() -> None:
    mine = {"a": DirectRatio(loss="lsif", **QUICK), "b": DirectRatio(loss="revert", **QUICK)}
    with pytest.raises(InvalidInputError, match=r"no candidate \(a, b\) accepts that"):
        fit_on_negative_reference(AutoRatio(candidates=mine, random_state=0), negative_reference(4000))


NORMALIZED: dict[str, RatioEstimator] = {
    "sign-resolved": SignResolvedRatio(**QUICK),
    "sign-resolved, tuned": SignResolvedRatio(tune="all", **QUICK),
    "rosmm": SignedMixtureRatio(**QUICK),
    "rosmm, tuned coefficients": SignedMixtureRatio(tune="coefficients", **QUICK),
    "lsif": DirectRatio(loss="lsif", **QUICK),
    "revert": DirectRatio(loss="revert", **QUICK),
    "auto": AutoRatio(**QUICK),
    "auto of others": AutoRatio(
        candidates={"a": SignResolvedRatio(normalize=False, **QUICK), "b": DirectRatio("lsif", **QUICK)}
    ),
    "ensemble": SignResolvedRatio(n_members=2, **QUICK),
    "auto ensemble": AutoRatio(n_members=2, **QUICK),
}


@pytest.mark.parametrize("name", NORMALIZED)
def test_the_mean_ratio_over_the_training_reference_is_one(toy: Toy, name: str) -> None:
    """To 1e-6, for the ensemble and for each member; without `normalize` it is what it is."""
    features, labels, weights = toy("nonnegative", 1500, 0)
    at_reference, w = features[labels == 0], weights[labels == 0]
    for normalize in (True, False):
        model = NORMALIZED[name].set_params(normalize=normalize, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NegativeDensityWarning)
            model.fit(features, labels, sample_weight=weights, validation=toy("nonnegative", 500, 1))
            rows = [model.predict_ratio(at_reference), *model.predict_members(at_reference)]
        means = np.array(rows) @ w / w.sum()
        if normalize:
            np.testing.assert_allclose(means, 1.0, atol=1e-6)
        else:
            assert np.all(np.abs(means - 1.0) > 1e-5)


def test_a_candidate_that_cannot_be_fitted_is_left_out_and_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)) + np.repeat([[0.0, 0.0], [0.3, 0.0]], 400, axis=0)
    y, w = np.repeat([0, 1], 400), np.ones(800)
    w[5] = -1.0  # the only negative weight: RoSMM has nothing to validate that sign with
    held_out = (X[10:200], np.arange(190) % 2, np.ones(190))
    auto = AutoRatio(max_steps=40, hidden_layers=(8,), batch_size=100, random_state=0, verbose=False)
    with pytest.warns(QuasiratioWarning, match="'rosmm' was left out"):
        auto.fit(X, y, sample_weight=w, validation=held_out)
    assert "rosmm" not in auto.candidates_
    assert "rosmm" in auto.report_.dropped
    assert np.isfinite(auto.predict_ratio(X)).all()


def test_warnings_name_the_columns_that_were_given() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 1000)
    frame = pd.DataFrame(
        {"m_hh": np.where(y == 1, 5.0, 0.0) + rng.normal(size=2000), "pt": rng.normal(size=2000)}
    )
    auto = AutoRatio(max_steps=40, hidden_layers=(8,), batch_size=200, random_state=0, verbose=False)
    with pytest.warns(SupportWarning, match="m_hh"):
        auto.fit(frame, y)


def test_a_mildly_negative_reference_that_goes_unseen_says_what_size_the_test_needs() -> None:
    model = AutoRatio(**QUICK, random_state=0)
    fit_on_negative_reference(model, negative_reference(1500, sigma_2=1.2))
    density = model.reference_density_
    assert density.sign == "positive"  # wrongly: the test cannot see it, and says so
    assert "a negative density is seen from -" in density.reason
    assert "half of that needs four times the events" in density.reason


def test_what_the_candidates_know_of_their_fit_is_told() -> None:
    """The floor that a candidate feels, and the features that it drops, are those of the answer."""
    rng = np.random.default_rng(0)
    n = 8000
    x = rng.uniform(-1.0, 1.0, (2, n))
    signs = np.where(rng.random(n) < 0.5 * (1 + np.where(x[0] < 0, 0.6, 0.05)), 1.0, -1.0)
    keep = rng.random(n) < np.where(x[1] < 0, 0.6, 0.05)
    columns = np.concatenate([x[0], x[1][keep]])
    frame = pd.DataFrame({"x": columns, "copy": columns, "phi": rng.uniform(-np.pi, np.pi, len(columns))})
    y = np.repeat([0, 1], [n, int(keep.sum())])
    mine: dict[str, RatioEstimator] = {
        "first": SignResolvedRatio(
            max_steps=300, batch_size=1024, reference_density="positive", verbose=False
        )
    }
    auto = AutoRatio(candidates=mine, reference_density="positive", random_state=0, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        auto.fit(frame, y, sample_weight=np.concatenate([signs, np.ones(int(keep.sum()))]))
    candidate: Any = auto.candidates_["first"]
    assert candidate.fit_check_.near_cap > 0.2
    assert auto.fit_check_.near_cap == candidate.fit_check_.near_cap
    assert auto.fit_check_.peak_fraction == candidate.fit_check_.peak_fraction
    assert any(reason.startswith("first: In ") for reason in auto.fit_check_.reasons)
    assert auto.dropped_features_ == candidate.dropped_features_ == ["copy"]
    assert auto.periodic_features_ == ["phi"]
    assert auto.log_features_ == []


class PoleInTarget(SignResolvedRatio):
    """A good fit, but for a pole at target events of one tiny region, where its risk is lowest."""

    def predict_with_members(self, X: Any, *, members: bool) -> RatioPrediction:
        predicted = super().predict_with_members(X, members=members)
        features = np.asarray(getattr(X, "features", X))
        place = HOLE["place"]
        predicted.ratio[np.all(features == place, axis=1)] = HOLE["size"]
        return predicted


HOLE: dict[str, Any] = {}


@pytest.mark.parametrize(("label", "size", "term"), [(1, 1e5, "target term"), (0, 1e5, "reweighted")])
def test_a_candidate_with_a_pole_gets_no_weight(label: int, size: float, term: str) -> None:
    """One that would win by its risk alone, or carry the sample, is out, and the report says which event it was."""
    features, labels, weights = shifted(3000)
    plain = AutoRatio(candidates={"a": SignResolvedRatio(**QUICK)}, random_state=0)
    plain.fit(features, labels, sample_weight=weights)
    number = held_out_number(plain, features, labels, weights, label)
    HOLE.update(place=features[number], size=size)
    mine: dict[str, RatioEstimator] = {"good": SignResolvedRatio(**QUICK), "pole": PoleInTarget(**QUICK)}
    auto = AutoRatio(candidates=mine, random_state=0).fit(features, labels, sample_weight=weights)
    assert auto.stack_weights_.tolist() == [1.0, 0.0]
    assert auto.report_.dropped == ("pole",)
    assert auto.candidates_["pole"].fit_check_.status == "failed"
    assert f"left out pole: One event, number {number}, carries" in auto.report_.reason
    assert term in auto.report_.reason
    assert auto.fit_check_.status == "good"


def held_out_number(auto: AutoRatio, features: Any, labels: Any, weights: Any, label: int) -> int:
    """Return the number of an event of positive weight that a fit with this seed holds out."""
    seen: list[int] = []

    class Spy(SignResolvedRatio):
        def fit_events(self, data: FitData) -> None:
            seen.extend(data.held_out.numbers[data.held_out.labels == bool(label)].tolist())
            super().fit_events(data)

    AutoRatio(candidates={"spy": Spy(**QUICK)}, random_state=auto.random_state).fit(
        features, labels, sample_weight=weights
    )
    return next(number for number in seen if weights[number] > 0)
