"""Four methods on a pair of samples whose exact, signed ratio is known: numbers, figures and a report."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quasiratio.atomic_files import scratch_directory
from quasiratio.distributions import SignedGaussianCase, signed_gaussian_case
from quasiratio.errors import DivergenceWarning, NegativeWeightWarning, QuasiratioWarning
from quasiratio.estimators import DirectRatio, RatioEstimator, SignedMixtureRatio, SignResolvedRatio
from quasiratio.metrics import ObservableClosure, closure, radial_edges
from quasiratio.outputs import create_output_directory, output_directory, publish_directory
from quasiratio.plots import RatioCurve, closure_figure, ratio_figure, save_figure
from quasiratio.report import Facts, Picture, Report, Section, Table, Text, write_report
from quasiratio.report.closure_quality import SIGNIFICANCE, ClosureQuality, closure_qualities
from quasiratio.report.content import Cell
from quasiratio.report.safe_text import number_text

__all__ = ["DemoFiles", "DemoResult", "demo_files", "run_demo", "short_notes"]

EXACT = "exact ratio"
_N_RADII, _N_ANGLES = 141, 48
_RADIUS = "Radius $r$"


@dataclass(frozen=True)
class DemoResult:
    """The demo's numbers and curves, ready for tables and figures.

    Args:
        n_events: Training events per class.
        closure: Radial closure of each method, the exact ratio last.
        curves: The learned ratio of each method along the radius; the band is its spread over the angle.
        exact_curve: The exact ratio along the radius.
        seconds: Time of each fit.
        notes: One sentence per method whose fit had something to say.
    """

    n_events: int
    closure: ObservableClosure
    curves: tuple[RatioCurve, ...]
    exact_curve: RatioCurve
    seconds: dict[str, float]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DemoFiles:
    """What the demo found and wrote.

    Attributes:
        result: Its numbers and curves.
        figures: The files of the figures.
        report: The report.
    """

    result: DemoResult
    figures: tuple[Path, ...]
    report: Path


def demo_files(
    output: str | os.PathLike[str] = "demo",
    *,
    n_events: int = 200_000,
    random_state: int = 0,
    max_steps: int = 600,
    overwrite: bool = False,
    command: str = "quasiratio demo",
    fitted: Callable[[str, float], None] | None = None,
) -> DemoFiles:
    """Compare four methods on the Signed case, and write report and figures, as `quasiratio demo` does.

    Args:
        output: Directory of report and figures.
        n_events: Events per class, for training and again for the test.
        random_state: Seed of the samples and the fits.
        max_steps: Optimiser steps of each fit.
        overwrite: Write among files that are there already.
        command: The command that repeats it, for the report.
        fitted: Called after each fit with the method and its seconds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     demo_files(f"{directory}/demo", n_events=1000, max_steps=1).report.name
        'report.html'
    """
    directory = output_directory(output, command="demo", overwrite=overwrite)
    result = run_demo(n_events, random_state=random_state, max_steps=max_steps, report=fitted)
    pictures = _pictures(result)
    create_output_directory(directory.parent)
    with scratch_directory(directory.parent) as workspace:
        finished = workspace / "finished"
        finished.mkdir()
        drawn = [path for name, one in pictures.items() for path in save_figure(one.figure, finished / name)]
        report = _report(
            result, pictures=pictures, command=command, random_state=random_state, max_steps=max_steps
        )
        write_report(report, finished / "report.html")
        publish_directory(finished, directory, command="demo")
    return DemoFiles(result, tuple(directory / path.name for path in drawn), directory / "report.html")


def demo_methods(max_steps: int, random_state: int) -> dict[str, RatioEstimator]:
    """Return the unfitted methods by name.

    Cross-entropy gets a tenth of the default rate: at the default its risk runs away so fast that the ratio
    is lost at every radius, and not only where the density is negative.
    """
    methods: dict[str, RatioEstimator] = {
        "MLP, BCE": DirectRatio(loss="bce", learning_rate=1e-3),
        "RoSMM": SignedMixtureRatio(),
        "REVERT": DirectRatio(loss="revert"),
        "sign-resolved": SignResolvedRatio(),
    }
    for method in methods.values():
        method.set_params(max_steps=max_steps, random_state=random_state)
    return methods


def run_demo(
    n_events: int,
    *,
    random_state: int,
    max_steps: int,
    report: Callable[[str, float], None] | None = None,
) -> DemoResult:
    """Fit all methods on one sample of the Signed case and compare them on another.

    Args:
        n_events: Events per class, for training and again for the test.
        random_state: Seed of the samples and the fits.
        max_steps: Optimiser steps of each fit.
        report: Called after each fit with the method and its seconds.

    Example:
        >>> run_demo(1000, random_state=0, max_steps=1).exact_curve.name
        'exact ratio'
    """
    case = signed_gaussian_case("signed")
    rng = np.random.default_rng(random_state)
    reference, target = case.samples(n_events, rng)
    test_reference, test_target = case.test_samples(n_events, rng)
    rings = _Rings(case)

    ratios, curves, seconds, notes = {}, [], {}, []
    test_features = np.array(test_reference.features)
    for name, method in demo_methods(max_steps, random_state).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", QuasiratioWarning)
            start = time.perf_counter()
            method.fit_samples(reference, target)
            seconds[name] = time.perf_counter() - start
            ratios[name] = method.predict_ratio(test_features)
            curves.append(rings.curve(name, method.predict_ratio(rings.points)))
        notes.extend(short_notes(name, caught))
        if report is not None:
            report(name, seconds[name])
    ratios[EXACT] = case.exact_ratio(test_reference.features)
    result = closure(
        test_reference, ratios, test_target, observables={"r": _radius}, edges={"r": radial_edges}
    )
    exact = RatioCurve(EXACT, rings.radii, case.exact_ratio(rings.axis))
    return DemoResult(n_events, result["r"], tuple(curves), exact, seconds, tuple(notes))


class _Rings:
    """Points on circles, up to the radius that holds all but 0.1% of either sample's events."""

    def __init__(self, case: SignedGaussianCase) -> None:
        widest = min(case.reference.sigma_1, case.target.sigma_1)
        self.radii = np.linspace(0.0, widest * np.sqrt(2 * np.log(1e3)), _N_RADII)
        self.axis = np.stack([self.radii, np.zeros(_N_RADII)], axis=1)
        angles = np.linspace(0.0, 2 * np.pi, _N_ANGLES, endpoint=False)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self.points = (self.radii[:, None, None] * circle).reshape(-1, 2)

    def curve(self, name: str, ratios: npt.NDArray[np.float64]) -> RatioCurve:
        return RatioCurve.from_draws(name, self.radii, ratios.reshape(_N_RADII, _N_ANGLES))


