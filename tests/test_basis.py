"""Polynomial bases: terms, evaluation, the solution per event, and the orders of others."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError

BASES = [(1, 1), (1, 2), (2, 2), (3, 2), (2, 3), (4, 1), (2, 4)]


def _basis(n_parameters: int, order: int) -> qr.PolynomialBasis:
    return qr.PolynomialBasis([f"c{i}" for i in range(n_parameters)], order=order)


def test_the_order_of_the_terms_is_by_degree_then_by_parameter() -> None:
    terms = qr.PolynomialBasis(["a", "b", "c"]).terms
    assert terms == ("1", "a", "b", "c", "a^2", "a*b", "a*c", "b^2", "b*c", "c^2")


@pytest.mark.parametrize(("n", "order"), BASES)
def test_every_monomial_is_there_once(n: int, order: int) -> None:
    basis = _basis(n, order)
    expected = {powers for powers in itertools.product(range(order + 1), repeat=n) if sum(powers) <= order}
    assert {tuple(row) for row in basis.exponents} == expected
    assert len(basis.terms) == basis.n_terms == len(expected)


@pytest.mark.parametrize(("n", "order"), BASES)
def test_the_solution_returns_the_coefficients(n: int, order: int) -> None:
    """Law: weights made of coefficients give them back, with as many points as terms and with more."""
    basis, rng = _basis(n, order), np.random.default_rng(n + order)
    for extra in (0, 3):
        points = rng.normal(size=(basis.n_terms + extra, n))
        coefficients = rng.normal(size=(50, basis.n_terms))
        coefficients[:, 0] = 1.0
        reference = rng.choice([-1.0, 1.0], 50) * rng.lognormal(size=50)
        weights = reference[:, None] * (coefficients @ basis(points).T)
        solved = basis.solve(points, weights)
        np.testing.assert_allclose(solved.coefficients, coefficients, atol=1e-7)
        np.testing.assert_allclose(solved.reference_weights, reference, rtol=1e-7)
        assert solved.residual.max() < 1e-9
        assert solved.rank == basis.n_terms
        assert solved.condition_number >= 1


def test_another_reference_point_divides_by_its_weight() -> None:
    basis, rng = _basis(2, 2), np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    absolute = np.abs(rng.normal(size=(20, 6))) + 1.0
    weights = absolute @ basis(points).T
    at = {"c0": 0.3, "c1": 0.1}
    solved = basis.solve(points, weights, reference=at)
    np.testing.assert_allclose(solved.reference_weights, absolute @ basis(at))
    np.testing.assert_allclose(solved.coefficients @ basis(at), 1.0)
    given = basis.solve(points, weights, reference_weights=np.full(20, 2.0))
    np.testing.assert_allclose(given.coefficients, absolute / 2.0)


def test_the_residual_sees_what_is_no_polynomial() -> None:
    points = np.linspace(-1, 1, 7)[:, None]
    weights = 1.0 + 0.1 * np.abs(points.T) + np.zeros((3, 1))
    assert _basis(1, 2).solve(points, weights).residual.min() > 0.005


@pytest.mark.parametrize(
    "points",
    [
        [[0, 0], [1, 0], [2, 0], [0, 1], [0, 2]],
        [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0]],
        [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]],
        [[1, 0], [0, 1], [-1, 0], [0, -1], [0.6, 0.8], [0.8, 0.6], [-0.6, 0.8]],
    ],
    ids=["no product", "one axis", "a diagonal", "a circle"],
)
def test_points_that_do_not_determine_all_terms_are_refused_by_name(points: list[list[float]]) -> None:
    basis = qr.PolynomialBasis(["a", "b"])
    missing = basis.missing_directions(points)
    with pytest.raises(InvalidInputError, match="nothing is known of it") as caught:
        basis.solve(points, np.ones((3, len(points))))
    assert missing[0] in str(caught.value)
    at = {"a": np.array(points)[:, 0], "b": np.array(points)[:, 1]}
    for text in missing:
        value = eval(text.replace("^", "**"), {}, at)  # noqa: S307 - our own polynomial
        np.testing.assert_allclose(value, 0.0, atol=1e-6)


def test_the_missing_direction_of_a_circle_is_its_equation() -> None:
    points = [[np.cos(t), np.sin(t)] for t in range(8)]
    assert qr.PolynomialBasis(["a", "b"]).missing_directions(points) == ["b^2 + a^2 - 1"]


def test_bad_weights_are_counted_and_refused() -> None:
    basis, points = _basis(1, 2), [[0.0], [1.0], [-1.0]]
    weights = np.ones((10, 3))
    weights[[3, 7], 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"2 of 10 events .* number 3, 7"):
        basis.solve(points, weights)
    weights = np.ones((10, 3))
    weights[4] = [0.0, 1.0, 2.0]
    weights[5] = 0.0
    with pytest.raises(
        InvalidInputError, match=r"2 of 10 events \(1 of them have no weight at all\) .* c0 = 0"
    ):
        basis.solve(points, weights)
    with pytest.raises(InvalidInputError, match="one column per point"):
        basis.solve(points, np.ones((10, 4)))


def test_rounding_to_fourteen_bits_has_the_error_that_is_reported() -> None:
    basis, rng = _basis(2, 2), np.random.default_rng(0)
    points = rng.uniform(-2, 2, size=(9, 2))
    coefficients = rng.normal(size=(4000, 6))
    coefficients[:, 0] = 1.0
    weights = rng.lognormal(size=(4000, 1)) * (coefficients @ basis(points).T)
    mantissa, exponent = np.frexp(weights)  # mantissa in [1/2, 1): 15 digits with the leading one
    rounded = np.ldexp(np.round(mantissa * 2**15) / 2**15, exponent)
    solved = basis.solve(points, rounded)
    pulls = (solved.coefficients - coefficients)[:, 1:] / solved.rounding_error(rounded, bits=14)[:, 1:]
    np.testing.assert_allclose(pulls.std(axis=0), 0.72, atol=0.08)  # mantissas lie between 1/2 and 1
    rows = basis([[0.5, -1.0], [2.0, 0.3]])
    exact = np.abs(weights @ solved.inverse.T @ rows.T / solved.reference_weights[:, None])
    off = np.abs(solved.coefficients @ rows.T) - exact
    np.testing.assert_allclose((off / solved.intensity_error(rounded, rows)).std(axis=0), 0.72, atol=0.08)


@pytest.mark.parametrize(("n", "order"), BASES)
def test_derivatives_and_back(n: int, order: int) -> None:
    basis = _basis(n, order)
    coefficients = np.random.default_rng(0).normal(size=(5, basis.n_terms))
    np.testing.assert_allclose(basis.from_derivatives(basis.to_derivatives(coefficients)), coefficients)


def test_the_gradient_is_that_of_finite_differences() -> None:
    basis, step = _basis(3, 3), 1e-5
    theta = np.array([0.3, -1.2, 0.7])
    for a in range(3):
        shift = step * np.eye(3)[a]
        numeric = (basis(theta + shift) - basis(theta - shift)) / (2 * step)
        np.testing.assert_allclose(basis.gradient(theta)[:, a], numeric, atol=1e-8)
    assert np.isfinite(basis.gradient([0.0, 0.0, 0.0])).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_lower_triangle_of_topcoffea(n: int) -> None:
    """The value of the polynomial is that of the triangle, and the way back is the identity."""
    basis, rng = _basis(n, 2), np.random.default_rng(n)
    ours, theta = rng.normal(size=(4, basis.n_terms)), rng.normal(size=n)
    extended = np.concatenate([[1.0], theta])
    triangle = [extended[i] * extended[j] for i in range(n + 1) for j in range(i + 1)]
    np.testing.assert_allclose(basis.to_topcoffea(ours) @ triangle, ours @ basis(theta))
    np.testing.assert_array_equal(basis.from_topcoffea(basis.to_topcoffea(ours)), ours)
    with pytest.raises(InvalidInputError, match="order 2"):
        _basis(n, 3).to_topcoffea(np.ones(_basis(n, 3).n_terms))


def test_bad_bases_and_points() -> None:
    with pytest.raises(InvalidInputError, match="different names"):
        qr.PolynomialBasis(["a", "a"])
    with pytest.raises(InvalidInputError, match="whole number"):
        qr.PolynomialBasis(["a"], order=0)
    basis = _basis(2, 2)
    for bad in ([1.0], [[1.0, np.nan]], "text", {"c9": 1.0}):
        with pytest.raises(InvalidInputError, match="expected"):
            basis(bad)


@pytest.mark.slow
def test_a_million_events_with_136_terms_take_seconds() -> None:
    basis, rng = _basis(15, 2), np.random.default_rng(0)
    assert basis.n_terms == 136
    points = rng.uniform(-3, 3, size=(140, 15))
    weights = rng.normal(1, 0.1, size=(10**6, 140)).astype(np.float32)
    weights[:, 0] += 5.0
    start = time.perf_counter()
    basis.solve(points, weights, reference_weights=np.ones(10**6))
    assert time.perf_counter() - start < 60


def test_rounding_errors_are_the_same_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    basis, rng = qr.PolynomialBasis(["a", "b"]), np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    weights = rng.normal(2.0, 0.5, size=(50, 6)) @ basis(points).T
    solved = basis.solve(points, weights, reference=[0.3, 0.1])
    whole = solved.rounding_error(weights)
    monkeypatch.setattr("quasiratio.solved_weights._CHUNK", 7)
    np.testing.assert_allclose(solved.rounding_error(weights), whole, rtol=1e-12)


def test_a_polynomial_of_other_parameters_is_the_same() -> None:
    basis, rng = qr.PolynomialBasis(["a", "b", "c"], order=3), np.random.default_rng(0)
    c, centre, theta = rng.normal(size=basis.n_terms), rng.normal(size=3), rng.normal(size=3)
    moved = basis.recentred(centre) @ c
    assert basis(theta - centre) @ moved == pytest.approx(basis(theta) @ c)
    np.testing.assert_allclose(basis.recentred(-centre) @ moved, c, atol=1e-9)


@pytest.mark.parametrize(("n_parameters", "order"), [(1, 10**30), (1, 65), (40, 10)])
def test_an_order_beyond_memory_is_one_sentence(n_parameters: int, order: int) -> None:
    with pytest.raises(InvalidInputError, match="expected at most 64 and at most 100,000 terms"):
        qr.PolynomialBasis([f"c{index}" for index in range(n_parameters)], order)
