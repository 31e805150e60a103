"""The study of weights: the weights themselves, stacked training against training alone, lines, and a smoke run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import linregress
from torch.nn.functional import softplus

from quasiratio.errors import InvalidInputError
from quasiratio.losses import Pare
from quasiratio.metrics import linear_fit, partial_correlation
from quasiratio.networks import StackedMlp
from quasiratio.studies.engine.study import Row
from quasiratio.studies.weight_variance import STUDY
from quasiratio.studies.weight_variance.fast_passes.classifier_problem import ClassifierProblem
from quasiratio.studies.weight_variance.fast_passes.mixture_problem import (
    MixtureProblem,
    mixture_ratio,
    signs_to_coefficients,
)
from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import (
    StackedPass,
    initial_parameters,
    with_ones,
)
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents
from quasiratio.studies.weight_variance.fast_passes.stack_training import StackSchedule, Stopped, train_stack
from quasiratio.studies.weight_variance.fast_passes.sub_ratio_problem import PAIRS, SubRatioProblem
from quasiratio.studies.weight_variance.grid import UNWEIGHTED, GridPoint, grid_points
from quasiratio.studies.weight_variance.shared_events import EventSizes, optimal_cross_entropy, shared_events
from quasiratio.studies.weight_variance.training import _curve_facts, compute

SMALL = EventSizes(training=3000, validation=1000, test=2000)
POINTS = [GridPoint(1.0, 0.1), GridPoint(2.0, 0.3), GridPoint(3.0, 0.5), GridPoint(5.0, 0.7)]
ARGUMENTS = {
    "seed": 3, "n_training": 3000, "n_validation": 1000, "n_validation_used": 800, "n_test": 2000, "epoch_events": 2560, "batch_size": 256,
    "patience": 2, "max_epochs": 6, "learning_rate": 1e-3, "points": [[2.0, 0.3], [3.0, 0.5]],
}  # fmt: skip


@pytest.mark.parametrize("point", [POINTS[0], POINTS[3], grid_points(50, 20)[-1]])
def test_weights_have_mean_one_the_asked_variance_and_fraction(point: GridPoint) -> None:
    values, chances = (
        np.array([point.weight_if_positive, point.weight_if_negative]),
        np.array([1 - point.eta, point.eta]),
    )
    assert chances @ values == pytest.approx(1)
    assert chances @ (values - 1) ** 2 == pytest.approx(point.sigma_w**2)
    assert values[1] < 0 < values[0]
    assert point.mixture_coefficient >= 1


def drawn(points: list[GridPoint], n: int = 4000) -> tuple[SignedEvents, torch.Tensor]:
    labels = (torch.arange(n) % 2).float()
    inputs = torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    return SignedEvents.draw(inputs, labels, points, seed=1, stream=0), labels


def test_drawn_weights_are_normalised_per_class_and_signed_as_asked() -> None:
    events, labels = drawn(POINTS)
    weights = events.weights_of(slice(0, 4000)).double()
    for label in (0, 1):
        torch.testing.assert_close(
            weights[:, labels == label].sum(dim=1),
            torch.full((4,), 2000.0, dtype=torch.float64),
            rtol=1e-5,
            atol=0,
        )
    fraction = (weights < 0).double().mean(dim=1).numpy()
    eta = np.array([point.eta for point in POINTS])
    assert np.all(np.abs(fraction - eta) < 5 * np.sqrt(eta * (1 - eta) / 4000))
    by_hand = weights.clamp(min=0)[:, labels == 1].sum(dim=1) / weights[:, labels == 1].sum(dim=1)
    torch.testing.assert_close(signs_to_coefficients(events)[:, 1].double(), by_hand, rtol=1e-5, atol=0)


def test_too_few_events_for_both_signs_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected both signs and a positive sum"):
        drawn([GridPoint(5.0, 0.02)], n=20)


def test_unweighted_events_have_weight_one() -> None:
    events, _ = drawn([UNWEIGHTED])
    assert torch.equal(events.weights_of(slice(0, 100)), torch.ones(1, 100))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("n", "widths"), [(50, (16, 8)), (50, (8,)), (50, (8, 16, 8)), (701, (64, 64))]
)  # the last in blocks
def test_written_out_gradients_are_those_of_automatic_differentiation(
    shared: bool, n: int, widths: tuple[int, ...]
) -> None:
    generator = torch.Generator().manual_seed(1)
    network = StackedMlp(3, 2, widths, 1, activation="relu", generator=generator)
    inputs = torch.randn(*(() if shared else (3,)), n, 2, generator=generator)
    slopes = torch.randn(3, n, generator=generator)
    pairs = list(zip(network.weights, network.biases, strict=True))
    expected = network(inputs)[..., 0]
    expected.backward(slopes)
    passes = StackedPass()
    plain = [torch.cat(pair, dim=1).detach() for pair in pairs]
    torch.testing.assert_close(passes.outputs(plain, with_ones(inputs)), expected.detach())
    for gradient, pair in zip(passes.gradients(plain, slopes), pairs, strict=True):
        by_graph = [parameter.grad for parameter in pair if parameter.grad is not None]
        torch.testing.assert_close(gradient, torch.cat(by_graph, dim=1), rtol=1e-4, atol=1e-5)


def tuning_problem(n: int) -> tuple[MixtureProblem, list[torch.Tensor], torch.Tensor]:
    """Two points with networks whose ratios are near one, so that nothing crosses zero; and the coefficients."""
    events, _ = drawn(POINTS[:2], n=n)
    starts = [
        initial_parameters((2, 8, 1), torch.Generator().manual_seed(seed)) for seed in range(2 * len(PAIRS))
    ]
    networks = [0.3 * torch.cat(one) for one in zip(*starts, strict=True)]
    problem = MixtureProblem(events, events, batch_size=n, steps_per_epoch=1)
    return problem, networks, signs_to_coefficients(events)


def test_tuning_gradients_follow_the_validation_loss() -> None:
    problem, networks, coefficients = tuning_problem(256)
    parameters = [*networks, coefficients]
    problem.begin_epoch(0)
    gradients = problem.gradients(parameters, 0)
    # Every part of this direction is uphill, so that the slope is not what is left of a sum that cancels.
    chances = torch.Generator().manual_seed(9)
    direction = [gradient * torch.rand(gradient.shape, generator=chances) for gradient in gradients]

    def risk(step: float) -> float:
        moved = [p + step * d for p, d in zip(parameters, direction, strict=True)]
        return float(problem.validation_losses(moved).sum())

    slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    assert slope == pytest.approx((risk(1e-3) - risk(-1e-3)) / 2e-3, rel=5e-3)


def test_written_out_tuning_is_that_of_recombination_and_pare() -> None:
    problem, networks, coefficients = tuning_problem(256)
    problem.begin_epoch(0)
    gradients = problem.gradients([*networks, coefficients], 0)
    inputs, labels, weights = problem.batches.batch(0)
    free = [one.double().requires_grad_() for one in (*networks, coefficients)]
    hidden = torch.relu(inputs.double() @ free[0])
    outputs = (hidden @ free[1][:, :-1] + free[1][:, -1:])[..., 0]
    loss = Pare()
    losses = loss.per_event(loss.link.raw(mixture_ratio(outputs, free[-1])), labels.double())
    risks = (losses * weights).mean(dim=1)
    for ours, expected in zip(gradients, torch.autograd.grad(risks.sum(), free), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-6)
    found = problem.validation_losses([*networks, coefficients])  # the same events
    torch.testing.assert_close(found, risks.detach(), rtol=1e-5, atol=1e-6)


def test_a_state_with_poles_is_never_the_best_one() -> None:
    """A hundred times one density minus ninety-nine times the other crosses zero among the events."""
    problem, networks, coefficients = tuning_problem(4096)
    assert torch.isfinite(problem.validation_losses([*networks, coefficients])).all()
    coefficients[0, 0] = 100.0
    losses = problem.validation_losses([*networks, coefficients])
    assert losses[0] == math.inf
    assert torch.isfinite(losses[1])


def signed_pair(points: list[GridPoint]) -> tuple[SignedEvents, SignedEvents]:
    events = shared_events(0, SMALL)
    return (
        SignedEvents.draw(events.training, events.training_labels, points, seed=0, stream=0),
        SignedEvents.draw(events.validation, events.validation_labels, points, seed=0, stream=1),
    )


def curves_of(points: list[GridPoint], schedule: StackSchedule) -> dict[str, list[float]]:
    problem = ClassifierProblem(
        *signed_pair(points), batch_size=256, steps_per_epoch=schedule.steps_per_epoch
    )
    starts = [
        initial_parameters((2, 16, 1), torch.Generator().manual_seed(round(10 * p.sigma_w))) for p in points
    ]
    parameters = [torch.cat(one) for one in zip(*starts, strict=True)]
    stopped = train_stack(parameters, len(points), problem, schedule)
    return {points[one.member].name: one.validation_loss for one in stopped}


def test_a_point_trains_in_a_stack_as_it_does_alone_also_when_others_have_stopped() -> None:
    schedule = StackSchedule(steps_per_epoch=10, patience=3, max_epochs=25, learning_rate=1e-2)
    together = curves_of(POINTS, schedule)
    assert len({len(curve) for curve in together.values()}) > 1  # they stop at different times
    for point in POINTS:
        (alone,) = curves_of([point], schedule).values()
        assert len(alone) == len(together[point.name])
        np.testing.assert_allclose(together[point.name], alone, rtol=1e-4)


def test_a_point_stops_when_its_patience_runs_out_in_its_best_state() -> None:
    schedule = StackSchedule(steps_per_epoch=10, patience=3, max_epochs=60, learning_rate=2e-2)
    training, validation = signed_pair(POINTS)
    problem = ClassifierProblem(training, validation, batch_size=256, steps_per_epoch=10)
    parameters = [p.repeat(4, 1, 1) for p in initial_parameters((2, 16, 1), torch.Generator().manual_seed(0))]
    _, untouched = signed_pair(POINTS)
    judge = ClassifierProblem(training, untouched, batch_size=256, steps_per_epoch=10)
    for one in train_stack(parameters, 4, problem, schedule):
        assert one.hit_limit or len(one.validation_loss) == one.best_epoch + 1 + schedule.patience
        assert one.validation_loss[one.best_epoch] == min(one.validation_loss)
        everywhere = [p.repeat(4, 1, 1) for p in one.parameters]
        losses = judge.validation_losses(everywhere)
        assert float(losses[one.member]) == pytest.approx(min(one.validation_loss), rel=1e-6)


def test_sub_ratios_see_as_many_events_of_one_part_as_of_the_other() -> None:
    events, labels = drawn(POINTS[:1])
    problem = SubRatioProblem(events, events, batch_size=64, steps_per_epoch=5)
    problem.begin_epoch(3)
    known = {
        tuple(x): (int(y), bool(n))
        for x, y, n in zip(events.inputs.tolist(), labels, events.negative[0], strict=True)
    }
    for network, (reference_sign, target_sign) in enumerate(PAIRS):
        for side, sign in ((0, reference_sign), (1, target_sign)):
            batch = problem.batches[2, network, side]
            assert batch.shape == (32, 3)
            assert {known[tuple(x)] for x in batch[:, :2].tolist()} == {(side, sign < 0)}


def test_every_sub_ratio_is_validated_on_all_of_its_two_parts_also_when_others_have_stopped() -> None:
    training, validation = signed_pair([POINTS[3], POINTS[0]])
    problem = SubRatioProblem(training, validation, batch_size=64, steps_per_epoch=5)
    starts = [initial_parameters((2, 8, 1), torch.Generator().manual_seed(seed)) for seed in range(8)]
    expected = []
    for network, own in enumerate(starts):
        row, (a, b) = network // 4, PAIRS[network % 4]
        parts = [validation.parts(row, 0, negative=a < 0), validation.parts(row, 1, negative=b < 0)]
        outputs = [
            StackedPass().outputs(own, with_ones(validation.inputs[part.long()]))[0].double()
            for part in parts
        ]
        expected.append(0.5 * float(softplus(outputs[0]).mean() + softplus(-outputs[1]).mean()))

    def losses_of(networks: list[int]) -> list[float]:
        parameters = [torch.cat(one) for one in zip(*(starts[n] for n in networks), strict=True)]
        return problem.validation_losses(parameters).tolist()

    assert losses_of(list(range(8))) == pytest.approx(expected, rel=1e-6)
    problem.keep(torch.tensor([0, 3, 4, 6, 7]))
    problem.keep(torch.tensor([1, 2, 4]))
    assert losses_of([3, 4, 7]) == pytest.approx([expected[n] for n in (3, 4, 7)], rel=1e-6)


def test_the_lowest_loss_is_that_of_the_exact_ratio() -> None:
    events = shared_events(0, EventSizes(training=200_000, validation=10, test=10))
    from quasiratio.distributions import signed_gaussian_case

    scale = 2.5 / float(events.training[events.training_labels == 0].std())
    ratio = signed_gaussian_case("nonnegative").exact_ratio(events.training.numpy() * scale)
    labels = events.training_labels.numpy()
    losses = np.where(labels > 0, np.log1p(1 / ratio), np.log1p(ratio))
    assert optimal_cross_entropy() == pytest.approx(losses.mean(), abs=5e-3)
    assert optimal_cross_entropy() < np.log(2)


def test_lines_and_their_errors_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 40)
    y = 0.3 * x + rng.normal(0, 0.2, 40)
    line, expected = linear_fit(x, y), linregress(x, y)
    assert (line.slope, line.slope_error) == pytest.approx((expected.slope, expected.stderr))
    assert (line.intercept, line.correlation) == pytest.approx((expected.intercept, expected.rvalue))


def test_the_interval_of_a_ratio_of_slopes_holds_its_level() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(1, 5, 20)
    ends = [
        linear_fit(x, 3 * x + rng.normal(0, 1.5, 20)).ratio_interval(
            linear_fit(x, x + rng.normal(0, 1.5, 20))
        )
        for _ in range(400)
    ]
    coverage = np.mean([lower <= 3 <= upper for lower, upper in ends])
    assert 0.60 < coverage < 0.76


def test_the_partial_correlation_sees_through_a_common_cause() -> None:
    rng = np.random.default_rng(1)
    sigma = np.repeat(np.linspace(1, 5, 50), 20)
    eta = rng.uniform(0.02, sigma**2 / (1 + sigma**2))
    area = sigma + rng.normal(0, 0.1, 1000)
    assert np.corrcoef(eta, area)[0, 1] > 0.2  # by way of sigma
    assert abs(partial_correlation(eta, area, given=sigma).value) < 0.1
    found = partial_correlation(eta, area + eta, given=sigma)
    assert found.value > 0.5
    assert found.p_value < 1e-6


@pytest.mark.parametrize("model", ["mlp", "rosmm_r"])
def test_rows_come_for_every_point_and_known_ones_are_left_out(model: str) -> None:
    rows = list(compute({**ARGUMENTS, "model": model}))
    assert sorted(row.key for row in rows) == [
        f"seed=3/sigma=2.0000/eta=0.30000/{model}", f"seed=3/sigma=3.0000/eta=0.50000/{model}"
    ]  # fmt: skip
    for row in rows:
        json.dumps(row.values)
        assert len(row.values["validation_loss"]) == row.values["epochs"] <= 6
        assert np.isfinite(row.values["entropy"])
    (rest,) = compute({**ARGUMENTS, "model": model, "known": [rows[0].key]})
    assert rest.key == rows[1].key
    assert rest.values["validation_loss"] == pytest.approx(rows[1].values["validation_loss"], rel=1e-4)


def test_tasks_cover_the_grid_once() -> None:
    settings = STUDY.presets["full"]
    tasks = STUDY.tasks(settings)
    keys = [key for task in tasks for key in task.rows]
    assert len(keys) == len(set(keys)) == 2001  # both models, and the unweighted MLP
    published = STUDY.tasks({**STUDY.presets["quick"], "published_settings": True})
    assert {task.arguments["learning_rate"] for task in published} == {1e-4}


def invented_rows(*, noise: float) -> list[Row]:
    rng, rows = np.random.default_rng(0), []
    for point in [UNWEIGHTED, *grid_points(6, 4)]:
        for model, slope in (("mlp", 3.6e-3), ("rosmm_r", 1e-3)):
            values = {
                "sigma_w": point.sigma_w, "eta": point.eta, "seed": 0, "model": model, "epochs": 3, "hit_limit": False,
                "area": 0.1 * point.sigma_w + rng.normal(0, noise), "validation_loss": [0.69, 0.68, 0.67],
                "area_to_last_epoch": 0.1 * point.sigma_w + rng.normal(0, 10 * noise),
                "entropy": slope * point.sigma_w, "best_epoch": 2,
            }  # fmt: skip
            rows.append(Row(f"{point.name}/{model}", values))
    return rows


def test_the_presentation_finds_the_lines_that_are_there() -> None:
    settings = STUDY.presets["quick"]
    presentation = STUDY.present(settings, invented_rows(noise=0.01))
    found = {result.name: result for result in presentation.results}
    assert found["slope ratio MLP / RoSMM_r"].value == pytest.approx(3.6)
    assert found["VLRC AUC against sigma_w / slope"].value == pytest.approx(0.1, abs=0.01)
    assert found["VLRC AUC against sigma_w / R"].value > 0.98
    assert abs(found["VLRC AUC / partial correlation with eta"].value) < 0.5
    assert set(presentation.pictures) == {
        "validation_loss", "area_sigma", "area_variance", "area_eta", "entropy_sigma", "entropy_eta", "entropy_median",
    }  # fmt: skip
    assert "24 of 50 points." in presentation.verdict


def test_the_area_ends_at_the_state_that_is_kept() -> None:
    curve = [0.9, 0.7, 0.6, 0.8]
    facts = _curve_facts(Stopped(0, curve, 2, [], hit_limit=False))
    assert facts["area"] == pytest.approx(0.3 / 2 + 0.1)
    assert facts["area_to_last_epoch"] == pytest.approx(0.1 / 2 - 0.1 - 0.2)
    assert (
        _curve_facts(Stopped(0, [0.9, 0.8], -1, [], hit_limit=False))["area"] is None
    )  # nothing beat the start


def test_a_loss_that_runs_away_costs_its_own_area_and_nothing_else() -> None:
    facts = _curve_facts(Stopped(0, [0.9, 0.7, math.inf], 1, [], hit_limit=False))
    assert facts["area"] == pytest.approx(0.1)
    assert facts["area_to_last_epoch"] is None
    rows = invented_rows(noise=0.01)
    lost = {"area": None, "area_to_last_epoch": None}
    rows = [Row(row.key, {**row.values, **(lost if row.values["sigma_w"] == 1.0 else {})}) for row in rows]
    presentation = STUDY.present(STUDY.presets["quick"], rows)
    judged = [row[0] for row in presentation.tables["points"].rows]
    assert judged.count("RoSMM_r") == 24  # their figures need no curve
    assert judged.count("MLP") == 20
    assert any("4 points have" in note for note in presentation.notes)


def test_the_presentation_of_nothing_says_so() -> None:
    presentation = STUDY.present(STUDY.presets["quick"], [])
    assert presentation.verdict.startswith("0 of 50 points.")
    assert not presentation.pictures
