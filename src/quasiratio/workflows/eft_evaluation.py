"""A learned density judged on a sample with weights at several points, and written into files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from quasiratio.atomic_files import scratch_directory
from quasiratio.basis import PolynomialBasis
from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.loading import describe, load_described
from quasiratio.estimators.polynomial import PolynomialRatio
from quasiratio.io import WeightPoints, create_table, parse_expression, read_points, read_sample
from quasiratio.outputs import (
    create_output_directory,
    output_directory,
    output_file,
    publish_directory,
    require_output_name,
)
from quasiratio.progress import ShowEvents
from quasiratio.sample import WeightedSample
from quasiratio.wording import feature_line, plain_json
from quasiratio.workflows.eft_closure import EftClosure, closure_at
from quasiratio.workflows.eft_inspection import chosen_points
from quasiratio.workflows.eft_samples import EftNotes, read_eft_sample
from quasiratio.workflows.fitted_model import EFT_KEY, LoadedModel, fit_notes
from quasiratio.workflows.sample_files import Files, SampleFiles

__all__ = ["AppliedEft", "EvaluatedEft", "apply_eft_files", "evaluate_eft_files", "is_eft_model"]

_COMMAND = "evaluate"
_N_DRAWN = 6


@dataclass(frozen=True)
class EvaluatedEft:
    """What was found and written.

    Attributes:
        path: Directory of the report.
        points: Closure at every point.
        status: How the verdict is marked.
        verdict: What it means, in words.
        share_seen: Estimated share of the events that the model was trained on.
        values: Everything as plain values, as in `results.json`.
    """

    path: Path
    points: tuple[EftClosure, ...]
    status: str
    verdict: str
    share_seen: float
    values: Mapping[str, Any]


def is_eft_model(path: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a `PolynomialRatio`; anything that cannot be read is left to who loads it."""
    try:
        return bool(describe(path).estimator.kind == PolynomialRatio.__name__)
    except InvalidInputError:
        return False


def _loaded(path: str | os.PathLike[str]) -> tuple[PolynomialRatio, LoadedModel, EftNotes]:
    estimator, content = load_described(path)
    if not isinstance(estimator, PolynomialRatio):
        msg = f"Got the model {str(path)!r} of the class {type(estimator).__name__}; expected a PolynomialRatio, as `fit_eft_files` writes it."
        raise InvalidInputError(msg)
    try:
        noted = EftNotes.model_validate(content.notes.get(EFT_KEY, {}))
    except ValidationError as error:
        msg = f"Got the model {str(path)!r}, whose notes of the weights cannot be read; expected those that `fit_eft_files` wrote. Fit again."
        raise InvalidInputError(msg) from error
    loaded = LoadedModel(Path(path), estimator, fit_notes(content.notes, str(path)), content.versions)
    return estimator, loaded, noted


