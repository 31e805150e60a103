"""`quasiratio fit`: learn the ratio of two samples from files, and write the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quasiratio.cli.options import (
    ACTIVATIONS,
    DEFAULT_METHOD,
    LOSSES,
    METHODS,
    AllowLarge,
    Features,
    Json,
    Labels,
    Plugins,
    Quiet,
    ReferenceWeight,
    Selection,
    TargetWeight,
    Tree,
    Weight,
    Weights,
    choices,
    listed,
    named,
    split_files,
    split_list,
)
from quasiratio.cli.terminal import Printer
from quasiratio.errors import InvalidInputError
from quasiratio.registry import ESTIMATORS
from quasiratio.registry import LOSSES as REGISTERED_LOSSES

if TYPE_CHECKING:
    from quasiratio.workflows import FittedFiles

__all__ = ["fit"]

_YAML = (".yaml", ".yml")


def fit(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="REF TARGET|CONFIG", help="Two samples, or one YAML file with everything."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="DIR", help="Directory of the model.")
    ] = None,
    reference: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A file of the reference; may be repeated.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A file of the target; may be repeated.")
    ] = None,
    features: Features = None,
    label: Labels = None,
    weight: Weight = None,
    reference_weight: ReferenceWeight = None,
    target_weight: TargetWeight = None,
    weights: Weights = None,
    selection: Selection = None,
    tree: Tree = None,
    allow_large: AllowLarge = False,
    cache: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Store of events on disk, for samples beyond memory; used again."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"{listed(METHODS)}; {DEFAULT_METHOD} by default.", autocompletion=ESTIMATORS.methods
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help=f"Of a method that has one to choose: {listed(LOSSES)}.",
            autocompletion=lambda: list(REGISTERED_LOSSES),
        ),
    ] = None,
    tune: Annotated[
        str | None,
        typer.Option(
            help="Continue with a signed loss: none, coefficients or all.",
            autocompletion=choices("none", "coefficients", "all"),
        ),
    ] = None,
    tune_loss: Annotated[
        str | None,
        typer.Option(
            help="Loss of the tuning, one with negative ratios; pare by default.",
            autocompletion=lambda: list(REGISTERED_LOSSES),
        ),
    ] = None,
    n_members: Annotated[
        int | None, typer.Option("--n-members", "--members", help="Networks in the ensemble.")
    ] = None,
    n_folds: Annotated[
        int | None,
        typer.Option(
            "--n-folds",
            "--folds",
            help="With 2 or more: as many models, so that each event gets one that has not seen it.",
        ),
    ] = None,
    random_state: Annotated[
        int | None, typer.Option("--random-state", "--seed", help="Seed of every random number.")
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            "--max-steps",
            "--steps",
            help="Optimiser steps; left out, length and strength follow from the data.",
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Events per step.")] = None,
    reference_density: Annotated[
        str | None,
        typer.Option(
            help="auto (tests the data), positive (a ratio without poles) or any.",
            autocompletion=choices("auto", "positive", "any"),
        ),
    ] = None,
    target_density: Annotated[
        str | None,
        typer.Option(help="The same of the target.", autocompletion=choices("auto", "positive", "any")),
    ] = None,
    periodic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="More features that are angles in radians, or none."),
    ] = None,
    objects: Annotated[
        str | None,
        typer.Option(metavar="GROUPS", help="Momenta, such as 'mu1:mu1_pt,mu1_eta,mu1_phi; mu2:...'."),
    ] = None,
    symmetry: Annotated[
        list[str] | None,
        typer.Option(metavar="KINDS", help="Of the objects: azimuth (or azimuth:NAME), reflection, eta."),
    ] = None,
    invariants: Annotated[
        bool, typer.Option("--invariants", help="Add masses and distances of all pairs of objects.")
    ] = False,
    n_threads: Annotated[
        int | None, typer.Option("--n-threads", "--threads", help="Threads of a training step.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    hidden_layers: Annotated[
        str | None, typer.Option(metavar="WIDTHS", help="Widths of the hidden layers, such as 64,64.")
    ] = None,
    activation: Annotated[
        str | None, typer.Option(help=f"{listed(ACTIVATIONS)}, or two as in silu+hardswish.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help="cosine or constant.")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement before stopping.")] = None,
    epoch_size: Annotated[int | None, typer.Option(help="Events between two validations.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Decoupled weight decay.")] = None,
    validation_fraction: Annotated[float | None, typer.Option(help="Share of events held out.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, ...")] = None,
    on_divergence: Annotated[
        str | None, typer.Option(help="warn, raise or ignore, if the risk runs away.")
    ] = None,
    plugins: Plugins = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print a commented YAML file with these options, and stop.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted fit from its last epoch.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn the ratio of TARGET to REF, and write a model.

    Files are .root (file.root:tree), .parquet or .npz; several with commas or a pattern. Weights may be negative.
    """
    options = {
        "output": output,
        "features": split_list(features),
        "label": label or None,
        "weight": weight,
        "reference_weight": reference_weight,
        "target_weight": target_weight,
        "weights": split_list(weights),
        "selection": selection,
        "tree": tree,
        "cache": cache,
        "method": method,
        "loss": loss,
        "tune": tune,
        "tune_loss": tune_loss,
        "n_members": n_members,
        "n_folds": n_folds,
        "random_state": random_state,
        "max_steps": max_steps,
        "batch_size": batch_size,
        "reference_density": reference_density,
        "target_density": target_density,
        "periodic": split_list(periodic),
        "objects": objects,
        "symmetry": split_list(symmetry),
        "invariants": invariants or None,
        "n_threads": n_threads,
        "learning_rate": learning_rate,
        "hidden_layers": _widths(hidden_layers),
        "activation": activation,
        "schedule": schedule,
        "patience": patience,
        "epoch_size": epoch_size,
        "weight_decay": weight_decay,
        "validation_fraction": validation_fraction,
        "device": device,
        "on_divergence": on_divergence,
        "plugins": split_list(plugins),
    }
    path, samples = _samples(files or [], reference, target)
    given = samples | {
        named(context, key).removeprefix("--").replace("-", "_"): value
        for key, value in options.items()
        if value is not None
    }

    from quasiratio.cli.configuration import fit_configuration, partial_configuration  # noqa: PLC0415

    if print_config:
        from quasiratio.cli.fit_schema import configuration_text  # noqa: PLC0415

        typer.echo(configuration_text(partial_configuration(path, given)), nl=False)
        return

    from quasiratio.training.ranks import joined_ranks  # noqa: PLC0415 - keeps --help fast
    from quasiratio.workflows import fit_files  # noqa: PLC0415

    with joined_ranks() as ranks, ranks.one_voice():
        with ranks.agreed():
            configuration = fit_configuration(path, given)
        printer = Printer(as_json=as_json and ranks.is_first, quiet=quiet or not ranks.is_first)
        fitted = fit_files(
            **configuration.workflow_arguments(),
            **configuration.estimator_parameters(),
            allow_large=allow_large,
            resume=resume,
            overwrite=force,
            say=printer.line,
            quiet=printer.quiet,
        )
    printer.result(fitted.as_dict())
    for line in _lines(fitted):
        printer.line(line)


