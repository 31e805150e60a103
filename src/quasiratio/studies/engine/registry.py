"""The studies by name, each imported when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.studies.study import Study

__all__ = ["STUDY_MODULES", "study_by_name"]

STUDY_MODULES = {
    "signed-gaussians": "quasiratio.studies.signed_gaussians",
    "weight-variance": "quasiratio.studies.weight_variance",
    "smeft-hh": "quasiratio.studies.smeft_hh",
    "loss-landscapes": "quasiratio.studies.loss_landscapes",
}
"""Where each study lives; the module has it as `STUDY`."""


def study_by_name(name: str) -> Study:
    """Return a study.

    Example:
        >>> study_by_name("wait-variance")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the study 'wait-variance'; expected one of signed-gaussians, \
weight-variance, smeft-hh, loss-landscapes. Perhaps 'weight-variance'?
    """
    if name not in STUDY_MODULES:
        nearest = difflib.get_close_matches(name, STUDY_MODULES, n=1)
        hint = f" Perhaps {nearest[0]!r}?" if nearest else " See quasiratio study list."
        msg = f"Got the study {name!r}; expected one of {', '.join(STUDY_MODULES)}.{hint}"
        raise InvalidInputError(msg)
    study: Study = import_module(STUDY_MODULES[name]).STUDY
    return study
