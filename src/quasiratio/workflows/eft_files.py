"""Samples with weights at several parameter points: looked at, and fitted by a `PolynomialRatio`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.basis import PolynomialBasis
from quasiratio.columns import require_usable_scale
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.io import Table, default_features, open_table, parse_expression, read_sample, resolve_features
from quasiratio.io.weight_points import WeightPoints, points_of_names, read_points
from quasiratio.io.weight_vectors import read_weight_vectors
from quasiratio.metrics import closure
from quasiratio.sample import WeightedSample
from quasiratio.solved_weights import SolvedWeights
from quasiratio.workflows.fit_directory import FitDirectory
from quasiratio.workflows.sample_files import Files

__all__ = [
    "EftAxis",
    "EftPoint",
    "EftSample",
    "FittedEft",
    "InspectedEft",
    "fit_eft_files",
    "inspect_eft_files",
    "read_eft_sample",
]

FloatArray = npt.NDArray[np.float64]
_N_LARGEST = 5
_TEST_SHARE = 0.2
_N_BINS = 30
_TOUCHES = 1e-6
"""Relative discriminant below which a parabola touches zero, as a perfect square does, and does not cross it."""


@dataclass(frozen=True, eq=False)
class EftSample:
    """Events with their coefficients.

    Attributes:
        basis: The monomials.
        table: Where the events are.
        reference_weights: Weight of each event at the reference.
        coefficients: `(n, n_terms)`, relative to that weight.
        solved: How the weights determine them; `None` where the file has coefficients.
        weights: The weights at the points; `None` where the file has coefficients.
        weight_columns: Columns that hold weights or coefficients, and are no features.
        selection: Condition on the events.
    """

    basis: PolynomialBasis
    table: Table
    reference_weights: FloatArray
    coefficients: FloatArray
    solved: SolvedWeights | None
    weights: FloatArray | None
    weight_columns: tuple[str, ...]
    selection: str | None

    def __len__(self) -> int:
        return len(self.reference_weights)


def read_eft_sample(
    files: Files,
    *,
    points: str | os.PathLike[str] | WeightPoints | None = None,
    pattern: str | None = None,
    branch: str | None = None,
    columns: Sequence[str] | None = None,
    coefficients: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None,
    order: int = 2,
    reference: Mapping[str, float] | None = None,
    weight: str | None = None,
    selection: str | None = None,
    tree: str | None = None,
) -> EftSample:
    """Read the coefficients of every event, from weights at points or as they stand in the file.

    Args:
        files: Paths, patterns, `file.root:tree`.
        points: The points: a YAML file, a MadGraph reweight card, or `WeightPoints`.
        pattern: Pattern of the columns whose names tell their points, such as `"EFTrwgt*"`, instead of `points`.
        branch: Column with a vector of all weights in the order of the points; else as the file of points says.
        columns: Columns with the weight of each point; else as the file of points says.
        coefficients: Columns with ready coefficients, in the order of the terms, instead of weights.
        parameters: Names of the parameters, where neither points nor weights tell.
        order: Highest degree.
        reference: Point of the reference; by default all zero.
        weight: Expression by which all weights are multiplied, such as `"genWeight"`; for ready coefficients the weight of the
            reference.
        selection: Events to use; all when left out.
        tree: Tree of ROOT files, where the path names none.
    """
    table = open_table(files, tree=tree)
    condition = None if selection is None else parse_expression(selection)
    factor = read_sample(
        table, features=_any_number(table), weight=weight or "1", selection=selection
    ).weights
    if coefficients is not None:
        if not parameters:
            msg = "Got columns of coefficients without the names of the parameters; expected both."
            raise InvalidInputError(msg, advice="Name the parameters with `parameters`.")
        basis = PolynomialBasis(parameters, order)
        if len(coefficients) != basis.n_terms:
            msg = f"Got {len(coefficients)} columns of coefficients; expected one for each term, {', '.join(basis.terms)}."
            raise InvalidInputError(msg)
        values = read_weight_vectors(table, basis.n_terms, columns=coefficients, selection=condition)
        return EftSample(basis, table, np.array(factor), values, None, None, tuple(coefficients), selection)
    where = _weight_points(table, points, pattern, parameters)
    branch, columns = (branch, None) if branch else (None, columns)
    if branch is None and columns is None:
        branch, columns = (where.branch, None) if where.columns is None else (None, where.columns)
    if branch is None and columns is None:
        msg = f"Got {len(where.points)} points without the columns of their weights; expected a vector or one column each."
        raise InvalidInputError(msg, advice="Name them with `branch` or `columns`, or in the file of points.")
    basis = PolynomialBasis(where.parameters, order)
    weights = read_weight_vectors(
        table, len(where.points), columns=columns, branch=branch, selection=condition
    )
    weights *= factor[:, None]
    require_usable_scale(weights, "the points")
    solved = basis.solve(where.points, weights, reference=reference or where.reference)
    named = tuple(columns or ()) + ((branch,) if branch else ())
    return EftSample(
        basis, table, solved.reference_weights, solved.coefficients, solved, weights, named, selection
    )


def _any_number(table: Table) -> list[str]:
    names = table.numeric_columns()
    if not names:
        msg = f"Got {table.label!r} without a column of numbers; expected features and weights."
        raise InvalidInputError(msg)
    return names[:1]


def _weight_points(
    table: Table,
    points: str | os.PathLike[str] | WeightPoints | None,
    pattern: str | None,
    parameters: Sequence[str] | None,
) -> WeightPoints:
    if isinstance(points, WeightPoints):
        return points
    if points is not None:
        return read_points(points)
    if pattern is None:
        msg = "Got no points; expected a file of points, a pattern of named weights, or columns of coefficients."
        raise InvalidInputError(msg, advice="Give `points`, `pattern` or `coefficients`.")
    return points_of_names(table.numeric_columns(), pattern, parameters)


@dataclass(frozen=True)
class EftPoint:
    """What the weights at one point are like."""

    theta: dict[str, float]
    rate: float
    effective_size: float
    negative_fraction: float
    largest_share: float


@dataclass(frozen=True)
class EftAxis:
    """Where, along one parameter through the reference, the density of some event turns negative."""

    parameter: str
    lowest: float
    highest: float


@dataclass(frozen=True)
class InspectedEft:
    """A sample with weights at points, before anything is trained.

    Attributes:
        n_events: Events.
        terms: Terms of the polynomial.
        rank: Terms that the points determine.
        condition_number: By how much relative errors of weights may grow.
        largest_residual: Of the least-squares solution, relative to the largest weight of the event.
        rounding_errors: Error of each coefficient, relative to its spread, if weights have 14 bits.
        points: Per point, the rate relative to the reference, effective size, and shares.
        axes: Per parameter, the interval in which no event has a negative density.
        means: Rate of each term.
        largest: Per term, the largest absolute coefficient.
        largest_events: Numbers of the events with the largest coefficients.
    """

    n_events: int
    terms: tuple[str, ...]
    rank: int
    condition_number: float
    largest_residual: float
    rounding_errors: tuple[float, ...]
    points: tuple[EftPoint, ...]
    axes: tuple[EftAxis, ...]
    means: tuple[float, ...]
    largest: tuple[float, ...]
    largest_events: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        result = {name: getattr(self, name) for name in self.__dataclass_fields__}
        result["points"] = [vars(point) for point in self.points]
        result["axes"] = [vars(axis) for axis in self.axes]
        return result


def inspect_eft_files(files: Files, **options: Any) -> InspectedEft:  # noqa: ANN401 - those of read_eft_sample
    """Describe a sample with weights at points, as `quasiratio eft inspect` does; options are those of `read_eft_sample`."""
    sample = read_eft_sample(files, **options)
    return inspected(sample)


def inspected(sample: EftSample) -> InspectedEft:
    """Describe a sample that was read."""
    basis, c, w = sample.basis, sample.coefficients, sample.reference_weights
    total = float(w.sum())
    means = w @ c / total
    spread = np.sqrt(np.abs(w @ np.square(c - means)) / total)
    points = sample.solved.points if sample.solved is not None else np.zeros((1, basis.n_parameters))
    rounding = np.zeros(basis.n_terms)
    if sample.solved is not None and sample.weights is not None:
        errors = np.sqrt(np.mean(np.square(sample.solved.rounding_error(sample.weights)), axis=0))
        rounding = np.divide(errors, spread, out=np.zeros_like(errors), where=spread > 1e-9 * np.abs(means))
    order = np.argsort(np.max(np.abs(c) / np.maximum(np.abs(means), 1e-300), axis=1))[::-1]
    return InspectedEft(
        len(sample),
        basis.terms,
        basis.n_terms if sample.solved is None else sample.solved.rank,
        float("nan") if sample.solved is None else sample.solved.condition_number,
        0.0 if sample.solved is None else float(sample.solved.residual.max()),
        tuple(rounding.tolist()),
        tuple(_point(basis, theta, c, w) for theta in points),
        tuple(_axis(basis, number, c) for number in range(basis.n_parameters)),
        tuple(means.tolist()),
        tuple(np.abs(c).max(axis=0).tolist()),
        tuple(int(number) for number in order[:_N_LARGEST]),
    )


def _point(basis: PolynomialBasis, theta: FloatArray, c: FloatArray, w: FloatArray) -> EftPoint:
    weights = w * (c @ basis(theta))
    absolute = np.abs(weights)
    return EftPoint(
        dict(zip(basis.parameters, theta.tolist(), strict=True)),
        float(weights.sum() / w.sum()),
        float(weights.sum() ** 2 / max(float(np.square(weights).sum()), 1e-300)),
        float(np.mean(weights < 0)),
        float(absolute.max() / max(float(absolute.sum()), 1e-300)),
    )


def _axis(basis: PolynomialBasis, number: int, c: FloatArray) -> EftAxis:
    """Return the largest interval around zero in which every event has a nonnegative density, to second order."""
    terms = [
        int(np.flatnonzero(_is_power(basis, number, power))[0]) for power in range(min(basis.order, 2) + 1)
    ]
    constant, slope = c[:, terms[0]], c[:, terms[1]]
    square = c[:, terms[2]] if len(terms) > 2 else np.zeros_like(slope)
    discriminant = slope**2 - 4.0 * square * constant
    lowest, highest = -np.inf, np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(discriminant, 0.0))
        sign = np.where(slope < 0, -1.0, 1.0)
        first = -2.0 * constant / (slope + sign * root)  # stable form; also where there is no square
        second = np.where(square != 0, -(slope + sign * root) / (2.0 * square), np.inf)
    real = discriminant > _TOUCHES * (slope**2 + np.abs(4.0 * square * constant))
    for roots in (first[real], second[real]):
        finite = roots[np.isfinite(roots)]
        lowest = max(lowest, float(finite[finite < 0].max(initial=-np.inf)))
        highest = min(highest, float(finite[finite > 0].min(initial=np.inf)))
    return EftAxis(basis.parameters[number], lowest, highest)


def _is_power(basis: PolynomialBasis, number: int, power: int) -> npt.NDArray[np.bool_]:
    wanted = np.zeros(basis.n_parameters, dtype=np.int64)
    wanted[number] = power
    return np.asarray((basis.exponents == wanted).all(axis=1))


@dataclass(frozen=True)
class FittedEft:
    """A fitted sample.

    Attributes:
        model: The estimator, saved where asked.
        features: Its features.
        inspection: What the sample is like.
        closure: Per point of the test, the chi-squared per degree of freedom of every feature, on events that took no part.
    """

    model: PolynomialRatio
    features: tuple[str, ...]
    inspection: InspectedEft
    closure: dict[str, dict[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "features": list(self.features),
            "check": str(self.model.fit_check_),
            "closure": self.closure,
            **self.inspection.as_dict(),
        }


def fit_eft_files(
    files: Files,
    output: str | os.PathLike[str] | None = None,
    *,
    features: Sequence[str] | None = None,
    method: str = "regression",
    estimator: Mapping[str, Any] | None = None,
    closure_points: Sequence[Mapping[str, float]] | None = None,
    overwrite: bool = False,
    **options: Any,  # noqa: ANN401 - those of read_eft_sample
) -> FittedEft:
    """Fit a `PolynomialRatio` to a sample with weights at points, and look at its closure, as `quasiratio eft fit` does.

    A fifth of the events is kept for the closure: half of it, reweighted by the learned ratio, against the other half with its
    exact weights, at the given points or at those of the file.

    Args:
        files: Paths, patterns, `file.root:tree`.
        output: Directory of the model; nothing is written when left out.
        features: Columns to learn from; by default every numeric column but weights and identifiers.
        method: `"regression"`, `"sign-resolved"` or `"positive"`.
        estimator: Hyperparameters of `PolynomialRatio`.
        closure_points: Where to look at the closure.
        overwrite: Replace a model that is there.
        **options: Those of `read_eft_sample`.
    """
    if output is not None:
        FitDirectory(Path(output)).require_writable(overwrite=overwrite)
    sample = read_eft_sample(files, **options)
    names = _features(sample, features)
    X = read_sample(sample.table, features=names, weight="1", selection=sample.selection)
    rng = np.random.default_rng(dict(estimator or {}).get("random_state") or 0)
    parts = np.split(
        rng.permutation(len(X)), [round((1 - _TEST_SHARE) * len(X)), round((1 - _TEST_SHARE / 2) * len(X))]
    )
    train, one, other = parts
    model = PolynomialRatio(sample.basis, method, **(estimator or {}))
    w, c = sample.reference_weights, sample.coefficients
    model.fit(X[train], c[train], w[train])
    if closure_points is None:
        wanted = (
            sample.solved.points if sample.solved is not None else np.zeros((1, sample.basis.n_parameters))
        )
    else:
        wanted = sample.basis.points(list(closure_points))
    tested: dict[str, dict[str, float]] = {}
    for theta in wanted:
        monomials = sample.basis(theta)
        if not monomials @ model.learned_means_ > 0 or not float(w[other] @ c[other] @ monomials) > 0:
            continue
        target = WeightedSample(X[other], w[other] * (c[other] @ monomials))
        reference = WeightedSample(X[one], w[one])
        if not reference.sum_of_weights > 0:
            continue
        result = closure(reference, {"learned": model.predict_ratio(X[one], theta)}, target, n_bins=_N_BINS)
        label = ", ".join(
            f"{name} = {value:g}" for name, value in zip(sample.basis.parameters, theta, strict=True)
        )
        rows = [row for row in result.table() if row.get("method") in (None, "learned")]
        tested[label] = {str(row["observable"]): float(row["chi2_per_dof"]) for row in rows}
    if output is not None:
        model.save(output, overwrite=overwrite)
    return FittedEft(model, tuple(names), inspected(sample), tested)


def _features(sample: EftSample, wanted: Sequence[str] | None) -> list[str]:
    if wanted:
        return resolve_features(wanted, [sample.table])
    offered = default_features([sample.table], "1", sample.selection)
    names = [name for name in offered if name not in sample.weight_columns and not name.startswith("truth_")]
    if not names:
        msg = f"Got {sample.table.label!r} without a column to use as a feature by default."
        raise InvalidInputError(msg, advice="Name the features with `features`.")
    return names
