"""A few stable figures against pictures of them, without their texts.

Letters are rendered differently by every version of FreeType, so they are hidden; other tests read them.
After a change that is meant, look at the figure, then write its picture anew:
`UPDATE_GOLDEN=1 pytest tests/plots/test_golden_figures.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

from quasiratio.plots import figure_style

GOLDEN = Path(__file__).parent / "golden"
STABLE = [
    "closure_figure",
    "closure_figure-quotient",
    "density_figure",
    "landscape_figure",
    "transform_figure",
    "training_figure",
]
PINS = dict(
    line.split("==")
    for line in (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
    if line
)
pytestmark = pytest.mark.skipif(
    any(version(name) != PINS[name] for name in ("matplotlib", "mplhep")),
    reason="the pictures were drawn by the versions of constraints.txt",
)
TOLERANCE = 4.0
"""Root mean square difference, of 256 levels."""


def write(figure: Figure, path: Path) -> None:
    for artist in [*figure.findobj(Text), *figure.findobj(Legend)]:
        artist.set_visible(False)
    for axes in figure.axes:
        axes.tick_params(which="both", labelleft=False, labelbottom=False, labelright=False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.offsetText.set_visible(False)
    with figure_style():
        figure.savefig(path, dpi=50, metadata={"Software": None})


@pytest.mark.parametrize("name", STABLE)
def test_figure_looks_as_it_did(
    name: str, figure_builders: dict[str, Callable[[], Figure]], tmp_path: Path
) -> None:
    golden = GOLDEN / f"{name}.png"
    drawn = tmp_path / f"{name}.png"
    write(figure_builders[name](), drawn)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_bytes(drawn.read_bytes())
    assert golden.stat().st_size < 60_000
    assert compare_images(str(golden), str(drawn), tol=TOLERANCE) is None


def test_the_comparison_notices_a_changed_figure(
    figure_builders: dict[str, Callable[[], Figure]], tmp_path: Path
) -> None:
    figure = figure_builders["closure_figure"]()
    figure.axes[0].set_ylim(-0.1, 1.0)
    write(figure, tmp_path / "changed.png")
    golden = GOLDEN / "closure_figure.png"
    assert compare_images(str(golden), str(tmp_path / "changed.png"), tol=TOLERANCE) is not None
