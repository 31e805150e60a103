r"""Points of parameters at which events have weights: from a YAML file, a MadGraph reweight card, or the names of weights.

A YAML file is a list of points, each a mapping of names to numbers, or a mapping with the entries `points` and, where wanted,
`parameters` (their order), `columns` (the weight of each point), `branch` (one vector with all weights) and `reference`.
"""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import AssumedValueWarning, InvalidInputError
from quasiratio.io.locations import short_text
from quasiratio.wording import value_text

__all__ = ["WeightPoints", "is_named_after_a_point", "point_of_name", "points_of_names", "read_points"]

FloatArray = npt.NDArray[np.float64]

_VALUE = r"(?:m|-|\+)?\d+(?:[.p]\d*)?(?:[eE](?:m|-|\+)?\d+)?"
_LEADING = re.compile(r"^(?:[a-z]*rwgt|[a-z_]*reweight|[a-z]*weight|wgt|w)[-_]?\d*_", re.IGNORECASE)
_ENTRIES = {"parameters", "points", "columns", "branch", "reference"}


@dataclass(frozen=True, eq=False)
class WeightPoints:
    """Points, and where their weights are.

    Attributes:
        parameters: Names of the parameters.
        points: `(p, n_parameters)` values.
        columns: The column with the weight of each point, where there is one for each.
        branch: The column with a vector of all weights, in the order of the points.
        reference: Point of the reference; all zero when `None`.
    """

    parameters: tuple[str, ...]
    points: FloatArray
    columns: tuple[str, ...] | None = None
    branch: str | None = None
    reference: dict[str, float] | None = None

    def of(self, parameters: Sequence[str]) -> WeightPoints:
        """Return the points with their parameters in this order.

        Example:
            >>> WeightPoints(("b", "a"), np.array([[1.0, 2.0]])).of(["a", "b"]).points.tolist()
            [[2.0, 1.0]]
        """
        if set(parameters) != set(self.parameters):
            msg = f"Got points of the parameters {', '.join(self.parameters)}; expected {', '.join(parameters)}."
            raise InvalidInputError(msg)
        places = [self.parameters.index(name) for name in parameters]
        return replace(self, parameters=tuple(parameters), points=self.points[:, places])


def point_of_name(name: str, parameters: Sequence[str] | None = None) -> dict[str, float]:
    """Return the point that the name of a weight tells: names and values in turn.

    `p` is a decimal point, `m` a minus. Parameters whose names hold numbers between underscores must be given.

    Example:
        >>> point_of_name("EFTrwgt5_ctG_0.1_cQe1_-2"), point_of_name("cHW_0p_cHB_m1p5")
        ({'ctG': 0.1, 'cQe1': -2.0}, {'cHW': 0.0, 'cHB': -1.5})
        >>> point_of_name("rwgt0_sm"), point_of_name("LHEWeight_cHW_0p1")
        ({}, {'cHW': 0.1})
    """
    text = _LEADING.sub("", name.strip())
    if text.lower() in {"sm", ""}:
        return {}
    known = (
        "|".join(sorted(map(re.escape, parameters), key=len, reverse=True)) if parameters else r"[A-Za-z]\w*?"
    )
    pair = rf"({known})_({_VALUE})"
    if not re.fullmatch(rf"{pair}(?:_{pair})*", text):
        msg = (
            f"Got a weight named {name!r}; expected names and values of parameters in turn, as in EFTrwgt5_ctG_0.1_cpt_-2 or "
            "cHW_0p_cHB_m1p5. Give the points in a file, or the names of the parameters."
        )
        raise InvalidInputError(msg)
    found = re.findall(rf"{pair}(?=_|$)", text)
    point = {key: _number(value) for key, value in found}
    if len(point) < len(found):
        msg = f"Got a weight named {name!r}, which gives a parameter twice; expected one value of each."
        raise InvalidInputError(msg)
    return point


def is_named_after_a_point(name: str, parameters: Sequence[str]) -> bool:
    """Whether a column is named like a weight at a point: of these parameters, or with a prefix such as `rwgt12_`.

    Example:
        >>> [is_named_after_a_point(name, ["C_H"]) for name in ("C_H_1p0", "rwgt3_other_2", "rwgt0_sm", "jet_1", "C_H", "pt")]
        [True, True, True, False, False, False]
    """
    rest = _LEADING.sub("", name)
    try:
        point_of_name(name, None if rest != name else parameters)
    except InvalidInputError:
        return False
    return rest != name or rest.lower() != "sm"


