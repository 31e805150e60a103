"""`WeightedSample`: what it accepts, what it refuses and how it says so, and the laws of its sums."""

from __future__ import annotations

import dataclasses
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample, effective_size

COLUMNS = {"pt": [10.0, 20.0, 30.0], "n_jets": [1, 2, 3]}

signed_weights = hnp.arrays(
    np.float64,
    st.integers(1, 30),
    elements=st.floats(-10, 10, allow_subnormal=False).map(lambda w: round(w, 3)),
).filter(lambda w: w.sum() > 0.1)


def structured() -> npt.NDArray[Any]:
    array = np.empty(3, dtype=[("pt", "f8"), ("n_jets", "i4")])
    array["pt"], array["n_jets"] = COLUMNS["pt"], COLUMNS["n_jets"]
    return array


def awkward_records() -> Any:
    ak = pytest.importorskip("awkward")
    return ak.zip(COLUMNS)


@pytest.mark.parametrize(
    "build",
    [
        lambda: COLUMNS,
        lambda: pd.DataFrame(COLUMNS),
        lambda: pd.DataFrame(COLUMNS).astype({"n_jets": "Int64"}),
        structured,
        awkward_records,
        lambda: WeightedSample(COLUMNS),
    ],
    ids=["dict", "pandas", "pandas-nullable", "structured", "awkward", "sample"],
)
def test_named_columns_build_the_same_sample(build: Any) -> None:
    sample = WeightedSample(build(), weights=[1, -1, 2])
    assert sample.names == ("pt", "n_jets")
    np.testing.assert_array_equal(sample.features, [[10, 1], [20, 2], [30, 3]])
    assert sample.features.dtype == np.float32
    assert sample.weights.dtype == np.float64
    assert (sample.sum_of_weights, len(sample), sample.n_features) == (2.0, 3, 2)


def test_plain_arrays_get_default_names_and_unit_weights() -> None:
    sample = WeightedSample(np.zeros((4, 2), dtype=int))
    assert sample.names == ("x0", "x1")
    np.testing.assert_array_equal(sample.weights, np.ones(4))
    assert WeightedSample([1.0, 2.0]).features.shape == (2, 1)
    assert WeightedSample(np.zeros((2, 2)), names=["a", "b"]).names == ("a", "b")


def test_mixed_booleans_and_floats_of_a_frame_are_numbers() -> None:
    frame = pd.DataFrame({"pt": [1.0, 2.0], "tag": [True, False]})
    np.testing.assert_array_equal(WeightedSample(frame).features, [[1, 1], [2, 0]])


def test_a_sample_keeps_its_weights_and_names_when_wrapped() -> None:
    sample = WeightedSample(COLUMNS, weights=[3.0, -1.0, 1.0])
    again = WeightedSample(sample)
    np.testing.assert_array_equal(again.weights, sample.weights)
    assert again.names == sample.names


