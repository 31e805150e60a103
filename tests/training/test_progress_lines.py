"""Progress without a terminal: silence, unless a command asks for lines."""

from __future__ import annotations

import pytest

from quasiratio.training.progress import progress_bar, progress_lines


def test_silence_by_default_and_where_nobody_wants_it(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("bce", verbose=True) as show:
        assert show is None
    with progress_lines(), progress_bar("bce", verbose=False) as show:
        assert show is None
    assert capsys.readouterr() == ("", "")


def test_a_line_now_and_then_and_one_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 5.0, 11.0, 11.0, 12.0, 13.0, 13.0])
    monkeypatch.setattr("quasiratio.training.progress.time.monotonic", lambda: next(clock))
    with progress_lines(), progress_bar("bce", verbose=True) as show:
        assert show is not None
        for step in (10, 20, 30, 40):
            show(step, 40, 0.5)
    assert capsys.readouterr().err.splitlines() == [
        "bce: step 20 of 40, validation loss 0.50000",
        "bce: step 40 of 40, validation loss 0.50000",
    ]
