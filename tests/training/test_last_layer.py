"""The solved last layer: the minimum of the training risk, what is kept of it, and who asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import quasiratio as qr
from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.ratios import OutputView, SignClass, SignFloors, SignResolvedModel
from quasiratio.training import (
    Batch,
    CrossEntropyObjective,
    Pool,
    TrainedNetworks,
    TrainingHistory,
    TrainingSettings,
    last_layer,
    standard,
    with_solved_last_layer,
)
from quasiratio.training.last_layer import solve_last_layer
from quasiratio.training.validation import Verdict

CLASSES = (SignClass(0, 1), SignClass(0, -1), SignClass(1, 1))
OBJECTIVE = CrossEntropyObjective()


def events(n_events: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return features, classes that depend on them, and two members' positive weights with tails."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_events, 2))
    scores = np.stack([x[:, 0], 0.5 * x[:, 1] - 1.0, x[:, 0] * x[:, 1]], axis=1)
    classes = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    weights = rng.lognormal(sigma=0.7, size=(2, n_events))
    return torch.from_numpy(x).float(), torch.from_numpy(classes), torch.from_numpy(weights).float()


def untrained(*hidden_layers: int, floors: SignFloors = SignFloors()) -> SignResolvedModel:  # noqa: B008
    """Return two members of other activations, as they start."""
    start = torch.Generator().manual_seed(0)
    network = StackedMlp(2, 2, hidden_layers, 3, activation="silu+hardswish", generator=start)
    return SignResolvedModel(FeatureScaling(2), network, 2, CLASSES, floors)


def residuals(model: SignResolvedModel, pool: Pool, features: Tensor, member: int) -> float:
    """Return the largest sum of |w| (delta - pi) h of a class and a hidden unit, in units of that of |w| |h|."""
    with torch.no_grad():
        hidden = model.network.last_hidden(features, member).double()
        shares = model.outputs(features)[member].double().softmax(dim=1)
    weights = pool.weights[member].double()
    found = torch.nn.functional.one_hot(pool.classes, 3) - shares
    return float(((weights[:, None] * found).T @ hidden / (weights @ hidden.abs())).abs().max())


def test_the_classes_close_in_every_hidden_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_layer, "_CHUNK", 1000)  # the last part is shorter
    monkeypatch.setattr(last_layer, "_ITERATIONS", 200)
    features, classes, weights = events(4500)
    model, pool = untrained(8, 4), Pool(None, classes, weights)
    before = [parameter.detach().clone() for parameter in model.network.parameters()]
    assert min(residuals(model, pool, features, member) for member in (0, 1)) > 0.1
    risks = solve_last_layer(model, OBJECTIVE, features, [pool])
    assert max(residuals(model, pool, features, member) for member in (0, 1)) < 1e-3
    with torch.no_grad():
        outputs = model.outputs(features)
        losses = OBJECTIVE.per_event(outputs, classes.expand(2, -1)) * weights
    assert risks == pytest.approx(losses.double().mean(dim=1).tolist(), rel=1e-5)
    last = ("weights.2", "biases.2")
    for (name, parameter), earlier in zip(model.network.named_parameters(), before, strict=True):
        assert torch.equal(parameter, earlier) == (name not in last)


def test_it_is_logistic_regression() -> None:
    """Without hidden layers there is a second implementation of the same minimum."""
    features, classes, weights = events(3000)
    half = torch.arange(0, 3000, 2)
    model = untrained()
    pools = [Pool(half, classes[half], weights[:1, half]), Pool(None, classes, weights[:1])]
    solve_last_layer(model, OBJECTIVE, features, pools)  # two pools of one member
    for number, chosen in enumerate((half, torch.arange(3000))):
        known = LogisticRegression(C=np.inf, tol=1e-8).fit(
            features[chosen].numpy(), classes[chosen].numpy(), sample_weight=weights[0, chosen].numpy()
        )
        ours = model.network.weights[-1][number].detach().numpy().T
        np.testing.assert_allclose(ours - ours.mean(axis=0), known.coef_, atol=2e-3)


def test_large_samples_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    features, classes, weights = events(3000)
    monkeypatch.setattr(last_layer, "_MOST_ACTIVATIONS", 4 * 1000)  # of 3000 events with four hidden units
    thinned, third = untrained(4), untrained(4)
    solve_last_layer(thinned, OBJECTIVE, features, [Pool(None, classes, weights)])
    monkeypatch.undo()
    chosen = torch.arange(0, 3000, 3)
    solve_last_layer(third, OBJECTIVE, features, [Pool(chosen, classes[chosen], weights[:, chosen])])
    torch.testing.assert_close(thinned.network.weights[-1], third.network.weights[-1])


def test_caps_of_sign_odds_are_part_of_it() -> None:
    """The risk that is minimised is that of the bounded outputs: with a floor the minimum is another."""
    features, classes, weights = events(2000)
    risks = []
    for floors in (SignFloors(), SignFloors(0.6, None)):
        model = untrained(4, floors=floors)
        risks.append(solve_last_layer(model, OBJECTIVE, features, [Pool(None, classes, weights)])[0])
        with torch.no_grad():
            losses = OBJECTIVE.per_event(model.outputs(features)[:1], classes[None]) * weights[:1]
        assert risks[-1] == pytest.approx(float(losses.double().mean()), rel=1e-5)
    assert risks[1] > risks[0] * 1.001


@pytest.mark.parametrize("honest", [True, False])
def test_validation_may_refuse_it(*, honest: bool) -> None:
    """A network whose solved layer does worse on validation events goes back, to the bit; the history says which."""
    features, classes, weights = events(4000)
    model = untrained(8)
    view = OutputView(model)
    held_out, theirs, positive = events(3000, seed=1)
    theirs = theirs if honest else 2 - theirs
    validation = Batch(held_out, theirs[None], positive[:1])
    history = TrainingHistory(stage="cross-entropy")
    first = Verdict.of(view, OBJECTIVE, validation)
    history.append(10, np.ones(2), first.risk.numpy(), 0.1, 1.0)
    history.best_epoch, history.diverged = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=bool)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    solved = with_solved_last_layer(
        TrainedNetworks(history, first.losses),
        view,
        model,
        OBJECTIVE,
        features,
        [Pool(None, classes, weights)],
        validation,
    )
    now = Verdict.of(view, OBJECTIVE, validation)
    torch.testing.assert_close(solved.losses, now.losses)
    assert solved.history.kept_loss == pytest.approx(now.risk.numpy())
    assert solved.history.ends_solved == honest
    assert solved.history.best_epoch.tolist() == [int(honest)] * 2
    assert solved.history.n_steps == 10
    same = [torch.equal(one, other) for one, other in zip(model.parameters(), before, strict=True)]
    assert all(same) == (not honest)


def test_the_bold_trial_asks_for_it() -> None:
    settings = TrainingSettings(n_passes=12, weight_decay=0.3)
    assert not settings.solves_last_layer
    assert [one.solves_last_layer for one in standard.trial_settings(settings, 1_000_000)] == [True]
    given = standard.trial_settings(settings, 1_000_000, fixed_decay=True)
    assert [one.solves_last_layer for one in given] == [
        False
    ]  # a decay that was given is meant for all layers
    assert not any(one.solves_last_layer for one in standard.trial_settings(settings, 100_000))


@pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning")
@pytest.mark.parametrize("estimator", [qr.SignResolvedRatio, qr.SignedMixtureRatio])
@pytest.mark.parametrize("n_members", [1, 2])
def test_estimators_solve_it_say_so_and_remember(
    estimator: Any, n_members: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(last_layer, "_WORSE_ERRORS", 1e9)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 2)) + np.repeat([[0.0], [0.2]], 4000, axis=0)
    y, w = np.repeat([0, 1], 4000), rng.choice([1.0, -1.0], size=8000, p=[0.8, 0.2])
    template = estimator(n_members=n_members, max_steps=30, random_state=0, verbose=False)
    unsolved = clone(template).fit(X, y, sample_weight=w)
    settings = estimator.checked_settings
    asked = lambda *args: replace(settings(*args), solves_last_layer=True)
    monkeypatch.setattr(estimator, "checked_settings", asked)
    model = clone(template).fit(X, y, sample_weight=w)
    assert (unsolved.trials_.solved, model.trials_.solved) == (False, True)
    assert "the last layer solved" in str(model.trials_)
    assert "solved" not in str(unsolved.trials_)
    assert len(model.history_) == len(unsolved.history_) + 1
    assert not np.allclose(model.predict_ratio(X), unsolved.predict_ratio(X), rtol=1e-3)
    model.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert again.trials_ == model.trials_
    np.testing.assert_array_equal(again.predict_ratio(X), model.predict_ratio(X))
