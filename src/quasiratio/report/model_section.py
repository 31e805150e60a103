"""What was evaluated: the model, its training, and the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from quasiratio.estimators import PersistentEstimator, RatioEstimator, SingleModelRatio
from quasiratio.estimators.auto_report import AutoReport
from quasiratio.estimators.densities import density_lines
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.plots import training_figure
from quasiratio.report.content import Block, Cell, Facts, Picture, Section, Table, Text
from quasiratio.report.origins import EvaluatedModel, SampleSource
from quasiratio.report.safe_text import ends_text, number_text

if TYPE_CHECKING:
    from quasiratio.training import TrainingHistory

__all__ = ["data_section", "model_section", "training_section"]


def model_section(model: EvaluatedModel) -> Section:
    """Describe the model: class, settings, features and the versions that fitted it."""
    estimator = model.estimator
    facts: dict[str, str | float | int] = {"class": type(estimator).__name__}
    if model.path:
        facts["directory"] = model.path
    if model.method:
        facts["method"] = model.method
    facts |= {name: _setting(value) for name, value in _settings(estimator).items()}
    seed = estimator.ratio_parts[0].random_state
    facts["seed"] = seed if isinstance(seed, int) else str(getattr(estimator, "seed_", "not fixed"))
    if model.versions:
        facts["fitted with"] = ", ".join(f"{name} {number}" for name, number in model.versions.items())
    fingerprint = estimator.fingerprint_
    facts["events of the fit"] = fingerprint.n_events
    facts["SHA-256 of the fit's data"] = fingerprint.sha256
    blocks: list[Block] = [Facts(facts), *_assumptions(estimator)]
    if isinstance(report := getattr(estimator, "report_", None), AutoReport):
        blocks += _choice(report)
    ranges: list[list[Cell]] = [[name, *_ends(*bounds)] for name, bounds in fingerprint.ranges.items()]
    blocks.append(Table(["feature", "lowest", "highest"], ranges, "Features, and their ranges in the fit."))
    return Section("Model", blocks)


def _ends(low: float, high: float) -> tuple[Cell, Cell]:
    """Return the ends of a range as numbers, or as texts where the digits of a table would not tell them apart."""
    texts = ends_text(low, high)
    return (low, high) if texts == (number_text(low), number_text(high)) else texts


def _assumptions(estimator: RatioPredictor) -> list[Block]:
    """Say what the fit took for granted, what it tried, and how it fared on events kept aside."""
    parts: list[Any] = [*estimator.ratio_parts]
    first = parts[0]
    lines = density_lines(first.reference_density_, first.target_density_)
    lines += [str(part.trials_) for part in parts if getattr(part, "trials_", None) is not None]
    lines += [str(part.fit_check_) for part in parts]
    return [Text(line) for line in lines]


def training_section(model: EvaluatedModel) -> Section:
    """Show the losses of every network of the model."""
    blocks: list[Block] = []
    for title, history, networks in _histories(model.estimator):
        seconds = history.wall_clock
        kept = history.kept_loss[np.isfinite(history.kept_loss)]
        caption = f"{history.n_steps} steps{f' in {seconds:.1f} s' if math.isfinite(seconds) else ''}; "
        if len(kept):
            caption += f"validation loss {kept.mean():.5g} of the states that were kept, which diamonds mark."
        else:
            caption += "the state before it was kept, as validation saw no better one."
        if history.diverged.any():
            caption += (
                f" The risk of {int(history.diverged.sum())} of {len(history.diverged)} networks ran away."
            )
        blocks.append(Picture(training_figure(history, networks=networks), caption, title))
    return Section("Training", blocks or [Text("The model keeps no history of its training.")])


def data_section(
    n_events: Mapping[str, int],
    sources: Mapping[str, SampleSource],
    fitted_on: Mapping[str, SampleSource],
) -> Section:
    """Say which events were used, here and in the fit."""
    rows = [
        _source_row(role, sources.get(role, SampleSource()), of_sample)
        for role, of_sample in n_events.items()
    ]
    rows += [
        _source_row(f"{role} of the fit", source, source.n_events)
        for role, source in fitted_on.items()
        if source.files
    ]
    return Section("Data", [Table(["sample", "files", "weight", "selection", "events"], rows)])


def _source_row(name: str, source: SampleSource, n_events: int | None) -> list[Cell]:
    files = "\n".join(source.files) if source.files else "in memory"
    return [name, files, source.weight or "1", source.selection or "all events", n_events]


def _settings(estimator: RatioPredictor) -> dict[str, Any]:
    """Return the parameters that say something; those of an inner estimator with its name."""
    left_out = ("verbose", "random_state", "device", "candidates")
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] not in left_out
        and value is not None
        and not isinstance(value, RatioEstimator)
    }


def _setting(value: Any) -> str | float | int:  # noqa: ANN401 - any hyperparameter
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str | float | int) else str(value)


def _choice(report: AutoReport) -> list[Block]:
    rows: list[list[Cell]] = [
        [row.name, row.risk.value, row.difference.value, row.difference.error, row.weight]
        for row in report.rows
    ]
    columns = ["candidate", "risk J", "J − J(best)", "error of it", "weight in the stack"]
    dropped = f" Left out: {', '.join(report.dropped)}." if report.dropped else ""
    return [
        Table(columns, rows, "Candidates on the validation events."),
        Text(f"Choice: {report.reason}.{dropped}"),
    ]


def _histories(
    estimator: PersistentEstimator, prefix: str = ""
) -> list[tuple[str, TrainingHistory, list[str] | None]]:
    parts = estimator.named_parts()
    if parts:
        prefixes = {name: f"{prefix}{name}, " if name else prefix for name in parts}
        return [entry for name, part in parts.items() for entry in _histories(part, prefixes[name])]
    found = [getattr(estimator, name, None) for name in ("history_", "tuning_history_")]
    return [
        (f"{prefix}{history.stage}", history, _networks(estimator, history))
        for history in found
        if history is not None and len(history)
    ]


def _networks(estimator: PersistentEstimator, history: TrainingHistory) -> list[str] | None:
    """Name the networks of a member, where the history has one curve for each."""
    if not isinstance(estimator, SingleModelRatio) or history is not estimator.history_:
        return None
    names = estimator.network_names()
    is_each = bool(names) and history.validation_curves().shape[1] == len(names) * estimator.n_members
    return names if is_each else None
