"""Densities in one and two variables: what is drawn is the data, also where it is negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import CenteredNorm
from matplotlib.patches import StepPatch

from quasiratio.errors import InvalidInputError
from quasiratio.metrics import weighted_histogram
from quasiratio.plots import DensityGrid, density_figure, distribution_figure, sign_changes

EDGES = np.array([0.0, 1.0, 3.0])


def grid(weights: Any = None) -> DensityGrid:
    x, y = [0.5, 0.5, 2.0, 2.5, 9.0], [0.5, 2.0, 0.5, 0.5, 0.5]
    return DensityGrid.from_events(x, y, weights, edges_x=EDGES, edges_y=EDGES)


def mesh_of(axes: Axes) -> QuadMesh:
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    return mesh


def outline(axes: Axes) -> Any:
    """Return the steps of a marginal: neither filled by sign nor the band of the error."""
    (found,) = [p for p in axes.patches if isinstance(p, StepPatch) and not p.get_fill()]
    return found.get_data()


def test_events_fill_the_cells_and_the_marginals_keep_what_is_outside() -> None:
    filled = grid()
    np.testing.assert_allclose(filled.values, np.array([[0.2, 0.1], [0.2, 0.0]]))
    np.testing.assert_allclose(filled.marginal_x, [0.4, 0.2])
    np.testing.assert_allclose(filled.marginal_y, [0.8, 0.1])
    assert filled.error_y is not None
    np.testing.assert_allclose(filled.error_y, [0.4, 0.1])
    assert not filled.is_signed


def test_integral_over_the_grid_is_one_for_signed_weights() -> None:
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=500), rng.normal(size=500), rng.choice([1.0, 1.0, -1.0], 500)
    wide = np.linspace(-6, 6, 13)
    filled = DensityGrid.from_events(x, y, w, edges_x=wide, edges_y=wide)
    assert filled.values.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(filled.values.sum(axis=1), filled.marginal_x)


def test_signed_densities_have_a_diverging_map_with_zero_in_its_middle() -> None:
    signed = grid([1.0, -0.5, 1.0, 1.0, 1.0])
    figure = density_figure(signed, label_x="x", label_y="y")
    main = figure.axes[1]
    mesh = mesh_of(main)
    assert isinstance(mesh.norm, CenteredNorm)
    assert mesh.norm(0.0) == 0.5
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(2, 2), signed.values.T)
    assert main.get_xlim() == (0.0, 3.0)


def test_nonnegative_densities_leave_empty_cells_white() -> None:
    mesh = mesh_of(density_figure(grid(), label_x="x", label_y="y").axes[1])
    assert np.ma.getmaskarray(np.ma.asarray(mesh.get_array())).sum() == 1
    assert mesh.norm.vmin == 0.0


def test_marginals_are_drawn_on_their_sides_and_may_be_negative() -> None:
    signed = grid([-1.0, -0.5, 1.0, 2.0, 1.0])
    top, _, side, _ = density_figure(signed, label_x="x", label_y="y").axes
    np.testing.assert_allclose(outline(top).values, signed.marginal_x)
    np.testing.assert_allclose(outline(side).values, signed.marginal_y)
    assert signed.error_x is not None
    assert top.get_ylim()[0] < (signed.marginal_x - signed.error_x).min() < 0
    assert side.get_xlim()[1] > signed.marginal_y.max()
    assert any(line.get_label() == "_zero" for line in top.lines)


def test_color_limits_can_be_shared() -> None:
    mesh = mesh_of(density_figure(grid(), label_x="x", label_y="y", color_limit=3.0).axes[1])
    assert mesh.norm.vmax == 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DensityGrid.from_events([], []), "no values of the first variable"),
        (lambda: DensityGrid.from_events([1.0, 2.0], [1.0]), "Got 1 values of the second variable"),
        (lambda: DensityGrid.from_events([np.nan], [1.0]), "NaN"),
        (lambda: DensityGrid.from_events([1.0, 2.0], [1.0, 2.0], [1.0, -1.0]), "positive sum"),
        (lambda: DensityGrid(EDGES, EDGES, np.ones((1, 1)), np.ones(2), np.ones(2)), r"shape \(2, 2\)"),
        (lambda: DensityGrid(EDGES, EDGES, np.ones((2, 2)), np.ones(1), np.ones(2)), "marginal_x"),
        (lambda: density_figure(grid(), label_x="x", label_y="y", color_limit=0.0), "color_limit"),
    ],
)
def test_bad_grids_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


HISTOGRAM = weighted_histogram(np.repeat([0.5, 2.0], 50), np.repeat([-0.5, 1.0], 50), edges=[0.0, 1.0, 3.0])


def test_distributions_are_normalised_and_have_bands() -> None:
    (axes,) = distribution_figure({"signed": HISTOGRAM}, label="m", unit="GeV").axes
    line, band = [p for p in axes.patches if isinstance(p, StepPatch)][:2]
    data: Any = line.get_data()
    np.testing.assert_allclose(data.values, [-1.0, 1.0])
    data = band.get_data()
    error = np.sqrt([50 * 0.25, 50.0]) / 25 / np.array([1.0, 2.0])
    np.testing.assert_allclose(data.values - np.asarray(data.baseline), 2 * error)
    assert axes.get_xlim() == (0.0, 3.0)
    assert axes.get_ylim()[0] < -1 - error[0]
    assert axes.get_xlabel() == "m [GeV]"


def test_a_change_of_sign_is_marked_in_the_colour_of_its_sample() -> None:
    (axes,) = distribution_figure({"signed": HISTOGRAM}, label="m").axes
    (mark,) = [line for line in axes.lines if line.get_label() == "_sign change"]
    assert mark.get_xdata()[0] == pytest.approx(sign_changes(HISTOGRAM)[0])  # type: ignore[index]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["signed", "change of sign", "±1σ (stat.)"]


def test_exact_densities_are_drawn_as_given() -> None:
    x = np.linspace(0, 3, 7)
    (axes,) = distribution_figure({"a": HISTOGRAM}, label="m", exact={"a": (x, x), "other": (x, 2 * x)}).axes
    lines = {str(line.get_label()): line for line in axes.lines}
    np.testing.assert_array_equal(lines["exact"].get_ydata(), x)
    np.testing.assert_array_equal(lines["other"].get_ydata(), 2 * x)


def test_a_positive_distribution_begins_at_zero_or_is_logarithmic() -> None:
    positive = weighted_histogram([0.5, 2.0, 2.5], edges=[0.0, 1.0, 3.0])
    assert distribution_figure({"a": positive}, label="m").axes[0].get_ylim()[0] == 0
    assert distribution_figure({"a": positive}, label="m", scale="log").axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    ("histograms", "options", "message"),
    [
        ({}, {}, "no histograms"),
        ({"a": HISTOGRAM}, {"scale": "log"}, "negative bins"),
        ({"a": HISTOGRAM}, {"scale": "sqrt"}, "expected one of 'linear'"),
        ({"a": HISTOGRAM}, {"exact": {"a": ([0.0, 1.0], [0.0])}}, "Got 1 values"),
        ({"a": HISTOGRAM}, {"exact": {"a": ([0.0], [np.inf])}}, "NaN or infinite"),
    ],
)
def test_bad_distributions_are_refused(histograms: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        distribution_figure(histograms, label="m", **options)