def evaluate_eft_files(
    model: str | os.PathLike[str],
    files: Files,
    output: str | os.PathLike[str],
    *,
    at: Sequence[Mapping[str, float]] | None = None,
    n_drawn: int | None = None,
    random_state: int = 0,
    n_bins: int = 30,
    weight: str | None = None,
    selection: str | None = None,
    tree: str | None = None,
    overwrite: bool = False,
    command: str = "",
    say: Callable[[str], None] | None = None,
    **options: Any,  # noqa: ANN401 - those of read_eft_sample
) -> EvaluatedEft:
    """Look at the closure of a `PolynomialRatio` at several points, and write a report, as `quasiratio evaluate` does.

    One half of the events is reweighted by the learned ratio and compared with the other half with its exact weights. Where the
    weights are in the file is taken from the fit, unless options say otherwise.

    Args:
        model: Directory of the model.
        files: A sample with weights at points, best one that the fit has not seen.
        output: Directory of report and numbers.
        at: Points to look at; by default drawn.
        n_drawn: Points to draw, uniformly in the box of the points of the sample.
        random_state: Seed of the points and of the halves.
        n_bins: Bins of each feature.
        weight: Expression by which all weights are multiplied; that of the fit when left out.
        selection: Events to use; those of the fit when left out.
        tree: Tree of ROOT files, where the path names none.
        overwrite: Write among files that are there already.
        command: The command that repeats the evaluation, for the report.
        say: Called with lines for people: the features in use.
        **options: Those of `read_eft_sample`, where the weights are elsewhere than in the sample of the fit, or at other points;
            order and reference are those of the model.
    """
    if n_drawn is not None and (at or n_drawn < 1):
        given = f"{n_drawn} points to draw" + (" beside points that are given" if at else "")
        msg = f"Got {given}; expected either points, or a positive number of points to draw."
        raise InvalidInputError(msg, advice="Give `at` or `n_drawn`, not both.")
    path = require_output_name(output, "directory")
    if (path / "model.json").exists():
        msg = f"Got the output directory {str(output)!r}, which is a model; expected one for the report."
        raise InvalidInputError(msg, advice="Choose another with `output`.")
    output_directory(path, command=_COMMAND, overwrite=overwrite)
    estimator, loaded, noted = _loaded(model)
    if say is not None:
        say(feature_line(loaded.inputs))
    sample = read_eft_sample(
        files,
        **_options(model, estimator.basis, noted, options),
        weight=weight or loaded.notes.reference.weight,
        selection=selection or loaded.notes.selection,
        tree=tree,
    )
    if sample.basis != estimator.basis:
        given, expected = (
            f"{', '.join(basis.parameters)} to order {basis.order}"
            for basis in (sample.basis, estimator.basis)
        )
        msg = (
            f"Got a sample of the parameters {given}; expected those of the model, {expected}, in this order."
        )
        raise InvalidInputError(msg, advice="Give the order with `parameters`.")
    _require_same_reference(sample.reference, noted)
    points = chosen_points(sample, at, None if at else n_drawn or _N_DRAWN, random_state)
    loaded.require_features(sample.table)
    read = read_sample(sample.table, features=loaded.inputs, weight="1", selection=sample.selection)
    precision = np.dtype(np.float64 if loaded.is_exact else np.float32)
    features: FeatureMatrix = np.ascontiguousarray(read.features, dtype=precision)
    events = WeightedSample.adopt(features, np.array(sample.reference_weights), read.names, read.fill)
    found = tuple(
        closure_at(estimator, events, sample.coefficients, points, seed=random_state, n_bins=n_bins)
    )
    share = float(estimator.fingerprint_.share_seen(events))
    from quasiratio.report.eft_report import eft_report, eft_verdict  # noqa: PLC0415 - slow to import
    from quasiratio.report.page import page_text  # noqa: PLC0415

    compared = [(point.label, point.result) for point in found]
    status, verdict = eft_verdict(compared, [point.reason for point in found], share, estimator.fit_check_)
    values = {
        "model": str(model),
        "features": list(loaded.features),
        "files": list(sample.table.sources),
        "n_events": len(sample),
        "weight": sample.weight,
        "selection": sample.selection,
        "share_seen_in_training": share,
        "verdict": {"status": status, "text": verdict},
        "points": [point.as_dict() for point in found],
    }
    report = eft_report(
        estimator,
        compared,
        [(p.label, p.rate, p.rate_error, p.learned_rate, p.reason) for p in found],
        title=f"Closure of {model}",
        status=status,
        verdict=verdict,
        command=command,
        facts={
            "files": ", ".join(sample.table.sources),
            "weight": sample.weight or "1",
            "events": len(sample),
            "seed": random_state,
        },
    )
    create_output_directory(path.parent)
    with scratch_directory(path.parent) as workspace:
        finished = workspace / "finished"
        finished.mkdir()
        (finished / "report.html").write_text(page_text(report), encoding="utf-8")
        (finished / "results.json").write_text(plain_json(values) + "\n", encoding="utf-8")
        publish_directory(finished, path, command=_COMMAND)
    return EvaluatedEft(path, found, status, verdict, share, values)


