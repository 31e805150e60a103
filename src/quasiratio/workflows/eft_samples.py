"""Events with their coefficients from files: weights at several parameter points, or coefficients as they stand there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from quasiratio.basis import PolynomialBasis
from quasiratio.columns import require_usable_scale
from quasiratio.errors import InvalidInputError
from quasiratio.io import (
    Feature,
    Table,
    default_features,
    open_table,
    parse_expression,
    parse_features,
    read_sample,
)
from quasiratio.io.weight_names import weight_columns
from quasiratio.io.weight_points import WeightPoints, is_named_after_a_point, points_of_names, read_points
from quasiratio.io.weight_vectors import read_weight_vectors
from quasiratio.sample import WeightedSample
from quasiratio.solved_weights import (
    SolvedWeights,
    require_finite_weights,
    require_polynomial,
    require_reference,
)
from quasiratio.wording import first_of
from quasiratio.workflows.sample_files import Files

__all__ = ["CoefficientOrder", "EftNotes", "EftSample", "eft_features", "read_eft_sample"]

FloatArray = npt.NDArray[np.float64]
CoefficientOrder = Literal["ours", "topcoffea", "derivatives"]
_ORDERS = ("ours", "topcoffea", "derivatives")


class EftNotes(BaseModel):
    """Where the coefficients of a fit came from, to read another sample in the same way."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    parameters: list[str] = Field(default_factory=list)
    order: int = 2
    points: list[list[float]] | None = None
    columns: list[str] | None = None
    branch: str | None = None
    coefficients: list[str] | None = None
    coefficient_order: CoefficientOrder = "ours"
    reference: dict[str, float] = Field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return these as options of `read_eft_sample`; none where nothing was noted."""
        if self.coefficients is not None:
            return {
                "coefficients": self.coefficients,
                "coefficient_order": self.coefficient_order,
                "parameters": self.parameters,
                "order": self.order,
                "reference": self.reference,
            }
        if self.points is None:
            return {}
        columns = None if self.columns is None else tuple(self.columns)
        where = WeightPoints(
            tuple(self.parameters), np.array(self.points), columns, self.branch, self.reference
        )
        return {"points": where, "order": self.order}


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
        weight: Expression by which all weights were multiplied.
        selection: Condition on the events.
        reference: Point of the reference, by name.
        notes: How it was read, and how to read another file in the same way.
    """

    basis: PolynomialBasis
    table: Table
    reference_weights: FloatArray
    coefficients: FloatArray
    solved: SolvedWeights | None
    weights: FloatArray | None
    weight_columns: tuple[str, ...]
    weight: str | None
    selection: str | None
    reference: dict[str, float]
    notes: EftNotes

    def __len__(self) -> int:
        return len(self.reference_weights)

    @property
    def points(self) -> FloatArray:
        """The points of the weights, `(p, n_parameters)`; none where the file has coefficients."""
        return np.empty((0, self.basis.n_parameters)) if self.solved is None else self.solved.points


