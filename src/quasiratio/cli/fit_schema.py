"""What decides a fit: fields with their types, limits and meanings, and a commented file to start from."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from quasiratio.cli.options import ACTIVATIONS, DEFAULT_METHOD, LOSSES, METHODS, listed
from quasiratio.registry import ACTIVATIONS as REGISTERED_ACTIVATIONS
from quasiratio.registry import ESTIMATORS
from quasiratio.registry import LOSSES as REGISTERED_LOSSES

__all__ = [
    "OLD_NAMES",
    "FitConfiguration",
    "OwnFitConfiguration",
    "configuration_text",
    "expected",
    "own_parameters",
    "parameter_names",
]

OLD_NAMES = {
    "members": "n_members",
    "folds": "n_folds",
    "seed": "random_state",
    "steps": "max_steps",
    "threads": "n_threads",
}
"""Keys that are still understood, and the names of Python that they stand for."""
_CHOICES: dict[str, Callable[[], list[str]]] = {
    "method": ESTIMATORS.methods,
    "loss": lambda: list(REGISTERED_LOSSES),
    "tune_loss": lambda: list(REGISTERED_LOSSES),
    "activation": lambda: list(REGISTERED_ACTIVATIONS),
}
"""What can be chosen now, those of plugins among them."""
_LARGEST_SEED = 2**32 - 1
_EXPRESSION = "an expression of columns, such as w_gen * w_pu"
_FILES = "a file such as data.root:tree, a pattern such as 'data/*.root:tree', or a list of them"


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _number(value: object) -> object:
    """YAML takes 1e-3 for text, as it has no point."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _one_of(names: Callable[[], list[str]], joined_by: str | None = None) -> AfterValidator:
    def require(value: str) -> str:
        known = names()
        if any(one not in known for one in (value.split(joined_by) if joined_by else [value])):
            msg = "not among the choices"
            raise ValueError(msg)
        return value

    return AfterValidator(require)


Files = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
Names = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_number)]


def _option(default: Any, meaning: str, expected: str, **limits: Any) -> Any:  # noqa: ANN401 - pydantic's field
    return Field(default, description=meaning, json_schema_extra={"expected": expected}, **limits)


_SOME_HAVE = ("loss", "tune", "tune_loss")
_NOT_OF_THE_ESTIMATOR = {
    "reference",
    "target",
    "output",
    "tree",
    "features",
    "label",
    "weight",
    "reference_weight",
    "target_weight",
    "weights",
    "selection",
    "cache",
    "method",
    "n_folds",
    "plugins",
}


def _count(most: int) -> str:
    return f"a whole number of at least 1 and at most {most:,}"


