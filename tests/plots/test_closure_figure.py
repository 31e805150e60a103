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
from quasiratio.plots import closure_figure, sign_changes

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
        assert any(f"{chi_squared:.3g}" in text.get_text() for text in axes.texts)


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
    assert set(names) == {"target", "reference", "good", "wild", "target changes sign"}
    assert legend.get_window_extent().x0 >= main.get_window_extent().x1
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert main.get_ylabel() == "Density [1/GeV]"
    assert figure.axes[-1].get_xlabel() == "$m$ [GeV]"
    assert main.get_title("left") == "A title"


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
