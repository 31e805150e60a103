"""Figures of a study: the same whoever draws them."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from quasiratio.plots import weight_figure
from quasiratio.report import Picture
from quasiratio.studies.output.study_files import draw_pictures


def pictures() -> dict[str, Picture]:
    return {
        name: Picture(weight_figure({"target": weights}), "Weights.", name)
        for name, weights in {"signed": [1.0, 1.0, -1.0], "positive": [1.0, 2.0]}.items()
    }


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("is_broken", [False, True])
def test_other_processes_draw_the_same_figures_and_none_is_lost_with_them(
    tmp_path: Path, is_broken: bool
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    drawn_here = draw_pictures(pictures(), here, None)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        if is_broken:
            executor.submit(os._exit, 1).exception()
        drawn_there = draw_pictures(pictures(), there, executor)
    assert sorted(files(here)) == ["positive.pdf", "positive.png", "signed.pdf", "signed.png"]
    assert files(there) == files(here)
    for name, picture in drawn_here.items():
        assert picture.image is not None
        assert picture.image == drawn_there[name].image
