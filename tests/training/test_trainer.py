"""The training loop: bits, independence of stacked networks, best states, patience and divergence."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from quasiratio.errors import DivergenceError, DivergenceWarning, NegativeWeightWarning
from quasiratio.estimators import DirectRatio
from quasiratio.losses import Bce, Lsif, Mse, RatioLoss
from quasiratio.networks import StackedMlp
from quasiratio.training import (
    Batch,
    Batches,
    CrossEntropyObjective,
    Pool,
    RatioObjective,
    TrainingHistory,
    TrainingSettings,
)
from quasiratio.training.objectives import Objective
from quasiratio.training.trainer import train as train_networks
from quasiratio.training.validation import Verdict

N_EVENTS, N_FEATURES = 600, 2


def validate(model: nn.Module, objective: Objective, validation: Batch) -> Tensor:
    return Verdict.of(model, objective, validation).risk


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def train(*arguments: Any, **options: Any) -> TrainingHistory:
    return train_networks(*arguments, **options).history


def problem(seed: int = 0, n_members: int = 1, n: int = N_EVENTS) -> tuple[Tensor, Pool, Batch]:
    """Two shifted Gaussians with positive weights: features, training pool, validation batch."""
    rng = np.random.default_rng(seed)
    classes = torch.from_numpy(rng.integers(0, 2, 2 * n).astype(np.float32))
    features = (
        torch.from_numpy(rng.normal(size=(2 * n, N_FEATURES)).astype(np.float32)) + 0.7 * classes[:, None]
    )
    weights = torch.from_numpy(rng.exponential(1.0, (n_members, 2 * n)).astype(np.float32))
    validation = Batch(features[n:], classes[None, n:], weights[:1, n:])
    return features[:n], Pool(None, classes[:n], weights[:, :n]), validation


def network(seed: int = 0, n_networks: int = 1) -> StackedMlp:
    return StackedMlp(n_networks, N_FEATURES, (8, 8), 1, generator=seeded(seed))


def run(
    model: nn.Module,
    settings: TrainingSettings,
    *,
    loss: RatioLoss | None = None,
    seed: int = 0,
    keep_initial: bool = False,
) -> TrainingHistory:
    features, pool, validation = problem()
    batches = Batches(features, [pool], settings.batch_size, seeded(seed))
    return train(
        model, RatioObjective(loss or Bce()), batches, validation, settings, keep_initial=keep_initial
    )


def parameters(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_the_same_seed_gives_the_same_bits() -> None:
    settings = TrainingSettings(batch_size=64, max_steps=60)
    models = [network(seed=1) for _ in range(3)]
    histories = [run(model, settings, seed=seed) for model, seed in zip(models, (5, 5, 6), strict=True)]
    for first, again in zip(parameters(models[0]), parameters(models[1]), strict=True):
        assert torch.equal(first, again)
    np.testing.assert_array_equal(histories[0].validation_curves(), histories[1].validation_curves())
    assert not np.array_equal(histories[0].validation_curves(), histories[2].validation_curves())


class _RowOf(Batches):
    """The batches of one network of a stack."""

    row = 0

    def stream(self, sizes: Iterable[int]) -> Iterator[Batch]:
        chosen = slice(self.row, self.row + 1)
        for batch in super().stream(sizes):
            yield Batch(batch.features[chosen], batch.classes[chosen], batch.weights[chosen])


@pytest.mark.parametrize("n_steps", [1, 20])
def test_stacked_networks_train_as_they_would_alone(n_steps: int) -> None:
    features, pool, validation = problem(n_members=3)
    settings = TrainingSettings(batch_size=64, max_steps=n_steps, weight_decay=0.01)
    stacked = network(seed=3, n_networks=3)
    singles = []
    for row in range(3):
        single = network(n_networks=1)
        with torch.no_grad():
            for parameter, source in zip(single.parameters(), stacked.parameters(), strict=True):
                parameter.copy_(source[row : row + 1])
        singles.append(single)

    history = train(
        stacked, RatioObjective(Bce()), Batches(features, [pool], 64, seeded(9)), validation, settings
    )
    for row, single in enumerate(singles):
        batches = _RowOf(features, [pool], 64, seeded(9))
        batches.row = row
        alone = train(single, RatioObjective(Bce()), batches, validation, settings)
        for together, apart in zip(stacked.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(together[row : row + 1], apart, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            history.validation_curves()[:, row], alone.validation_curves()[:, 0], rtol=1e-4
        )


def test_the_best_validated_state_is_restored() -> None:
    # A rate far too large for the last steps: the best epoch is not the last.
    settings = TrainingSettings(
        batch_size=32, max_steps=80, learning_rate=0.5, schedule="constant", epoch_size=32
    )
    model = network(seed=2)
    history = run(model, settings)
    _, _, validation = problem()
    curve = history.validation_curves()[:, 0]
    assert history.best_epoch.tolist() == [int(curve.argmin())]
    assert history.best_epoch[0] < len(history) - 1
    restored = validate(model, RatioObjective(Bce()), validation)
    assert float(restored[0]) == pytest.approx(float(curve.min()), rel=1e-6)


def test_the_cosine_schedule_ends_in_a_state_that_was_validated() -> None:
    """Averaged or not, the weights that are left behind are those of the best epoch's risk."""
    model = network(seed=2)
    history = run(model, TrainingSettings(batch_size=64, max_steps=100))
    _, _, validation = problem()
    curve = history.validation_curves()[:, 0]
    kept = float(validate(model, RatioObjective(Bce()), validation)[0])
    assert kept == pytest.approx(curve[history.best_epoch[0]], rel=1e-6)
    assert kept < curve.min() + 0.005


