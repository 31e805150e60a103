"""Training figures: every network, the state that was kept, the rate, and what ran away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quasiratio import DirectRatio
from quasiratio.errors import InvalidInputError
from quasiratio.plots import loss_curves_figure, training_figure
from quasiratio.training import TrainingHistory

MakeHistory = Callable[..., TrainingHistory]


def lines(axes: Any, start: str) -> list[Any]:
    return [line for line in axes.lines if str(line.get_label()).lstrip("_").startswith(start)]


def test_all_networks_and_the_kept_states_are_drawn(training_history: MakeHistory) -> None:
    history = training_history(3, 12)
    main, rate = training_figure(history).axes
    for kind, losses in (("training", history.train_loss), ("validation", history.validation_loss)):
        drawn = lines(main, kind)
        assert len(drawn) == 3
        np.testing.assert_array_equal(np.array([line.get_ydata() for line in drawn]).T, np.array(losses))
        np.testing.assert_array_equal(drawn[0].get_xdata(), history.steps)
    (kept,) = lines(main, "kept")
    curves = history.validation_curves()
    np.testing.assert_array_equal(kept.get_ydata(), curves[history.best_epoch, range(3)])
    np.testing.assert_array_equal(kept.get_xdata(), np.array(history.steps)[history.best_epoch])
    np.testing.assert_array_equal(rate.lines[0].get_ydata(), history.learning_rate)
    legend = main.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["training, 3 networks", "validation, 3 networks", "kept"]


def test_named_networks_have_a_panel_each_with_their_members(training_history: MakeHistory) -> None:
    history = training_history(4)
    first, second, _ = training_figure(history, networks=["$r_{++}$", "$r_{+-}$"]).axes
    assert first.get_ylabel() == "Loss, $r_{++}$"
    drawn = np.array([line.get_ydata() for line in lines(second, "validation")]).T
    np.testing.assert_array_equal(drawn, history.validation_curves()[:, [1, 3]])


def test_a_network_that_ran_away_does_not_set_the_scale(training_history: MakeHistory) -> None:
    history = training_history(3)
    for epoch, losses in enumerate(history.validation_loss):
        losses[2] = -(10.0**epoch)
    history.diverged[2] = True
    history.best_epoch[2] = 0
    main = training_figure(history).axes[0]
    assert main.get_ylim()[0] > 0.5
    (runaway,) = lines(main, "ran away")
    assert runaway.get_label() == "ran away, 1 of 3"
    assert len(lines(main, "validation")) == 2


def test_the_state_before_training_has_no_mark(training_history: MakeHistory) -> None:
    history = training_history(1)
    history.best_epoch = np.array([-1])
    main = training_figure(history).axes[0]
    assert not lines(main, "kept")
    assert [str(line.get_label()) for line in lines(main, "state before")] == ["state before kept, 1 of 1"]


def test_a_stage_without_a_rate_has_no_panel_for_it(training_history: MakeHistory) -> None:
    history = training_history(2, 1)
    history.learning_rate = [0.0]
    (main,) = training_figure(history).axes
    assert main.get_xlabel() == "Optimiser step"


def test_one_epoch_is_a_point(training_history: MakeHistory) -> None:
    main, rate = training_figure(training_history(2, 1)).axes
    assert all(line.get_marker() == "o" for line in [*lines(main, "validation"), *rate.lines])


def test_the_history_of_a_real_fit_can_be_drawn(toy: Any) -> None:
    features, labels, weights = toy("nonnegative", 500, 0)
    model = DirectRatio(loss="revert", max_steps=20, n_members=2, random_state=0, verbose=False)
    model.fit(features, labels, sample_weight=weights)
    main = training_figure(model.history_).axes[0]
    drawn = np.array([line.get_ydata() for line in lines(main, "validation")]).T
    np.testing.assert_array_equal(drawn, model.history_.validation_curves())


@pytest.mark.parametrize("networks", [["a", "b"], []])
def test_names_must_match_the_networks(training_history: MakeHistory, networks: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="names for 3 networks"):
        training_figure(training_history(3), networks=networks)


def test_a_history_without_epochs_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'bce' without epochs"):
        training_figure(TrainingHistory("bce"))


def test_loss_curves_are_drawn_with_their_stops_and_the_optimum() -> None:
    curves = {"long": 1.0 + 1.0 / np.arange(1.0, 41.0), "short": np.array([1.5, 1.2, 1.1])}
    (axes,) = loss_curves_figure(curves, optimum=1.0).axes
    for name, curve in curves.items():
        (line,) = [line for line in axes.lines if line.get_label() == name]
        np.testing.assert_array_equal(line.get_ydata(), curve)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(curve) + 1))
    stops = [line.get_xdata()[0] for line in axes.lines if line.get_label() == "_stop"]  # type: ignore[index]
    assert stops == [40, 3]
    assert axes.get_ylim()[0] < 1.0


def test_a_high_start_does_not_set_the_scale_and_is_marked() -> None:
    (axes,) = loss_curves_figure({"m": [1e5, 1.2, 1.1, 1.05, 1.0, 1.0]}).axes
    assert axes.get_ylim()[1] < 2
    (beyond,) = [line for line in axes.lines if line.get_label() == "_beyond"]
    assert list(np.asarray(beyond.get_xdata())) == [1.0]


@pytest.mark.parametrize(
    ("curves", "options", "message"),
    [
        ({}, {}, "no loss curves"),
        ({"a": []}, {}, "no losses of 'a'"),
        ({"a": [1.0, np.nan]}, {}, "NaN"),
        ({"a": [1.0]}, {"optimum": np.nan}, "optimum = nan"),
    ],
)
def test_bad_curves_are_refused(curves: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        loss_curves_figure(curves, **options)
