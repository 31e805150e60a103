"""What can be chosen by name: estimators, losses, activations and file formats, ours and yours.

Each registry maps a name to `"module:object"`, so that listing names, as `quasiratio --help` does, loads nothing heavy.
Three ways lead in, and what came in one of them works everywhere a name does, in Python, in configuration files and in
model files:

- a call, such as `qr.register_estimator("mine", MyRatio)`;
- an entry point of an installed package, in the group `quasiratio.estimators`, `.losses`, `.activations` or
  `.formats`;
- `plugins:` in a configuration file, a list of modules that make such calls when they are imported (`load_plugins`).

A model file names its estimator and its losses. These names are looked up here and nowhere else: reading a file never
imports what the file says.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.lookup import Registry, class_name_of, reason_of
from quasiratio.wording import shortened

__all__ = [
    "ACTIVATIONS",
    "DEFAULT_METHOD",
    "ESTIMATORS",
    "FORMATS",
    "LOSSES",
    "EstimatorRegistry",
    "FormatRegistry",
    "Registry",
    "load_plugins",
    "register_activation",
    "register_estimator",
    "register_format",
    "register_loss",
]


class EstimatorRegistry(Registry):
    """Estimators by name, and by the name of their class, which stands in model files."""

    def __init__(
        self,
        what: str,
        group: str,
        built_in: Mapping[str, str],
        other_fits: Iterable[str],
        any_reference: Iterable[str] = (),
    ) -> None:
        super().__init__(what, group, built_in)
        self.other_fits = set(other_fits)
        """Names of those whose `fit` takes something else than the events of two classes."""
        self.any_reference = tuple(any_reference)
        """Names of ours that messages recommend where the reference density may be negative."""

    def _clash(self, found: Mapping[str, Any], name: str, target: str) -> str:
        taken = {class_name_of(other): its_name for its_name, other in found.items()}
        kind = class_name_of(target)
        if kind in taken:
            return f"model files call {taken[kind]!r} by the name of its class, {kind}"
        return super()._clash(found, name, target)

    def remove(self, name: str) -> None:
        """Forget what was registered by a call."""
        super().remove(name)
        if name not in self:
            self.other_fits.discard(name)

    def methods(self) -> list[str]:
        """Return the names that `estimator_by_name`, configuration files and `--method` take.

        Example:
            >>> ESTIMATORS.methods()[:4]
            ['sign-resolved', 'rosmm', 'direct', 'auto']
        """
        return [name for name in self if name not in self.other_fits]

    def any_reference_classes(self) -> str:
        """Return the classes to use where the reference density may be negative, as a sentence has them.

        Example:
            >>> ESTIMATORS.any_reference_classes()
            'SignedMixtureRatio or SignResolvedRatio'
        """
        return " or ".join(class_name_of(self.built_in[name]) for name in self.any_reference)

    def of_kind(self, class_name: str) -> Any:  # noqa: ANN401 - a class
        """Return the class that a model file names, or raise; nothing but what is registered is imported."""
        known = self.class_names()
        if class_name not in known:
            msg = (
                f"Got an estimator of the class {shortened(class_name)}, which model files do not know; expected one of "
                f"{', '.join(known)}. Register your own with quasiratio.register_estimator."
            )
            raise InvalidInputError(msg)
        return self[known[class_name]]


class FormatRegistry(Registry):
    """File formats by their suffix."""

    def suffix_names(self) -> str:
        """Return the suffixes as a sentence has them.

        Example:
            >>> FORMATS.suffix_names()
            '.root, .parquet or .npz'
        """
        *others, last = self
        return f"{', '.join(others)} or {last}"

    def split_tree(self, text: str) -> tuple[str, str | None]:
        """Split `file.root:tree` at the colon after the suffix; other colons belong to the path.

        Example:
            >>> FORMATS.split_tree("C:/a.root:events"), FORMATS.split_tree("C:/a.npz:events")
            (('C:/a.root', 'events'), ('C:/a.npz:events', None))
        """
        marks = [f"{suffix}:" for suffix, file_format in self.items() if file_format.has_trees]
        ends = [text.lower().rfind(mark) + len(mark) for mark in marks if mark in text.lower()]
        return (text[: max(ends) - 1], text[max(ends) :]) if ends else (text, None)


ESTIMATORS = EstimatorRegistry(
    "method",
    "quasiratio.estimators",
    {
        "sign-resolved": "quasiratio.estimators.sign_resolved:SignResolvedRatio",
        "rosmm": "quasiratio.estimators.signed_mixture:SignedMixtureRatio",
        "direct": "quasiratio.estimators.direct:DirectRatio",
        "auto": "quasiratio.estimators.auto:AutoRatio",
        "reweighter": "quasiratio.estimators.reweighter:Reweighter",
        "positive": "quasiratio.estimators.positive:PositiveReweighter",
        "joint": "quasiratio.estimators.joint:JointRatio",
        "polynomial": "quasiratio.estimators.polynomial:PolynomialRatio",
        "variations": "quasiratio.estimators.reweighter_variations:VariationReweighter",
    },
    other_fits=("reweighter", "positive", "joint", "polynomial", "variations"),
    any_reference=("rosmm", "sign-resolved"),
)
"""Estimators that can be saved and exported."""

DEFAULT_METHOD = "sign-resolved"
"""The method of a fit for which none is named."""

LOSSES = Registry(
    "loss",
    "quasiratio.losses",
    {
        "bce": "quasiratio.losses.bce:Bce",
        "mse": "quasiratio.losses.mse:Mse",
        "mlc": "quasiratio.losses.mlc:Mlc",
        "sqr": "quasiratio.losses.sqr:Sqr",
        "pare": "quasiratio.losses.pare:Pare",
        "revert": "quasiratio.losses.revert:Revert",
        "lsif": "quasiratio.losses.lsif:Lsif",
    },
)
"""Losses: called without arguments they give the loss of that name; `"pare"` is the published pair (25619, 58)."""

ACTIVATIONS = Registry(
    "activation",
    "quasiratio.activations",
    {
        "silu": "quasiratio.networks.activations:SILU",
        "relu": "quasiratio.networks.activations:RELU",
        "tanh": "quasiratio.networks.activations:TANH",
        "gelu": "quasiratio.networks.activations:GELU",
        "hardswish": "quasiratio.networks.activations:HARDSWISH",
    },
)
"""Activations of the networks' hidden layers."""


