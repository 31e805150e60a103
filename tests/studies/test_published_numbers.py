"""The paper's tables as data, and the arithmetic that sets ours beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import weighted_histogram
from quasiratio.studies.engine.study import over_seeds
from quasiratio.studies.output.published_tables import (
    GG_HH,
    GG_HH_OBSERVABLES,
    GG_HH_SIZES,
    SIGNED_GAUSSIAN_SIZES,
    SIGNED_GAUSSIANS,
)
from quasiratio.studies.output.stored_closure import (
    finite_ratios,
    histogram_from_numbers,
    histogram_to_numbers,
)
from quasiratio.studies.ratio_methods import METHOD_LABELS, families


def test_toy_tables_hold_the_printed_numbers() -> None:
    assert len(SIGNED_GAUSSIANS) == 20
    assert SIGNED_GAUSSIANS["nonnegative", "mlp", "chi2"] == 21.0
    assert SIGNED_GAUSSIANS["nonnegative", "rosmm_r", "chi2"] == 5.14
    assert SIGNED_GAUSSIANS["nonnegative", "exact", "entropy"] == 1.4e-4
    assert SIGNED_GAUSSIANS["signed", "rosmm_r", "chi2"] == 1.14
    assert SIGNED_GAUSSIANS["signed", "mlp", "entropy"] == 9.03
    assert sum(SIGNED_GAUSSIAN_SIZES) == 4_000_000


def test_smeft_tables_hold_the_printed_numbers() -> None:
    assert len(GG_HH) == 64
    assert GG_HH["m_hh", "mlp", "chi2"] == 405
    assert GG_HH["m_hh", "rosmm_r", "chi2"] == 3.35
    assert GG_HH["mu4_pt", "rosmm_c", "chi2"] == 1.21
    assert GG_HH["jet_pt", "rosmm", "entropy"] == 0.205
    assert GG_HH["m_hh", "mlp", "entropy"] == 203
    assert GG_HH["jet_m", "rosmm_r", "entropy"] == 0.0056
    assert [GG_HH[one, "rosmm", "chi2"] for one in GG_HH_OBSERVABLES][-3:] == [1.65, 2.08, 4.45]
    total = sum(GG_HH_SIZES)
    np.testing.assert_allclose(np.array(GG_HH_SIZES) / total, [0.65, 0.15, 0.20], atol=1e-6)


def test_every_published_method_has_a_label() -> None:
    assert {method for _, method, _ in (*SIGNED_GAUSSIANS, *GG_HH)} <= set(METHOD_LABELS)


def test_differences_are_counted_in_the_spread_over_seeds() -> None:
    result = over_seeds("x", [1.0, 2.0, 6.0], published=4.0)
    assert result is not None
    assert result.value == 2.0
    assert result.spread == pytest.approx(math.sqrt(7))
    assert result.pull_of_published == pytest.approx(-2 / math.sqrt(7))
    assert result.n_seeds == 3


def test_one_seed_has_no_spread_and_no_seed_no_result() -> None:
    single = over_seeds("x", [3.0], published=4.0)
    assert single is not None
    assert single.spread is None
    assert single.pull_of_published is None
    assert over_seeds("x", []) is None


def test_values_that_are_not_finite_do_not_count() -> None:
    result = over_seeds("x", [1.0, math.inf, math.nan, 3.0])
    assert result is not None
    assert (result.value, result.n_seeds) == (2.0, 2)


def test_infinite_ratios_are_left_out_and_counted() -> None:
    ratio, fraction = finite_ratios([1.0, -2.0, np.inf, np.nan, 1e9])
    assert ratio.tolist() == [1.0, -2.0, 0.0, 0.0, 0.0]
    assert fraction == pytest.approx(0.6)


def test_histograms_survive_the_store() -> None:
    rng = np.random.default_rng(0)
    before = weighted_histogram(rng.normal(size=500), rng.normal(1, 1, 500), edges=np.linspace(-1, 2, 8))
    after = histogram_from_numbers(histogram_to_numbers(before))
    np.testing.assert_allclose(after.values, before.values, rtol=1e-8)
    np.testing.assert_allclose(after.variances, before.variances, rtol=1e-8)
    assert after.sum_of_weights == pytest.approx(before.sum_of_weights)


def test_families_share_what_is_fitted() -> None:
    everything = [name for name in METHOD_LABELS if name != "exact"]
    shared = families(everything)
    assert sorted(len(names) for names in shared) == [1, 1, 1, 6]  # LSIF is no candidate of AutoRatio
    assert {name for names in shared for name in names} == set(everything)
    apart = families(everything, share=False)
    assert ("rosmm", "rosmm_c", "rosmm_r") in apart
    assert ("auto",) in apart
    with pytest.raises(InvalidInputError, match="expected some of mlp"):
        families(["perceptron"])
