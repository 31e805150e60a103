"""What the closure figure plots: the numbers of the result, readable where the target is negative."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch

from quasiratio import WeightedSample
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import ObservableClosure, closure
from quasiratio.plots import closure_figure, closure_grid_figure, sign_changes
from quasiratio.plots.drawn_axis import range_without_far_bins
from quasiratio.plots.style import short_number

EDGES = np.linspace(0.0, 4.0, 9)


@pytest.fixture(scope="module")
def entry() -> ObservableClosure:
    """Return a target that is negative below 1, a good ensemble and a method that has run away."""
    rng = np.random.default_rng(3)
    reference = WeightedSample(rng.uniform(0, 4, (8000, 1)), names=["m"])
    x = rng.uniform(0, 4, (8000, 1))
    target = WeightedSample(x, np.where(x[:, 0] < 1, -0.5, 1.0), ["m"])
    at = reference.features[:, 0]
    good = np.where(at < 1, -0.5, 1.0)
    members = good * np.array([[1.0], [1.02], [0.98]]) + 0.1 * np.array([[0.0], [1.0], [-1.0]]) * (at > 2)
    return closure(reference, {"good": members, "wild": 1 + 1e4 * (at > 3.5)}, target, edges={"m": EDGES})[
        "m"
    ]


def steps(axes: Axes, label: str) -> Any:
    (patch,) = [p for p in axes.patches if isinstance(p, StepPatch) and p.get_label() == label]
    return patch.get_data()


def test_densities_are_those_of_the_result(entry: ObservableClosure) -> None:
    main = closure_figure(entry).axes[0]
    widths = np.diff(EDGES)
    for method in ("good", "wild"):
        np.testing.assert_allclose(steps(main, method).values, entry[method].histogram.values / widths)
    np.testing.assert_allclose(steps(main, "reference").values, entry.reference.histogram.values / widths)
    (points,) = main.containers
    np.testing.assert_allclose(points[0].get_ydata(), entry.target.values / widths)
    np.testing.assert_allclose(points[0].get_xdata(), (EDGES[1:] + EDGES[:-1]) / 2)


def test_the_member_band_surrounds_the_line(entry: ObservableClosure) -> None:
    band = entry["good"].member_band
    assert band is not None
    main = closure_figure(entry).axes[0]
    unnamed = [p for p in main.patches if isinstance(p, StepPatch) and p.get_label() in ("", "_nolegend_")]
    (patch,) = unnamed
    data: Any = patch.get_data()
    np.testing.assert_allclose(data.values - np.asarray(data.baseline), 2 * band / np.diff(EDGES))


def test_each_method_has_a_strip_of_pulls(entry: ObservableClosure) -> None:
    figure = closure_figure(entry, pull_limit=4.0)
    assert len(figure.axes) == 3
    for axes, method in zip(figure.axes[1:], ("good", "wild"), strict=True):
        np.testing.assert_allclose(steps(axes, method).values, entry.pulls(method))
        assert axes.get_ylim() == (-4.0, 4.0)
        chi_squared = entry[method].chi_squared.value
        assert [text.get_text() for text in axes.texts] == [
            f"{method}\n$\\chi^2$/ndof = {short_number(chi_squared)}"
        ]


def test_a_runaway_method_does_not_set_the_scale_and_is_marked(entry: ObservableClosure) -> None:
    main = closure_figure(entry).axes[0]
    lower, upper = main.get_ylim()
    target = entry.target.density
    assert lower < target.min() < 0
    assert upper < 2 * target.max() < steps(main, "wild").values.max()
    marks: list[Any] = [line for line in main.lines if line.get_label() == "_beyond"]
    assert [line.get_marker() for line in marks] == ["^"]
    np.testing.assert_allclose(marks[0].get_xdata(), [3.75])


def test_legend_stands_beside_the_data_and_names_everything(entry: ObservableClosure) -> None:
    figure = closure_figure(entry, label="$m$", unit="GeV", title="A title")
    figure.draw_without_rendering()
    main = figure.axes[0]
    legend = main.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names[0] == "target"
    assert set(names) == {
        "target",
        "reference",
        "good",
        "wild",
        "target changes sign",
        "spread of members, ±1σ",
    }
    assert legend.get_window_extent().x0 >= main.get_window_extent().x1
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert main.get_ylabel() == "Density [1/GeV]"
    assert figure.axes[-1].get_xlabel() == "$m$ [GeV]"
    assert main.get_title("left") == "A title"


def test_the_spread_of_the_members_is_in_the_strip_too(entry: ObservableClosure) -> None:
    band = entry["good"].member_band
    assert band is not None
    _, good, wild = closure_figure(entry).axes
    error = np.sqrt(entry["good"].histogram.variances + entry.target.variances)
    (container,) = good.containers
    (bars,) = container[2]
    heights = np.array([segment[1, 1] - segment[0, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(heights, 2 * band / error)
    assert not wild.containers


def test_differences_share_one_panel_in_units_of_the_targets_error(entry: ObservableClosure) -> None:
    figure = closure_figure(entry, lower="difference", pull_limit=3.0)
    main, below = figure.axes
    error = np.sqrt(entry.target.variances)
    for method in ("good", "wild"):
        expected = (entry[method].histogram.values - entry.target.values) / error
        np.testing.assert_allclose(steps(below, method).values, expected)
    assert below.get_ylim() == (-3.0, 3.0)
    legend, bands = main.get_legend(), below.get_legend()
    assert legend is not None
    assert bands is not None
    assert any(short_number(entry["good"].chi_squared.value) in t.get_text() for t in legend.get_texts())
    assert [text.get_text() for text in bands.get_texts()] == ["target ±1σ (stat.)"]


def test_quotients_are_left_out_where_the_target_may_be_zero() -> None:
    x = np.repeat([0.5, 1.5, 2.5], [100, 100, 100])
    nearly_zero = np.repeat([1.0, -1.0], [51, 49])
    signs = np.concatenate([np.ones(100), nearly_zero, -0.2 * np.ones(100)])
    target = WeightedSample(x, signs)
    entry = closure(WeightedSample(x), {"m": signs}, target, edges={"x0": [0, 1, 2, 3]})["x0"]
    below = closure_figure(entry, lower="quotient", quotient_limit=0.1).axes[1]
    np.testing.assert_allclose(steps(below, "m").values, [1.0, np.nan, 1.0])
    assert below.get_ylim() == pytest.approx((0.9, 1.1))
    band = steps(below, "target ±1σ (stat.)")
    np.testing.assert_allclose(band.values[[0, 2]], 1.1)
    (span,) = [p for p in below.patches if p.get_label() == "target within 3σ of zero"]
    np.testing.assert_allclose(span.get_extents().transformed(below.transData.inverted()).intervalx, [1, 2])


def test_without_methods_there_are_only_the_two_samples(entry: ObservableClosure) -> None:
    for lower in ("pull", "difference"):
        (main,) = closure_figure(entry, methods=[], lower=lower).axes
        assert main.get_xlabel() == "m"


def test_many_methods_get_a_taller_figure_and_not_a_lower_panel() -> None:
    sample = WeightedSample(np.linspace(0, 1, 50), names=["x"])
    ratios = {f"method {i}": np.ones(50) for i in range(20)}
    many = closure(sample, ratios, sample, n_bins=5)["x"]
    figure = closure_figure(many, lower="difference")
    figure.draw_without_rendering()
    main = figure.axes[0]
    legend = main.get_legend()
    assert legend is not None
    assert main.get_window_extent().height > 0.6 * figure.bbox.height
    assert legend.get_window_extent().y0 > figure.axes[1].get_window_extent().y0


def test_a_grid_has_a_closure_in_each_cell(entry: ObservableClosure) -> None:
    figure = closure_grid_figure([entry, entry, entry], titles=["a", "b", "c"], methods=["good"], n_columns=2)
    assert len(figure.axes) == 6
    mains, belows = figure.axes[::2], figure.axes[1::2]
    assert [axes.get_title("left") for axes in mains] == ["a", "b", "c"]
    expected = (entry["good"].histogram.values - entry.target.values) / np.sqrt(entry.target.variances)
    for main, below in zip(mains, belows, strict=True):
        np.testing.assert_allclose(
            steps(main, "good").values, entry["good"].histogram.values / np.diff(EDGES)
        )
        np.testing.assert_allclose(steps(below, "good").values, expected)
        assert main.get_xlim() == (0.0, 4.0)
    assert len(figure.legends) == 1
    figure.draw_without_rendering()
    assert mains[0].get_position().y0 == pytest.approx(mains[1].get_position().y0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": "ratio"}, "expected one of 'pull'"),
        ({"pull_limit": 0.0}, "pull_limit = 0.0"),
        ({"pull_limit": np.nan}, "pull_limit = nan"),
        ({"lower": "quotient", "quotient_limit": -1.0}, "quotient_limit"),
    ],
)
def test_bad_options_are_refused(entry: ObservableClosure, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        closure_figure(entry, **options)


@pytest.mark.parametrize(
    ("n_closures", "options", "message"),
    [
        (0, {}, "no closures"),
        (1, {"titles": ["a", "b"]}, "2 titles for 1"),
        (1, {"lower": "pull"}, "expected one of 'difference'"),
        (1, {"n_columns": 0}, "n_columns = 0"),
        (1, {"methods": ["missing"]}, "missing"),
    ],
)
def test_bad_grids_are_refused(entry: ObservableClosure, n_closures: int, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        closure_grid_figure([entry] * n_closures, **options)


def test_methods_are_chosen_and_ordered(entry: ObservableClosure) -> None:
    figure = closure_figure(entry, methods=["wild"])
    assert len(figure.axes) == 2
    with pytest.raises(InvalidInputError, match="missing"):
        closure_figure(entry, methods=["missing"])


def test_sign_changes_are_marked_in_every_panel(entry: ObservableClosure) -> None:
    (position,) = sign_changes(entry.target)
    assert 0.75 < position < 1.25
    for axes in closure_figure(entry).axes:
        marked = [line.get_xdata()[0] for line in axes.lines if "sign" in str(line.get_label())]  # type: ignore[index]
        assert marked == [position]


def test_sign_changes_ignore_the_noise_around_zero() -> None:
    x = np.repeat(np.arange(6) + 0.5, [50, 50, 2, 3, 2, 50])
    w = np.repeat([1.0, 1.0, -1.0, 1.0, -1.0, 1.0], [50, 50, 2, 3, 2, 50])
    entry = closure(
        WeightedSample(x), {"m": np.ones(len(x))}, WeightedSample(x, w), edges={"x0": np.arange(7)}
    )
    assert sign_changes(entry["x0"].target).tolist() == []


def test_a_positive_figure_begins_at_zero_without_a_zero_line() -> None:
    sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
    main = closure_figure(closure(sample, np.ones(3), sample, edges={"x": [0, 1, 2]})["x"]).axes[0]
    assert main.get_ylim()[0] == 0
    assert "_zero" not in [line.get_label() for line in main.lines]


def test_nothing_global_changes(entry: ObservableClosure) -> None:
    from matplotlib import pyplot as plt

    before = dict(mpl.rcParams)
    closure_figure(entry)
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == []


def drawn(values: Any, edges: Any, **options: Any) -> Any:
    sample = WeightedSample({"m": values})
    result = closure(sample, {"none": np.ones(len(sample))}, sample, edges={"m": edges})
    return closure_figure(result["m"], **options)


@pytest.mark.parametrize("lower", ["pull", "difference", "quotient"])
def test_time_stamps_are_drawn_from_an_offset_that_the_label_names(lower: Any) -> None:
    figure = drawn(
        1.7e9 + np.linspace(-40.0, 60.0, 500), 1.7e9 + np.linspace(-40.0, 60.0, 11), unit="s", lower=lower
    )
    main, below = figure.axes[:2]
    assert main.get_xlim() == (-40.0, 60.0)
    np.testing.assert_allclose(steps(main, "none").values, 0.01, rtol=0.05)
    assert below.get_xlabel() == "m − 1700000000 [s]"


def test_tiny_values_are_drawn_in_units_that_the_label_names() -> None:
    figure = drawn(1e-300 * np.linspace(0.0, 5.0, 500), 1e-300 * np.linspace(0.0, 5.0, 6))
    main, below = figure.axes
    assert main.get_xlim() == pytest.approx((0.0, 5.0))
    np.testing.assert_allclose(steps(main, "none").values, 0.2, rtol=0.05)
    assert below.get_xlabel() == "m / $10^{-300}$"


def test_bins_that_are_not_drawn_are_told_above() -> None:
    values = np.append(np.linspace(0.0, 0.999, 90), np.full(10, -999.0))
    edges = np.array([-999.0, 0.0, 0.5, 1.0])
    assert range_without_far_bins(edges) == (0.0, 1.0)
    main = drawn(values, edges, x_range=(0.0, 1.0)).axes[0]
    assert main.get_xlim() == (0.0, 1.0)
    assert [text.get_text() for text in main.texts] == [
        "not drawn: below 0: target 10.0%, reference 10.0%, none 10.0%"
    ]
    assert drawn(values, edges).axes[0].get_xlim() == (-999.0, 1.0)
    assert not drawn(values, edges).axes[0].texts
    with pytest.raises(InvalidInputError, match="expected two increasing numbers"):
        drawn(values, edges, x_range=(1.0, 0.0))


def test_far_bins_are_those_that_would_leave_no_room() -> None:
    assert range_without_far_bins(np.array([0.0, 1.0, 2.0, 999.0])) == (0.0, 2.0)
    assert range_without_far_bins(np.array([-9.0, 0.0, 1.0, 2.0, 999.0])) == (0.0, 2.0)
    assert range_without_far_bins(np.array([0.0, 20.0, 100.0, 180.0])) == (0.0, 180.0)
    assert range_without_far_bins(np.array([0.0, 1.0])) == (0.0, 1.0)
