"""One small figure of every kind, for what must hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

from quasiratio import WeightedSample, plots
from quasiratio.distributions import signed_gaussian_case
from quasiratio.estimators.support import diagnose_support
from quasiratio.losses import Bce, Mse
from quasiratio.metrics import ClosureResult, closure, radial_edges, weighted_histogram
from quasiratio.training import TrainingHistory

CASE = signed_gaussian_case("signed")
N_EVENTS = 4000


@cache
def samples() -> tuple[WeightedSample, WeightedSample]:
    return CASE.samples(N_EVENTS, np.random.default_rng(5))


def radius(features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    points = np.asarray(features, dtype=np.float64)
    return np.asarray(np.hypot(points[:, 0], points[:, 1]))


@cache
def closures() -> ClosureResult:
    """Return the closure of an ensemble around the exact ratio and of a method that fails."""
    reference, target = samples()
    exact = CASE.exact_ratio(reference.features)
    members = exact + 0.05 * np.array([[-1.0], [0.0], [1.0]]) * np.cos(reference.features[:, 0])
    return closure(
        reference,
        {"ensemble": members, "failure": np.maximum(exact, 0.0) ** 3},
        target,
        observables={"r": radius, "x": "x"},
        edges={"r": lambda a, b: radial_edges(a, b, n_bins=24), "x": np.linspace(-6, 6, 25)},
    )


def closure_builder(lower: str) -> Callable[[], Figure]:
    return lambda: plots.closure_figure(
        closures()["r"],
        label="Radius $r$",
        unit="cm",
        title="Signed case",
        lower=lower,  # type: ignore[arg-type]
    )


def closure_grid() -> Figure:
    return plots.closure_grid_figure(
        closures().observables, labels={"r": "Radius $r$", "x": "$x$"}, units={"r": "cm", "x": "cm"}
    )


def distribution() -> Figure:
    edges, r = np.linspace(0, 7, 29), np.linspace(0, 7, 80)
    histograms = {
        name: weighted_histogram(radius(sample.features), sample.weights, edges=edges)
        for name, sample in zip(("reference", "target"), samples(), strict=True)
    }
    return plots.distribution_figure(
        histograms, label="Radius $r$", unit="cm", exact={"target": (r, CASE.target.radial_density(r))}
    )


def density() -> Figure:
    edges = np.linspace(-6, 6, 25)
    grid = plots.DensityGrid.from_function(CASE.target.density, edges_x=edges, edges_y=edges)
    return plots.density_figure(grid, label_x="$x$", label_y="$y$", unit_x="cm", unit_y="cm")


def ratio() -> Figure:
    reference, _ = samples()
    x, exact = radius(reference.features), CASE.exact_ratio(reference.features)
    members = exact + 0.05 * np.array([[-1.0], [0.0], [1.0]]) * np.cos(x)
    curve = plots.RatioCurve.from_members("ensemble", x, members, edges=np.linspace(0, 6, 13))
    r = np.linspace(0.25, 5.75, 40)
    at = CASE.exact_ratio(np.stack([r, np.zeros(40)], axis=1))
    return plots.ratio_figure([curve], plots.RatioCurve("exact", r, at), label="Radius $r$", unit="cm")


def ratio_truth() -> Figure:
    reference, _ = samples()
    exact = CASE.exact_ratio(reference.features)
    noise = np.random.default_rng(1).normal(0, 0.1, len(exact))
    return plots.ratio_truth_figure(exact, {"good": exact + noise, "clipped": np.maximum(exact, 0) + noise})


def calibration() -> Figure:
    reference, target = samples()
    curves = [
        plots.CalibrationCurve.from_events(
            name,
            scale * CASE.exact_ratio(reference.features),
            scale * CASE.exact_ratio(target.features),
            weights_reference=reference.weights,
            weights_target=target.weights,
            n_bins=8,
        )
        for name, scale in (("exact", 1.0), ("too large", 1.3))
    ]
    return plots.calibration_figure(curves)


def support() -> Figure:
    reference, target = samples()
    ratios = [CASE.exact_ratio(sample.features) for sample in (reference, target)]
    shifted = np.asarray(target.features) + np.float32(3.0)
    diagnostic = diagnose_support(
        ["x", "y"],
        (np.asarray(reference.features), ratios[0], reference.weights),
        (shifted, 2.0 * ratios[1], target.weights),
    )
    return plots.support_figure(
        diagnostic,
        ratios[0],
        2.0 * ratios[1],
        weights_reference=reference.weights,
        weights_target=target.weights,
    )


def history(n_networks: int = 3, n_epochs: int = 12) -> TrainingHistory:
    rng = np.random.default_rng(0)
    result = TrainingHistory("bce")
    for epoch in range(n_epochs):
        loss = 0.65 + 0.2 * np.exp(-0.7 * epoch) + 0.001 * rng.normal(size=n_networks)
        result.append(100 * (epoch + 1), loss - 0.002, loss, 1e-2 * (1 - epoch / n_epochs), float(epoch))
    result.best_epoch = np.argmin(result.validation_curves(), axis=0)
    result.diverged = np.zeros(n_networks, dtype=bool)
    return result


def training() -> Figure:
    return plots.training_figure(history(), title="Ensemble of three")


def loss_curves() -> Figure:
    epochs = np.arange(30)
    curves = {f"$\\sigma_w$ = {s}": 0.66 + 0.03 * np.exp(-epochs / (4.0 * s)) for s in (1, 3)}
    return plots.loss_curves_figure(curves, optimum=0.655)


def weight() -> Figure:
    return plots.weight_figure(
        {n: s.weights for n, s in zip(("reference", "target"), samples(), strict=True)}
    )


def landscape() -> Figure:
    c0, c1 = np.linspace(1, 2, 21), np.linspace(1.5, 2.5, 25)
    bowl = (c0[:, None] - 1.4) ** 2 + 3 * (c1 - 2.05) ** 2
    pole = bowl + 1e4 / np.sin(40 * (c0[:, None] + 2 * c1)) ** 3 * (c1 > 2)
    return plots.landscape_figure(
        [plots.RiskLandscape("MSE", c0, c1, pole), plots.RiskLandscape("PARE", c0, c1, bowl)],
        nominal=(4 / 3, 2.0),
    )


def risk_curve() -> Figure:
    c = np.linspace(1, 2, 41)
    curves = [
        plots.RiskCurve("PARE", c, (c - 1.3) ** 2),
        plots.RiskCurve("MSE", c, 1e5 / np.sin(40 * c) ** 3 * (c > 1.6)),
    ]
    return plots.risk_curve_figure(curves, nominal=1.27)


def transform() -> Figure:
    losses = [
        plots.LossTransform.from_loss(Mse()),
        plots.LossTransform.published_pare(2, 1),
        plots.LossTransform.from_loss(Bce()),
    ]
    return plots.transform_figure(losses, data_range=(-1.29, 1.72), data_label="Signed case")


def scatter() -> Figure:
    rng = np.random.default_rng(2)
    sigma = np.repeat(np.linspace(1, 5, 9), 6)
    series = [
        plots.ScatterSeries(name, sigma, slope * sigma + 1e-4 * rng.normal(size=54), color=rng.random(54))
        for name, slope in (("MLP", 3.6e-3), ("RoSMM$_r$", 1e-3))
    ]
    return plots.scatter_figure(
        series, label_x="$\\sigma_w$", label_y="$D_{S_2}$", color_label="Negative fraction $\\eta$"
    )


def scatter_medians() -> Figure:
    sigma = np.linspace(1, 5, 9)
    series = [plots.ScatterSeries(name, sigma, s * sigma) for name, s in (("MLP", 3.6e-3), ("RoSMM", 1e-3))]
    return plots.scatter_figure(series, label_x="$\\sigma_w$", label_y="median $D_{S_2}$")


BUILDERS: dict[str, Callable[[], Figure]] = {
    "closure_figure": closure_builder("pull"),
    "closure_figure-difference": closure_builder("difference"),
    "closure_figure-quotient": closure_builder("quotient"),
    "closure_grid_figure": closure_grid,
    "distribution_figure": distribution,
    "density_figure": density,
    "ratio_figure": ratio,
    "ratio_truth_figure": ratio_truth,
    "calibration_figure": calibration,
    "support_figure": support,
    "training_figure": training,
    "loss_curves_figure": loss_curves,
    "weight_figure": weight,
    "landscape_figure": landscape,
    "risk_curve_figure": risk_curve,
    "transform_figure": transform,
    "scatter_figure": scatter,
    "scatter_figure-medians": scatter_medians,
}


@pytest.fixture(scope="session")
def figure_builders() -> dict[str, Callable[[], Figure]]:
    """Return a function that draws each kind of figure, by name."""
    return BUILDERS


@pytest.fixture
def training_history() -> Callable[..., TrainingHistory]:
    """Return a function (networks, epochs) -> a plausible history."""
    return history


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "any_figure" in metafunc.fixturenames:
        metafunc.parametrize("any_figure", list(BUILDERS), indirect=True)


@cache
def drawn(name: str) -> Figure:
    with plots.figure_style():
        figure = BUILDERS[name]()
        figure.draw_without_rendering()
    return figure


@pytest.fixture
def any_figure(request: pytest.FixtureRequest) -> Figure:
    """Return each kind of figure in turn, laid out; tests must not change it."""
    return drawn(request.param)
