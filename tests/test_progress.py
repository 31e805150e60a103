"""Progress where no terminal is: trainings are silent unless a command asks for lines, files and studies are not."""

from __future__ import annotations

import time

import pytest

from quasiratio.progress import event_progress, progress_lines, study_progress, training_progress


def test_silence_by_default_and_where_nobody_wants_it(capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress("bce", verbose=True) as show:
        assert show is None
    with progress_lines(), training_progress("bce", verbose=False) as show:
        assert show is None
    assert capsys.readouterr() == ("", "")


def test_a_line_now_and_then_and_one_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 5.0, 11.0, 12.0, 13.0])
    monkeypatch.setattr("quasiratio.progress.time.monotonic", lambda: next(clock))
    with progress_lines(), training_progress("bce", verbose=True) as show:
        assert show is not None
        for step in (10, 20, 30, 40):
            show(step, 40, 0.5)
    assert capsys.readouterr().err.splitlines() == [
        "bce: step 20 of 40, validation loss 0.50000",
        "bce: step 40 of 40, validation loss 0.50000",
    ]


def test_a_file_has_a_line_every_ten_seconds_after_its_first_chunk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([60.0, 65.0, 71.0, 72.0])
    with event_progress("Writing") as show:
        assert show is not None
        monkeypatch.setattr("quasiratio.progress.time.monotonic", lambda: next(clock))
        for done in (1, 2, 3, 4):
            show(done, 4)
    assert capsys.readouterr().err == "Writing: 3 of 4 events\n"


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
