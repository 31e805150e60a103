"""Risks over mixture coefficients: minima where they are, and poles told from bowls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from quasiratio.errors import InvalidInputError
from quasiratio.plots import RiskCurve, RiskLandscape, landscape_figure, risk_curve_figure

C0, C1 = np.linspace(1, 2, 21), np.linspace(1.5, 2.5, 41)
BOWL = (C0[:, None] - 1.4) ** 2 + (C1 - 2.05) ** 2
SPIKES = BOWL + np.where(np.random.default_rng(0).random((21, 41)) < 0.1, -1e6, 0.0)


def marker(axes: Any, label: str) -> tuple[float, float]:
    (line,) = [line for line in axes.lines if line.get_label() == label]
    return float(line.get_xdata()[0]), float(line.get_ydata()[0])


def test_minimum_and_nominal_point_are_marked_where_they_are() -> None:
    landscape = RiskLandscape("PARE", C0, C1, BOWL)
    assert landscape.minimum == pytest.approx((1.4, 2.05))
    assert not landscape.runs_away
    axes = landscape_figure([landscape], nominal=(1.3, 2.0)).axes[0]
    assert marker(axes, "lowest risk") == pytest.approx((2.05, 1.4))  # c1 runs along x
    assert marker(axes, "from the sums of weights") == (2.0, 1.3)
    assert axes.get_xlim() == (1.5, 2.5)
    assert axes.get_ylim() == (1.0, 2.0)
    assert axes.get_title("left") == "PARE: minimum at (1.4, 2.05)"


def test_contours_surround_the_minimum() -> None:
    figure = landscape_figure([RiskLandscape("PARE", C0, C1, BOWL)])
    filled, lines = figure.axes[0].collections
    np.testing.assert_allclose(lines.levels[[0, -1]], BOWL.max() * np.array([1e-4, 1.0]), rtol=1e-6)  # type: ignore[attr-defined]
    assert filled.norm.vmax == pytest.approx(BOWL.max())
    smallest = next(path for path in lines.get_paths() if len(np.asarray(path.vertices)))
    assert smallest.contains_point((2.05, 1.4))


def test_a_runaway_landscape_shows_its_values_about_the_median() -> None:
    landscape = RiskLandscape("MSE", C0, C1, SPIKES)
    assert landscape.runs_away
    axes = landscape_figure([landscape]).axes[0]
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(SPIKES.shape), SPIKES - np.median(SPIKES))
    assert axes.get_title("left").startswith("MSE: no minimum, lowest at")


def test_coefficients_without_a_finite_risk_are_left_out() -> None:
    holes = np.where(C1 > 2.2, np.nan, BOWL)
    landscape = RiskLandscape("PARE", C0, C1, holes)
    assert landscape.minimum == pytest.approx((1.4, 2.05))
    assert len(landscape_figure([landscape]).axes) == 2


def test_curves_are_drawn_with_their_minima() -> None:
    curve = RiskCurve("PARE", C1, (C1 - 2.05) ** 2)
    (axes,) = risk_curve_figure([curve], nominal=2.0).axes
    (line,) = [line for line in axes.lines if line.get_label() == "PARE"]
    np.testing.assert_array_equal(line.get_ydata(), curve.risks)
    assert marker(axes, "minimum, 2.05") == pytest.approx((2.05, 0.0))
    assert axes.get_yscale() == "linear"
    assert axes.get_xlim() == (1.5, 2.5)


def test_a_runaway_curve_is_logarithmic_on_both_sides_and_has_no_minimum() -> None:
    risks = (C1 - 2.05) ** 2
    risks[30] = -1e7
    first, second = risk_curve_figure([RiskCurve("PARE", C1, C1**2), RiskCurve("MSE", C1, risks)]).axes
    assert first.get_yscale() == "linear"
    assert second.get_yscale() == "symlog"
    assert second.get_ylim()[0] < -1e7
    assert marker(second, f"lowest risk, {C1[30]:.3g}") == (C1[30], -1e7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RiskLandscape("a", C0, C1, BOWL.T), r"expected numbers of shape \(21, 41\)"),
        (lambda: RiskLandscape("a", C0[::-1], C1, BOWL), "do not increase"),
        (lambda: RiskLandscape("a", C0[:0], C1, BOWL), "no values of c0"),
        (lambda: RiskLandscape("a", C0, C1, BOWL * np.nan), "all NaN"),
        (lambda: RiskCurve("a", C1, C1[1:]), "risks of 'a'"),
        (lambda: RiskCurve("a", C1, BOWL), "one per coefficient"),
        (lambda: RiskCurve("a", C1[:1], C1[:1]), "at least two"),
        (lambda: landscape_figure([]), "no landscapes"),
        (lambda: landscape_figure([RiskLandscape("a", C0, C1, BOWL)], nominal=(1.0, np.nan)), "nominal"),
        (lambda: risk_curve_figure([]), "no curves"),
        (lambda: risk_curve_figure([RiskCurve("a", C1, C1)], nominal=np.inf), "nominal = inf"),
    ],
)
def test_bad_risks_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
