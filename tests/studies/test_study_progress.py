"""What a study says of its progress where no terminal is."""

from __future__ import annotations

import time

import pytest

from quasiratio.studies.engine.study_progress import study_progress


def shown(steps: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Show rows done at times, in a study of 100 rows."""
    with study_progress("toys") as show:
        for seconds, done in steps:
            monkeypatch.setattr(time, "monotonic", lambda now=seconds: 1000.0 + now)
            show(done, 100)


def test_the_time_left_comes_from_what_was_done_in_this_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown([(0, 50), (20, 60), (40, 70), (60, 100)], monkeypatch)
    assert capsys.readouterr().err.splitlines() == [
        "toys: 50 of 100", "toys: 60 of 100, about 1 min 20 s left", "toys: 70 of 100, about 1 min 0 s left",
        "toys: 100 of 100",
    ]  # fmt: skip


def test_the_first_rows_are_not_extrapolated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown([(0, 0), (600, 1), (630, 20)], monkeypatch)
    assert capsys.readouterr().err.splitlines() == [
        "toys: 0 of 100", "toys: 1 of 100", "toys: 20 of 100, about 42 min 0 s left",
    ]  # fmt: skip
