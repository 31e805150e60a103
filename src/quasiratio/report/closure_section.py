"""The closure of an evaluation, as a table and a figure per observable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from quasiratio.metrics import ClosureResult, ObservableClosure
from quasiratio.plots import closure_figure
from quasiratio.plots.drawn_axis import range_without_far_bins
from quasiratio.report.closure_quality import ClosureQuality, closure_qualities
from quasiratio.report.content import Cell, Picture, Table
from quasiratio.report.safe_text import ends_text, number_text

__all__ = ["Drawing", "closure_pictures", "closure_table", "size_table"]


def closure_table(result: ClosureResult) -> Table:
    """Return one row per observable and method, beginning with the reference before reweighting.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
        >>> [row[:2] for row in closure_table(result).rows]
        [['x', 'before'], ['x', 'none']]
    """
    rows = [
        row
        for entry in result.observables
        for row in closure_qualities(entry, n_observables=len(result.observables))
    ]
    has_bands = any(row.member_band is not None for row in rows)
    has_totals = any(row.total_chi2_per_dof is not None for row in rows)
    order = result.observables[0].reference.relative_entropy.alpha if result.observables else 2.0
    columns = [
        "observable",
        "method",
        "chi2/ndof",
        *(["with training"] if has_totals else []),
        "ndof",
        "p-value",
        "agrees",
        f"D_S{order:g}",
        "largest pull",
        "at",
    ]
    columns += ["outside"] + (["members/stat"] if has_bands else [])
    return Table(
        columns,
        [_row(row, has_totals=has_totals, has_bands=has_bands) for row in rows],
        "Distance to the target.",
    )


def size_table(result: ClosureResult) -> Table:
    """Return how large the disagreements are, one row per observable and method.

    Example:
        >>> import numpy as np
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample(np.repeat([0.5, 1.5], 50_000), names=["x"])
        >>> result = closure(sample, {"none": np.ones(100_000)}, sample, edges={"x": [0, 1, 2]})
        >>> [(row[0], row[3], row[-1]) for row in size_table(result).rows]
        [('x', 0.0, 'at most small')]
    """
    rows: list[list[Cell]] = []
    for entry in result.observables:
        before, *methods = closure_qualities(entry, n_observables=len(result.observables))
        rows += [
            [
                row.observable,
                row.method,
                before.size,
                row.size,
                row.limit,
                "yes" if not row.agrees else "no",
                row.judgement,
            ]
            for row in methods
        ]
    columns = ["observable", "method", "share before", "share after", "at most (95%)", "significant", "size"]
    return Table(columns, rows, "Share of the weight in the wrong place.")


@dataclass(frozen=True)
class Drawing:
    """How the figure of an observable is drawn.

    Attributes:
        label: What it is called, its name when left out; math between dollars is drawn as such.
        unit: Its unit.
        log: Whether densities have a logarithmic scale.
        lower: What is drawn below the densities.
        hides_far_bins: Whether the bins are those of `metrics.natural_edges`, of which a far one, as that of -999, has no
            place on the axis.
    """

    label: str | None = None
    unit: str | None = None
    log: bool = False
    lower: Literal["pull", "difference", "quotient"] = "pull"
    hides_far_bins: bool = False


def closure_pictures(result: ClosureResult, drawings: Mapping[str, Drawing] | None = None) -> list[Picture]:
    """Return the closure figure of every observable.

    Args:
        result: The closure.
        drawings: How single observables are drawn, by name.

    Example:
        >>> from quasiratio import WeightedSample
        >>> from quasiratio.metrics import closure
        >>> sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
        >>> result = closure(sample, {"none": [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})
        >>> [picture.title for picture in closure_pictures(result)]
        ['x']
    """
    pictures = []
    for entry in result.observables:
        drawing = (drawings or {}).get(entry.name, Drawing())
        figure = closure_figure(
            entry,
            label=drawing.label or entry.name.replace("$", r"\$"),
            unit=drawing.unit,
            lower=drawing.lower,
            log=drawing.log,
            x_range=range_without_far_bins(entry.edges) if drawing.hides_far_bins else None,
        )
        pictures.append(
            Picture(figure, _caption(entry, len(result.observables)), drawing.label or entry.name)
        )
    return pictures


def _row(row: ClosureQuality, *, has_totals: bool, has_bands: bool) -> list[Cell]:
    low, high = ends_text(*row.pull_range)
    cells: list[Cell] = [
        row.observable,
        row.method,
        row.chi2_per_dof,
        *([row.total_chi2_per_dof] if has_totals else []),
        row.n_dof,
        row.p_value,
        "yes" if row.agrees else "no",
        row.relative_entropy,
        row.largest_pull,
        f"{low} to {high}",
        row.outside,
    ]
    return [*cells, row.member_band] if has_bands else cells


def _caption(entry: ObservableClosure, n_observables: int) -> str:
    before, *methods = closure_qualities(entry, n_observables=n_observables)
    after = "; ".join(
        f"{row.method} {number_text(row.chi2_per_dof)}{_with_training(row)} (largest pull "
        f"{number_text(row.largest_pull)} between "
        f"{' and '.join(ends_text(*row.pull_range))})"
        for row in methods
    )
    return f"chi2/ndof before {number_text(before.chi2_per_dof)}; {after}. ndof {before.n_dof}."


def _with_training(row: ClosureQuality) -> str:
    total = row.total_chi2_per_dof
    return "" if total is None else f", {number_text(total)} with the error of the training sample"
