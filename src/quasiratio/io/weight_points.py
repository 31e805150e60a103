r"""Points of parameters at which events have weights: from a YAML file, a MadGraph reweight card, or the names of weights.

A YAML file is a list of points, each a mapping of names to numbers, or a mapping with the entries `points` and, where wanted,
`parameters` (their order), `columns` (the weight of each point), `branch` (one vector with all weights) and `reference`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = ["WeightPoints", "point_of_name", "points_of_names", "read_points"]

FloatArray = npt.NDArray[np.float64]

_VALUE = r"(?:m|-|\+)?\d+(?:[.p]\d*)?(?:[eE](?:m|-|\+)?\d+)?"
_LEADING = re.compile(r"^(?:[A-Za-z]*rwgt|weight|wgt|w)[-_]?\d*_", re.IGNORECASE)
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


def point_of_name(name: str, parameters: Sequence[str] | None = None) -> dict[str, float]:
    """Return the point that the name of a weight tells: names and values in turn.

    `p` is a decimal point, `m` a minus. Parameters whose names hold numbers between underscores must be given.

    Example:
        >>> point_of_name("EFTrwgt5_ctG_0.1_cQe1_-2"), point_of_name("cHW_0p_cHB_m1p5")
        ({'ctG': 0.1, 'cQe1': -2.0}, {'cHW': 0.0, 'cHB': -1.5})
        >>> point_of_name("rwgt0_sm")
        {}
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
    return {key: _number(value) for key, value in found}


def points_of_names(
    names: Sequence[str], pattern: str, parameters: Sequence[str] | None = None
) -> WeightPoints:
    """Return the points of all columns whose names fit a pattern such as `EFTrwgt*`.

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
    return WeightPoints(order, _matrix(points, order, pattern), tuple(chosen))


def read_points(path: str | os.PathLike[str]) -> WeightPoints:
    r"""Read points from a YAML file or from a MadGraph reweight card (`.dat` or `.txt`).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     card = Path(directory) / "reweight_card.dat"
        ...     _ = card.write_text("launch --rwgt_name=sm\n set ctG 0\nlaunch --rwgt_name=one\n set ctG 1.5\n")
        ...     read_points(card).points.tolist()
        [[0.0], [1.5]]
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"Got the points {str(file)!r}, which cannot be read ({error}); expected a YAML file or a reweight card."
        raise InvalidInputError(msg) from error
    if file.suffix in {".dat", ".txt"} or re.search(r"^\s*launch\b", text, re.MULTILINE):
        return _from_card(text, str(file))
    return _from_yaml(text, str(file))


def _from_card(text: str, source: str) -> WeightPoints:
    points: list[dict[str, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words[:1] == ["launch"]:
            points.append({})
        elif words[:1] == ["set"] and points:
            rest = words[2:] if words[1:2] == ["param_card"] else words[1:]
            try:
                value = float(rest[-1])
            except (ValueError, IndexError):
                msg = f"Got the reweight card {source!r}, whose line {number} is {line.strip()!r}; expected 'set NAME VALUE'."
                raise InvalidInputError(msg) from None
            points[-1]["_".join(rest[:-1])] = value
    if not points:
        msg = f"Got the reweight card {source!r} without a line 'launch'; expected one for each point."
        raise InvalidInputError(msg)
    order = tuple(dict.fromkeys(key for point in points for key in point))
    return WeightPoints(order, _matrix(points, order, source))


def _from_yaml(text: str, source: str) -> WeightPoints:
    import yaml  # noqa: PLC0415 - only here

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"Got the points {source!r}, which are no YAML ({' '.join(str(error).split())}); expected a list of points."
        raise InvalidInputError(msg) from error
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
    if not isinstance(order, list) or not order:
        msg = (
            f"Got the points {source!r} without names; expected points as mappings, or a list of parameters."
        )
        raise InvalidInputError(msg)
    order = tuple(map(str, order))
    rows = [point if isinstance(point, dict) else _row(point, order, source) for point in named]
    matrix = _matrix(rows, order, source)
    columns = entries.get("columns")
    if columns is not None and (not isinstance(columns, list) or len(columns) != len(matrix)):
        msg = f"Got the points {source!r} with columns that are not one for each of {len(matrix)} points; expected a list of names."
        raise InvalidInputError(msg)
    return WeightPoints(
        order,
        matrix,
        None if columns is None else tuple(map(str, columns)),
        entries.get("branch"),
        entries.get("reference"),
    )


def _row(point: Any, order: tuple[str, ...], source: str) -> dict[str, float]:  # noqa: ANN401
    if not isinstance(point, list) or len(point) != len(order):
        msg = f"Got the point {point!r} in {source!r}; expected {len(order)} numbers, for {', '.join(order)}."
        raise InvalidInputError(msg)
    return dict(zip(order, point, strict=True))


def _matrix(points: Sequence[Mapping[str, Any]], order: tuple[str, ...], source: str) -> FloatArray:
    for point in points:
        bad = [key for key, value in point.items() if key not in order or not isinstance(value, int | float)]
        if bad:
            msg = (
                f"Got {bad[0]!r} = {point[bad[0]]!r} among the points of {source!r}; expected numbers of the parameters "
                f"{', '.join(order)}."
            )
            raise InvalidInputError(msg)
    return np.array([[float(point.get(name, 0.0)) for name in order] for point in points]).reshape(
        len(points), -1
    )


def _number(text: str) -> float:
    return float(text.replace("p", ".").replace("m", "-"))
