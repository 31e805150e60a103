"""Weights scaled to mean one, and transforms with their poles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

from quasiratio.errors import InvalidInputError
from quasiratio.losses import Bce, Lsif, Mse, Pare, Revert
from quasiratio.metrics import weight_diagnostics
from quasiratio.plots import LossTransform, transform_figure, weight_figure


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_means_are_those_of_the_scaled_weights() -> None:
    weights = np.array([2.0, 2.0, 2.0, -2.0] * 50)
    left, right = weight_figure({"target": weights}).axes
    means = [
        np.asarray(line.get_xdata())[0]
        for axes in (left, right)
        for line in axes.lines
        if line.get_label() == "_mean"
    ]
    assert means == pytest.approx([1.0, weight_diagnostics(weights).weight_variance])
    assert texts(left) == ["target, 25% negative", "mean"]
    assert texts(right) == ["target, mean 3", "mean"]
    assert left.patches[-1].get_label() == "_negative"


def test_the_bins_are_those_of_w_and_of_w_squared_minus_w() -> None:
    weights = np.array([1.0, 1.0, 1.0, -1.0] * 50)  # scaled to 2 and -2
    for axes, places in zip(weight_figure({"a": weights}).axes, ([-2.0, 2.0], [2.0, 6.0]), strict=True):
        (patch,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
        data: Any = patch.get_data()
        filled = np.flatnonzero(data.values)
        np.testing.assert_allclose(np.sort(data.values[filled]), [0.25, 0.75])
        edges = np.asarray(data.edges)
        assert all(edges[i] <= place <= edges[i + 1] for i, place in zip(filled, places, strict=True))


def test_every_event_is_counted_once() -> None:
    rng = np.random.default_rng(0)
    for axes in weight_figure({"a": rng.normal(1, 1, 999), "b": rng.normal(1, 3, 500)}).axes:
        for patch in axes.patches:
            if isinstance(patch, StepPatch):
                data: Any = patch.get_data()
                assert data.values.sum() == pytest.approx(1.0)
                assert axes.get_xlim() == pytest.approx((data.edges[0], data.edges[-1]))


def test_extreme_weights_do_not_set_the_scale_and_are_counted() -> None:
    weights = np.append(np.random.default_rng(0).normal(1, 1, 9999), 1e6)
    left, _ = weight_figure({"a": weights}).axes
    assert texts(left)[0].endswith("0.01% off the axis")
    scaled = weights * len(weights) / weights.sum()
    assert left.get_xlim()[1] < scaled.max() / 100


def test_equal_weights_can_be_drawn() -> None:
    left, right = weight_figure({"a": np.ones(10)}).axes
    assert texts(left)[0] == "a, 0% negative"
    assert texts(right)[0] == "a, mean 0"


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        ({}, {}, "no weights"),
        ({"a": []}, {}, "no weights of 'a'"),
        ({"a": [1.0, np.nan]}, {}, "NaN"),
        ({"a": [1.0, -2.0]}, {}, "positive sum"),
        ({"a": [1.0]}, {"n_bins": 0}, "n_bins"),
    ],
)
def test_bad_weights_are_refused(weights: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        weight_figure(weights, **options)


RANGE = (-1.29, 1.72)


def box(axes: Any) -> Rectangle:
    (found,) = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_label() == "range of the data"]
    return found


@pytest.mark.parametrize("loss", [Mse(), Pare(2, 1), Revert(), Lsif()])
def test_curves_invert_the_link(loss: Any) -> None:
    (axes,) = transform_figure([LossTransform.from_loss(loss)], data_range=RANGE).axes
    (line,) = [line for line in axes.lines if line.get_label() == "output"]
    ratios, outputs = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    finite = np.isfinite(outputs)
    assert finite.mean() > 0.99

    import torch

    back = loss.link.ratio(torch.from_numpy(outputs[finite].copy())).numpy()
    np.testing.assert_allclose(back, ratios[finite], rtol=1e-6, atol=1e-9)


def test_the_published_score_is_an_affine_map_of_the_raw_output() -> None:
    ratios = np.linspace(-3, 5, 20)
    score = LossTransform.published_pare(2, 1).output(ratios)
    np.testing.assert_allclose(score, (2 + ratios) / (4 + ratios))
    raw = LossTransform.from_loss(Pare(2, 1)).output(ratios)
    np.testing.assert_allclose(np.polyval(np.polyfit(raw, score, 1), raw), score, atol=1e-12)


def test_the_box_holds_the_data_and_is_open_where_the_pole_lies_among_them() -> None:
    mse, pare = (LossTransform.from_loss(Mse()), LossTransform.published_pare(2, 1))
    with_pole, without = transform_figure([mse, pare], data_range=RANGE).axes
    closed = box(without)
    assert (closed.get_x(), closed.get_x() + closed.get_width()) == pytest.approx(RANGE)
    expected = pare.output(np.array(RANGE))
    assert (closed.get_y(), closed.get_y() + closed.get_height()) == pytest.approx(tuple(expected))
    assert box(with_pole).get_y() < with_pole.get_ylim()[0]
    poles = [line.get_xdata()[0] for line in with_pole.lines if line.get_label() == "pole"]  # type: ignore[index]
    assert poles == [-1.0]
    assert with_pole.get_title("left") == "mse, pole at \N{MINUS SIGN}1"


def test_branches_on_either_side_of_a_pole_are_not_joined() -> None:
    (axes,) = transform_figure([LossTransform.from_loss(Mse())], data_range=RANGE).axes
    (line,) = [line for line in axes.lines if line.get_label() == "output"]
    at_pole = np.asarray(line.get_xdata()) == -1.0
    assert np.isnan(np.asarray(line.get_ydata())[at_pole]).all()


def test_ratios_that_cannot_be_expressed_are_shaded() -> None:
    (axes,) = transform_figure([LossTransform.from_loss(Bce())], data_range=RANGE).axes
    (shade,) = [p for p in axes.patches if p.get_label() == "not expressible"]
    x = shade.get_extents().transformed(axes.transData.inverted()).intervalx
    np.testing.assert_allclose(x, [axes.get_xlim()[0], 0.0], atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: transform_figure([], data_range=RANGE), "no losses"),
        (lambda: transform_figure([LossTransform.from_loss(Mse())], data_range=(1.0, 0.0)), "smaller first"),
        (lambda: transform_figure([LossTransform.from_loss(Mse())], data_range=(np.nan, 0.0)), "data_range"),
        (
            lambda: transform_figure(
                [LossTransform.from_loss(Mse())], data_range=RANGE, ratio_range=(0, np.inf)
            ),
            "ratio_range",
        ),
        (
            lambda: transform_figure([LossTransform.from_loss(Bce())], data_range=(-3.0, -2.0)),
            "'bce' has no output",
        ),
        (lambda: LossTransform.published_pare(1, 1), "two different"),
        (lambda: LossTransform.published_pare(-1, 1), "t0 = -1"),
    ],
)
def test_bad_transforms_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