def points_of_names(
    names: Sequence[str], pattern: str, parameters: Sequence[str] | None = None
) -> WeightPoints:
    """Return the points of all columns whose names fit a pattern such as `EFTrwgt*`.

    Parameters that have one value in all names are left out with a warning, unless `parameters` names them.

    Example:
        >>> found = points_of_names(["pt", "rwgt0_sm", "rwgt1_c_1p5", "rwgt2_c_m1p5"], "rwgt*")
        >>> found.parameters, found.points.tolist(), found.columns
        (('c',), [[0.0], [1.5], [-1.5]], ('rwgt0_sm', 'rwgt1_c_1p5', 'rwgt2_c_m1p5'))
    """
    chosen = [name for name in names if fnmatchcase(name, pattern)]
    if not chosen:
        msg = f"Got the pattern {pattern!r}, which fits none of {len(names)} columns; expected one that fits the weights."
        raise InvalidInputError(msg)
    points = [point_of_name(name, parameters) for name in chosen]
    order = tuple(parameters or dict.fromkeys(key for point in points for key in point))
    found = WeightPoints(order, _matrix(points, order, pattern), tuple(chosen))
    return found if parameters else _without_fixed(found, f"Weights of the names {pattern!r}")


def read_points(path: str | os.PathLike[str], *, drop_fixed: bool = False) -> WeightPoints:
    r"""Read points from a YAML file or from a MadGraph reweight card (`.dat` or `.txt`).

    Args:
        path: The file.
        drop_fixed: Leave out, with a warning, what a card sets to one value in all points, such as a mass.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     card = Path(directory) / "reweight_card.dat"
        ...     _ = card.write_text("launch --rwgt_name=sm\n set ctG 0\nlaunch --rwgt_name=one\n set ctG 1.5\n")
        ...     read_points(card).points.tolist()
        [[0.0], [1.5]]
    """
    file = Path(path)
    text = short_text(file, "points", "a YAML file or a reweight card")
    if file.suffix in {".dat", ".txt"} or re.search(r"^\s*launch\b", text, re.MULTILINE):
        found = _from_card(text, str(file))
        return _without_fixed(found, f"Points of the reweight card {str(file)!r}") if drop_fixed else found
    return _from_yaml(text, str(file))


def _without_fixed(found: WeightPoints, whose: str) -> WeightPoints:
    """Leave out parameters that have one value at all points: what is learned of the others holds there."""
    fixed = (
        np.ptp(found.points, axis=0) == 0 if len(found.points) > 1 else np.zeros(len(found.parameters), bool)
    )
    if not fixed.any() or fixed.all():
        return found
    values = dict(zip(found.parameters, found.points[0].tolist(), strict=True))
    shown = ", ".join(f"{name} = {values[name]:g}" for name, one in zip(values, fixed, strict=True) if one)
    msg = f"{whose} all have {shown}; what has one value at all points is left out, and what is learned holds at that value."
    warnings.warn(AssumedValueWarning(msg), stacklevel=4)
    kept = tuple(name for name, one in zip(values, fixed, strict=True) if not one)
    return replace(found, parameters=kept, points=found.points[:, ~fixed])


def _from_card(text: str, source: str) -> WeightPoints:
    """Read a card; names of parameters are the same in capitals and small letters, as MadGraph takes them."""
    points: list[dict[str, float]] = []
    spelling: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words[:1] == ["launch"]:
            points.append({})
        elif words[:1] == ["set"]:
            name, value = _setting(
                words, f"Got the reweight card {source!r}, whose line {number} is {line.strip()!r}"
            )
            name = spelling.setdefault(name.lower(), name)
            if not points:
                msg = (
                    f"Got the reweight card {source!r}, whose line {number}, {line.strip()!r}, stands before the first 'launch' and "
                    "belongs to no point; expected settings below the 'launch' of their point. Move it, or give the points as YAML."
                )
                raise InvalidInputError(msg)
            if name in points[-1]:
                msg = f"Got the reweight card {source!r}, whose line {number} sets {name!r} again; expected one value for each point."
                raise InvalidInputError(msg)
            points[-1][name] = value
        elif words and words[0].endswith(".dat"):
            msg = (
                f"Got the reweight card {source!r}, whose line {number} takes its values from another card, {words[0]!r}; expected "
                "'set NAME VALUE' for every parameter of a point. Write them here, or give the points as YAML."
            )
            raise InvalidInputError(msg)
    if not points:
        msg = f"Got the reweight card {source!r} without a line 'launch'; expected one for each point."
        raise InvalidInputError(msg)
    order = tuple(dict.fromkeys(key for point in points for key in point))
    unset = [name for name in order if any(name not in point for point in points)]
    if unset:
        n_points = sum(any(name not in point for name in order) for point in points)
        msg = (
            f"The reweight card {source!r} does not set {', '.join(unset)} in {n_points} of its {len(points)} points; they are taken "
            "for zero there. MadGraph takes the values of the param_card: give the points as YAML where these are others."
        )
        warnings.warn(AssumedValueWarning(msg), stacklevel=4)
    return WeightPoints(order, _matrix(points, order, source))


def _setting(words: list[str], given: str) -> tuple[str, float]:
    """Return name and value of `set NAME VALUE` or `set param_card BLOCK NUMBER VALUE`."""
    rest = words[2:] if words[1:2] == ["param_card"] else words[1:]
    try:
        name, value = "_".join(rest[:-1]), float(rest[-1])
    except (ValueError, IndexError):
        name, value = "", math.nan
    if not name or not math.isfinite(value):
        msg = f"{given}; expected 'set NAME VALUE' with a finite number."
        raise InvalidInputError(msg)
    return name, value


