"""The studies by name: the folders of `quasiratio.studies` that have a `STUDY`, imported when they are asked for.

A study is one folder. Its name on the command line is the folder's, with hyphens.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import quasiratio.studies
from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.studies.engine.study import Study

__all__ = ["study_by_name", "study_names"]

_ORDER = ("signed-gaussians", "loss-landscapes", "weight-variance", "smeft-hh")
"""Those of the paper, as they come there; others follow in alphabetical order."""
_OTHER_ROOMS = ("engine", "output")


def study_names() -> list[str]:
    """Return the names of all studies, without importing any.

    Example:
        >>> study_names()[:2]
        ['signed-gaussians', 'loss-landscapes']
    """
    found = {
        path.parent.name.replace("_", "-")
        for place in quasiratio.studies.__path__
        for path in Path(place).glob("*/__init__.py")
        if path.parent.name not in _OTHER_ROOMS
    }
    return [name for name in _ORDER if name in found] + sorted(found.difference(_ORDER))


def study_by_name(name: str) -> Study:
    """Return a study.

    Example:
        >>> study_by_name("wait-variance")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the study 'wait-variance'; expected one of signed-gaussians, \
loss-landscapes, weight-variance, smeft-hh. Perhaps 'weight-variance'?
    """
    names = study_names()
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f" Perhaps {nearest[0]!r}?" if nearest else ""
        msg = f"Got the study {name!r}; expected one of {', '.join(names)}.{hint}"
        raise InvalidInputError(msg)
    study: Study = import_module(f"quasiratio.studies.{name.replace('-', '_')}").STUDY
    return study
