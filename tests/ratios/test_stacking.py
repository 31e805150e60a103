"""Linear stacking: the closed form is the minimum, and weak or equal candidates are treated as they deserve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from quasiratio.metrics import ratio_risk
from quasiratio.ratios import stacking
from quasiratio.ratios.stacking import StackingProblem

FloatArray = npt.NDArray[np.float64]


def truth(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 + 0.6 * x)


def problem(*biases: float, seed: int = 0, n: int = 4000, noise: float = 0.0) -> StackingProblem:
    """Uniform reference and target of weights that make the true ratio 1 + 0.6 x; some are negative.

    Candidate `i` is off by `biases[i]` times an oscillation of its own.
    """
    rng = np.random.default_rng(seed)
    sides = []
    for is_target in (False, True):
        x = rng.uniform(-1.0, 1.0, n)
        signs = rng.choice([1.5, -0.5], size=n, p=[0.75, 0.25])
        shapes = [bias * np.sin((2 + 2 * i) * x + i) for i, bias in enumerate(biases)]
        ratios = truth(x) + np.array(shapes) + noise * rng.normal(size=(len(biases), n))
        sides.append((ratios, signs * truth(x) if is_target else signs))
    return StackingProblem(*sides[0], *sides[1])


@pytest.mark.parametrize("seed", range(4))
def test_the_closed_form_is_the_minimum_on_the_unit_sum_plane(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "_RIDGE", 0.0)
    monkeypatch.setattr(stacking, "_SPREAD", np.inf)
    stack = problem(0.3, -0.2, 0.4, seed=seed)

    def risk(free: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return stack.risk(np.append(free, 1.0 - free.sum()))

    found = minimize(risk, [0.0, 0.0], method="BFGS", tol=1e-10)
    expected = np.append(found.x, 1.0 - found.x.sum())
    np.testing.assert_allclose(stack.weights(), expected, atol=1e-4)
    for direction in ([1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 1.0, -2.0]):
        step = 1e-3 * np.array(direction)
        assert stack.risk(stack.weights()) < stack.risk(stack.weights() + step)
        assert stack.risk(stack.weights()) < stack.risk(stack.weights() - step)


def test_the_ridge_vanishes_with_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = problem(0.8, -0.6, 1.0, n=500), problem(0.8, -0.6, 1.0, n=50_000)
    with_ridge = [few.weights(), many.weights()]
    monkeypatch.setattr(stacking, "_RIDGE", 0.0)
    monkeypatch.setattr(stacking, "_SPREAD", np.inf)
    moved = [np.abs(a - b.weights()).max() for a, b in zip(with_ridge, (few, many), strict=True)]
    assert moved[1] < 0.01 < moved[0]


@pytest.mark.parametrize("biases", [(0.2,), (0.2, 0.2), (1.0, -3.0, 0.1, 0.0), (0.0, 0.0)])
def test_weights_sum_to_one(biases: tuple[float, ...]) -> None:
    stack = problem(*biases, noise=0.05)
    assert stack.weights().sum() == pytest.approx(1.0, abs=1e-10)


def test_the_risk_is_that_of_the_stacked_ratio() -> None:
    stack, weights = problem(0.3, -0.2, 0.4), np.array([0.7, -0.5, 0.8])
    expected = ratio_risk(
        weights @ stack.reference, stack.reference_weights, weights @ stack.target, stack.target_weights
    )
    assert stack.risk(weights) == pytest.approx(expected.value, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("seed", range(3))
def test_candidates_that_the_events_cannot_tell_apart_get_nothing(seed: int, scale: float) -> None:
    """Differences below what so few events resolve must not be blown up into large weights."""
    base = problem(0.2, 0.2, 0.2, 0.2, seed=seed, n=1000)
    alike = StackingProblem(
        base.reference[:1] + scale * (base.reference - base.reference[:1]),
        base.reference_weights,
        base.target[:1] + scale * (base.target - base.target[:1]),
        base.target_weights,
    )
    np.testing.assert_allclose(alike.weights(), [1.0, 0.0, 0.0, 0.0], atol=10 * scale + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_candidates_that_agree_with_each_other_do_not_outvote_the_first(seed: int) -> None:
    """Three that share one error are closer to each other than to the better one that stands first."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(-1, 1, 2000), rng.uniform(-1, 1, 2000)

    def candidates(at: FloatArray) -> FloatArray:
        shared = 0.03 * np.sin(7 * at)
        own = 0.01 * np.array([np.sin((2 + 2 * i) * at) for i in range(4)])
        return truth(at) + own + np.array([0.0, 1.0, 1.0, 1.0])[:, None] * shared

    stack = StackingProblem(
        candidates(x),
        rng.choice([1.5, -0.5], 2000, p=[0.8, 0.2]),
        candidates(t),
        truth(t) * rng.choice([1.5, -0.5], 2000, p=[0.8, 0.2]),
    )
    assert stack.best_single() == 0
    np.testing.assert_allclose(stack.weights(), [1.0, 0.0, 0.0, 0.0], atol=0.25)


