"""Lets worker processes import the toy study by name, and share the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
collect_ignore = ["run_toy.py"]  # a program


@pytest.fixture(autouse=True)
def importable_toy_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process and its children find `tests.studies.toy_study`."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([ROOT, f"{ROOT}/src"])
    )  # of this tree, wherever it is installed from
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