def _from_yaml(text: str, source: str) -> WeightPoints:
    content = _yaml_content(text, source)
    entries: dict[str, Any] = content if isinstance(content, dict) else {"points": content}
    unknown = [str(key) for key in entries if key not in _ENTRIES]
    points = entries.get("points")
    if unknown or not isinstance(points, list) or not points:
        what = f"the entries {', '.join(unknown)}" if unknown else "no list of points"
        msg = f"Got the points {source!r} with {what}; expected points and, where wanted, {', '.join(sorted(_ENTRIES - {'points'}))}."
        raise InvalidInputError(msg)
    named = [dict(point) if isinstance(point, Mapping) else point for point in points]
    order = entries.get("parameters")
    if order is None and all(isinstance(point, dict) for point in named):
        order = list(dict.fromkeys(key for point in named for key in point))
    if not order:
        msg = (
            f"Got the points {source!r} without names; expected points as mappings, or a list of parameters."
        )
        raise InvalidInputError(msg)
    names = _names(order, "parameters", source)
    rows = [point if isinstance(point, dict) else _row(point, names, source) for point in named]
    matrix = _matrix(rows, names, source)
    columns, branch, reference = (entries.get(key) for key in ("columns", "branch", "reference"))
    if columns is not None:
        columns = _names(columns, "columns", source)
        if len(columns) != len(matrix):
            msg = (
                f"Got the points {source!r} with columns that are not one for each of {len(matrix)} points; expected a list of "
                "names."
            )
            raise InvalidInputError(msg)
    if branch is not None and (not isinstance(branch, str) or not branch):
        msg = f"Got branch: {value_text(branch)} in the points {source!r}; expected the name of one column."
        raise InvalidInputError(msg)
    if branch is not None and columns is not None:
        msg = f"Got columns and a branch in the points {source!r}; expected one of them."
        raise InvalidInputError(msg)
    if reference is not None:
        if not isinstance(reference, dict):
            msg = f"Got reference: {value_text(reference)} in the points {source!r}; expected names and values, as in reference: {{{names[0]}: 1}}."
            raise InvalidInputError(msg)
        _matrix([reference], names, source)  # refuses what are no numbers of these parameters
        reference = {str(name): float(value) for name, value in reference.items()}
    return WeightPoints(names, matrix, columns, branch, reference)


def _yaml_content(text: str, source: str) -> Any:  # noqa: ANN401
    """Return what a YAML file says, without a name that stands twice in a mapping, of which YAML keeps the last."""
    import yaml  # noqa: PLC0415 - only here

    try:
        pending = [yaml.compose(text, Loader=yaml.SafeLoader)]
        content = yaml.safe_load(text)
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
    ) as error:  # the last for dates and numbers that cannot be
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        reason = problem or (
            "nested too deeply" if isinstance(error, RecursionError) else "a value cannot be read"
        )
        if isinstance(error, yaml.constructor.ConstructorError):
            reason = "a tag (!), or a key that is no name"
        msg = f"Got the points {source!r}, which are no YAML{where} ({reason}); expected a list of points."
        raise InvalidInputError(msg) from error
    seen: set[int] = set()  # an alias is the same node again
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            twice = sorted({str(key) for key in keys if keys.count(key) > 1})
            if twice:
                msg = f"Got {twice[0]!r} twice in line {node.start_mark.line + 1} of the points {source!r}; expected it once."
                raise InvalidInputError(msg)
            pending += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
    return content


def _names(values: Any, what: str, source: str) -> tuple[str, ...]:  # noqa: ANN401
    """Return names that are all there, all texts and all different."""
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        msg = f"Got {what}: {value_text(values)} in the points {source!r}; expected a list of names."
        raise InvalidInputError(msg)
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        msg = f"Got {twice!r} twice among the {what} of the points {source!r}; expected different names."
        raise InvalidInputError(msg)
    return tuple(values)


def _row(point: Any, order: tuple[str, ...], source: str) -> dict[str, float]:  # noqa: ANN401
    if not isinstance(point, list) or len(point) != len(order):
        msg = f"Got the point {value_text(point)} in {source!r}; expected {len(order)} numbers, for {', '.join(order)}."
        raise InvalidInputError(msg)
    return dict(zip(order, point, strict=True))


def _matrix(points: Sequence[Mapping[str, Any]], order: tuple[str, ...], source: str) -> FloatArray:
    for point in points:
        bad = [key for key, value in point.items() if key not in order or not _is_number(value)]
        if bad:
            msg = (
                f"Got {bad[0]!r} = {value_text(point[bad[0]])} among the points of {source!r}; expected finite numbers of the parameters "
                f"{', '.join(order)}."
            )
            raise InvalidInputError(msg)
    return np.array([[float(point.get(name, 0.0)) for name in order] for point in points]).reshape(
        len(points), -1
    )


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # whole numbers may be larger than any other


def _number(text: str) -> float:
    return float(text.replace("p", ".").replace("m", "-"))
