"""The methods of the study: those that all studies have, and some that get the momenta as objects.

With objects, azimuths are measured from the hardest muon: a turn of the event about the beam changes no density. Masses and
distances of pairs of objects are coordinates as well; the mass of the four muons together and their transverse momentum,
on which the ratio is judged, are not.
"""

from __future__ import annotations

from typing import Any

from quasiratio.generators.gg_hh import OBJECTS
from quasiratio.studies.ratio_methods import FIGURE_LABELS, METHOD_LABELS

__all__ = ["HH_FIGURE_LABELS", "HH_LABELS", "OBJECT_PARAMETERS", "WITH_OBJECTS"]

WITH_OBJECTS = {"sign-resolved-objects": "sign-resolved", "auto-objects": "auto"}
"""Methods with objects, and what they are called without."""

_OBJECT_LABELS = {name: f"{METHOD_LABELS[plain]}, objects" for name, plain in WITH_OBJECTS.items()}
HH_LABELS = {name: label for name, label in METHOD_LABELS.items() if name != "exact"} | _OBJECT_LABELS
HH_LABELS["exact"] = "hard process"
"""What tables call a method."""

HH_FIGURE_LABELS = FIGURE_LABELS | _OBJECT_LABELS
"""What figures call it."""

OBJECT_PARAMETERS: dict[str, Any] = {
    "objects": {name: list(columns) for name, columns in OBJECTS.items()},
    "symmetry": ["azimuth"],
    "invariants": True,
}