@pytest.mark.parametrize(
    ("features", "weights", "names", "message"),
    [
        ({"a": [1.0, np.nan, np.nan], "b": [1, 2, 3]}, None, None, r"'a' \(2 events\); expected finite"),
        ({"a": [1.0, np.inf], "b": [1.0, -np.inf]}, None, None, r"'a' \(1 events\), 'b' \(1 events\)"),
        ([[np.inf], [-np.inf]], None, None, r"'x0' \(2 events\)"),
        ([[1e300], [1.0]], None, None, r"beyond float32 in 'x0' \(1 events\)"),
        (np.ma.array([[1.0], [2.0]], mask=[[True], [False]]), None, None, r"'x0' \(1 events\)"),
        (np.zeros((2, 2, 2)), None, None, r"shape \(2, 2, 2\); expected two dimensions"),
        (np.zeros((2, 0)), None, None, r"shape \(2, 0\)"),
        (3.0, None, None, r"shape \(\)"),
        ({}, None, None, "no columns"),
        ({"a": [1, 2], "b": [1]}, None, None, r"'a': \(2,\), 'b': \(1,\)"),
        ({"a": [[1, 2], [3, 4]]}, None, None, "expected one-dimensional columns"),
        ([["1.0"], ["2.0"]], None, None, "expected numbers"),
        ({"a": [1.0, 2.0], "run": ["A", "B"]}, None, None, "column 'run' of type"),
        (pd.DataFrame({"a": [1.0], "run": ["A"]}), None, None, "column 'run' of type"),
        ([[1.0, 2.0], [3.0]], None, None, "features with ragged or missing entries"),
        ([[1j]], None, None, "expected numbers"),
        (np.zeros((2, 2)), None, ["a", "a"], r"\['a'\] more than once"),
        (pd.DataFrame(np.zeros((1, 2)), columns=["a", "a"]), None, None, r"\['a'\] more than once"),
        (np.zeros((2, 2)), None, ["a"], "1 names for 2 features"),
        (np.zeros((2, 2)), [1.0], None, r"weights of shape \(1,\) for 2 events"),
        (np.zeros((2, 2)), [[1.0], [1.0]], None, r"weights of shape \(2, 1\)"),
        (np.zeros((3, 2)), [1.0, np.nan, np.inf], None, "2 weights that are NaN or infinite"),
        (np.zeros((2, 2)), ["a", "b"], None, "weights of type"),
        (np.zeros((2, 2)), [1.0, [2.0, 3.0]], None, "weights with ragged or missing entries"),
    ],
)
def test_bad_input_is_refused_with_a_reason(features: Any, weights: Any, names: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        WeightedSample(features, weights, names)


def test_missing_and_ragged_awkward_columns_are_refused_by_name() -> None:
    ak = pytest.importorskip("awkward")
    with pytest.raises(InvalidInputError, match="column 'x' with ragged or missing"):
        WeightedSample(ak.Array([{"x": 1.0, "y": 1.0}, {"x": None, "y": 2.0}]))
    with pytest.raises(InvalidInputError, match="column 'x' with ragged or missing"):
        WeightedSample(ak.Array([{"x": [1.0], "y": 1.0}, {"x": [1.0, 2.0], "y": 2.0}]))


def test_missing_values_of_a_nullable_column_are_counted() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, None], dtype="Int64")})
    with pytest.raises(InvalidInputError, match=r"'a' \(2 events\)"):
        WeightedSample(frame)


def test_an_empty_selection_is_a_sample_but_has_no_density() -> None:
    empty = WeightedSample(COLUMNS).select([False, False, False])
    assert len(empty) == 0
    assert (empty.sum_of_weights, empty.negative_fraction, empty.effective_size) == (0.0, 0.0, 0.0)
    assert "0 events" in repr(empty)
    with pytest.raises(InvalidInputError, match="sum to 0; expected a positive, finite sum"):
        _ = empty.mixture_coefficient


