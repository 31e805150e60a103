"""Calibration and support: the numbers in the figures are those of the events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.support import SupportDiagnostic
from quasiratio.plots import CalibrationCurve, calibration_figure, support_figure

CASE = signed_gaussian_case("signed")


def curve_of(predicted: list[float], measured: list[float], error: list[float]) -> CalibrationCurve:
    return CalibrationCurve("m", np.array(predicted), np.array(measured), np.array(error))


def measured(scale: float, n_bins: int = 10) -> CalibrationCurve:
    reference, target = CASE.samples(40_000, np.random.default_rng(4))
    return CalibrationCurve.from_events(
        "m",
        scale * CASE.exact_ratio(reference.features),
        scale * CASE.exact_ratio(target.features),
        weights_reference=reference.weights,
        weights_target=target.weights,
        n_bins=n_bins,
    )


def test_the_exact_signed_ratio_is_calibrated() -> None:
    curve = measured(1.0)
    assert len(curve.predicted) == 10
    assert curve.predicted[0] < -0.5
    assert curve.measured[0] < -0.5
    # Ten pulls of unit normal: the sum of squares exceeds 30 once in a thousand seeds.
    assert np.sum(curve.pulls**2) < 30


def test_a_ratio_that_is_too_large_is_not_calibrated() -> None:
    curve = measured(1.3)
    np.testing.assert_allclose(curve.predicted, 1.3 * measured(1.0).predicted)
    np.testing.assert_allclose(curve.measured, measured(1.0).measured)
    assert np.sum(curve.pulls**2) > 100


def test_bins_are_sums_of_signed_weights() -> None:
    curve = CalibrationCurve.from_events(
        "m",
        np.repeat([0.0, 1.0], 50),
        [0.0, 0.0, 1.0, 1.0],
        weights_target=[1.0, -2.0, 3.0, 2.0],
        n_bins=2,
    )
    np.testing.assert_allclose(curve.predicted, [0.0, 1.0])
    np.testing.assert_allclose(curve.measured, [-0.25 / 0.5, 1.25 / 0.5])
    # Target: w / 4. Reference: 50 events of weight 1/100 times the ratio.
    np.testing.assert_allclose(curve.error, np.sqrt([5 / 16, 13 / 16 + 50 * 1e-4]) / 0.5)


def test_bins_whose_reference_may_be_zero_are_left_out_and_counted() -> None:
    weights = np.concatenate([np.tile([1.0, -1.0], 50), np.ones(100)])
    curve = CalibrationCurve.from_events(
        "m", np.repeat([0.0, 1.0], 100), np.repeat([0.0, 1.0], 10), weights_reference=weights, n_bins=2
    )
    assert curve.n_left_out == 1
    assert curve.predicted.tolist() == [pytest.approx(1.0)]
    legend = calibration_figure([curve]).axes[0].get_legend()
    assert legend is not None
    assert "m (1 bins left out)" in [text.get_text() for text in legend.get_texts()]


def test_points_pulls_and_diagonal_are_drawn() -> None:
    curve = curve_of([-0.5, 0.5, 1.5], [-0.4, 0.5, 9.0], [0.1, 0.1, 0.1])
    main, below = calibration_figure([curve], pull_limit=4.0).axes
    (points,) = main.containers
    np.testing.assert_array_equal(points[0].get_ydata(), curve.measured)
    (pulls,) = below.containers
    np.testing.assert_allclose(pulls[0].get_ydata(), [1.0, 0.0, 75.0])
    (diagonal,) = [line for line in main.lines if line.get_label() == "calibrated"]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert main.get_ylim()[1] < 4
    assert [
        np.size(np.asarray(line.get_xdata()))
        for axes in (main, below)
        for line in axes.lines
        if line.get_label() == "_beyond"
    ] == [1, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibration_figure([]), "no calibration curves"),
        (lambda: curve_of([], [], []), "no predicted"),
        (lambda: curve_of([1.0], [1.0], [0.0]), "zero or negative"),
        (lambda: curve_of([1.0], [1.0, 2.0], [1.0]), "measured"),
        (lambda: CalibrationCurve.from_events("m", [1.0, np.inf], [1.0]), "NaN or infinite"),
        (lambda: CalibrationCurve.from_events("m", [1.0], []), "no ratios at the target"),
        (lambda: CalibrationCurve.from_events("m", [1.0] * 5, [1.0], weights_target=[1.0, 1.0]), "weights"),
        (lambda: CalibrationCurve.from_events("m", [1.0, 2.0], [1.0]), "three errors"),
        (lambda: CalibrationCurve.from_events("m", [1.0] * 99, [1.0], n_bins=0), "n_bins"),
    ],
)
def test_bad_calibrations_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


SUPPORT = SupportDiagnostic({f"x{i}": 0.001 * i for i in range(20)}, 2.0, 0.014, 1000)


def test_the_worst_features_come_first_and_the_others_are_counted() -> None:
    left, _ = support_figure(SUPPORT, [0.5, 1.0], [0.5, 1.0]).axes
    bars: list[Any] = list(left.patches)
    widths = {
        label.get_text(): bar.get_width() for label, bar in zip(left.get_yticklabels(), bars, strict=True)
    }
    assert list(widths) == [f"x{i}" for i in range(19, 4, -1)]
    assert widths["x19"] == pytest.approx(1.9)
    assert left.get_title("left") == "worst 15 of 20 features"
    assert left.texts[0].get_text() == "1.9%"


def test_shares_above_a_ratio_are_those_of_the_absolute_weight() -> None:
    _, right = support_figure(
        SUPPORT,
        [1.0, -2.0, 4.0],
        [1.0, 2.0, -8.0],
        weights_reference=[1.0, 1.0, -1.0],
        weights_target=[1.0, -2.0, 1.0],
    ).axes
    curves = {str(line.get_label()): line for line in right.lines}
    for name, ratios, shares in (
        ("target", [0.9, 1.5, 3.0, 7.0], [1.0, 0.75, 0.25, 0.25]),
        ("reference, reweighted", [0.9, 1.5, 3.0, 7.0], [1.0, 6 / 7, 4 / 7, 0.0]),
    ):
        x, y = (np.asarray(values) for values in curves[name].get_data())
        at = [y[np.searchsorted(x, ratio)] for ratio in ratios if ratio > x[0]]
        np.testing.assert_allclose(at, shares[-len(at) :])
    assert np.asarray(curves["target"].get_ydata())[-1] == 0.25  # the event at the end is still there
    (limit,) = [line for name, line in curves.items() if name.startswith("ten reference")]
    assert limit.get_xdata()[0] == 2.0  # type: ignore[index]
    assert right.get_title("left") == "1.4% of the target without support"


@pytest.mark.parametrize(
    ("reference", "target", "options", "message"),
    [
        ([], [1.0], {}, "no ratios at the reference"),
        ([1.0], [np.nan], {}, "NaN"),
        ([0.0], [1.0], {}, "all zero"),
        ([1.0], [1.0], {"weights_target": [1.0, 2.0]}, "weights of the target"),
    ],
)
def test_bad_supports_are_refused(reference: Any, target: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        support_figure(SUPPORT, reference, target, **options)