def read_eft_sample(
    files: Files,
    *,
    points: str | os.PathLike[str] | WeightPoints | None = None,
    pattern: str | None = None,
    branch: str | None = None,
    columns: Sequence[str] | None = None,
    coefficients: Sequence[str] | None = None,
    coefficient_order: CoefficientOrder = "ours",
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
        coefficients: Columns with ready coefficients, one for each term, or one column with a vector of them, instead of weights:
            the weight of an event at a point is the polynomial of these.
        coefficient_order: In which order they stand, and what they are: `"ours"` (by degree), `"topcoffea"` (lower triangle over 1,
            c1, c2, ...) or `"derivatives"` (in our order, twice the coefficient of a square).
        parameters: Names of the parameters, where neither points nor weights tell.
        order: Highest degree.
        reference: Point of the reference; by default all zero.
        weight: Expression by which all weights are multiplied, such as `"genWeight"`; `"1"` where they are whole weights of the events.
            May be left out where no other column is named like a weight.
        selection: Events to use; all when left out.
        tree: Tree of ROOT files, where the path names none.
    """
    _require_one_way(
        points=points,
        pattern=pattern,
        branch=branch,
        columns=columns,
        coefficients=coefficients,
        parameters=parameters,
    )
    table = open_table(files, tree=tree)
    condition = None if selection is None else parse_expression(selection)
    factor = read_sample(
        table, features=[_any_number(table)], weight=weight or "1", selection=selection
    ).weights
    if coefficients is not None:
        if not parameters:
            msg = "Got columns of coefficients without the names of the parameters; expected both."
            raise InvalidInputError(msg, advice="Name the parameters with `parameters`.")
        basis = PolynomialBasis(parameters, order)
        _require_factor(table, weight, coefficients, basis.parameters)
        values = _ready(table, basis, coefficients, coefficient_order, condition)
        at = dict(reference or {})
        own = values @ basis(at)
        require_reference(own, np.abs(values).max(axis=1), name=_point_text(basis, at))
        reference_weights, solved, weights = own * factor, None, None
        values /= own[:, None]
        named = tuple(coefficients)
        notes = EftNotes(coefficients=list(coefficients), coefficient_order=coefficient_order)
    else:
        where = _weight_points(table, points, pattern, parameters)
        branch, columns = _columns_of_weights(where, branch, columns)
        basis = PolynomialBasis(where.parameters, order)
        _require_factor(table, weight, columns or (f"n{branch}",), basis.parameters)
        weights = read_weight_vectors(
            table, len(where.points), columns=columns, branch=branch, selection=condition
        )
        require_finite_weights(weights)
        weights *= factor[:, None]
        require_usable_scale(weights, "the points")
        at = dict(reference or where.reference or {})
        solved = basis.solve(where.points, weights, reference=at)
        require_polynomial(solved.residual, order)
        reference_weights, values = solved.reference_weights, solved.coefficients
        named = tuple(columns or ()) + ((branch,) if branch else ())
        notes = EftNotes(
            points=where.points.tolist(), columns=None if columns is None else list(columns), branch=branch
        )
    at = dict(zip(basis.parameters, basis.points(at).tolist(), strict=True))
    WeightedSample(np.zeros(len(values)), reference_weights).require_positive_sum("reference")
    return EftSample(
        basis,
        table,
        reference_weights,
        values,
        solved,
        weights,
        named,
        weight,
        selection,
        at,
        notes.model_copy(
            update={"parameters": list(basis.parameters), "order": basis.order, "reference": at}
        ),
    )


def eft_features(sample: EftSample, wanted: Sequence[str] | None) -> list[Feature]:
    """Return the features that were asked for, or every numeric column but weights, coefficients and identifiers."""
    known = {*sample.weight_columns, *_noted_weights(sample.table)}
    if wanted:
        chosen = parse_features(wanted, [sample.table])
        for feature in chosen:
            told = [column for column in feature.columns if column.partition("[")[0] in known]
            if told:
                msg = (
                    f"Got the feature {feature.name!r}, which is made of {first_of(told, 3)}: weights or coefficients, which tell what "
                    "is to be learned and which data do not have; expected what is measured of an event."
                )
                raise InvalidInputError(msg, advice="Leave it out of `features`.")
        return chosen
    offered = default_features([sample.table], sample.weight, sample.selection)
    names = [
        name
        for name in offered
        if name not in known and not is_named_after_a_point(name, sample.basis.parameters)
    ]
    if not names:
        msg = (
            f"Got {sample.table.label!r} without a column to use as a feature by default; expected numbers besides weights and "
            "identifiers."
        )
        raise InvalidInputError(msg, advice="Name the features with `features`.")
    return [Feature(name, name) for name in names]


def _noted_weights(table: Table) -> set[str]:
    """Return the weights at points that our generator wrote, whichever of them are in use; none of other files."""
    noted = [file.metadata().get("weight_columns") for file in table.files]
    return {str(name) for names in noted if isinstance(names, list | tuple) for name in names}


def _require_factor(table: Table, weight: str | None, used: Sequence[str], parameters: Sequence[str]) -> None:
    """Raise where nothing is said of a column that is named like a weight: weights at points may be relative to it, or whole."""
    if weight is not None or _noted_weights(table):  # those of our generator are whole weights
        return
    found = [
        name
        for name in weight_columns(table)
        if name not in used and not is_named_after_a_point(name, parameters)
    ]
    if found:
        found.sort(key=lambda name: not name.lower().startswith("gen"))
        msg = (
            f"Got weights at points of {table.label!r}, which also has {first_of(found, 3)}; expected to be told whether the weights at "
            "points are relative to such a weight, as those of nanoAOD are to genWeight, or whole weights of the events."
        )
        raise InvalidInputError(msg, advice=f"Add `weight={found[0]!r}`, or `weight='1'` for whole weights.")


def _require_one_way(**given: object) -> None:
    """Raise where two of the ways to say where the weights are were given, of which one would be ignored."""
    for one, others in (
        ("coefficients", ("points", "pattern", "branch", "columns")),
        ("points", ("pattern", "parameters")),
        ("branch", ("columns",)),
        ("pattern", ("branch", "columns")),
    ):
        for other in others:
            if given[one] is not None and given[other] is not None:
                msg = "Got two ways to find the weights or the points, of which one would be ignored; expected one."
                raise InvalidInputError(msg, advice=f"Give `{one}` or `{other}`, not both.")


def _any_number(table: Table) -> Feature:
    """Return a feature that every event has, whatever stands in its column: the factor alone is wanted."""
    names = table.numeric_columns()
    if not names:
        msg = f"Got {table.label!r} without a column of numbers; expected features and weights."
        raise InvalidInputError(msg)
    text = f"`{names[0]}` == 0"
    return Feature(names[0], text, parse_expression(text))


def _ready(
    table: Table,
    basis: PolynomialBasis,
    coefficients: Sequence[str],
    coefficient_order: str,
    condition: Any,  # noqa: ANN401 - an expression
) -> FloatArray:
    """Read ready coefficients, from as many columns or from one vector, and bring them into our order."""
    if coefficient_order not in _ORDERS:
        msg = f"Got coefficient_order = {coefficient_order!r}; expected one of {', '.join(_ORDERS)}."
        raise InvalidInputError(msg)
    is_vector = len(coefficients) == 1 and basis.n_terms > 1
    if not is_vector and len(coefficients) != basis.n_terms:
        msg = (
            f"Got {len(coefficients)} columns of coefficients; expected one for each term, {', '.join(basis.terms)}, or one column "
            "with a vector of them."
        )
        raise InvalidInputError(msg)
    _require_different(coefficients, "coefficients, with another column for each term")
    where: dict[str, Any] = {"branch": coefficients[0]} if is_vector else {"columns": coefficients}
    values = read_weight_vectors(table, basis.n_terms, **where, selection=condition)
    require_finite_weights(values)
    if coefficient_order == "topcoffea":
        return basis.from_topcoffea(values)
    return basis.from_derivatives(values) if coefficient_order == "derivatives" else values


def _require_different(columns: Sequence[str], expected: str) -> None:
    twice = [name for name in columns if list(columns).count(name) > 1]
    if twice:
        msg = f"Got the column {twice[0]!r} twice; expected {expected}. Check the names."
        raise InvalidInputError(msg)


def _columns_of_weights(
    where: WeightPoints, branch: str | None, columns: Sequence[str] | None
) -> tuple[str | None, Sequence[str] | None]:
    """Return the vector or the columns that were asked for, else those of the file of points."""
    if branch is None and columns is None:
        branch, columns = (where.branch, None) if where.columns is None else (None, where.columns)
    if branch is None and columns is None:
        msg = f"Got {len(where.points)} points without the columns of their weights; expected a vector or one column each."
        raise InvalidInputError(msg, advice="Name them with `branch` or `columns`, or in the file of points.")
    _require_different(columns or (), "weights at points, with another column for each point")
    if columns is not None and len(columns) != len(where.points):
        msg = f"Got {len(columns)} columns of weights for {len(where.points)} points; expected one each, in their order."
        raise InvalidInputError(msg)
    return branch, columns


def _weight_points(
    table: Table,
    points: str | os.PathLike[str] | WeightPoints | None,
    pattern: str | None,
    parameters: Sequence[str] | None,
) -> WeightPoints:
    if isinstance(points, WeightPoints):
        return points
    if points is not None:
        return read_points(points, drop_fixed=True)
    if pattern is None:
        msg = "Got no points; expected a file of points, a pattern of named weights, or columns of coefficients."
        raise InvalidInputError(msg, advice="Give `points`, `pattern` or `coefficients`.")
    return points_of_names(table.numeric_columns(), pattern, parameters)


def _point_text(basis: PolynomialBasis, theta: Mapping[str, float]) -> str:
    values = basis.points(theta)
    return "at " + ", ".join(
        f"{name} = {value:.6g}" for name, value in zip(basis.parameters, values, strict=True)
    )
