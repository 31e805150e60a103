"""The signed jets: densities, weights and ratios against their closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quasiratio.distributions import SignAsymmetry, SignedJets, signed_jets_case
from quasiratio.errors import InvalidInputError

CASES = ("equal-shares", "different-shares", "negative-target", "negative-reference")
N = 400_000


@pytest.mark.parametrize("name", CASES)
def test_the_effective_size_is_an_eighth(name: str) -> None:
    for sample in signed_jets_case(name).samples(N, np.random.default_rng(0)):
        assert 0.10 < sample.effective_size / N < 0.14


@pytest.mark.parametrize("name", CASES)
def test_the_mean_asymmetry_is_the_integral(name: str) -> None:
    case = signed_jets_case(name)
    for jets, sample in zip(
        (case.reference, case.target), case.samples(N, np.random.default_rng(1)), strict=True
    ):
        of_points = jets.sign_asymmetry(sample.features)
        assert of_points.mean() == pytest.approx(jets.mean_asymmetry, abs=4 * of_points.std() / math.sqrt(N))
        assert np.abs(of_points).max() <= 1
        share = sample.weights.sum() / np.abs(sample.weights).sum()
        error = math.sqrt(np.square(sample.weights).sum()) / np.abs(sample.weights).sum()
        assert share == pytest.approx(jets.mean_asymmetry, abs=4 * error)


@pytest.mark.parametrize("name", CASES[:3])
@pytest.mark.parametrize("column", [0, 1, 4, 5, 6, 9, 11])
def test_the_exact_ratio_turns_the_reference_into_the_target(name: str, column: int) -> None:
    """In every feature that differs, bin by bin."""
    case = signed_jets_case(name)
    reference, target = case.samples(N, np.random.default_rng(2))
    edges = np.unique(np.quantile(target.features[:, column], np.linspace(0, 1, 21)))
    edges[0], edges[-1] = -np.inf, np.inf
    reweighted = reference.weights * case.exact_ratio(reference.features)
    chi2 = 0.0
    sums = []
    for sample, weights in ((reference, reweighted), (target, np.asarray(target.weights))):
        number = np.searchsorted(edges, sample.features[:, column], side="right")
        total = weights.sum()
        sums.append(
            (
                np.bincount(number, weights / total, len(edges) + 1),
                np.bincount(number, np.square(weights / total), len(edges) + 1),
            )
        )
    (first, first_variance), (second, second_variance) = sums
    filled = first_variance + second_variance > 0
    pulls = (first - second)[filled] / np.sqrt(first_variance + second_variance)[filled]
    chi2 = float(np.square(pulls).sum()) / (filled.sum() - 1)
    assert chi2 < 2.2


def test_a_classifier_on_absolute_weights_is_right_only_where_shares_are_equal() -> None:
    errors = {}
    for name in CASES[:2]:
        case = signed_jets_case(name)
        reference = case.reference.sample(N, np.random.default_rng(3))
        exact, naive = case.exact_ratio(reference.features), case.abs_ratio(reference.features)
        naive = naive * (reference.weights.sum() / (reference.weights @ naive))
        abs_weights = np.abs(reference.weights)
        scale = np.average((exact - 1) ** 2, weights=abs_weights)
        errors[name] = math.sqrt(np.average((naive - exact) ** 2, weights=abs_weights) / scale)
    assert errors["equal-shares"] < 0.02
    assert errors["different-shares"] > 0.5


@pytest.mark.parametrize(
    ("name", "negative"),
    [("equal-shares", ()), ("different-shares", ()), ("negative-target", (1,)), ("negative-reference", (0,))],
)
def test_which_densities_are_negative_somewhere(name: str, negative: tuple[int, ...]) -> None:
    case = signed_jets_case(name)
    for label, jets in enumerate((case.reference, case.target)):
        points = jets.sample(100_000, np.random.default_rng(4)).features
        lowest = jets.sign_asymmetry(points).min()
        assert (lowest < -0.1) if label in negative else (lowest > 0.15)


def test_angles_are_angles_and_the_count_is_a_count() -> None:
    sample = signed_jets_case("equal-shares").reference.sample(10_000, np.random.default_rng(5))
    columns = dict(zip(sample.names, sample.features.T, strict=True))
    for name in ("z_phi", "jet1_phi", "met_phi"):
        assert np.abs(columns[name]).max() <= np.float32(np.pi)
    assert set(columns["n_jets"].tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
    assert min(columns[name].min() for name in ("z_pt", "jet1_pt", "jet2_pt", "met")) > 0


def test_a_seam_is_no_edge_of_the_density() -> None:
    case = signed_jets_case("different-shares")
    points = np.array(case.reference.sample(100, np.random.default_rng(6)).features, dtype=np.float64)
    turned = points.copy()
    turned[:, 6] += 2 * np.pi
    np.testing.assert_allclose(case.exact_ratio(points), case.exact_ratio(turned), rtol=1e-12)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"case 'jets'; expected one of \['different-shares'"):
        signed_jets_case("jets")
    with pytest.raises(InvalidInputError, match=r"shape \(3, 2\); expected \(n, 12\)"):
        signed_jets_case("equal-shares").exact_ratio(np.zeros((3, 2)))
    with pytest.raises(InvalidInputError, match=r"mean asymmetry is 0\.1; expected more than 0\.346"):
        SignedJets(SignAsymmetry(0.1, 0.0, 0.0)).sample(10, np.random.default_rng(0))