FORMATS = FormatRegistry(
    "file format",
    "quasiratio.formats",
    {
        ".root": "quasiratio.io.formats.root:ROOT",
        ".parquet": "quasiratio.io.formats.parquet:PARQUET",
        ".npz": "quasiratio.io.formats.npz:NPZ",
    },
)
"""File formats by their suffix, each an `io.file_format.FileFormat`."""


def register_estimator(name: str, estimator: Any, *, other_fit: bool = False) -> None:  # noqa: ANN401 - a class
    """Make an estimator of your own known: to model files, and by name to configuration files and `estimator_by_name`.

    Args:
        name: What to call it; a name that is free.
        estimator: A subclass of `RatioEstimator` (or of `PersistentEstimator`), or `"module:Class"`. The name of the
            class stands in model files, and must be free as well.
        other_fit: Whether `fit` takes something else than the events of two classes, so that it is no method of a fit.
    """
    taken = ESTIMATORS.class_names().get(class_name_of(estimator), name)
    if taken != name:
        msg = (
            f"Got an estimator of the class {class_name_of(estimator)}, a name that {taken!r} has in model files; expected "
            "another. Rename the class."
        )
        raise InvalidInputError(msg)
    ESTIMATORS.register(name, estimator)
    if other_fit:
        ESTIMATORS.other_fits.add(name)


def register_loss(loss: Any, name: str | None = None) -> None:  # noqa: ANN401 - a class
    """Make a loss of your own known by name.

    Args:
        loss: A subclass of `RatioLoss` whose parameters have defaults, or `"module:Class"`.
        name: Its `name`; needed for a text only.
    """
    own = name if name is not None else getattr(loss, "name", None)
    if not isinstance(own, str):
        msg = f"Got the loss {loss!r} without a name; expected a class with `name`, or the name as well."
        raise InvalidInputError(msg)
    LOSSES.register(own, loss)


def register_activation(name: str, activation: Any) -> None:  # noqa: ANN401
    """Make an activation of your own known by name.

    Args:
        name: What to call it.
        activation: A function of a tensor, or a `networks.Activation`, which can have an ONNX form as well.
    """
    if isinstance(name, str) and "+" in name:  # type: ignore[redundant-expr]
        msg = f"Got {name!r} as the name of an activation; expected one without +, which joins several."
        raise InvalidInputError(msg)
    ACTIVATIONS.register(name, activation)


def register_format(suffix: str, file_format: Any) -> None:  # noqa: ANN401
    """Make a file format of your own known by its suffix, to everything that reads or writes events.

    Args:
        suffix: Such as `".csv"`, in lower case.
        file_format: An `io.file_format.FileFormat`, or `"module:object"`.
    """
    text = str(suffix)
    if not text.startswith(".") or text != text.lower() or len(text) == 1:
        msg = f"Got {suffix!r} as the suffix of a file format; expected one such as '.csv', in lower case."
        raise InvalidInputError(msg)
    FORMATS.register(suffix, file_format)


def load_plugins(modules: Sequence[str]) -> None:
    """Import modules that register estimators, losses or activations, as `plugins:` in a configuration names them.

    Example:
        >>> load_plugins(["quasiratio_plugin_that_is_not_there"])
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the plugin 'quasiratio_plugin_that_is_not_there', which cannot be ...
    """
    for module in modules:
        if not all(part.isidentifier() for part in module.split(".")):
            msg = f"Got the plugin {module!r}; expected the name of a module, such as my_losses or my_package.losses."
            raise InvalidInputError(msg)
        try:
            importlib.import_module(module)
        except Exception as error:
            fix = (
                "Install it, or set PYTHONPATH." if isinstance(error, ImportError) else "Correct the module."
            )
            msg = (
                f"Got the plugin {module!r}, which cannot be imported ({reason_of(error)}); expected a module that Python finds "
                f"and that registers what is yours. {fix}"
            )
            raise InvalidInputError(msg) from error
