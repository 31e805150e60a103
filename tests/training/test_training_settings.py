"""How long to train: default steps, passes, schedules and epochs."""

from __future__ import annotations

import math

import pytest

from quasiratio.training import TrainingHistory, TrainingSettings


@pytest.mark.parametrize(
    ("n_passes", "n_events", "expected"),
    [(6, 4_000_000, 2930), (12, 81_920, 120), (12, 100, 12), (0.5, 8192, 1)],
)
def test_the_length_is_a_number_of_passes(n_passes: float, n_events: int, expected: int) -> None:
    settings = TrainingSettings(n_passes=n_passes)
    assert settings.n_steps(n_events) == expected


def test_max_steps_wins() -> None:
    assert TrainingSettings(max_steps=7).n_steps(10**8) == 7
    assert TrainingSettings(max_steps=7, schedule="constant").n_steps(10**8) == 7


def test_the_cosine_schedule_warms_up_and_decays_to_zero() -> None:
    settings = TrainingSettings(learning_rate=0.01)
    rates = [settings.rate(step, 1000) for step in range(1000)]
    assert rates[0] == pytest.approx(0.01 / 50)
    assert rates[49] == pytest.approx(0.01)
    assert rates[:50] == sorted(rates[:50])
    assert rates[50:] == sorted(rates[50:], reverse=True)
    assert max(rates) == pytest.approx(0.01)
    assert 0 < rates[-1] < 1e-7
    assert rates[525] == pytest.approx(0.005)  # half of the way down
    assert settings.rate(0, 1) == pytest.approx(0.01)  # a single step is a step


def test_the_constant_schedule_is_constant_and_ends_by_patience() -> None:
    settings = TrainingSettings(learning_rate=1e-4, schedule="constant")
    assert {settings.rate(step, 1000) for step in range(1000)} == {1e-4}
    assert settings.epochs_of_patience() == 20
    assert settings.n_steps(10**6) >= 10**6
    assert TrainingSettings().epochs_of_patience() == math.inf
    assert TrainingSettings(patience=3).epochs_of_patience() == 3


@pytest.mark.parametrize(
    ("settings", "n_events", "expected"),
    [
        (TrainingSettings(), 4_000_000, 147),  # twenty validations
        (TrainingSettings(max_steps=10), 1000, 1),
        (TrainingSettings(schedule="constant", epoch_size=100_000, batch_size=256), 10**6, 390),
        (TrainingSettings(schedule="constant", epoch_size=100_000, batch_size=256), 50_000, 195),
        (TrainingSettings(schedule="constant", batch_size=256), 25_600, 100),
        (TrainingSettings(schedule="constant", batch_size=256), 100, 1),
        (TrainingSettings(epoch_size=1024, batch_size=512), 10**6, 2),
        (TrainingSettings(epoch_size=100, batch_size=512), 10**6, 1),
    ],
)
def test_epochs(settings: TrainingSettings, n_events: int, expected: int) -> None:
    assert settings.steps_per_epoch(n_events) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TrainingSettings(), [2048] * 2 + [8192] * 10),
        (TrainingSettings(batch_size=4096), [2048] * 2 + [4096] * 10),
        (TrainingSettings(batch_size=256), [256] * 12),
        (TrainingSettings(schedule="constant"), [8192] * 12),
    ],
)
def test_the_first_batches_are_small(settings: TrainingSettings, expected: list[int]) -> None:
    assert list(settings.batch_sizes(12)) == expected


def test_an_empty_history_has_no_steps() -> None:
    history = TrainingHistory(stage="bce")
    assert (len(history), history.n_steps, history.wall_clock) == (0, 0, 0.0)