def test_frozen() -> None:
    features, weights = np.ones((2, 1), dtype=np.float32), np.ones(2)
    sample = WeightedSample(features, weights)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.weights = weights  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        sample.weights[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        sample[:1].features[0] = 5.0
    features[0], weights[0] = 7.0, 7.0  # the caller's arrays stay the caller's
    assert sample.features[0, 0] == 1.0
    assert sample.weights[0] == 1.0


def test_indexing() -> None:
    sample = WeightedSample(COLUMNS, weights=[1, -1, 2])
    np.testing.assert_array_equal(sample[1:].weights, [-1, 2])
    np.testing.assert_array_equal(sample[np.array([2, 0])].weights, [2, 1])
    np.testing.assert_array_equal(sample.select(sample.weights > 0).features[:, 0], [10, 30])
    with pytest.raises(InvalidInputError, match=r"sample\[1:2\]"):
        sample[1]


@pytest.mark.parametrize("mask", [[0, 1, 1], [True, False], [[True], [False], [True]]])
def test_select_refuses_what_is_no_mask(mask: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected 3 booleans"):
        WeightedSample(COLUMNS).select(mask)


@given(n=st.integers(0, 60), seed=st.integers(0, 100))
def test_split_is_a_partition(n: int, seed: int) -> None:
    sample = WeightedSample(np.arange(n, dtype=float)[:, None], weights=np.arange(n) - 3.0)
    parts = sample.split((0.65, 0.15, 0.20), np.random.default_rng(seed))
    assert [len(part) for part in parts] == pytest.approx([0.65 * n, 0.15 * n, 0.20 * n], abs=1.01)
    together = np.concatenate([part.features[:, 0] for part in parts])
    np.testing.assert_array_equal(np.sort(together), np.arange(n))
    for part in parts:  # weights stay with their events
        np.testing.assert_array_equal(part.weights, part.features[:, 0] - 3.0)
    again = sample.split((0.65, 0.15, 0.20), np.random.default_rng(seed))
    np.testing.assert_array_equal(parts[0].features, again[0].features)


@pytest.mark.parametrize("fractions", [(0.5, 0.4), (1.2, -0.2), (), (np.nan, 1.0)])
def test_split_refuses_fractions_that_do_not_add_up(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="sum to one"):
        WeightedSample(COLUMNS).split(fractions, np.random.default_rng(0))


def test_partition_by_sign_uses_sums_of_weights_not_counts() -> None:
    sample = WeightedSample(COLUMNS, weights=[4.0, -0.5, 0.0])
    positive, negative, c = sample.partition_by_sign()
    np.testing.assert_array_equal(positive.weights, [4.0, 0.0])
    np.testing.assert_array_equal(negative.weights, [0.5])  # absolute
    assert negative.features[0, 0] == 20.0
    assert c == pytest.approx(4.0 / 3.5)
    assert c == sample.mixture_coefficient


@pytest.mark.parametrize("weights", [[1.0, -1.0, 0.0], [1.0, -3.0, 1.0], [0.0, 0.0, 0.0]])
def test_c_needs_a_positive_sum(weights: list[float]) -> None:
    sample = WeightedSample(COLUMNS, weights=weights)
    with pytest.raises(InvalidInputError, match="expected a positive, finite sum"):
        _ = sample.mixture_coefficient
    with pytest.raises(InvalidInputError, match="expected a positive, finite sum"):
        sample.partition_by_sign()
    with pytest.raises(InvalidInputError, match="weights of the target sum to"):
        sample.require_positive_sum("target")


@given(weights=signed_weights)
def test_signed_parts_recombine(weights: npt.NDArray[np.float64]) -> None:
    sample = WeightedSample(np.arange(len(weights))[:, None], weights)
    positive, negative, c = sample.partition_by_sign()
    total = sample.sum_of_weights
    assert c >= 1
    assert positive.sum_of_weights == pytest.approx(c * total)
    assert negative.sum_of_weights == pytest.approx((c - 1) * total, abs=1e-9 * total)


@given(weights=signed_weights)
def test_weight_two_is_a_duplicate_and_weight_zero_is_absent(weights: npt.NDArray[np.float64]) -> None:
    x = np.arange(len(weights), dtype=float)[:, None]
    doubled = WeightedSample(x, 2 * weights)
    duplicated = WeightedSample(np.repeat(x, 2, axis=0), np.repeat(weights, 2))
    assert doubled.sum_of_weights == pytest.approx(duplicated.sum_of_weights)
    assert doubled.mixture_coefficient == pytest.approx(duplicated.mixture_coefficient)
    assert duplicated.effective_size == pytest.approx(2 * doubled.effective_size)  # and this must differ
    padded = WeightedSample(np.append(x, [[0.0]], axis=0), np.append(weights, 0.0))
    plain = WeightedSample(x, weights)
    assert padded.sum_of_weights == pytest.approx(plain.sum_of_weights)
    assert padded.mixture_coefficient == pytest.approx(plain.mixture_coefficient)


def test_the_repr_says_what_it_holds() -> None:
    text = repr(WeightedSample(COLUMNS, weights=[1.0, -0.5, 1.0]))
    assert (
        text
        == "WeightedSample(3 events, features ['pt', 'n_jets'], sum of weights 1.5, negative fraction 0.333)"
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-140, 1e140, 1e300])
def test_effective_size_has_no_scale(scale: float) -> None:
    weights = np.array([1.0, -0.5, 2.0, 0.0])
    assert effective_size(scale * weights) == pytest.approx(effective_size(weights), rel=1e-12)


@pytest.mark.parametrize("scale", [5e-324, 1e-141, 1e141, 1e308])
def test_weights_whose_squares_are_no_numbers_are_refused(scale: float) -> None:
    weights = scale * np.array([1.0, 0.0])
    for made in (
        lambda: WeightedSample([[1.0], [2.0]], weights),
        lambda: WeightedSample.adopt(np.zeros((2, 1), np.float32), weights.copy(), ["x"]),
    ):
        with pytest.raises(InvalidInputError, match="Multiply all weights by one constant"):
            made()
