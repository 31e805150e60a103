"""Learned against exact ratios: counts, profile and differences are those of the events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from quasiratio.errors import InvalidInputError
from quasiratio.plots import ratio_truth_figure

EXACT = np.random.default_rng(0).uniform(-1, 2, 3000)


def profile(axes: Any) -> Any:
    (container,) = axes.containers
    return container[0]


def test_events_are_counted_and_the_rest_is_said() -> None:
    learned = np.where(np.arange(3000) < 30, 50.0, EXACT)
    main = ratio_truth_figure(EXACT, {"m": learned}).axes[0]
    (mesh,) = [c for c in main.collections if isinstance(c, QuadMesh)]
    assert np.ma.asarray(mesh.get_array()).sum() == 2970
    assert main.get_title("left") == "m, 1% outside"


def test_the_profile_is_the_mean_in_bins_of_the_exact_ratio() -> None:
    main, below, _ = ratio_truth_figure(EXACT, {"m": EXACT + 0.25}).axes
    np.testing.assert_allclose(profile(below).get_ydata(), 0.25)
    centers = profile(main).get_xdata()
    assert len(centers) == 16
    np.testing.assert_allclose(profile(main).get_ydata(), centers + 0.25, atol=0.05)
    assert below.get_ylim()[1] == pytest.approx(-below.get_ylim()[0])


def test_the_diagonal_crosses_both_corners_and_methods_share_the_axes() -> None:
    figure = ratio_truth_figure(EXACT, {"a": EXACT, "b": -EXACT}, difference_limit=0.5)
    first, second, below, other, _ = figure.axes
    for axes in (first, second):
        (diagonal,) = [line for line in axes.lines if line.get_label() == "learned = exact"]
        np.testing.assert_array_equal(np.asarray(diagonal.get_xdata()), np.asarray(diagonal.get_ydata()))
        assert axes.get_xlim() == first.get_xlim() == axes.get_ylim()
    assert below.get_ylim() == other.get_ylim() == (-0.5, 0.5)
    beyond = [line for line in other.lines if line.get_label() == "_beyond"]
    assert sum(len(np.asarray(line.get_xdata())) for line in beyond) > 10


def test_a_constant_ratio_can_be_drawn() -> None:
    main = ratio_truth_figure(np.ones(10), {"m": np.linspace(0.9, 1.1, 10)}).axes[0]
    assert main.get_xlim()[0] < 1 < main.get_xlim()[1]


@pytest.mark.parametrize(
    ("exact", "learned", "options", "message"),
    [
        ([], {"m": []}, {}, "no exact ratios"),
        (EXACT, {}, {}, "no learned ratios"),
        (EXACT, {"m": EXACT[1:]}, {}, "Got 2999 ratios of 'm'; expected 3000"),
        (EXACT, {"m": EXACT * np.nan}, {}, "NaN"),
        (EXACT, {"m": EXACT}, {"difference_limit": 0.0}, "difference_limit"),
    ],
)
def test_bad_ratios_are_refused(exact: Any, learned: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ratio_truth_figure(exact, learned, **options)