def _samples(
    files: list[str], reference: list[str] | None, target: list[str] | None
) -> tuple[Path | None, dict[str, Any]]:
    """Tell a configuration from samples, and join what came as arguments and as options."""
    path = Path(files[0]) if len(files) == 1 and files[0].lower().endswith(_YAML) else None
    named = {"reference": reference, "target": target}
    given = {
        key: [name for one in value for name in split_files(one)] for key, value in named.items() if value
    }
    if path is not None or not files:
        return path, given
    if len(files) != 2 or given:
        msg = (
            f"Got {len(files)} file argument(s)"
            + (" beside --reference or --target" if given else "")
            + "; expected "
            "REF and TARGET, or one YAML file. Join several files of a sample with commas, or repeat --reference "
            "and --target instead."
        )
        raise InvalidInputError(msg)
    return None, {"reference": split_files(files[0]), "target": split_files(files[1])}


def _widths(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(width) for width in text.strip("[] ").split(",") if width.strip()]
    except ValueError:
        msg = f"Got --hidden-layers {text}; expected widths with commas, such as 64,64."
        raise InvalidInputError(msg) from None


def _lines(fitted: FittedFiles) -> list[str]:
    """Return the result for people; a ratio that should not be used says so first."""
    from quasiratio.estimators.densities import density_lines  # noqa: PLC0415 - keeps --help fast

    check, first = fitted.estimator.fit_check_, fitted.parts[0]
    lines = [str(check)] if check.status == "failed" else []
    for number, part in enumerate(fitted.parts):
        fold = f"Fold {number}: " if fitted.has_folds else ""
        lines += [fold + line for line in _training_lines(part)]
    lines += _input_lines(first)
    lines += density_lines(first.reference_density_, first.target_density_)
    if check.status != "failed":
        lines.append(str(check))
    return [*lines, f"Fitted in {fitted.seconds:.1f} s.", f"Model: {fitted.path}"]


def _input_lines(part: Any) -> list[str]:  # noqa: ANN401 - any ratio estimator
    """Say what was made of the features."""
    fitted = next(iter(part.fitted_parts().values()), part)  # of several candidates the first, all alike
    lines = []
    dropped, angles = (getattr(fitted, f"{kind}_features_", []) for kind in ("dropped", "periodic"))
    if dropped:
        lines.append(f"Left out, being constant or the same as another feature: {', '.join(dropped)}")
    objects = fitted.model_.scaling.objects if hasattr(fitted, "model_") else None
    if objects is not None:
        lines.append(objects.describe())
    if angles:
        lines.append(
            f"Angles, taken as cosine and sine: {', '.join(angles)} (--periodic names more, or none)"
        )
    if fitted.fill_:
        lines.append(f"With an input that says whether the value is there: {', '.join(fitted.fill_)}")
    sentinels = [f"{name} ({value:g})" for name, value in getattr(fitted, "sentinels_", {}).items()]
    if sentinels:
        lines.append(f"Taken for missing values, being far from all others: {', '.join(sentinels)}")
    return lines


def _training_lines(part: Any) -> list[str]:  # noqa: ANN401 - any ratio estimator
    """Say how a ratio estimator was trained."""
    import numpy as np  # noqa: PLC0415 - keeps --help fast

    report = getattr(part, "report_", None)
    if report is not None:
        return str(report).splitlines()
    losses = part.history_.kept_loss
    losses = losses[np.isfinite(losses)]
    told = (
        f"validation loss {losses.mean():.5f} of the state that was kept"
        if len(losses)
        else "of which none was better"
    )
    tried = getattr(part, "trials_", None)
    if tried is not None and tried.is_mean:
        risks = " and ".join(f"{tried.trials[index].risk:.5f}" for index in (0, -1))
        told = f"validation losses {risks} of the two states that were averaged"
    return [f"{'' if tried is None else f'{tried} '}{part.history_.n_steps} steps, {told}."]