class FitConfiguration(BaseModel):
    """All that decides a fit. Names are those of Python, keys of the file and, with dashes, options."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    reference: Files = _option(..., "Files of the reference, the sample that will be reweighted.", _FILES)
    target: Files = _option(..., "Files of the target, what it should look like.", _FILES)
    output: str = _option(..., "Directory of the model.", "a path", min_length=1)
    tree: str | None = _option(None, "Tree of ROOT files, where the path names none.", "the name of a tree")
    features: Names | None = _option(
        None,
        "Columns to learn from, patterns such as 'jet_*', elements such as 'fill(jet_pt[0], 0)' and formulas such as "
        "'ptg=pt/1000' among them. By default every numeric column that both samples have, without identifiers and weights.",
        "names or patterns of columns, or formulas",
    )
    label: Names | None = _option(
        None,
        "What to call features in figures and tables, such as 'mll=m_ll [GeV]'.",
        "texts such as mll=m_ll [GeV]",
    )
    weight: str | None = _option(
        None,
        "Signed weight of an event, arithmetic of columns; 1 for unweighted events. Left out: one, if no column is named like a weight.",
        _EXPRESSION,
    )
    reference_weight: str | None = _option(None, "Weight of the reference, where it differs.", _EXPRESSION)
    target_weight: str | None = _option(None, "Weight of the target, where it differs.", _EXPRESSION)
    weights: Names | None = _option(
        None,
        "Several weights instead, the nominal one first: columns, patterns such as 'w_pdf_*', formulas such as 'up=w*sf'. One "
        "fit has a ratio for each. A sample with a weight of its own above has that one for all.",
        "names or patterns of columns, or formulas with names",
    )
    selection: str | None = _option(
        None, "Events to use, a condition on columns.", "a condition, such as pt > 30 and abs(eta) < 2.5"
    )
    cache: str | None = _option(
        None, "Directory of a store of events on disk, for samples beyond memory; used again by a fit of the same files. Left "
        "out: one that is removed at the end, where the samples need more than half of the memory.",
        "a path", min_length=1,
    )  # fmt: skip
    method: Annotated[str, _one_of(_CHOICES["method"])] = _option(
        DEFAULT_METHOD, f"{listed(METHODS)}, or one of your own.", f"one of {', '.join(METHODS)}"
    )  # fmt: skip
    loss: Annotated[str, _one_of(_CHOICES["loss"])] | None = _option(
        None, f"Loss, of a method that has one to choose: {listed(LOSSES)}, or one of your own.", f"one of {', '.join(LOSSES)}"
    )  # fmt: skip
    tune: Literal["none", "coefficients", "all"] = _option(
        "none", "Continue with a signed loss, where the method can: none, coefficients or all.",
        "one of none, coefficients, all",
    )  # fmt: skip
    tune_loss: Annotated[str, _one_of(_CHOICES["tune_loss"])] = _option(
        "pare", "Loss of the tuning, one with negative ratios.", f"one of {', '.join(LOSSES)}"
    )
    n_members: int = _option(
        1,
        "Networks in the ensemble; 8 give an uncertainty per event.",
        _count(1000),
        ge=1,
        le=1000,
    )
    n_folds: int = _option(
        1,
        "Models on parts of the events: with 2 or more, every event gets its ratio from a model that has not seen it.",
        _count(100),
        ge=1,
        le=100,
    )
    random_state: int = _option(
        0, "Seed of every random number.", f"a whole number from 0 to {_LARGEST_SEED}", ge=0, le=_LARGEST_SEED
    )
    max_steps: int | None = _option(
        None, "Optimiser steps of one training. Left out: about twelve passes over the data, and a few other lengths "
        "and strengths judged on validation data.", _count(10**9), ge=1, le=10**9,
    )  # fmt: skip
    batch_size: int | None = _option(
        None,
        "Events per step. Left out: a hundredth of the events, from 256 to 8192.",
        _count(10**8),
        ge=1,
        le=10**8,
    )
    learning_rate: Number | None = _option(
        None,
        "Peak learning rate. Left out: 0.64 over the width of the network, or four times that where validation prefers it.",
        "a positive number of at most 1000",
        gt=0,
        le=1e3,
    )
    hidden_layers: Annotated[list[Annotated[int, Field(ge=1, le=10**5)]], Field(max_length=50)] | None = _option(
        None, "Widths of the hidden layers. Left out: two of 64 up to four features, three of 64 above, of 128 from "
        "400,000 events on.",
        "a list of widths from 1 to 100,000, at most 50 of them, such as [64, 64]",
    )  # fmt: skip
    activation: Annotated[str, _one_of(_CHOICES["activation"], joined_by="+")] | None = _option(
        None,
        f"{listed(ACTIVATIONS)}; silu+hardswish gives each half of an ensemble one. Left out: what suits the method.",
        f"one of {', '.join(ACTIVATIONS)}, or several joined by +",
    )
    schedule: Literal["cosine", "constant"] = _option(
        "cosine", "cosine, or constant (the published one).", "cosine or constant"
    )
    patience: int | None = _option(
        None, "Epochs without a better validation loss before stopping.", _count(10**9), ge=1, le=10**9
    )
    epoch_size: int | None = _option(
        None,
        "Events between two validations. Left out: a twentieth of the fit.",
        _count(10**12),
        ge=1,
        le=10**12,
    )
    weight_decay: Number | None = _option(
        None,
        "Decoupled weight decay. Left out: by the number of events, or what validation prefers.",
        "zero or a positive number of at most 1000",
        ge=0,
        le=1e3,
    )
    reference_density: Literal["auto", "positive", "any"] = _option(
        "auto", "What is known of the reference density: positive, any sign, or auto, which tests the data.",
        "one of auto, positive, any",
    )  # fmt: skip
    target_density: Literal["auto", "positive", "any"] = _option(
        "auto", "The same of the target density.", "one of auto, positive, any"
    )
    periodic: Names | None = _option(
        None, "Features that are angles in radians, besides those with phi or azimuth in their name that fill a turn; none for no "
        "angles at all.",
        "names of features, or none",
    )  # fmt: skip
    objects: str | None = _option(
        None, "Groups of features that are momenta, (pt, eta, phi[, mass]), eta '-' where there is none: "
        "'mu1:mu1_pt,mu1_eta,mu1_phi; met:met,-,met_phi'.",
        "names of objects and features, such as 'mu1:mu1_pt,mu1_eta,mu1_phi; mu2:mu2_pt,mu2_eta,mu2_phi'",
    )  # fmt: skip
    symmetry: Names | None = _option(
        None, "What changes neither density: azimuth (a turn about the beam; azimuths are measured from the first object, "
        "or another with azimuth:NAME), reflection (in phi), eta (a reflection in eta).",
        "azimuth, reflection or eta",
    )  # fmt: skip
    invariants: bool = _option(
        False, "Give the networks masses and distances Delta R of all pairs of objects.", "true or false"
    )
    validation_fraction: Number | None = _option(
        None, "Share of the events held out for validation. Left out: a tenth up to 20,000 events, less for more.",
        "a number between 0 and 1", gt=0, lt=1,
    )  # fmt: skip
    device: str = _option("auto", "auto, cpu, cuda, ...", "the name of a device, such as cpu", min_length=1)
    n_threads: int | None = _option(
        None, "Threads of a training step. Left out: one for small networks, up to four for large ones.",
        _count(1024),
        ge=1, le=1024,
    )  # fmt: skip
    on_divergence: Literal["warn", "raise", "ignore"] = _option(
        "warn",
        "If the risk runs away: warn ends soon and keeps the best validated state, raise stops, ignore leaves it to patience.",
        "warn, raise or ignore",
    )
    plugins: Names | None = _option(
        None, "Modules with estimators, losses or activations of your own, imported before anything is looked up.",
        "names of modules",
    )  # fmt: skip
    normalize: bool = _option(True, "Scale the ratio to a mean of one over the reference.", "true or false")

    def workflow_arguments(self) -> dict[str, Any]:
        """Return what `fit_files` takes besides the parameters of the estimator."""
        return {key: value for key, value in self if key in _NOT_OF_THE_ESTIMATOR - {"plugins"}}

    def estimator_parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that `method` names; what was left out keeps its default."""
        skipped = _NOT_OF_THE_ESTIMATOR | {name for name in _SOME_HAVE if not self.is_parameter(name)}
        values = {key: value for key, value in self if key not in skipped and value is not None}
        return values | ({"periodic": ()} if self.periodic == ["none"] else {})

    def is_parameter(self, name: str) -> bool:
        """Whether the estimator that `method` names has this parameter."""
        return name in parameter_names(self.method)

    def tune_choices(self) -> tuple[str, ...]:
        """Return the ways of tuning that the estimator has; all, where its annotation does not say."""
        if not self.is_parameter("tune"):
            return ("none",)
        try:
            hints = get_type_hints(ESTIMATORS.require(self.method))
        except (NameError, TypeError):  # what is imported for type checkers only
            hints = {}
        return get_args(hints.get("tune")) or get_args(FitConfiguration.model_fields["tune"].annotation)


