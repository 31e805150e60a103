"""`quasiratio inspect`: what the samples are like, and which method suits them, before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.options import (
    AllowLarge,
    Features,
    Jobs,
    Json,
    ReferenceWeight,
    Scheduler,
    Selection,
    TargetWeight,
    Tree,
    Weight,
    early_workers,
    split_files,
    split_list,
)
from quasiratio.cli.terminal import Printer, in_options
from quasiratio.wording import feature_line, percent, range_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quasiratio.io import Feature
    from quasiratio.metrics.inspection import Inspection, SampleInspection

__all__ = ["inspect"]


def inspect(
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="Reference: file, pattern, @list or comma list.")
    ],
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="Target; left out, one sample is described.")
    ] = None,
    features: Features = None,
    weight: Weight = None,
    reference_weight: ReferenceWeight = None,
    target_weight: TargetWeight = None,
    selection: Selection = None,
    tree: Tree = None,
    allow_large: AllowLarge = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Describe one sample, or two and their overlap, and recommend a method.

    Files are .root (file.root:tree), .parquet or .npz, here or at addresses such as https://; @files.txt is a list of them.
    """
    early_workers(jobs)
    from quasiratio.workflows import inspect_files  # noqa: PLC0415 - keeps --help fast

    printer = Printer(as_json=as_json)
    found = inspect_files(
        split_files(reference),
        None if target is None else split_files(target),
        features=split_list(features),
        weight=weight,
        reference_weight=reference_weight,
        target_weight=target_weight,
        selection=selection,
        tree=tree,
        allow_large=allow_large,
        say=printer.line,
        jobs=jobs,
        scheduler=scheduler,
    )
    printer.result(found.as_dict())
    _print(printer, found.inspection, found.inputs)


def _print(printer: Printer, result: Inspection, names: Sequence[Feature]) -> None:
    printer.line(feature_line(names))
    both = {"reference": result.reference, "target": result.target}
    given = {role: sample for role, sample in both.items() if sample is not None}
    headings = ["", *(given if result.target is not None else ["sample"])]
    printer.table("", headings, _sample_rows(list(given.values())))
    if result.share_compared < 1:
        printer.line(
            f"Note: repeated events are estimated from {percent(result.share_compared)} of the different events."
        )
    printer.line("")
    if result.recommendation is None:
        rows = [[name, *range_texts(*bounds)] for name, bounds in result.reference.ranges.items()]
        printer.table("", ["feature", "lowest", "highest"], rows)
        if result.reference.weights.negative_fraction > 0:
            printer.line("To make these weights positive: quasiratio positive IN -o OUT --weight EXPR")
        return
    headings = ["feature", "reference range", "target range", "distance", "overlap", "target outside"]
    printer.table("", headings, [_overlap_row(feature) for feature in result.overlaps])
    if result.n_shared:
        printer.line(f"Note: {result.n_shared} target events have the features of a reference event.")
    for caution in result.recommendation.cautions:
        printer.line(f"Note: {in_options(caution)}")
    chosen = result.recommendation
    options = f"--method {chosen.method}" + (f" --loss {chosen.loss}" if chosen.loss else "")
    printer.line(f"Recommended: {options}, because {chosen.reason}.")


def _sample_rows(samples: Sequence[SampleInspection]) -> list[list[str]]:
    rows: dict[str, list[str]] = {
        "events": [f"{s.weights.n_events}" for s in samples],
        "sum of weights": [f"{s.weights.sum_of_weights:.6g}" for s in samples],
        "negative weights": [percent(s.weights.negative_fraction) for s in samples],
        "effective size": [
            f"{s.weights.effective_size:.6g} ({s.weights.effective_size / s.weights.n_events:.1%})"
            for s in samples
        ],
        "c (positive over whole)": [f"{s.weights.mixture_coefficient:.5g}" for s in samples],
        "E[W^2 - W]": [f"{s.weights.weight_variance:.4g}" for s in samples],
        "largest share of |w|": [percent(s.weights.largest_share) for s in samples],
        "repeated events": [f"{s.n_duplicates}" for s in samples],
    }
    return [[name, *cells] for name, cells in rows.items()]


def _overlap_row(feature: Any) -> list[str]:  # noqa: ANN401 - a FeatureOverlap
    return [
        feature.name,
        " .. ".join(range_texts(*feature.reference_range)),
        " .. ".join(range_texts(*feature.target_range)),
        f"{feature.distance:.4f}",
        percent(feature.overlap),
        percent(feature.outside),
    ]