@pytest.mark.parametrize(("schedule", "averages"), [("cosine", True), ("constant", False)])
def test_weights_are_averaged_in_the_cosine_schedule_only(
    schedule: Literal["cosine", "constant"], averages: bool
) -> None:
    features, pool, validation = problem()
    model = network(seed=2)
    iterates: list[list[Tensor]] = []
    history = train(
        model,
        RatioObjective(Bce()),
        Batches(features, [pool], 64, seeded(0)),
        validation,
        TrainingSettings(batch_size=64, max_steps=100, schedule=schedule, epoch_size=320),
        progress=lambda *_: iterates.append(parameters(model)),
    )
    left_behind = parameters(model)
    is_an_iterate = [all(map(torch.equal, left_behind, iterate)) for iterate in iterates]
    assert history.best_epoch[0] >= 10  # in the second half, where the average is
    assert any(is_an_iterate) is not averages


def test_patience_stops_after_as_many_epochs_without_improvement() -> None:
    settings = TrainingSettings(
        batch_size=32, max_steps=500, learning_rate=0.5, schedule="constant", epoch_size=32, patience=4
    )
    history = run(network(seed=2), settings)
    assert len(history) == int(history.best_epoch[0]) + 4 + 1
    assert history.n_steps < 500


def test_a_network_that_is_done_keeps_its_state_while_the_others_go_on() -> None:
    """Patience is per network: together or alone, each stops at its own epoch and keeps that state."""
    features, pool, validation = problem(n_members=3)
    settings = TrainingSettings(
        batch_size=32, max_steps=300, learning_rate=0.2, schedule="constant", epoch_size=32, patience=3
    )
    stacked = network(seed=3, n_networks=3)
    history = train(
        stacked, RatioObjective(Bce()), Batches(features, [pool], 32, seeded(9)), validation, settings
    )
    curves = history.validation_curves()
    kept = validate(stacked, RatioObjective(Bce()), validation)
    stops = []
    for row in range(3):
        best = 0
        for epoch in range(len(curves)):
            if curves[epoch, row] < curves[best, row]:
                best = epoch
            if epoch - best >= 3:
                break
        stops.append(best)
        assert float(kept[row]) == pytest.approx(curves[best, row], rel=1e-6)
    assert history.best_epoch.tolist() == stops
    assert len(set(stops)) > 1  # else this test would show nothing
    assert len(history) == max(stops) + 4


@pytest.mark.parametrize("rate", [1e-3, 0.5, 5.0])
def test_with_keep_initial_the_validation_risk_never_gets_worse(rate: float) -> None:
    _, _, validation = problem()
    model = network(seed=2)
    run(model, TrainingSettings(batch_size=64, max_steps=100))
    before = float(validate(model, RatioObjective(Bce()), validation)[0])
    state = parameters(model)
    history = run(
        model,
        TrainingSettings(batch_size=64, max_steps=10, learning_rate=rate, schedule="constant"),
        keep_initial=True,
    )
    after = float(validate(model, RatioObjective(Bce()), validation)[0])
    assert after <= before
    if history.best_epoch[0] == -1:
        assert after == before
        for kept, initial in zip(parameters(model), state, strict=True):
            assert torch.equal(kept, initial)
    else:
        assert after == pytest.approx(history.validation_curves()[history.best_epoch[0], 0], rel=1e-6)
    if rate == 5.0:
        assert history.best_epoch[0] == -1


