"""What a fit from files does: read, check, train under a lock, save."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quasiratio.cli.configuration import FitConfiguration
from quasiratio.cli.drawing_options import label_texts
from quasiratio.cli.fit_directory import FitDirectory
from quasiratio.cli.fit_notes import KEY, FitNotes, SampleNotes
from quasiratio.cli.printing import Printer
from quasiratio.cli.samples import SampleFiles, chosen_features, feature_line
from quasiratio.estimators import AutoRatio, RatioEstimator, Reweighter
from quasiratio.estimators.by_name import estimator_by_name
from quasiratio.estimators.densities import density_lines
from quasiratio.io import Feature, Table
from quasiratio.sample import WeightedSample
from quasiratio.training import progress_lines, resumable

__all__ = ["FittedModel", "run_fit"]


@dataclass(frozen=True)
class FittedModel:
    """A fit that is complete and saved.

    Attributes:
        estimator: The fitted estimator.
        path: Directory of the model.
        notes: What is noted in the model.
        seconds: Time of the training.
    """

    estimator: RatioEstimator | Reweighter
    path: Path
    notes: FitNotes
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the result for machines."""
        history = getattr(self._parts[0], "history_", None)
        diverged = [getattr(part, "diverged_", None) for part in self._parts]
        return {
            "model": str(self.path),
            "seconds": self.seconds,
            "n_steps": None if history is None else history.n_steps,
            "diverged": None if None in diverged else any(diverged),
            "features": list(self.estimator.fingerprint_.ranges),
            "periodic": getattr(self._parts[0], "periodic_features_", None),
            "dropped": getattr(self._parts[0], "dropped_features_", None),
            "fill": self._parts[0].fill_,
            "reference_density": asdict(self._parts[0].reference_density_),
            "target_density": asdict(self._parts[0].target_density_),
            "fit_check": asdict(self.estimator.fit_check_),
            **self.notes.model_dump(),
        }

    def lines(self) -> list[str]:
        """Return the result for people; a ratio that should not be used says so first."""
        check = self.estimator.fit_check_
        lines = [str(check)] if check.status == "failed" else []
        for number, part in enumerate(self._parts):
            fold = f"Fold {number}: " if isinstance(self.estimator, Reweighter) else ""
            lines += [fold + line for line in _training_lines(part)]
        lines += _assumption_lines(self._parts[0])
        if check.status != "failed":
            lines.append(str(check))
        return [*lines, f"Fitted in {self.seconds:.1f} s.", f"Model: {self.path}"]

    @property
    def _parts(self) -> list[Any]:
        """The ratio estimators: one, or one per fold."""
        return self.estimator.ratios_ if isinstance(self.estimator, Reweighter) else [self.estimator]


def _training_lines(part: Any) -> list[str]:  # noqa: ANN401 - any ratio estimator
    """Say how a ratio estimator was trained."""
    if isinstance(part, AutoRatio):
        return str(part.report_).splitlines()
    loss = float(np.nanmean(part.history_.kept_loss))
    return [
        f"{part.trials_} {part.history_.n_steps} steps, validation loss {loss:.5f} of the state that was kept."
    ]


def _assumption_lines(part: Any) -> list[str]:  # noqa: ANN401 - any ratio estimator
    """Say what was taken for granted."""
    fitted = next(iter(part.candidates_.values())) if isinstance(part, AutoRatio) else part
    lines = []
    if fitted.dropped_features_:
        names = ", ".join(fitted.dropped_features_)
        lines.append(f"Left out, being constant or the same as another feature: {names}")
    if fitted.model_.scaling.objects is not None:
        lines.append(fitted.model_.scaling.objects.describe())
    if fitted.periodic_features_:
        names = ", ".join(fitted.periodic_features_)
        lines.append(f"Angles, taken as cosine and sine: {names} (--periodic names others)")
    if fitted.fill_:
        lines.append(f"With an input that says whether the value is there: {', '.join(fitted.fill_)}")
    return lines + density_lines(part.reference_density_, part.target_density_)


