"""`quasiratio models show`: what is known of a model, without reading its weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.options import Json, Plugins, split_list
from quasiratio.cli.terminal import Printer
from quasiratio.registry import load_plugins
from quasiratio.wording import percent, range_texts

if TYPE_CHECKING:
    from quasiratio.estimators.fit_check import FitCheck
    from quasiratio.estimators.mined_check import MinedCheck
    from quasiratio.estimators.persistent import ModelFileDocument
    from quasiratio.workflows.fitted_model import SampleNotes

__all__ = ["models_app"]

models_app = typer.Typer(help="Look at saved models.", rich_markup_mode=None, no_args_is_help=True)


@models_app.callback()
def models() -> None:
    """Look at saved models."""


@models_app.command("show")
def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    plugins: Plugins = None,
    as_json: Json = False,
) -> None:
    """Print what is known of a model: features, samples, training, versions."""
    load_plugins(split_list(plugins) or [])
    from quasiratio.estimators.loading import describe  # noqa: PLC0415 - keeps --help fast

    content = describe(model)
    printer = Printer(as_json=as_json)
    plain = content.model_dump(mode="json")
    printer.result({"path": str(model), **plain})
    _print(printer, model, content, plain)


def _print(printer: Printer, path: Path, content: ModelFileDocument, plain: dict[str, Any]) -> None:
    from quasiratio.workflows.fitted_model import fit_notes  # noqa: PLC0415 - keeps --help fast

    estimator = plain["estimator"]
    notes = fit_notes(content.notes, str(path))
    checks = _checks(content.estimator)
    for check in checks:
        if check.status == "failed":
            printer.line(str(check))
    printer.line(f"{path}: {estimator['kind']}")
    for check in checks:
        if check.status != "failed":
            printer.line(str(check))
    fingerprint = estimator["fingerprint"]
    ranges = fingerprint["ranges"]
    rows = [[name, notes.kinds.get(name, ""), *range_texts(*bounds)] for name, bounds in ranges.items()]
    headings = ["feature", "type", "lowest", "highest"]
    if notes.labels:
        rows = [[*row, notes.labels.get(row[0], "")] for row in rows]
        headings.append("label")
    printer.table("", headings, rows)
    for name, formula in notes.formulas.items():
        printer.line(f"{name} = {formula}")
    for role, sample in (("Reference", notes.reference), ("Target", notes.target)):
        if sample.files:
            printer.line(
                f"{role}: {sample.n_events} events of {', '.join(sample.files)}, weight {sample.weight or '1'}"
                + _sums(sample)
            )
    if notes.selection:
        printer.line(f"Selection: {notes.selection}")
    for name, value in _flat(estimator, skipped=("kind", "fingerprint", "features", "check")):
        printer.line(f"{name}: {value}")
    printer.line(f"Events: {fingerprint['n_events']}, SHA-256 {fingerprint['sha256']}")
    printer.line("Versions: " + ", ".join(f"{name} {number}" for name, number in plain["versions"].items()))


def _sums(sample: SampleNotes) -> str:
    """Say what was noted of the weights; notes may be of somebody else."""
    known = []
    if sample.sum_of_weights is not None:
        known.append(f", sum {sample.sum_of_weights:.6g}")
    if sample.negative_fraction is not None:
        known.append(f", {percent(sample.negative_fraction)} negative")
    return "".join(known)


def _checks(document: Any) -> list[FitCheck | MinedCheck]:  # noqa: ANN401 - the document of any estimator
    """Return the check of an estimator, or those of the folds of a reweighter, with those of the variations that failed."""
    from quasiratio.estimators.fit_check import FitCheck  # noqa: PLC0415 - keeps --help fast
    from quasiratio.estimators.mined_check import MinedCheck, MinedCheckDocument  # noqa: PLC0415

    parts = [part.check for part in getattr(document, "ratios", [document]) if hasattr(part, "check")]
    folds = [*getattr(document, "original_factors", []), *getattr(document, "target_factors", [])]
    parts += [one.check for fold in folds for one in fold[:1] if one.check.status == "failed"]
    return [
        MinedCheck.stored(check) if isinstance(check, MinedCheckDocument) else FitCheck.stored(check)
        for check in parts
    ]


def _flat(value: Any, *, skipped: tuple[str, ...] = (), prefix: str = "") -> list[tuple[str, str]]:  # noqa: ANN401
    """Return the leaves of a document with the path to each; lists stay on one line, what is not set is left out."""
    if isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        value = dict(enumerate(value))  # the folds of a reweighter, the candidates of a stack
    if not isinstance(value, dict):
        return [] if value is None else [(prefix, str(value))]
    return [
        leaf
        for name, inner in value.items()
        if name not in skipped
        for leaf in _flat(inner, skipped=skipped, prefix=f"{prefix}.{name}" if prefix else str(name))
    ]