def parameter_names(method: str) -> list[str]:
    """Return the parameters of the estimator of a method.

    Example:
        >>> parameter_names("direct")[0]
        'loss'
    """
    return list(inspect.signature(ESTIMATORS.require(method)).parameters)


def own_parameters(method: object) -> list[str]:
    """Return the parameters of somebody's own estimator that a configuration has beside those of ours.

    Example:
        >>> own_parameters("direct")
        []
    """
    if not isinstance(method, str) or method in ESTIMATORS.built_in or method not in ESTIMATORS.methods():
        return []
    return [
        name for name in parameter_names(method) if name not in {*FitConfiguration.model_fields, "verbose"}
    ]


class OwnFitConfiguration(FitConfiguration):
    """A configuration with parameters of somebody's own estimator, which judges their values itself."""

    model_config = ConfigDict(extra="allow")


def expected(key: str) -> str:
    """Return what a field takes, for messages.

    Example:
        >>> expected("method")
        'one of sign-resolved, rosmm, direct, auto'
    """
    if key in _CHOICES:
        return f"one of {', '.join(_CHOICES[key]())}{', or several joined by +' * (key == 'activation')}"
    extra = FitConfiguration.model_fields[key].json_schema_extra
    return str(extra["expected"]) if isinstance(extra, dict) else "another value"