def run_fit(
    configuration: FitConfiguration,
    printer: Printer,
    *,
    resume: bool,
    force: bool,
    allow_large: bool = False,
) -> FittedModel:
    """Fit as the configuration says, and save the model.

    Args:
        configuration: Everything that decides the fit.
        printer: Says what is going on.
        resume: Continue an interrupted fit, where there is one.
        force: Replace a model that is there.
        allow_large: Read small files that unpack to gigabytes.
    """
    label_texts(configuration.label)
    directory = FitDirectory(Path(configuration.output))
    directory.require_writable(force=force)
    ratio = estimator_by_name(configuration.method, **configuration.estimator_parameters())
    ratio.set_params(verbose=not printer.quiet)
    estimator: RatioEstimator | Reweighter = ratio
    if configuration.folds > 1:
        estimator = Reweighter(ratio, total="original", n_folds=configuration.folds)
    files = _sample_files(configuration, allow_large=allow_large)
    tables = [sample.open() for sample in files]
    features = chosen_features(configuration.features, files, tables)
    printer.line(feature_line(features))
    samples = [sample.read(table, features) for sample, table in zip(files, tables, strict=True)]
    for role, sample, table in zip(("reference", "target"), samples, tables, strict=True):
        sample.require_positive_sum(role)
        printer.line(
            f"{role.capitalize()}: {len(sample)} events of {table.label}, sum of weights "
            f"{sample.sum_of_weights:.6g}, {sample.negative_fraction:.2%} negative"
        )
    notes = _notes(configuration, files, tables, samples, features)
    start = time.perf_counter()
    with directory.working(resume=resume) as state:
        if resume and not directory.has_state:
            printer.line("There is no interrupted fit to continue; fitting from the start.")
        try:
            _train(estimator, samples, state, quiet=printer.quiet)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_interrupted(directory)) from None
        seconds = time.perf_counter() - start
        estimator.save(directory.path, notes={KEY: notes.model_dump()}, overwrite=force)
    return FittedModel(estimator, directory.path, notes, seconds)


def _sample_files(configuration: FitConfiguration, *, allow_large: bool) -> list[SampleFiles]:
    common: dict[str, Any] = {"selection": configuration.selection, "tree": configuration.tree}
    common["allow_large"] = allow_large
    return [
        SampleFiles(
            configuration.reference, configuration.reference_weight or configuration.weight, **common
        ),
        SampleFiles(configuration.target, configuration.target_weight or configuration.weight, **common),
    ]


def _train(
    estimator: RatioEstimator | Reweighter, samples: list[WeightedSample], state: Path, *, quiet: bool
) -> None:
    key = _key(samples, estimator)
    with ExitStack() as stack:
        if not quiet:
            stack.enter_context(progress_lines())
        stack.enter_context(resumable(state, key))
        reference, target = samples
        if isinstance(estimator, Reweighter):
            estimator.fit(reference, target)
        else:
            estimator.fit_samples(reference, target)


def _key(samples: list[WeightedSample], estimator: RatioEstimator | Reweighter) -> str:
    """Return a hash of everything that decides the outcome of the training."""
    parameters = {
        name: repr(value)
        for name, value in sorted(estimator.get_params().items())
        if name not in ("verbose", "ratio", "ratio__verbose")  # what is in `ratio` has names of its own
    }
    if isinstance(estimator, Reweighter):
        parameters["ratio"] = type(estimator.ratio).__name__
    described = {"class": type(estimator).__name__, "parameters": parameters, "features": samples[0].names}
    if samples[0].fill:
        described["fill"] = dict(samples[0].fill)
    digest = hashlib.blake2b(json.dumps(described).encode(), digest_size=16)
    labels = np.repeat([0, 1], [len(sample) for sample in samples])
    features, weights = ([getattr(sample, name) for sample in samples] for name in ("features", "weights"))
    for array in (*features, *weights, labels):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _notes(
    configuration: FitConfiguration,
    files: list[SampleFiles],
    tables: list[Table],
    samples: list[WeightedSample],
    features: list[Feature],
) -> FitNotes:
    """Return what `apply` and `evaluate` want to know of the fit."""
    roles = {
        role: SampleNotes(
            files=list(table.sources),
            weight=sample_files.weight,
            n_events=len(sample),
            sum_of_weights=sample.sum_of_weights,
            negative_fraction=sample.negative_fraction,
            effective_size=sample.effective_size,
            mixture_coefficient=sample.mixture_coefficient,
        )
        for role, sample_files, table, sample in zip(
            ("reference", "target"), files, tables, samples, strict=True
        )
    }
    return FitNotes.model_validate(
        {
            "method": configuration.method,
            "selection": configuration.selection,
            "kinds": {one.name: _kind(tables[0], one.text) for one in features if one.expression is None},
            "formulas": {one.name: one.text for one in features if one.expression is not None},
            "labels": label_texts(configuration.label),
            **roles,
        }
    )


def _kind(table: Table, name: str) -> str:
    """Return the kind of a feature, that of its elements for one such as `jet_pt[0]`."""
    column = table.columns.get(name)
    return "float" if column is None or column.kind == "jagged" else column.kind


def _interrupted(directory: FitDirectory) -> str:
    if directory.has_state:
        return (
            f"Interrupted; the state after the last epoch is in {str(directory.partial)!r}. "
            "Repeat the command with --resume to continue."
        )
    return "Interrupted before the first epoch was complete; nothing was kept."
