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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.wording import shortened

__all__ = [
    "ACTIVATIONS",
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


class Registry(Mapping[str, Any]):
    """Objects by name, imported when they are first asked for.

    Args:
        what: What the objects are, in messages.
        group: Group of the entry points under which other packages offer theirs.
        built_in: Our own, as `"module:object"`.

    Example:
        >>> registry = Registry("function", "quasiratio.doctest", {"join": "os.path:join"})
        >>> registry["join"]("a", "b")
        'a/b'
        >>> registry.register("own", len)
        >>> list(registry), registry["own"]("abc")
        (['join', 'own'], 3)
    """

    def __init__(self, what: str, group: str, built_in: Mapping[str, str]) -> None:
        self.what = what
        self.group = group
        self.built_in = dict(built_in)
        self._registered: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        yield from {**self.built_in, **_offered(self.group), **self._registered}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._registered or name in _offered(self.group)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - what was registered
        if name in self.built_in:
            return _imported(self.built_in[name])
        if name in self._registered:
            given = self._registered[name]
        elif name in _offered(self.group):
            given = _offered(self.group)[name]
        else:
            raise KeyError(name)
        return _imported(given) if isinstance(given, str) else given

    def require(self, name: str) -> Any:  # noqa: ANN401
        """Return what has this name, or raise with the names there are."""
        if name not in self:
            msg = f"Got the {self.what} {name!r}; expected one of {', '.join(self)}."
            raise InvalidInputError(msg)
        return self[name]

    def register(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Add an object, or `"module:object"`, under a name that is free.

        The same once more is no error, and neither is a class that was written anew, as in a notebook.
        """
        if not isinstance(name, str) or not name or name.strip() != name:  # type: ignore[redundant-expr]
            msg = f"Got {name!r} as the name of one's own {self.what}; expected a word."
            raise InvalidInputError(msg)
        if name in self and not _is_same(self._registered.get(name), value):
            msg = f"Got the name {name!r} for one's own {self.what}, which is taken; choose another."
            raise InvalidInputError(msg)
        self._registered[name] = value

    def remove(self, name: str) -> None:
        """Forget what was registered by a call; nothing happens where nothing was."""
        self._registered.pop(name, None)

    def class_names(self) -> dict[str, str]:
        """Return names by the name of the class they stand for, without importing it.

        Example:
            >>> Registry("loss", "quasiratio.doctest", {"own": "my_losses:Own"}).class_names()
            {'Own': 'own'}
        """
        targets = {**self.built_in, **_offered(self.group), **self._registered}
        return {_class_name(target): name for name, target in targets.items()}

    def home(self, class_name: str) -> str | None:
        """Return `"module:object"` of one of ours by the name of its class."""
        return next((home for home in self.built_in.values() if _class_name(home) == class_name), None)


def _is_same(known: Any, value: Any) -> bool:  # noqa: ANN401
    if known is value or isinstance(known, str):
        return bool(known == value)
    names = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (known, value)]
    return names[0] == names[1] and None not in names[0]


def _class_name(target: Any) -> str:  # noqa: ANN401 - "module:object", or the object
    return target.rpartition(":")[2] if isinstance(target, str) else str(getattr(target, "__name__", ""))


@cache
def _offered(group: str) -> dict[str, str]:
    """Return the entry points of installed packages."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    return {point.name: point.value for point in entry_points(group=group)}


@cache
def _imported(target: str) -> Any:  # noqa: ANN401
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


class EstimatorRegistry(Registry):
    """Estimators by name, and by the name of their class, which stands in model files."""

    def __init__(self, what: str, group: str, built_in: Mapping[str, str], other_fits: Iterable[str]) -> None:
        super().__init__(what, group, built_in)
        self.other_fits = set(other_fits)
        """Names of those whose `fit` takes something else than the events of two classes."""

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
        "variations": "quasiratio.estimators.variations:VariationReweighter",
    },
    other_fits=("reweighter", "positive", "joint", "polynomial", "variations"),
)
"""Estimators that can be saved and exported."""

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
    taken = ESTIMATORS.class_names().get(_class_name(estimator), name)
    if taken != name:
        msg = (
            f"Got an estimator of the class {_class_name(estimator)}, a name that {taken!r} has in model files; expected "
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
        try:
            importlib.import_module(module)
        except ImportError as error:
            msg = (
                f"Got the plugin {module!r}, which cannot be imported ({error}); expected the name of a module that Python "
                "finds. Install it, or set PYTHONPATH."
            )
            raise InvalidInputError(msg) from error