def _radius(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(np.hypot(features[:, 0], features[:, 1]))


def short_notes(name: str, caught: list[warnings.WarningMessage]) -> list[str]:
    """Turn the expected warnings of a fit into one sentence, and keep the first of every other kind."""
    kinds = [warning.category for warning in caught]
    if any(issubclass(kind, DivergenceWarning) for kind in kinds):
        return [
            f"{name} cannot express a negative ratio, and its risk ran away where the density is negative."
        ]
    if any(issubclass(kind, NegativeWeightWarning) for kind in kinds):
        return [f"{name} cannot express a negative ratio, and the density is negative in the middle."]
    first = {warning.category: warning.message for warning in reversed(caught)}
    return [f"{name}: {message}" for message in first.values()]


def _pictures(result: DemoResult) -> dict[str, Picture]:
    """Return the figures of the demo by the names of their files."""
    title = f"Signed Gaussian mixtures, {result.n_events} events per class"
    methods = [curve.name for curve in result.curves]
    closure = closure_figure(result.closure, label=_RADIUS, title=title, methods=methods)
    ratio = ratio_figure(result.curves, result.exact_curve, label=_RADIUS, title=title, band="68% of angles")
    return {
        "closure": Picture(
            closure,
            "Density along the radius: the target, the reference, and the reference as each method reweights it; "
            "below, the pulls of each method. Dotted lines mark where the target changes sign.",
            "Closure in the radius",
        ),
        "ratio": Picture(
            ratio,
            "Learned ratios against the exact one, which is negative in the middle. Bands are the spread over the angle.",
            "Ratio along the radius",
        ),
    }


def _report(
    result: DemoResult, *, pictures: dict[str, Picture], command: str, random_state: int, max_steps: int
) -> Report:
    """Describe the demo to people."""
    before, *rows = closure_qualities(result.closure, n_observables=1)
    learned = [row for row in rows if row.method != EXACT]
    entropy = f"D_S{result.closure.reference.relative_entropy.alpha:g}"
    columns = ["method", "chi2/ndof", "ndof", "p-value", "agrees", entropy, "largest pull", "seconds"]
    table = Table(
        columns,
        [_row(row, result.seconds.get(row.method)) for row in (before, *rows)],
        "Radius of the reweighted reference against that of the target, on events that no fit has seen.",
    )
    notes = [Text(note) for note in result.notes]
    return Report(
        "Demo: a ratio with a sign",
        _verdict(learned, next(row for row in rows if row.method == EXACT)),
        [
            Section("Methods", [table, *notes]),
            Section("Figures", list(pictures.values())),
            Section(
                "Samples and fits",
                [
                    Text(
                        "Two signed mixtures of two Gaussians in the plane, the Signed case of arXiv:2410.10216. "
                        "The target's density is negative near the origin, so the exact ratio is too."
                    ),
                    Facts(
                        {
                            "events per class, training": result.n_events,
                            "events per class, test": result.n_events,
                            "optimiser steps per fit": max_steps,
                            "seed": random_state,
                        }
                    ),
                ],
            ),
        ],
        command,
        subtitle=f"Four methods on two signed samples of {result.n_events} events each",
    )


def _row(row: ClosureQuality, seconds: float | None) -> list[Cell]:
    agrees = "yes" if row.agrees else "no"
    cells: list[Cell] = [row.method, row.chi2_per_dof, row.n_dof, row.p_value, agrees]
    return [*cells, row.relative_entropy, row.largest_pull, seconds]


def _verdict(learned: list[ClosureQuality], exact: ClosureQuality) -> str:
    passed = [row for row in learned if row.agrees]
    failed = [row for row in learned if not row.agrees]
    parts = [
        f"{opening} "
        + "; ".join(f"{row.method} (chi2/ndof {number_text(row.chi2_per_dof)})" for row in rows)
        + "."
        for rows, opening in ((passed, "The target is met by"), (failed, "The target is missed by"))
        if rows
    ]
    rule = (
        f"To meet it is to have a p-value of chi-squared of at least {number_text(SIGNIFICANCE)}. Reweighting by the "
        f"exact ratio gives chi2/ndof {number_text(exact.chi2_per_dof)}, which is what statistics allow."
    )
    return "\n\n".join([" ".join(parts), rule])
