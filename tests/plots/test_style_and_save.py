"""Style in a context, styles that differ, and files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from quasiratio.errors import InvalidInputError
from quasiratio.plots import figure_style, save_figure
from quasiratio.plots.style import PALETTE, method_styles, new_figure


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
    first = [path.read_bytes() for path in paths[:2]]
    save_figure(figure, tmp_path / "v1.5 plot", formats=("png", "pdf"))
    assert [path.read_bytes() for path in paths[:2]] == first
    assert sorted(tmp_path.iterdir()) == sorted(paths)


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
