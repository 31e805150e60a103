"""Studies: points as given, lines by least squares, medians per position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from scipy import stats

from quasiratio.errors import InvalidInputError
from quasiratio.plots import ScatterSeries, linear_fit, scatter_figure

RNG = np.random.default_rng(0)
SIGMA = np.repeat(np.linspace(1, 5, 9), 6)
ETA = RNG.random(54)
AREA = 0.05 * SIGMA + 0.01 * RNG.normal(size=54)


def points(axes: Any) -> PathCollection:
    (found,) = [c for c in axes.collections if isinstance(c, PathCollection)]
    return found


def test_the_line_is_that_of_scipy() -> None:
    line, expected = linear_fit(SIGMA, AREA), stats.linregress(SIGMA, AREA)
    assert line.slope == pytest.approx(expected.slope)
    assert line.intercept == pytest.approx(expected.intercept)
    assert line.correlation == pytest.approx(expected.rvalue)


def test_medians_are_taken_per_position() -> None:
    medians = ScatterSeries("m", SIGMA, AREA, color=ETA).medians()
    np.testing.assert_array_equal(medians.x, np.linspace(1, 5, 9))
    np.testing.assert_allclose(medians.y, np.median(AREA.reshape(9, 6), axis=1))
    assert medians.color is None


def test_coloured_series_have_panels_and_one_colour_bar() -> None:
    series = [ScatterSeries("a", SIGMA, AREA, ETA), ScatterSeries("b", SIGMA, 2 * AREA, 3 * ETA)]
    first, second, bar = scatter_figure(
        series, label_x="s", label_y="A", unit_y="epochs", color_label="c"
    ).axes
    np.testing.assert_array_equal(points(first).get_offsets(), np.stack([SIGMA, AREA], axis=1))
    np.testing.assert_array_equal(points(second).get_array(), 3 * ETA)
    assert points(first).get_clim() == points(second).get_clim() == (ETA.min(), 3 * ETA.max())
    assert bar.get_ylabel() == "c"
    assert first.get_ylabel() == "A [epochs]"
    line = linear_fit(SIGMA, AREA)
    np.testing.assert_allclose(np.asarray(first.lines[-1].get_ydata()), [line.at(1.0), line.at(5.0)])
    legend = first.get_legend()
    assert legend is not None
    assert legend.get_texts()[1].get_text().endswith(f"$R$ = {line.correlation:.3f}")


def test_plain_series_share_a_panel() -> None:
    series = [ScatterSeries("a", SIGMA, AREA), ScatterSeries("b", SIGMA, 2 * AREA)]
    (axes,) = scatter_figure(series, label_x="s", label_y="A", fit=False).axes
    assert len([c for c in axes.collections if isinstance(c, PathCollection)]) == 2
    assert not axes.lines


def test_outliers_do_not_set_the_scale_and_are_marked() -> None:
    values = AREA.copy()
    values[7] = 1e4
    many = ScatterSeries("a", np.tile(SIGMA, 4), np.concatenate([values, AREA, AREA, AREA]))
    (axes,) = scatter_figure([many], label_x="s", label_y="A", fit=False).axes
    assert axes.get_ylim()[1] < 1
    (beyond,) = axes.lines
    assert list(np.asarray(beyond.get_xdata())) == [SIGMA[7]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scatter_figure([], label_x="x", label_y="y"), "no points"),
        (
            lambda: scatter_figure(
                [ScatterSeries("a", SIGMA, AREA), ScatterSeries("b", SIGMA, AREA, ETA)],
                label_x="x",
                label_y="y",
            ),
            "all or none",
        ),
        (lambda: ScatterSeries("a", SIGMA[:0], AREA[:0]), "no values of x"),
        (lambda: ScatterSeries("a", SIGMA, AREA[1:]), "Got 53 values of y"),
        (lambda: ScatterSeries("a", SIGMA, AREA, ETA[1:]), "Got 53 values of color"),
        (lambda: ScatterSeries("a", SIGMA, AREA * np.nan), "NaN"),
        (lambda: linear_fit([1.0, 1.0], [0.0, 1.0]), "one position"),
    ],
)
def test_bad_points_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