def test_the_best_single_candidate_is_the_lowest_beyond_its_error() -> None:
    assert problem(2.0, 0.0, 2.0).best_single() == 1
    assert problem(0.0, 2.0, 2.0).best_single() == 0
    assert problem(2.0, 0.5).best_single() == 1
    assert problem(0.01, 0.0, 2.0).best_single() == 0  # too close to tell: the one that is trusted more


@pytest.mark.parametrize("seed", range(3))
def test_a_stack_of_good_candidates_is_good(seed: int) -> None:
    """Candidates better than the events can tell: the stack must stay as good as they are."""
    stack = problem(0.02, -0.02, 0.02, 0.02, seed=seed, n=2000)
    x = np.linspace(-1, 1, 201)
    errors = np.array(
        [bias * np.sin((2 + 2 * i) * x + i) for i, bias in enumerate((0.02, -0.02, 0.02, 0.02))]
    )
    stacked = np.sqrt(np.mean((stack.weights() @ errors) ** 2))
    assert stacked < 1.05 * np.sqrt(np.mean(errors[0] ** 2))


def test_copies_of_the_first_candidate_get_nothing() -> None:
    base = problem(0.2)
    same = StackingProblem(
        np.repeat(base.reference, 3, axis=0),
        base.reference_weights,
        np.repeat(base.target, 3, axis=0),
        base.target_weights,
    )
    np.testing.assert_allclose(same.weights(), [1.0, 0.0, 0.0], atol=1e-3)


def test_a_useless_candidate_gets_little_weight() -> None:
    stack = problem(0.0, 0.05, 0.0)
    rng = np.random.default_rng(9)
    noisy = StackingProblem(
        np.vstack([stack.reference[:2], rng.normal(1.0, 2.0, stack.reference.shape[1])]),
        stack.reference_weights,
        np.vstack([stack.target[:2], rng.normal(1.0, 2.0, stack.target.shape[1])]),
        stack.target_weights,
    )
    assert abs(noisy.weights()[2]) < 0.05


def test_opposite_errors_cancel_and_equal_errors_extrapolate() -> None:
    rng = np.random.default_rng(3)
    x, t = rng.uniform(-1, 1, 20_000), rng.uniform(-1, 1, 20_000)

    def candidates(*biases: float) -> StackingProblem:
        return StackingProblem(
            np.array([truth(x) + b * np.sin(3 * x) for b in biases]),
            np.ones_like(x),
            np.array([truth(t) + b * np.sin(3 * t) for b in biases]),
            truth(t),
        )

    np.testing.assert_allclose(candidates(0.4, -0.4).weights(), 0.5, atol=0.05)
    extrapolated = candidates(0.4, 0.8).weights()  # 2 r_1 - r_2 has no error: a negative weight is right
    np.testing.assert_allclose(extrapolated, [2.0, -1.0], atol=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_cross_validated_risks_are_honest(seed: int) -> None:
    """Noisy candidates stack well, a good one beside bad ones stays alone or nearly ties."""
    rng = np.random.default_rng(seed)
    noisy = problem(0.0, 0.0, 0.0, 0.0, seed=seed, noise=0.3)
    stacked, single = noisy.cross_validated(5, rng)
    best = min(noisy.risk(row) for row in np.eye(4))
    # Averaging four independent errors of variance 0.09 saves 3/4 of half of it.
    assert single - stacked == pytest.approx(0.75 * 0.09 / 2, abs=0.025)
    assert single == pytest.approx(best, abs=0.05)
    assert stacked == pytest.approx(noisy.risk(noisy.weights()), abs=0.05)
    good = problem(0.0, 0.0, seed=seed, n=1000)
    stacked, single = good.cross_validated(5, rng)
    assert stacked == pytest.approx(single, abs=1e-3)


def test_the_cross_validated_choice_is_made_on_other_events() -> None:
    """Candidates made of noise look best on the events they are chosen on, and on no others."""
    rng = np.random.default_rng(5)
    n, n_candidates = 300, 40
    pure_noise = StackingProblem(
        1.0 + rng.normal(size=(n_candidates, n)),
        np.ones(n),
        1.0 + rng.normal(size=(n_candidates, n)),
        np.ones(n),
    )
    stacked, _ = pure_noise.cross_validated(5, rng)
    in_sample = pure_noise.risk(pure_noise.weights())
    assert in_sample < -0.5  # the constant's risk, the truth: noise seems to beat it
    assert stacked > in_sample + 0.02


def test_no_step_is_taken_where_the_empirical_risk_has_no_minimum() -> None:
    """The candidates differ only at events whose signed weights sum to less than zero."""
    n = 100
    reference, target = np.ones((2, n)), np.ones((2, n))
    reference[1, :3] += 0.5
    target[1, :3] += 0.5
    weights = np.ones(n)
    weights[:2] = -1.0
    stack = StackingProblem(reference, weights, target, np.ones(n))
    np.testing.assert_array_equal(stack.weights(), [1.0, 0.0])
