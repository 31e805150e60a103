"""Large reports: thirty real figures stay small, a hundred pictures and wide tables stay in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from quasiratio import WeightedSample
from quasiratio.metrics import ClosureResult, closure
from quasiratio.report import Picture, Report, Section, Table, write_report
from quasiratio.report.closure_section import closure_pictures, closure_table

from .conftest import Page


def test_thirty_observables_of_an_ensemble_take_less_than_ten_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"observable_{i}" for i in range(30)]
    reference, target = (WeightedSample(rng.normal(mean, 1, (4000, 30)), names=names) for mean in (0, 0.1))
    members = rng.normal(1.0, 0.1, (3, 4000))
    result = closure(reference, {"a": members, "b": np.ones(4000)}, target, n_bins=99)
    drawn = closure_pictures(ClosureResult(result.observables[:4]))  # thirty would take half a minute
    pictures = [Picture(drawn[i % 4].figure, "Large.", name) for i, name in enumerate(names)]
    sections = [Section("Closure", [closure_table(result)]), Section("Figures", pictures)]
    path = tmp_path / "report.html"
    write_report(Report("Thirty", "", sections, ""), path)
    assert 100_000 < path.stat().st_size < 5_000_000
    page = Page(path.read_text(encoding="utf-8"))
    assert page.texts("h3") == names
    assert len(page.all("tr")) == 1 + 30 * 3


def test_a_hundred_pictures_and_a_wide_table(
    written: Callable[[Report], Page], small_figure: Callable[[], Figure]
) -> None:
    figures = [small_figure() for _ in range(5)]
    pictures = [Picture(figures[i % 5], "A line.", f"observable {i}") for i in range(100)]
    table = Table([f"column {i}" for i in range(20)], [[float(i * j) for i in range(20)] for j in range(200)])
    page = written(Report("Hundred", "", [Section("Figures", [table, *pictures])], ""))
    assert len(page.all("figure")) == 100
    assert {image["loading"] for image in page.all("img") if image.get("src")} == {"lazy"}
    assert len(page.all("td")) == 19 * 200
    assert len(page.source) < 2_000_000
