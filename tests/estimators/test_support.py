"""The support diagnostic: what the reference cannot be reweighted to is counted, and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pytest

from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import SupportWarning
from quasiratio.estimators import SignResolvedRatio
from quasiratio.estimators.support import EventArrays, SupportDiagnostic, diagnose_support

FloatArray = npt.NDArray[np.float64]


def arrays(x: npt.ArrayLike, ratio: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> EventArrays:
    features = np.asarray(x, dtype=np.float32)
    features = features[:, None] if features.ndim == 1 else features
    ratios = np.broadcast_to(np.asarray(ratio, dtype=np.float64), len(features))
    return features, ratios, np.ones(len(features)) if weights is None else np.asarray(weights)


def test_the_fraction_outside_the_range_is_that_of_the_absolute_weight() -> None:
    reference = arrays(np.linspace(0.0, 1.0, 1001), 1.0)
    target = arrays([0.5, 1.5, -2.0, 1.0], 1.0, [2.0, -1.0, 3.0, 4.0])
    support = diagnose_support(["pt"], reference, target)
    assert support.outside_range == {"pt": pytest.approx(4.0 / 10.0)}
    assert support.n_reference == 1001
    assert "40.00% of the target weight lies outside the reference's range of 'pt'" in support.warning


def test_each_feature_has_its_own_fraction() -> None:
    rng = np.random.default_rng(0)
    inside = rng.uniform(0, 1, (5000, 3))
    target = inside.copy()
    target[:500, 1] += 2.0
    support = diagnose_support(["a", "b", "c"], arrays(inside, 1.0), arrays(target, 1.0))
    assert support.outside_range == {"a": 0.0, "b": pytest.approx(0.1), "c": 0.0}
    assert "'b'" in support.warning
    assert "'a'" not in support.warning


def test_the_largest_supported_ratio_leaves_ten_reference_events() -> None:
    sizes = np.arange(1.0, 1001.0)
    signs = np.where(np.arange(1000) % 2, 1.0, -1.0)
    support = diagnose_support(["x"], arrays(sizes, signs * sizes), arrays([1.0], 1.0))
    assert support.largest_supported_ratio == 991.0
    assert np.sum(sizes >= support.largest_supported_ratio) == 10


@pytest.mark.parametrize("top", [[40.0 + i / 9 for i in range(10)], [500.0], [300.0, 20.0]])
def test_target_weight_beyond_the_reach_of_the_ratio_is_counted(top: list[float]) -> None:
    """Half of the target sits where |r| is 600; few reference events come near, the others have r = 1."""
    x = np.linspace(0, 1, 5000)
    sizes = np.concatenate([top, np.ones(5000 - len(top))])
    target = arrays(x[:100], np.where(np.arange(100) < 50, -600.0, 1.0))
    support = diagnose_support(["x"], arrays(x, -sizes), target)
    assert support.largest_supported_ratio == (40.0 if len(top) == 10 else 1.0)
    carried_by_ten = (sum(top) + 10 - len(top)) / sizes.sum()
    assert support.beyond_support == pytest.approx(0.5 - 2 * carried_by_ten)
    expected = f"{support.beyond_support:.2%} of the target weight has |ratio| above"
    assert expected in support.warning


def test_a_constant_ratio_is_supported() -> None:
    """Discrete features give many equal ratios: the ten largest are as good as any."""
    support = diagnose_support(["x"], arrays(np.arange(100.0), 1.0), arrays(np.arange(100.0), 1.0))
    assert (support.largest_supported_ratio, support.beyond_support, support.warning) == (1.0, 0.0, "")


@pytest.mark.parametrize(("n_reference", "fraction", "warns"), [(10**6, 0.004, False), (10**6, 0.006, True)])
def test_a_negligible_fraction_is_reported_and_does_not_warn(
    n_reference: int, fraction: float, warns: bool
) -> None:
    support = SupportDiagnostic({"x": fraction}, 10.0, 0.0, n_reference)
    assert bool(support.warning) is warns
    assert bool(SupportDiagnostic({"x": 0.0}, 10.0, fraction, n_reference).warning) is warns


def test_small_references_are_given_the_benefit_of_the_doubt() -> None:
    assert not SupportDiagnostic({"x": 0.02}, 10.0, 0.02, 1000).warning
    assert SupportDiagnostic({"x": 0.04}, 10.0, 0.0, 1000).warning


def fit_shifted(reference: FloatArray, target: FloatArray) -> SignResolvedRatio:
    return SignResolvedRatio(max_steps=40, batch_size=1024, random_state=0).fit(
        np.concatenate([reference, target]), np.repeat([0, 1], [len(reference), len(target)])
    )


def test_a_target_beyond_the_reference_warns_with_the_fraction() -> None:
    rng = np.random.default_rng(0)
    reference, target = rng.uniform(0.0, 1.0, (4000, 1)), rng.uniform(0.0, 1.25, (4000, 1))
    with pytest.warns(
        SupportWarning, match=r"of the target weight lies outside the reference's range of 'x0'"
    ):
        model = fit_shifted(reference, target)
    fraction = model.support_.outside_range["x0"]
    assert fraction == pytest.approx(0.2, abs=3 * np.sqrt(0.2 * 0.8 / 400))  # 400 validation events
    assert f"{fraction:.2%}" in model.support_.warning
    assert model.support_.n_reference == 3400  # 400 to validate, 200 to check


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_nothing_is_clipped_beyond_the_support() -> None:
    rng = np.random.default_rng(0)
    reference, target = rng.normal(0.0, 1.0, (4000, 1)), rng.normal(4.0, 1.0, (4000, 1))
    with pytest.warns(SupportWarning):
        model = fit_shifted(reference, target)
    assert model.predict_ratio(target).max() > model.support_.largest_supported_ratio


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_disjoint_supports_warn_with_almost_everything() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(SupportWarning, match=r"100\.00% of the target weight lies outside"):
        model = fit_shifted(rng.uniform(0, 1, (3000, 1)), rng.uniform(2, 3, (3000, 1)))
    assert model.support_.outside_range == {"x0": 1.0}


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_a_hole_within_the_range_is_noticed_by_the_ratio() -> None:
    """The target fills a hole of the reference, so no range is exceeded."""
    rng = np.random.default_rng(1)
    reference = rng.uniform(-1.0, 1.0, (6000, 1))
    reference += np.sign(reference)  # nothing within (-1, 1)
    target = rng.normal(0.0, 0.3, (6000, 1))
    with pytest.warns(SupportWarning, match=r"of the target weight has \|ratio\| above") as caught:
        model = SignResolvedRatio(max_steps=150, batch_size=1024, random_state=0).fit(
            np.concatenate([reference, target]), np.repeat([0, 1], 6000)
        )
    assert "outside" not in str(caught[0].message)
    assert model.support_.outside_range == {"x0": 0.0}
    assert model.support_.beyond_support > 0.5


@pytest.mark.parametrize("case", ["nonnegative", "signed"])
@pytest.mark.parametrize(("n", "seeds"), [(1000, range(20)), (10_000, range(20)), (100_000, range(3))])
def test_the_exact_ratio_of_the_toys_does_not_warn(case: str, n: int, seeds: range) -> None:
    toy = signed_gaussian_case(case)
    for seed in seeds:
        reference, _ = toy.samples(n, np.random.default_rng([seed, 0]))
        _, target = toy.samples(max(100, n // 10), np.random.default_rng([seed, 1]))
        support = diagnose_support(
            ["x", "y"],
            (reference.features, toy.exact_ratio(reference.features), reference.weights),
            (target.features, toy.exact_ratio(target.features), target.weights),
        )
        assert not support.warning, seed


@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:The estimated reference density")
def test_fits_of_well_supported_toys_do_not_warn(toy, n: int, seed: int) -> None:
    features, labels, weights = toy("signed" if seed % 2 else "nonnegative", n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        model = SignResolvedRatio(max_steps=60, batch_size=2048, random_state=seed).fit(
            features, labels, sample_weight=weights
        )
    assert model.support_.warning == ""
    assert set(model.support_.outside_range) == {"x0", "x1"}


@pytest.mark.parametrize("ratio", [0.0, np.inf])
def test_ratios_of_a_failed_fit_are_counted_without_a_numerical_warning(ratio: float) -> None:
    x = np.linspace(0.0, 1.0, 200)
    ratios = np.where(x > 0.5, ratio, 0.0)
    support = diagnose_support(["x"], arrays(x, ratios), arrays(x, ratios))
    assert support.beyond_support == 0.0  # the largest ratio is that of reference events
    assert support.outside_range == {"x": 0.0}