def _options(
    model: str | os.PathLike[str], basis: PolynomialBasis, noted: EftNotes, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how to read the sample: as it was told, and else as the sample of the fit was read."""
    told = {name: value for name, value in given.items() if value is not None}
    known = noted.options()
    if not told.keys() - {"branch", "columns"}:
        if not known:
            msg = f"Got the model {str(model)!r}, which was saved without a note of where the weights of a sample are; expected to be told."
            raise InvalidInputError(msg, advice="Give `points`, `pattern` or `coefficients`.")
        return {**known, **told}
    told = {"order": basis.order, "reference": noted.reference or None, **told}
    points = told.get("points")
    if points is not None:
        found = points if isinstance(points, WeightPoints) else read_points(points, drop_fixed=True)
        told["points"] = found.of(basis.parameters)
    elif "coefficients" in told:
        told.setdefault("parameters", list(basis.parameters))
    return told


def _require_same_reference(reference: Mapping[str, float], noted: EftNotes) -> None:
    """Raise where the sample is read relative to another point than the fit."""
    if noted.reference and noted.reference != dict(reference):
        msg = f"Got the reference {dict(reference)} for a model that was fitted relative to {noted.reference}; expected the same."
        raise InvalidInputError(msg, advice="Give it with `reference`.")


@dataclass(frozen=True)
class AppliedEft:
    """What was written.

    Attributes:
        path: The new file.
        source: The events that were read, for people.
        n_events: Events written.
        columns: The columns that were added.
        negative: Share of the events with a negative value, by column.
    """

    path: Path
    source: str
    n_events: int
    columns: tuple[str, ...]
    negative: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "output": str(self.path),
            "n_events": self.n_events,
            "columns": self.columns,
            "negative_fraction": self.negative,
        }


def apply_eft_files(
    model: str | os.PathLike[str],
    files: Files,
    output: str | os.PathLike[str],
    *,
    at: Sequence[Mapping[str, float]] | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    compression: Any = "auto",  # noqa: ANN401 - what `create_table` takes
    overwrite: bool = False,
    say: Callable[[str], None] | None = None,
    progress: ShowEvents | None = None,
) -> AppliedEft:
    """Copy events to a new file with the learned density of each, as `quasiratio apply` does for a `PolynomialRatio`.

    Per point, `intensity_...` (the ratio of differential cross-sections to the reference) and `ratio_...` (of densities that are
    normalised to one); without points the coefficient functions, `rho_...`, one for each term.

    Args:
        model: Directory of the model.
        files: Events of the reference.
        output: The new file; its suffix says the format, and `out.root:tree` the tree.
        at: Points.
        selection: Events to write; all when left out.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        compression: As for `quasiratio.io.create_table`.
        overwrite: Replace a file that is there.
        say: Called with lines for people: the features in use.
        progress: Called after each chunk with the events done and the events at most.
    """
    out = output_file(os.fspath(output), overwrite=overwrite)
    estimator, loaded, _ = _loaded(model)
    table = SampleFiles(files, tree=tree, allow_large=allow_large).open()
    loaded.require_features(table)
    matrix, names = _columns(estimator, at)
    taken = [name for name in names if name in table.columns]
    if taken or len(set(names)) < len(names):
        msg = f"Got {taken or names} as new columns, but {table.label!r} has such a column or two are the same; expected free names."
        raise InvalidInputError(msg, advice="Rename the columns of the file, or give other points `at`.")
    if say is not None:
        say(feature_line(loaded.inputs))
    condition = None if selection is None else parse_expression(selection)
    used = [name for feature in loaded.inputs for name in feature.columns]
    required = {name for feature in loaded.inputs for name in feature.columns if name not in feature.may_miss}
    may_miss = {name for feature in loaded.inputs for name in feature.may_miss} - required
    n_read, negative = 0, np.zeros(len(names))
    with create_table(
        out.path,
        tree=out.tree_like(table.sources[0], table.files[0].path),
        compression=compression,
        metadata={"quasiratio": {"model": str(model), "selection": selection}},
        inputs=[table],
    ) as writer:
        for chunk in table.chunks(
            list(dict.fromkeys([*table.columns, *used])), selection=condition, may_miss=may_miss
        ):
            n_events = len(next(iter(chunk.values())))
            values = np.empty((0, len(names)))
            if n_events:
                X = {feature.name: feature.values(chunk, n_events) for feature in loaded.inputs}
                values = estimator.predict_coefficients(WeightedSample(X, fill=estimator.fill_)) @ matrix.T
            kept = {name: chunk[name] for name in table.columns if name in chunk}
            writer.append(kept | {name: values[:, k] for k, name in enumerate(names)})
            n_read += n_events
            negative += np.sum(values < 0, axis=0)
            if progress is not None:
                progress(n_read, table.n_events)
        if n_read == 0:
            msg = f"Got {table.label!r}, of which no event is left; expected at least one. Check the file and the selection."
            raise InvalidInputError(msg)
    shares = dict(zip(names, (negative / n_read).tolist(), strict=True))
    return AppliedEft(out.path, table.label, n_read, tuple(names), shares)


def _columns(
    model: PolynomialRatio, at: Sequence[Mapping[str, float]] | None
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], list[str]]:
    """Return the matrix from coefficient functions to new columns, and their names."""
    basis = model.basis
    if not at:
        return np.eye(basis.n_terms), [_term_column(basis, row) for row in basis.exponents]
    rows, names = [], []
    for theta in basis.points(list(at)).reshape(-1, basis.n_parameters):
        monomials = basis(theta)
        label = "_".join(
            f"{name}_{value:.10g}".replace(".", "p").replace("-", "m").replace("+", "")
            for name, value in zip(basis.parameters, theta.tolist(), strict=True)
            if value
        )
        rate = float(monomials @ model.learned_means_)
        rows.append(monomials)
        names.append(f"intensity_{label or 'zero'}")
        if rate > 0:  # where it is not, there is no density to normalise
            rows.append(monomials / rate)
            names.append(f"ratio_{label or 'zero'}")
    return np.stack(rows), names


def _term_column(basis: PolynomialBasis, powers: Sequence[int]) -> str:
    factors = [name for name, power in zip(basis.parameters, powers, strict=True) for _ in range(int(power))]
    return "rho_" + ("_".join(factors) or "1")
