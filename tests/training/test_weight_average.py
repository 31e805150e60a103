"""The running mean of weights: the right steps, and a swap that leaves no trace."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from quasiratio.training import TrainingSettings
from quasiratio.training.averaging import WeightAverage


def run(average: WeightAverage, parameter: nn.Parameter, n_steps: int) -> None:
    """Let the parameter be 100 + step after each step, in every entry."""
    for step in range(n_steps):
        parameter.data.fill_(100.0 + step)
        average.update(step)


@pytest.mark.parametrize(
    ("first_step", "n_steps", "averaged"),
    [
        (0, 1, [0]),
        (0, 11, [0, 5, 10]),
        (10, 31, [10, 15, 20, 25, 30]),
        (12, 31, [15, 20, 25, 30]),  # every fifth step, counted from zero
        (1000, 3000, list(range(1000, 3000, 5))),
    ],
)
def test_the_mean_is_over_every_fifth_step_from_the_first(
    first_step: int, n_steps: int, averaged: list[int]
) -> None:
    parameter = nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    average = WeightAverage([parameter], first_step=first_step)
    run(average, parameter, n_steps)
    assert average.n_averaged == len(averaged)
    with average.swapped_in():
        expected = 100.0 + sum(averaged) / len(averaged)
        torch.testing.assert_close(parameter.data, torch.full((2, 3), expected, dtype=torch.float64))


def test_the_swap_restores_the_parameters_and_the_mean() -> None:
    parameters = [nn.Parameter(torch.randn(4, 2)), nn.Parameter(torch.randn(3))]
    average = WeightAverage(parameters, first_step=0)
    average.update(0)
    means = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(1.0)
    before = [parameter.detach().clone() for parameter in parameters]
    for _ in range(2):
        with average.swapped_in():
            for parameter, mean in zip(parameters, means, strict=True):
                assert torch.equal(parameter, mean)
        for parameter, value in zip(parameters, before, strict=True):
            assert torch.equal(parameter, value)


def test_the_swap_restores_after_an_exception() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    average = WeightAverage([parameter], first_step=0)
    run(average, parameter, 11)
    with pytest.raises(RuntimeError, match="stop"), average.swapped_in():
        raise RuntimeError("stop")
    assert parameter.item() == 110.0


@pytest.mark.parametrize("first_step", [None, 100])
def test_without_a_mean_the_swap_does_nothing(first_step: int | None) -> None:
    parameter = nn.Parameter(torch.zeros(1))
    average = WeightAverage([parameter], first_step=first_step)
    run(average, parameter, 50)
    with average.swapped_in():
        assert parameter.item() == 149.0
    assert parameter.item() == 149.0


def test_updates_after_a_swap_go_on_with_the_mean() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    average = WeightAverage([parameter], first_step=0)
    for step in range(21):
        parameter.data.fill_(float(step))
        average.update(step)
        with average.swapped_in():
            pass
    with average.swapped_in():
        assert parameter.item() == pytest.approx(10.0)


def test_what_was_wild_before_the_first_step_does_not_matter() -> None:
    parameter = nn.Parameter(torch.full((1,), torch.nan))
    average = WeightAverage([parameter], first_step=10)
    for step in range(21):
        parameter.data.fill_(torch.inf if step < 10 else 7.0)
        average.update(step)
    with average.swapped_in():
        assert parameter.item() == 7.0


def test_only_a_decaying_schedule_is_averaged_and_over_its_second_half() -> None:
    assert TrainingSettings(schedule="cosine").first_averaged_step(3000) == 1500
    assert TrainingSettings(schedule="constant").first_averaged_step(3000) is None
    assert TrainingSettings(schedule="cosine", averaged_part=0.25).first_averaged_step(3000) == 2250
