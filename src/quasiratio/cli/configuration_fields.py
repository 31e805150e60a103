"""The fields of the configuration of a fit: their types, limits, meanings, and what to expect instead."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["FitConfiguration"]

Method = Literal["sign-resolved", "rosmm", "direct", "auto"]
Loss = Literal["bce", "mse", "mlc", "sqr", "pare", "revert", "lsif"]
_LARGEST_SEED = 2**32 - 1
_COUNT = "a whole number of at least 1"
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


Files = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
Names = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_number)]


def _option(default: Any, meaning: str, expected: str, **limits: Any) -> Any:  # noqa: ANN401 - pydantic's field
    return Field(default, description=meaning, json_schema_extra={"expected": expected}, **limits)


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
    "selection",
    "method",
    "folds",
}


class FitConfiguration(BaseModel):
    """All that decides a fit. Field names are the keys of the file and, with dashes, the options."""

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
    selection: str | None = _option(
        None, "Events to use, a condition on columns.", "a condition, such as pt > 30 and abs(eta) < 2.5"
    )
    method: Method = _option(
        "sign-resolved", "sign-resolved, rosmm, direct, or auto, which tries several.",
        "one of sign-resolved, rosmm, direct, auto",
    )  # fmt: skip
    loss: Loss | None = _option(
        None, "Loss of the method direct: bce, mse, mlc, sqr, pare, revert or lsif. Left out: bce.",
        "one of bce, mse, mlc, sqr, pare, revert, lsif",
    )  # fmt: skip
    tune: Literal["none", "coefficients", "all"] = _option(
        "none", "Continue with a signed loss: none, all, or coefficients (rosmm only).",
        "one of none, coefficients, all",
    )  # fmt: skip
    tune_loss: Literal["pare", "lsif"] = _option("pare", "Loss of the tuning.", "pare or lsif")
    members: int = _option(
        1,
        "Networks in the ensemble; 8 give an uncertainty per event.",
        _COUNT + " and at most 1000",
        ge=1,
        le=1000,
    )
    folds: int = _option(
        1,
        "Models on parts of the events: with 2 or more, every event gets its ratio from a model that has not seen it.",
        _COUNT + " and at most 100",
        ge=1,
        le=100,
    )
    seed: int = _option(
        0, "Seed of every random number.", f"a whole number from 0 to {_LARGEST_SEED}", ge=0, le=_LARGEST_SEED
    )
    steps: int | None = _option(
        None, "Optimiser steps of one training. Left out: about twelve passes over the data, and a few other lengths "
        "and strengths judged on validation data.", _COUNT, ge=1, le=10**9,
    )  # fmt: skip
    batch_size: int | None = _option(
        None,
        "Events per step. Left out: a hundredth of the events, from 256 to 8192.",
        _COUNT,
        ge=1,
        le=10**8,
    )
    learning_rate: Number | None = _option(
        None,
        "Peak learning rate. Left out: 0.64 over the width of the network.",
        "a positive number",
        gt=0,
        le=1e3,
    )
    hidden_layers: Annotated[list[Annotated[int, Field(ge=1, le=10**5)]], Field(max_length=50)] | None = _option(
        None, "Widths of the hidden layers. Left out: two of 64 up to four features, three of 64 above, of 128 from "
        "400,000 events on.",
        "a list of widths, such as [64, 64]",
    )  # fmt: skip
    activation: Literal["silu", "hardswish", "relu", "tanh", "gelu", "silu+hardswish"] | None = _option(
        None,
        "silu, hardswish, relu, tanh or gelu; silu+hardswish gives each half of an ensemble one. Left out: what suits "
        "the method.",
        "one of silu, hardswish, relu, tanh, gelu, silu+hardswish",
    )
    schedule: Literal["cosine", "constant"] = _option(
        "cosine", "cosine, or constant (the published one).", "cosine or constant"
    )
    patience: int | None = _option(
        None, "Epochs without a better validation loss before stopping.", _COUNT, ge=1, le=10**9
    )
    epoch_size: int | None = _option(
        None, "Events between two validations. Left out: a twentieth of the fit.", _COUNT, ge=1, le=10**12
    )
    weight_decay: Number | None = _option(
        None,
        "Decoupled weight decay. Left out: by the number of events, or what validation prefers.",
        "zero or a positive number",
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
        None, "Features that are angles in radians. Left out: those with phi or azimuth in their name that fill a turn.",
        "names of features",
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
    threads: int | None = _option(
        None, "Threads of a training step. Left out: one for small networks, up to four for large ones.", _COUNT,
        ge=1, le=1024,
    )  # fmt: skip
    on_divergence: Literal["warn", "raise"] = _option(
        "warn", "If the risk runs away: warn keeps the best validated state, raise stops.", "warn or raise"
    )
    normalize: bool = _option(True, "Scale the ratio to a mean of one over the reference.", "true or false")

    def estimator_parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that `method` names; what was left out keeps its default."""
        names = {"members": "n_members", "seed": "random_state", "steps": "max_steps", "threads": "n_threads"}
        own = {"direct": {"loss"}, "auto": set()}.get(self.method, {"tune", "tune_loss"})
        skipped = _NOT_OF_THE_ESTIMATOR | ({"loss", "tune", "tune_loss"} - own)
        return {names.get(key, key): value for key, value in self if key not in skipped and value is not None}
