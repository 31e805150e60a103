"""Objects by name, imported when they are first asked for: the mechanism under `quasiratio.registry`."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from quasiratio.errors import InvalidInputError, PluginWarning, QuasiratioError
from quasiratio.wording import shortened

__all__ = ["Registry", "class_name_of", "reason_of"]


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
        yield from self._targets()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._targets()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - what was registered
        if name in self.built_in:
            return _imported(self.built_in[name])
        given = self._targets()[name]
        if not isinstance(given, str):
            return given
        try:
            return _imported(given)
        except Exception as error:
            msg = (
                f"Got the {self.what} {name!r}, which stands for {given!r} and cannot be imported ({reason_of(error)}); "
                "expected 'module:object' of a module that Python finds. Mend or remove the package that offers it."
            )
            raise InvalidInputError(msg) from error

    def _targets(self) -> dict[str, Any]:
        """Return everything by name: ours, what packages offer and what was registered; nobody replaces ours."""
        found: dict[str, Any] = dict(self.built_in)
        for name, target in _offered(self.group).items():
            clash = self._clash(found, name, target)
            if clash:
                _left_out(f"Left out the {self.what} {name!r} that a package offers as {target!r}: {clash}.")
            else:
                found[name] = target
        return {**found, **self._registered}

    def _clash(self, found: Mapping[str, Any], name: str, _target: str) -> str:
        return f"the name {name!r} is taken" if name in found else ""

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
        return {class_name_of(target): name for name, target in self._targets().items()}

    def built_in_classes(self) -> list[str]:
        """Return the names of our own classes."""
        return [class_name_of(home) for home in self.built_in.values()]

    def home(self, class_name: str) -> str | None:
        """Return `"module:object"` of one of ours by the name of its class."""
        return next((home for home in self.built_in.values() if class_name_of(home) == class_name), None)


def _is_same(known: Any, value: Any) -> bool:  # noqa: ANN401
    if known is value or isinstance(known, str):
        return bool(known == value)
    names = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (known, value)]
    return names[0] == names[1] and None not in names[0]


def class_name_of(target: Any) -> str:  # noqa: ANN401
    """Return the name of a class from it, or from `"module:Class"`."""
    return target.rpartition(":")[2] if isinstance(target, str) else str(getattr(target, "__name__", ""))


@cache
def _offered(group: str) -> dict[str, str]:
    """Return the entry points of installed packages; of several with one name the first."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    found: dict[str, str] = {}
    for point in entry_points(group=group):
        if found.setdefault(point.name, point.value) != point.value:
            _left_out(
                f"Left out {point.value!r}, which a package offers as {point.name!r} in {group}: the name is that of "
                f"{found[point.name]!r}."
            )
    return found


@cache
def _left_out(sentence: str) -> None:
    """Warn, once in a process."""
    warnings.warn(f"{sentence} Remove the package, or ask for another name.", PluginWarning, stacklevel=5)


def reason_of(error: BaseException) -> str:
    """Return why something could not be imported, in one line."""
    lines = str(error).strip().splitlines()
    text = shortened(lines[0].rstrip("."), 200) if lines else ""
    return (
        text
        if isinstance(error, ImportError | QuasiratioError) and text
        else f"{type(error).__name__}: {text}".rstrip(": ")
    )


@cache
def _imported(target: str) -> Any:  # noqa: ANN401
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found
