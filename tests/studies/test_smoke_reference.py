"""Smoke runs against their committed numbers, the same seed: a change of the code that moves one by a percent is seen.

The files in `reference/` are written by `python -m tests.studies.smoke_numbers`. So short a training does not
amplify rounding: with the instructions of another processor (`ATEN_CPU_CAPABILITY=default`, `MKL_CBWR=COMPATIBLE`,
`ONEDNN_MAX_CPU_ISA=SSE41`) the numbers move by 2e-3 at most, mostly by 1e-7. What runs away amplifies it, and
is compared on the platform of the reference alone, where all numbers are the same.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from tests.studies.smoke_numbers import REFERENCE, Numbers, smoke_numbers, smoke_settings, this_platform

from quasiratio.studies.engine.registry import study_by_name, study_names

SAME_PLATFORM, OTHER_PLATFORM = 1e-6, 5e-3
AMPLIFIES_ROUNDING = re.compile(r"/rosmm_c |/MSE |^seed=.* (area|entropy)")
"""A tuning of coefficients that finds no minimum, a risk with a pole, and differences of nearly equal losses."""


def differences(found: Numbers, expected: Numbers, *, same_platform: bool) -> list[str]:
    """Return the numbers that differ, and those that only one side has."""
    differing = []
    tolerance = SAME_PLATFORM if same_platform else OTHER_PLATFORM
    for row in sorted({*found, *expected}):
        ours, theirs = found.get(row, {}), expected.get(row, {})
        for name in sorted({*ours, *theirs}):
            if AMPLIFIES_ROUNDING.search(f"{row} {name}") and not same_platform:
                continue
            one, other = ours.get(name), theirs.get(name)
            if one is None or other is None:
                same = name in ours and name in theirs and one is other
            else:
                same = math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9)
            if not same:
                differing.append(f"{row} {name}: {one} now, {other} in the reference")
    return differing


@pytest.mark.parametrize("name", study_names())
def test_smoke_agrees_with_its_reference(name: str, tmp_path: Path) -> None:
    stored = json.loads((REFERENCE / f"{name}-smoke.json").read_text())
    assert stored["settings"] == smoke_settings(name), "make the reference again"
    assert sum(len(numbers) for numbers in stored["numbers"].values()) >= 10
    found = smoke_numbers(name, tmp_path)
    assert differences(found, stored["numbers"], same_platform=stored["platform"] == this_platform()) == []


@pytest.mark.parametrize("name", study_names())
def test_the_comparison_sees_a_hundredth(name: str) -> None:
    """Each number of the reference, moved alone, is found; also one that is gone, and one that is not finite."""
    expected: Numbers = json.loads((REFERENCE / f"{name}-smoke.json").read_text())["numbers"]
    for row, numbers in expected.items():
        for one, value in numbers.items():
            for other in (None, math.nan if value is None else 1.01 * value + (value == 0)):
                if other is value:
                    continue
                moved = {**expected, row: {**numbers, one: other}}
                assert len(differences(moved, expected, same_platform=True)) == 1
                is_left_out = AMPLIFIES_ROUNDING.search(f"{row} {one}") is not None
                assert len(differences(moved, expected, same_platform=False)) == (not is_left_out)
    assert differences(expected, expected, same_platform=True) == []
    assert len(differences(expected, {}, same_platform=True)) == sum(map(len, expected.values()))


@pytest.mark.parametrize("name", study_names())
def test_quick_has_a_complete_reference_of_its_own_settings(name: str) -> None:
    """The numbers that `study NAME --compare` is given to see what a change has done."""
    stored = json.loads((REFERENCE / f"{name}-quick.json").read_text())
    assert stored["study"] == name
    assert stored["complete"]
    assert stored["settings"] == {**study_by_name(name).presets["quick"], "preset": "quick"}
    assert all(math.isfinite(result["value"]) for result in stored["results"])
    assert "+changes" not in stored["commit"]
