"""A model judged on files: does the reweighted reference look like the target? Report, figures and numbers, all or none."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from quasiratio.atomic_files import scratch_directory
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Feature, Table, parse_features
from quasiratio.metrics import ClosureResult
from quasiratio.outputs import (
    create_output_directory,
    output_directory,
    publish_directory,
    require_output_name,
)
from quasiratio.report.closure_quality import closure_qualities
from quasiratio.report.closure_verdict import Verdict, evaluation_verdict
from quasiratio.report.evaluation import Evaluation, evaluate_model
from quasiratio.report.origins import EvaluatedModel, SampleSource
from quasiratio.sample import WeightedSample
from quasiratio.tasks import WorkerPool, chosen_workers
from quasiratio.wording import feature_line, plain_json, shortened
from quasiratio.workflows.drawing_options import DrawingOptions, figure_names, label_texts, require_labelled
from quasiratio.workflows.evaluate_parts import evaluate_in_parts, restricted
from quasiratio.workflows.file_parts import FileParts, beyond_memory, first_precision
from quasiratio.workflows.fitted_model import FitNotes, LoadedModel, load_ratio_model
from quasiratio.workflows.sample_files import Files, SampleFiles

__all__ = ["EvaluatedFiles", "evaluate_files"]

_COMMAND = "evaluate"
_BYTES_OF_EVENT = 120
"""Of a sample in memory, besides its features: weight, ratio, order, what the classifiers say, and what is in between."""


@dataclass(frozen=True)
class EvaluatedFiles:
    """What was found and written.

    Attributes:
        path: Directory of the report.
        evaluation: The numbers.
        verdict: What they mean, with reasons.
        values: Both as plain values, as in `results.json`.
    """

    path: Path
    evaluation: Evaluation
    verdict: Verdict
    values: Mapping[str, Any]


class _Given(NamedTuple):
    """A model and the samples to judge it on."""

    model: LoadedModel
    reference: SampleFiles
    target: SampleFiles
    observables: Sequence[str]
    n_bins: int
    command: str
    drawing: DrawingOptions
    labelled: tuple[str, ...]
    say: Callable[[str], None] | None


def evaluate_files(
    model: RatioPredictor | str | os.PathLike[str],
    reference: Files,
    target: Files,
    output: str | os.PathLike[str],
    *,
    observables: Sequence[str] = (),
    label: Sequence[str] = (),
    weight: str | None = None,
    reference_weight: str | None = None,
    target_weight: str | None = None,
    variation: str | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    n_bins: int = 50,
    binning: Sequence[str] = (),
    log: Sequence[str] = (),
    lower: str = "pull",
    overwrite: bool = False,
    command: str = "",
    jobs: int | None = None,
    scheduler: str | None = None,
    say: Callable[[str], None] | None = None,
) -> EvaluatedFiles:
    """Compare the reweighted reference with the target, and write the report, as `quasiratio evaluate` does.

    Weights and selection are those of the fit unless others are given; events that the fit has not seen make the
    stronger test.

    Args:
        model: Directory of a model, or a fitted ratio estimator or reweighter.
        reference: Files of the reference.
        target: Files of the target.
        output: Directory of report, figures and numbers.
        observables: Columns and formulas, besides the features.
        label: What to call features and observables, such as `mll=m_ll [GeV]`, besides the labels of the fit.
        weight: Expression of the signed weight.
        reference_weight: Weight of the reference, where it differs.
        target_weight: Weight of the target, where it differs.
        variation: Of a model of several weights, which to judge; the nominal one when left out.
        selection: Events to use.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        n_bins: Bins of each observable.
        binning: Bins and ranges of single observables, such as `mll=40:0:200`.
        log: Observables with a logarithmic scale, or `all`.
        lower: What is drawn below the densities: `pull`, `difference` or `quotient`.
        overwrite: Write among files that are there already.
        command: The command that repeats the evaluation, for the report.
        jobs: Processes of this machine that read, file by file; the numbers are the same.
        scheduler: Address of a Dask scheduler instead.
        say: Called with lines for people: the features in use, and whether the events stay in their files, as they do where
            they would need more than half of the memory that is available.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for name, mean in (("a", 0.0), ("b", 0.3)):
        ...         np.savez(f"{directory}/{name}.npz", pt=rng.normal(mean, size=2000))
        ...     pair = f"{directory}/a.npz", f"{directory}/b.npz"
        ...     fitted = qr.workflows.fit_files(*pair, f"{directory}/model", max_steps=50, random_state=0)
        ...     done = qr.workflows.evaluate_files(fitted.path, *pair, f"{directory}/report", n_bins=10)
        ...     sorted(path.suffix for path in done.path.iterdir() if not path.name.startswith("."))
        ['.html', '.json', '.pdf', '.png']
    """
    path = require_output_name(output, "directory")
    if (path / "model.json").exists():
        msg = f"Got the output directory {str(output)!r}, which is a model; expected one for the report."
        raise InvalidInputError(msg, advice="Choose another with `output`.")
    output_directory(path, command=_COMMAND, overwrite=overwrite)
    if isinstance(model, RatioPredictor):
        loaded = LoadedModel(Path(), model, FitNotes())
    else:
        loaded = load_ratio_model(model)
    notes = loaded.notes
    if variation is not None:
        loaded, notes = loaded.varied(variation)
    if say is not None:
        say(feature_line(loaded.inputs))
    chosen = selection or notes.selection
    files = [
        SampleFiles(paths, own or weight or noted.weight, chosen, tree, allow_large)
        for paths, own, noted in (
            (reference, reference_weight, notes.reference),
            (target, target_weight, notes.target),
        )
    ]
    given_labels = label_texts(label)
    drawing = DrawingOptions({**notes.labels, **given_labels}, log, lower, binning)
    given = _Given(
        loaded, files[0], files[1], observables, n_bins, command, drawing, tuple(given_labels), say
    )
    return _evaluated_files(given, path, functools.partial(chosen_workers, jobs, scheduler, default=1))


def _evaluated_files(
    given: _Given, output: Path, workers: Callable[[], AbstractContextManager[WorkerPool]]
) -> EvaluatedFiles:
    features = list(given.model.features)
    tables = [files.open() for files in (given.reference, given.target)]
    for table in tables:
        given.model.require_features(table)
    wanted = [text for text in dict.fromkeys(given.observables) if text not in features]
    more = _distinct(parse_features(wanted, tables), given.model.inputs) if wanted else []
    names = [*features, *(feature.name for feature in more)]
    edges = given.drawing.edges(names)
    require_labelled(dict.fromkeys(given.labelled, ""), names)
    n_values = len(names) + len(features)
    why = beyond_memory(tables, _BYTES_OF_EVENT + 4 * n_values + 16 * given.model.estimator.n_members)
    if why is not None and given.say is not None:
        given.say(why)
    pairs = list(zip((given.reference, given.target), tables, strict=True))
    common: dict[str, Any] = {
        "n_bins": given.n_bins, "edges": edges, "training_sizes": _training_sizes(given.model)
    }  # fmt: skip
    with workers() as pool, _observable_errors(more, tables):
        inputs = [*given.model.inputs, *more]
        if why is None:
            reference, target = (files.read(table, inputs, pool=pool) for files, table in pairs)
        else:
            result, samples = first_precision(
                lambda dtype: evaluate_in_parts(
                    given.model,
                    *(FileParts.of(*pair, inputs, pool, dtype) for pair in pairs),
                    **common,
                )
            )
    if why is None:
        for role, sample in (("reference", reference), ("target", target)):
            sample.require_positive_sum(role)
        observables = {
            feature.name: (reference.features[:, column], target.features[:, column])
            for column, feature in enumerate(more, start=len(features))
        }
        samples = restricted(reference, given.model), restricted(target, given.model)
        result = evaluate_model(given.model.estimator, *samples, observables=observables, **common)
    values = _plain(given, result, *tables)
    shown = replace(result, closure=_labelled(result.closure, given.drawing.labels))
    verdict = evaluation_verdict(shown, model=_evaluated(given.model), sources=_sources(values["samples"]))
    values["verdict"] = {
        "status": verdict.status,
        "summary": verdict.summary,
        "reasons": verdict.text.split("\n\n"),
    }
    _write(output, given, (result, shown), verdict, samples, values)
    return EvaluatedFiles(output, shown, verdict, values)


def _training_sizes(model: LoadedModel) -> tuple[float, float] | None:
    """Return the effective sizes that `fit` noted; the validation events of the fit are among them."""
    reference, target = model.notes.reference.effective_size, model.notes.target.effective_size
    return (reference, target) if reference and target else None


def _distinct(observables: Sequence[Feature], inputs: Sequence[Feature]) -> list[Feature]:
    """Return the observables that are no features, or raise where one has the name of another feature."""
    of_name = {feature.name: feature.text for feature in inputs}
    for observable in observables:
        if of_name.get(observable.name, observable.text) != observable.text:
            msg = (
                f"Got the observable {observable.name!r}, which is {shortened(observable.text)!r}; the model has a feature of "
                f"that name, {shortened(of_name[observable.name])!r}. Name the observable otherwise."
            )
            raise InvalidInputError(msg)
    return [observable for observable in observables if observable.name not in of_name]


@contextmanager
def _observable_errors(observables: Sequence[Feature], tables: Sequence[Table]) -> Iterator[None]:
    """Say of an observable that is not finite that it is one."""
    try:
        yield
    except InvalidInputError as error:
        for observable in observables:
            if f"in {observable.name!r} (" in str(error):
                msg = (
                    f"Got the observable {shortened(observable.text)!r}, which is NaN or infinite for some events of "
                    f"{' or '.join(repr(table.label) for table in tables)}; expected finite values."
                )
                raise InvalidInputError(msg, advice="Leave these events out with `selection`.") from error
        raise


def _labelled(result: ClosureResult, labels: Mapping[str, str]) -> ClosureResult:
    """Return the closure with the labels of its observables for names."""
    return ClosureResult(
        tuple(replace(entry, name=labels.get(entry.name, entry.name)) for entry in result.observables)
    )


def _plain(given: _Given, result: Evaluation, *tables: Table) -> dict[str, Any]:
    return {
        "model": str(given.model.path),
        "features": list(given.model.features),
        "samples": {
            role: {
                "files": list(table.sources),
                "weight": files.weight,
                "selection": files.selection,
                "weights": asdict(weights),
            }
            for role, files, table, weights in zip(
                ("reference", "target"),
                (given.reference, given.target),
                tables,
                (result.reference, result.target),
                strict=True,
            )
        },
        "reweighted": asdict(result.reweighted),
        "risk_difference": asdict(result.risk_difference),
        "share_seen_in_training": dict(zip(("reference", "target"), result.seen, strict=True)),
        "closure": result.closure.table(include_reference=True),
        "quality": [
            asdict(row)
            for entry in result.closure.observables
            for row in closure_qualities(entry, n_observables=len(result.closure.observables))
        ],
        "omnibus": None if result.omnibus is None else asdict(result.omnibus),
        "training_sizes": result.training_sizes,
        "events_judged": result.n_judged,
        "histograms": {
            entry.name: {
                "edges": entry.edges,
                "target": entry.target.values,
                "target_variances": entry.target.variances,
                "reference": entry.reference.histogram.values,
                "reweighted": entry["model"].histogram.values,
                "reweighted_variances": entry["model"].histogram.variances,
                "member_band": entry["model"].member_band,
            }
            for entry in result.closure.observables
        },
    }


def _write(
    output: Path,
    given: _Given,
    results: tuple[Evaluation, Evaluation],
    verdict: Verdict,
    samples: tuple[WeightedSample, WeightedSample],
    values: dict[str, Any],
) -> None:
    """Write everything beside its place first, then move it there."""
    from quasiratio.plots import save_figure  # noqa: PLC0415 - slow to import
    from quasiratio.report.chapters import evaluation_report  # noqa: PLC0415
    from quasiratio.report.closure_section import closure_pictures  # noqa: PLC0415
    from quasiratio.report.page import page_text  # noqa: PLC0415

    create_output_directory(output.parent)
    try:
        with scratch_directory(output.parent) as workspace, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names may be in any script
            finished = workspace / "finished"
            finished.mkdir()
            result, shown = results
            names = [entry.name for entry in result.closure.observables]
            pictures = closure_pictures(result.closure, given.drawing.drawings(names))
            for name, picture in zip(
                figure_names([entry.name for entry in result.closure.observables]), pictures, strict=True
            ):
                save_figure(picture.figure, finished / name)
            report = evaluation_report(
                shown,
                model=_evaluated(given.model),
                reference=samples[0],
                target=samples[1],
                command=given.command,
                sources=_sources(values["samples"]),
                pictures=pictures,
                verdict=verdict,
            )
            (finished / "report.html").write_text(page_text(report), encoding="utf-8")
            (finished / "results.json").write_text(plain_json(values) + "\n", encoding="utf-8")
            publish_directory(finished, output, command=_COMMAND)
    except OSError as error:
        msg = f"Got the output directory {str(output)!r}, which cannot be written ({error.strerror}); make room there."
        raise InvalidInputError(msg) from error


def _evaluated(model: LoadedModel) -> EvaluatedModel:
    notes = model.notes
    return EvaluatedModel(
        model.estimator,
        path=str(model.path),
        method=notes.method,
        versions=model.versions,
        fitted_on={
            role: SampleSource(sample.files, sample.weight, notes.selection, sample.n_events)
            for role, sample in (("reference", notes.reference), ("target", notes.target))
        },
    )


def _sources(samples: Mapping[str, Mapping[str, Any]]) -> dict[str, SampleSource]:
    return {
        role: SampleSource(
            sample["files"], sample["weight"], sample["selection"], sample["weights"]["n_events"]
        )
        for role, sample in samples.items()
    }
