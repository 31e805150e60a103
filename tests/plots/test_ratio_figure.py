"""The ratio figure and its curves: exact in black, negative side shaded, differences below."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.plots import RatioCurve, ratio_figure

X = np.linspace(0.0, 3.0, 31)
EXACT = RatioCurve("exact", X, X - 1.0)
LEARNED = RatioCurve("mlp", X, X - 0.9, X - 1.0, X - 0.8)
RUNAWAY = RatioCurve("wild", X, np.where(X > 2.05, 1e6, 0.0))


def line(axes: Any, label: str) -> Any:
    (found,) = [candidate for candidate in axes.lines if candidate.get_label() == label]
    return found


def test_curves_are_plotted_as_given() -> None:
    main, below = ratio_figure([LEARNED], EXACT, label="r", unit="mm").axes
    np.testing.assert_array_equal(line(main, "mlp").get_ydata(), LEARNED.values)
    np.testing.assert_array_equal(line(main, "exact").get_ydata(), EXACT.values)
    assert line(main, "exact").get_color() == "#000000"
    np.testing.assert_allclose(line(below, "mlp").get_ydata(), 0.1)
    assert below.get_xlabel() == "r [mm]"
    assert "target / reference" in main.get_ylabel()
    assert main.get_xlim() == (0.0, 3.0)


def test_negative_side_is_shaded_and_named() -> None:
    figure = ratio_figure([LEARNED], EXACT, label="r", band="68% of angles")
    figure.draw_without_rendering()
    main = figure.axes[0]
    legend = main.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["negative ratio", "exact", "mlp", "bands: 68% of angles"]
    assert legend.get_window_extent().x0 >= main.get_window_extent().x1
    (shade,) = main.patches
    assert shade.get_extents().ymax == pytest.approx(main.transData.transform((0.0, 0.0))[1])
    assert line(main, "_zero").get_ydata() == [0.0, 0.0]


def test_a_runaway_curve_does_not_set_the_scale_and_is_marked() -> None:
    main, below = ratio_figure([RUNAWAY], EXACT, label="r").axes
    assert -1.6 < main.get_ylim()[0] < -1
    assert 2 < main.get_ylim()[1] < 3
    np.testing.assert_allclose(line(main, "_beyond").get_xdata(), X[X > 2.05])
    assert below.get_ylim() == pytest.approx((-0.3, 0.3))


def test_without_the_exact_ratio_there_is_one_panel() -> None:
    (main,) = ratio_figure([LEARNED], label="r").axes
    assert main.get_ylim()[0] < LEARNED.values.min()
    assert main.get_ylim()[1] > LEARNED.values.max()


def test_the_limit_of_the_differences_can_be_set() -> None:
    assert ratio_figure([LEARNED], EXACT, label="r", difference_limit=0.7).axes[1].get_ylim() == (-0.7, 0.7)


def test_draws_become_a_mean_and_a_band() -> None:
    draws = np.random.default_rng(0).normal(size=(5, 4000)) + np.arange(5)[:, None]
    curve = RatioCurve.from_draws("ring", np.arange(5.0), draws)
    np.testing.assert_allclose(curve.values, np.arange(5), atol=0.1)
    assert curve.lower is not None
    assert curve.upper is not None
    np.testing.assert_allclose(curve.upper - curve.lower, 2.0, atol=0.2)


def test_events_are_averaged_in_bins_and_empty_bins_left_out() -> None:
    curve = RatioCurve.from_events(
        "m", [0.1, 0.2, 2.5, 9.0, -1.0], [1.0, 3.0, -4.0, 1e9, 1e9], edges=[0, 1, 2, 3]
    )
    assert curve.x.tolist() == [0.5, 2.5]
    assert curve.values.tolist() == [2.0, -4.0]


def test_members_give_the_spread_of_the_average_not_of_the_events() -> None:
    x = np.repeat([0.5, 1.5], 100)
    within = np.tile([-5.0, 5.0], 100)  # events differ within a bin, alike for all members
    members = np.array([1.0, 2.0, 3.0])[:, None] + within
    curve = RatioCurve.from_members("m", x, members, edges=[0, 1, 2, 3])
    assert curve.x.tolist() == [0.5, 1.5]
    np.testing.assert_allclose(curve.values, 2.0)
    assert curve.upper is not None
    np.testing.assert_allclose(curve.upper, 3.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RatioCurve("m", np.array([]), np.array([])), "no positions"),
        (lambda: RatioCurve("m", X[::-1], X), "do not increase"),
        (lambda: RatioCurve("m", X, np.where(X > 1, np.nan, X)), "values of 'm' that are NaN"),
        (lambda: RatioCurve.from_members("m", X, [X], edges=[0, 1]), "at least two members"),
        (lambda: RatioCurve.from_members("m", X, [X[1:], X[1:]], edges=[0, 1]), "n_events"),
        (lambda: RatioCurve.from_members("m", X, [X, np.full(31, np.inf)], edges=[0, 1]), "NaN or infinite"),
        (lambda: RatioCurve.from_members("m", X, [X, X], edges=[8, 9]), "between 8 and 9"),
        (lambda: ratio_figure([LEARNED], EXACT, label="r", difference_limit=-1.0), "difference_limit"),
        (lambda: RatioCurve("m", X, X[:-1]), "one number per position"),
        (lambda: RatioCurve("m", X, X, lower=X), "expected both"),
        (lambda: RatioCurve.from_draws("m", X, X), "n_draws"),
        (lambda: RatioCurve.from_draws("m", X, np.full((31, 2), np.nan)), "NaN"),
        (lambda: RatioCurve.from_events("m", [5.0], [1.0], edges=[0, 1]), "no event"),
        (lambda: RatioCurve.from_events("m", [0.5, 0.6], [1.0], edges=[0, 1]), "ratios of 'm'"),
        (lambda: ratio_figure([], label="r"), "no curve"),
    ],
)
def test_bad_curves_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
