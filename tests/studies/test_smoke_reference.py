"""Smoke runs against their committed results: new numbers must lie within the spread over seeds.

The files in `reference/` are the `results.json` of `quasiratio study NAME --preset smoke --seeds 5` (smeft-hh:
3). The seed that is run is one of theirs, so that on the machine which made them this can only find a change of
the code; another machine rounds differently, which is as good as another seed. Entropies scatter too much to judge by.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from quasiratio.studies.registry import STUDY_MODULES, study_by_name

REFERENCE = Path(__file__).parent / "reference"
SPREADS = 6.0  # one seed against the median of five, whose spread is itself known to a third
FLOOR = 0.05  # of the value: spreads of five seeds can be small by chance


@pytest.mark.parametrize("name", ["signed-gaussians", "loss-landscapes", "smeft-hh"])
def test_smoke_agrees_with_its_reference(name: str, tmp_path: Path) -> None:
    stored = json.loads((REFERENCE / f"{name}-smoke.json").read_text())
    study = study_by_name(name)
    settings = {**study.presets["smoke"], "seeds": 1}
    for key, value in study.presets["smoke"].items():
        assert stored["settings"][key] == value or key == "seeds", "make the reference again"
    rows = [
        row
        for task in study.tasks(settings)
        for row in study.compute({**task.arguments, "directory": str(tmp_path)})
    ]
    found = {result.name: result.value for result in _results(name, settings, rows)}
    expected = {result["name"]: result for result in stored["results"]}
    judged = [
        one for one in found if not one.endswith("D_S2") and "/ MSE /" not in one
    ]  # a risk that runs away
    assert len(judged) >= 4
    for one in judged:
        reference = expected[one]
        tolerance = SPREADS * (reference["spread"] or 0.0) + FLOOR * abs(reference["value"])
        assert abs(found[one] - reference["value"]) < tolerance, one


def _results(name: str, settings, rows):
    """Return the numbers without drawing the figures, which other tests do."""
    if name == "signed-gaussians":
        from quasiratio.studies.signed_gaussians.presentation import toy_results

        return toy_results(rows)
    if name == "smeft-hh":
        from quasiratio.studies.smeft_hh.presentation import hh_results

        return hh_results(rows)
    return study_by_name(name).present(settings, rows).results


@pytest.mark.parametrize("name", STUDY_MODULES)
def test_quick_has_a_complete_reference_of_its_own_settings(name: str) -> None:
    """The numbers that `study NAME --compare` is given to see what a change has done."""
    stored = json.loads((REFERENCE / f"{name}-quick.json").read_text())
    assert stored["study"] == name
    assert stored["complete"]
    assert stored["settings"] == {**study_by_name(name).presets["quick"], "preset": "quick"}
    assert all(math.isfinite(result["value"]) for result in stored["results"])
    assert "+changes" not in stored["commit"]
