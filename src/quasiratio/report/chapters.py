"""From an evaluation to a report: verdict, closure, weights, ratio, training, model and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quasiratio.report.closure_section import closure_pictures, closure_table, size_table
from quasiratio.report.closure_verdict import Verdict, evaluation_verdict
from quasiratio.report.content import Block, Picture, Report, Section, Table, Text
from quasiratio.report.model_section import data_section, model_section, training_section
from quasiratio.report.origins import EvaluatedModel, SampleSource
from quasiratio.report.weight_section import ratio_section, weight_section

if TYPE_CHECKING:
    from quasiratio.report.evaluation import Evaluation
    from quasiratio.sample import WeightedSample

__all__ = ["evaluation_report"]

_SIZES = Text(
    "What differs beyond the noise of the two samples, as a share of the weight, before and after reweighting. The size of a "
    "significant difference is graded as the verdict says; of another it is said what it can be at most."
)


def evaluation_report(
    evaluation: Evaluation,
    *,
    model: EvaluatedModel,
    reference: WeightedSample,
    target: WeightedSample,
    command: str,
    sources: Mapping[str, SampleSource] | None = None,
    pictures: Sequence[Picture] | None = None,
    verdict: Verdict | None = None,
) -> Report:
    """Describe an evaluation to people.

    Args:
        evaluation: What `evaluate_model` returned.
        model: The model, and what was noted when it was fitted.
        reference: The sample that was reweighted, or those of its events that were judged.
        target: The sample it was compared with, likewise.
        command: The command that repeats the evaluation.
        sources: Where the samples come from, by `"reference"` and `"target"`.
        pictures: Closure figures, where they are drawn already; `closure_pictures` of the evaluation otherwise.
        verdict: The judgement, where it is made already; `evaluation_verdict` otherwise.

    Example:
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> from quasiratio.report.evaluation import evaluate_model
        >>> rng = np.random.default_rng(0)
        >>> reference, target = (qr.WeightedSample(rng.normal(mean, 1.0, 4000)) for mean in (0.0, 0.5))
        >>> fitted = qr.DirectRatio(max_steps=200, random_state=0).fit_samples(reference, target)
        >>> report = evaluation_report(
        ...     evaluate_model(fitted, reference, target, n_bins=20),
        ...     model=EvaluatedModel(fitted),
        ...     reference=reference,
        ...     target=target,
        ...     command="quasiratio evaluate model reference.npz target.npz -o report",
        ... )
        >>> report.status, [section.title for section in report.sections]
        ('good', ['Closure', 'Observables', 'Weights', 'Ratio', 'Training', 'Model', 'Data'])
    """
    if verdict is None:
        verdict = evaluation_verdict(evaluation, model=model, sources=sources)
    figures = closure_pictures(evaluation.closure) if pictures is None else list(pictures)
    n_events = {"reference": evaluation.reference.n_events, "target": evaluation.target.n_events}
    explained = Text(
        "Per observable, the reference before reweighting and as the model reweights it, against the target. Pulls are "
        "differences over their statistical error. With training is chi-squared with the error of the training sample counted, "
        "to which the p-value then belongs. D_S2 is the Tsallis relative entropy of order two, which is noisy "
        "where few events fill a bin. Outside is the share of the weight beyond all bins; members/stat, of an ensemble, "
        "is its members' spread over the statistical error in the median bin."
    )
    name = model.path or type(model.estimator).__name__
    n_features = len(model.estimator.fingerprint_.ranges)
    return Report(
        f"Closure of {name}",
        verdict.text,
        [
            Section(
                "Closure",
                [
                    closure_table(evaluation.closure),
                    explained,
                    size_table(evaluation.closure),
                    _SIZES,
                    *_omnibus(evaluation),
                    *([Text(evaluation.limits)] if evaluation.limits else []),
                ],
            ),
            Section("Observables", figures or [Text("There is no observable to draw.")]),
            weight_section(evaluation, reference, target),
            ratio_section(evaluation, reference, target),
            training_section(model),
            model_section(model),
            data_section(n_events, sources or {}, model.fitted_on),
        ],
        command,
        subtitle=(
            f"{model.method or type(model.estimator).__name__}, {n_features} feature{'s' * (n_features != 1)}, "
            f"{evaluation.reference.n_events} reference and {evaluation.target.n_events} target events"
        ),
        status=verdict.status,
    )


def _omnibus(evaluation: Evaluation) -> list[Block]:
    """Return the numbers of the omnibus test, where it was made."""
    omnibus = evaluation.omnibus
    if omnibus is None:
        return []
    return [
        Table(
            [
                "p-value",
                "z",
                "wrong share shown",
                "error of it",
                "variance from training",
                "events tested on",
            ],
            [
                [
                    omnibus.p_value,
                    omnibus.z,
                    omnibus.size,
                    omnibus.size_error,
                    omnibus.training_share,
                    omnibus.n_events,
                ]
            ],
            "Omnibus test: a classifier between the reweighted reference and the target, in all features at once.",
        )
    ]