@pytest.mark.parametrize("keep_initial", [False, True])
def test_nan_in_training_ends_in_an_error_or_in_the_best_state(keep_initial: bool) -> None:
    """MSE with a rate of 1e30 overflows in the first steps."""
    settings = TrainingSettings(
        batch_size=64, max_steps=200, learning_rate=1e30, schedule="constant", epoch_size=64
    )
    model = network(seed=2)
    if keep_initial:
        state = parameters(model)
        with pytest.warns(DivergenceWarning, match="'mse'"):
            history = run(model, settings, loss=Mse(), keep_initial=True)
        assert history.diverged.tolist() == [True]
        assert history.n_steps < 200  # noticed, not trained to the end
        for kept, initial in zip(parameters(model), state, strict=True):
            assert torch.equal(kept, initial)
    else:
        with pytest.raises(DivergenceError, match="No finite state exists"):
            run(model, settings, loss=Mse())


class _Poisoned(Batches):
    """Batches whose features become NaN after some steps."""

    after = 130

    def stream(self, sizes: Iterable[int]) -> Iterator[Batch]:
        for step, batch in enumerate(super().stream(sizes)):
            yield (
                batch if step < self.after else Batch(batch.features * math.nan, batch.classes, batch.weights)
            )


def test_a_nan_that_comes_late_leaves_the_best_state_before_it() -> None:
    features, pool, validation = problem()
    settings = TrainingSettings(batch_size=64, max_steps=2000)  # an epoch is a hundred steps
    model = network(seed=2)
    with pytest.warns(DivergenceWarning, match="'bce'"):
        history = train(
            model, RatioObjective(Bce()), _Poisoned(features, [pool], 64, seeded(0)), validation, settings
        )
    assert 130 < history.n_steps < 160  # within the epoch, neither after 200 nor after 2000 steps
    assert history.diverged.tolist() == [True]
    kept = history.validation_curves()[history.best_epoch[0], 0]
    assert math.isfinite(kept)
    assert float(validate(model, RatioObjective(Bce()), validation)[0]) == pytest.approx(kept, rel=1e-6)


