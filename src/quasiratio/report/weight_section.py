"""Weights before and after reweighting, calibration and support of the ratio."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.support import diagnose_support
from quasiratio.plots import CalibrationCurve, calibration_figure, support_figure, weight_figure
from quasiratio.report.content import Block, Picture, Section, Table, Text
from quasiratio.report.safe_text import number_text

if TYPE_CHECKING:
    from quasiratio.report.evaluation import Evaluation
    from quasiratio.sample import WeightedSample

__all__ = ["ratio_section", "weight_section"]

_COLUMNS = {
    "n_events": "events",
    "sum_of_weights": "sum of weights",
    "negative_fraction": "negative fraction",
    "effective_size": "effective size",
    "mixture_coefficient": "c",
    "weight_variance": "E[W² − W]",
    "largest_share": "largest share of |w|",
}


def weight_section(evaluation: Evaluation, reference: WeightedSample, target: WeightedSample) -> Section:
    """Describe the weights of the reference, of the reweighted reference, and of the target."""
    diagnostics = {
        "reference": evaluation.reference,
        "reweighted": evaluation.reweighted,
        "target": evaluation.target,
    }
    rows = [[name, *(asdict(values)[key] for key in _COLUMNS)] for name, values in diagnostics.items()]
    weights = {
        "reference": reference.weights,
        "reweighted": reference.weights * evaluation.ratios,
        "target": target.weights,
    }
    return Section(
        "Weights",
        [
            Table(["sample", *_COLUMNS.values()], rows, "Signed weights, and what they cost."),
            Text(
                "The effective size is (Σw)² / Σw². The coefficient c is the sum of the weights that are not negative "
                "over the sum of all. With W scaled to mean one, the mean of W² − W is what the weights add to the "
                "variance of every gradient."
            ),
            Picture(
                weight_figure(weights),
                "Weights scaled to mean one (left), and W² − W (right), whose mean is their variance.",
                "Weights and W² − W",
            ),
        ],
    )


def ratio_section(evaluation: Evaluation, reference: WeightedSample, target: WeightedSample) -> Section:
    """Compare learned with measured ratios, and show where the reference has nothing to reweight."""
    risk = evaluation.risk_difference
    blocks: list[Block] = [
        Text(
            f"Risk of the ratio minus that of no reweighting: {number_text(risk.value)} ± {number_text(risk.error)}; "
            "negative is better. It measures the squared error of the ratio where the reference density is not "
            f"negative. The ratio lies between {number_text(float(evaluation.ratios.min()))} and "
            f"{number_text(float(evaluation.ratios.max()))} at the reference events."
        )
    ]
    ratios = (evaluation.ratios, evaluation.target_ratios)
    weights: dict[str, Any] = {"weights_reference": reference.weights, "weights_target": target.weights}
    try:
        curve = CalibrationCurve.from_events("model", *ratios, **weights)
        blocks.append(
            Picture(
                calibration_figure([curve]),
                "Ratio that the data show in bins of the learned ratio. Points on the diagonal are calibrated.",
                "Calibration",
            )
        )
    except InvalidInputError:
        blocks.append(
            Text("Calibration cannot be shown: in no bin of the ratio does the reference differ from zero.")
        )
    support = diagnose_support(
        reference.names,
        (reference.features, ratios[0], reference.weights),
        (target.features, ratios[1], target.weights),
    )
    if support.warning:
        blocks.append(Text(f"Support: {support.warning}"))
    try:
        blocks.append(
            Picture(
                support_figure(support, *ratios, **weights),
                "Left: share of the target outside the range of the reference. Right: share of |w| above a ratio; a "
                "tail of the target beyond the end of the reference has no events to reweight.",
                "Support",
            )
        )
    except InvalidInputError as error:
        blocks.append(Text(f"The figure of the support cannot be drawn: {error}"))
    return Section("Ratio", blocks)
