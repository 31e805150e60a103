"""Style in a context, styles that differ, and files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from quasiratio import WeightedSample
from quasiratio.errors import InvalidInputError
from quasiratio.metrics import closure
from quasiratio.plots import closure_figure, figure_style, save_figure, settled_layout, weight_figure
from quasiratio.plots.figure_files import figure_image
from quasiratio.plots.style import PALETTE, method_styles, new_figure, short_number


@pytest.fixture
def figure() -> Figure:
    with figure_style():
        drawn = new_figure(2.0, width=3.0)
        drawn.subplots().set_xlabel(r"$-1$ and $\chi^2$")
    return drawn


def test_the_style_ends_with_its_context() -> None:
    before = dict(mpl.rcParams)
    with figure_style():
        assert mpl.rcParams["xtick.direction"] == "in"
    assert dict(mpl.rcParams) == before


def test_many_methods_can_all_be_told_apart() -> None:
    styles = method_styles([f"m{i}" for i in range(3 * len(PALETTE))])
    assert len({(style.color, str(style.linestyle)) for style in styles.values()}) == 3 * len(PALETTE)


def test_saves_all_formats_and_the_same_bytes_twice(figure: Figure, tmp_path: Path) -> None:
    paths = save_figure(figure, tmp_path / "v1.5 plot", formats=("png", "pdf", "svg"))
    assert [path.name for path in paths] == ["v1.5 plot.png", "v1.5 plot.pdf", "v1.5 plot.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[1].read_bytes().startswith(b"%PDF")
    first = [path.read_bytes() for path in paths]
    save_figure(figure, tmp_path / "v1.5 plot", formats=("png", "pdf", "svg"))
    assert [path.read_bytes() for path in paths] == first
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    "name", [r"$\oops$", "a$b$c_{", "<script>alert(1)</script>", "x" * 500, "50% & more_#"]
)
def test_names_of_the_user_never_stop_a_figure(name: str, tmp_path: Path) -> None:
    sample = WeightedSample([[0.5], [0.5], [1.5]], names=["x"])
    entry = closure(sample, {name: [1.0, 1.0, 1.0]}, sample, edges={"x": [0, 1, 2]})["x"]
    drawn = closure_figure(entry, label=name, unit=name, title=name)
    (svg,) = save_figure(drawn, tmp_path / "plot", formats=("svg",))
    assert b"<script" not in svg.read_bytes()
    drawn.draw_without_rendering()
    assert drawn.axes[0].get_window_extent().width > 0.3 * drawn.bbox.width


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-1.2345, "\N{MINUS SIGN}1.23"),
        (99999.0, "$1.00\\times10^{5}$"),
        (98765.0, "98800"),
        (0.00098765, "$9.88\\times10^{-4}$"),
        (float("nan"), "nan"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short_number(value) == text


def test_a_format_that_fails_leaves_the_old_files(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (png,) = save_figure(figure, tmp_path / "plot", formats=("png",))
    before = png.read_bytes()
    real = Figure.savefig

    def full_disk(self: Figure, path: Any, **options: Any) -> None:
        if options["format"] == "pdf":
            raise OSError(28, "No space left on device")
        real(self, path, **options)

    monkeypatch.setattr(Figure, "savefig", full_disk)
    figure.axes[0].set_xlabel("changed")
    with pytest.raises(InvalidInputError, match="No space left"):
        save_figure(figure, tmp_path / "plot")
    assert png.read_bytes() == before
    assert list(tmp_path.iterdir()) == [png]


@pytest.mark.parametrize(
    ("stem", "formats", "message"),
    [("missing/plot", ("png",), "expected one that exists"), ("plot", ("png", "docx"), "docx")],
)
def test_bad_places_and_formats(
    figure: Figure, tmp_path: Path, stem: str, formats: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        save_figure(figure, tmp_path / stem, formats=formats)
    assert list(tmp_path.iterdir()) == []


def test_panels_are_arranged_once_for_all_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = weight_figure({"target": [1.0, 1.0, -1.0]})
    engine: Any = figure.get_layout_engine()
    arranged = []
    monkeypatch.setattr(engine, "execute", lambda one, execute=engine.execute: arranged.append(execute(one)))
    with settled_layout(figure):
        save_figure(figure, tmp_path / "weights", formats=("pdf", "png"))
        figure_image(figure, largest_svg=0)
    assert len(arranged) == 1
    assert figure.get_layout_engine() is engine