def negative_corner(n: int = 20000) -> tuple[Tensor, Pool, Batch]:
    """A target whose density is negative for x < -1 (by a third), over a uniform reference."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.uniform(-2, 2, (2 * n, N_FEATURES)).astype(np.float32))
    classes = torch.from_numpy(rng.integers(0, 2, 2 * n).astype(np.float32))
    negative = (features[:, 0] < -1) & (classes == 1) & torch.from_numpy(rng.random(2 * n) < 2 / 3)
    weights = torch.where(negative, -1.0, 1.0)[None]
    return (
        features[:n],
        Pool(None, classes[:n], weights[:, :n]),
        Batch(features[n:], classes[None, n:], weights[:, n:]),
    )


@pytest.mark.parametrize("on_divergence", ["warn", "raise"])
def test_a_risk_without_a_minimum_is_noticed(on_divergence: str) -> None:
    features, pool, validation = negative_corner()
    settings = TrainingSettings(
        batch_size=512, max_steps=300, on_divergence="raise" if on_divergence == "raise" else "warn"
    )
    batches = Batches(features, [pool], 512, seeded(0))
    if on_divergence == "raise":
        with pytest.raises(DivergenceError, match=r"'bce' has no lower bound.*SignedMixtureRatio"):
            train(network(), RatioObjective(Bce()), batches, validation, settings)
        return
    with pytest.warns(DivergenceWarning, match=r"'bce' has no lower bound.*'revert' or 'lsif'"):
        history = train(network(), RatioObjective(Bce()), batches, validation, settings)
    assert history.diverged.tolist() == [True]
    assert len(history) == 20  # it goes on to the end, so that the published row can be made


@pytest.mark.parametrize("on_divergence", ["warn", "ignore"])
def test_a_risk_without_a_minimum_can_be_left_to_the_patience(
    on_divergence: Literal["warn", "ignore"],
) -> None:
    """The published training has no rule of its own for it: it ends when validation no longer improves."""
    features, pool, validation = negative_corner()
    settings = TrainingSettings(
        batch_size=512,
        max_steps=400,
        schedule="constant",
        epoch_size=2048,
        patience=5,
        learning_rate=1e-3,
        on_divergence=on_divergence,
    )
    batches = Batches(features, [pool], 512, seeded(0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = train(network(), RatioObjective(Bce()), batches, validation, settings)
    assert history.diverged.tolist() == [True]
    assert [one.category for one in caught] == ([DivergenceWarning] if on_divergence == "warn" else [])
    assert (len(history) == 100) is (on_divergence == "ignore")  # it improves for ever


@pytest.mark.parametrize("loss", [Lsif(), Mse()])
def test_a_risk_with_a_minimum_is_not_flagged(loss: RatioLoss) -> None:
    """LSIF needs a positive reference only; MSE needs q0 + q1 > 0, which holds here."""
    features, pool, validation = negative_corner()
    history = train(
        network(),
        RatioObjective(loss),
        Batches(features, [pool], 512, seeded(0)),
        validation,
        TrainingSettings(batch_size=512, max_steps=200),
    )
    assert history.diverged.tolist() == [False]


def test_cross_entropy_never_runs_away() -> None:
    outputs = torch.randn(2, 50, 4, generator=seeded(0)) * 100
    classes = torch.zeros(2, 50)
    flags = CrossEntropyObjective().runs_away(outputs, classes, torch.ones(2, 50))
    assert flags.tolist() == [False, False]
    expected = nn.functional.cross_entropy(outputs[0], classes[0].long(), reduction="none")
    torch.testing.assert_close(CrossEntropyObjective().per_event(outputs, classes)[0], expected)


def test_a_batch_order_of_the_validation_does_not_change_the_risk() -> None:
    _, _, validation = problem()
    model = network(seed=2, n_networks=2)
    order = torch.randperm(N_EVENTS, generator=seeded(1))
    shuffled = Batch(validation.features[order], validation.classes[:, order], validation.weights[:, order])
    objective = RatioObjective(Bce())
    torch.testing.assert_close(validate(model, objective, validation), validate(model, objective, shuffled))


def test_the_callback_and_the_history_tell_the_same_story() -> None:
    features, pool, validation = problem()
    told: list[tuple[int, int, float]] = []
    history = train(
        network(),
        RatioObjective(Bce()),
        Batches(features, [pool], 64, seeded(0)),
        validation,
        TrainingSettings(batch_size=64, max_steps=40),
        progress=lambda step, n_steps, loss: told.append((step, n_steps, loss)),
    )
    assert [step for step, _, _ in told] == history.steps == list(range(2, 41, 2))
    assert {n_steps for _, n_steps, _ in told} == {40}
    np.testing.assert_allclose([loss for _, _, loss in told], history.validation_curves()[:, 0])
    assert history.wall_clock == history.seconds[-1] > 0
    assert np.all(np.diff(history.seconds) >= 0)
    assert len(history.train_loss) == len(history.learning_rate) == len(history) == 20


def test_training_lowers_the_risk() -> None:
    _, _, validation = problem()
    model = network(seed=4)
    start = copy.deepcopy(model)
    run(model, TrainingSettings(batch_size=128, max_steps=150))
    objective = RatioObjective(Bce())
    assert (
        float(validate(model, objective, validation)[0])
        < float(validate(start, objective, validation)[0]) - 0.01
    )


def test_a_runaway_risk_stops_by_patience() -> None:
    """A risk without a minimum improves in every epoch; patience must stop it all the same."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 1)).astype(np.float32)
    y = np.repeat([0, 1], 2000)
    w = np.where((y == 1) & (np.abs(x[:, 0]) < 0.5), -0.5, 1.0)
    model = DirectRatio(
        loss="bce", schedule="constant", patience=3, epoch_size=2000, batch_size=200, random_state=0
    )
    with pytest.warns(NegativeWeightWarning), pytest.warns(DivergenceWarning):
        model.fit(x, y, sample_weight=w, validation=(x, y, w))
    assert model.diverged_
    assert len(model.history_) < 100