_HEADER = """\
# A fit, for: quasiratio fit THIS_FILE. Options on the command line override these lines.
# Paths are relative to the directory in which the command runs."""
_EXAMPLES: dict[str, Any] = {
    "reference": "reference.root:events",
    "target": "target.root:events",
    "output": "model",
}
_SUGGESTIONS: dict[str, Any] = {
    "plugins": ["my_losses"],
    "tree": "events",
    "cache": "events-on-disk",
    "features": ["pt", "eta", "jet_*", "ptg=pt/1000"],
    "label": ["ptg=p_T [GeV]"],
    "objects": "mu1:mu1_pt,mu1_eta,mu1_phi; mu2:mu2_pt,mu2_eta,mu2_phi",
    "symmetry": ["azimuth"],
    "weight": "w_gen * w_pu",
    "reference_weight": "w_gen",
    "target_weight": "w_gen * w_pu",
    "weights": ["w_nominal", "w_up", "w_down"],
    "selection": "pt > 30 and abs(eta) < 2.5",
    "loss": "bce",
    "activation": "silu",
    "max_steps": 3000,
    "learning_rate": 0.01,
    "hidden_layers": [64, 64],
    "patience": 20,
    "epoch_size": 100000,
}


def configuration_text(given: Mapping[str, Any]) -> str:
    """Return a YAML file with every key explained; keys that are at their default stand behind a `#`.

    Args:
        given: Values to fill in.

    Example:
        >>> [line for line in configuration_text({"n_members": 8}).splitlines() if line.startswith("n_members")]
        ['n_members: 8']
    """
    blocks = [_HEADER]
    for key, field in FitConfiguration.model_fields.items():
        comment = textwrap.fill(field.description or "", 100, initial_indent="# ", subsequent_indent="# ")
        is_set = key in given or key in _EXAMPLES
        value = given.get(key, _EXAMPLES.get(key))
        if not is_set:
            value = _SUGGESTIONS.get(key, field.default)
        # JSON is YAML, in quotes where YAML might see something else.
        blocks.append(f"{comment}\n{'' if is_set else '# '}{key}: {_written(value)}")
    own = [key for key in given if key not in FitConfiguration.model_fields]
    blocks += [f"# Of the method {given['method']}.\n{key}: {_written(given[key])}" for key in own]
    return "\n\n".join(blocks) + "\n"


def _written(value: Any) -> str:  # noqa: ANN401 - plain values
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return json.dumps(value[0])
    return json.dumps(value)
