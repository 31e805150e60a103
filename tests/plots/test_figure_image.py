"""Figures inside a page: small, sharp, the same everywhere and every time."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from quasiratio.plots.figure_files import figure_image

SVG = "{http://www.w3.org/2000/svg}"


def drawn(label: str = "a label", n_points: int = 50, style: str = "-") -> Figure:
    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    axes.plot(np.linspace(0, 1, n_points), np.random.default_rng(0).normal(size=n_points), style)
    axes.set_xlabel(label)
    return figure


def test_a_figure_of_lines_is_svg_with_outlines_for_letters() -> None:
    image = figure_image(drawn())
    assert image.media_type == "image/svg+xml"
    assert (image.width, image.height) == (480, 288)
    root = ET.fromstring(image.content)  # noqa: S314 - our own
    assert root.tag == f"{SVG}svg"
    assert root.findall(f".//{SVG}text") == []
    assert root.findall(f".//{SVG}metadata") == []
    assert len(root.findall(f".//{SVG}use")) > 10


def test_rounding_moves_nothing_that_can_be_seen() -> None:
    """Letters are placed by transforms, whose small factors must not be rounded."""
    text = figure_image(drawn()).content.decode()
    stream = io.StringIO()
    drawn().savefig(stream, format="svg")
    scales = set(re.findall(r"scale\([^)]*\)", text))
    assert any(0 < float(scale[6:-1].split(" ")[0]) < 0.1 for scale in scales)
    paths = re.findall(r' d="([^"]*)"', text)
    assert all(len(number.partition(".")[2]) <= 2 for path in paths for number in re.findall(r"[\d.]+", path))
    assert len(text) < 0.9 * len(stream.getvalue())


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert figure_image(drawn()) == figure_image(drawn())
    assert figure_image(drawn(), largest_svg=0) == figure_image(drawn(), largest_svg=0)


def test_a_crowded_figure_is_a_png_with_a_palette() -> None:
    image = figure_image(drawn(n_points=3000, style="o"))
    assert image.media_type == "image/png"
    with Image.open(io.BytesIO(image.content)) as picture:
        assert picture.mode == "P"
        assert picture.size == (1000, 600)
        red, green, blue = picture.convert("RGB").getpixel((1, 1))  # type: ignore[misc]
    assert min(red, green, blue) > 250
    assert len(image.content) < len(figure_image(drawn(n_points=3000, style="o"), largest_svg=10**9).content)


def test_many_colours_keep_their_shades() -> None:
    figure = Figure(figsize=(3, 3))
    shades = np.random.default_rng(0).random((200, 200))
    figure.add_axes((0, 0, 1, 1), frameon=False).imshow(shades, cmap="viridis")
    image = figure_image(figure, largest_svg=0)
    with Image.open(io.BytesIO(image.content)) as picture:
        colors = picture.convert("RGB").getcolors(100_000)
    assert colors is not None
    assert len(colors) > 64


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", "--> <b>", "a & b", "日本"])
def test_labels_of_users_cannot_break_the_image(label: str) -> None:
    image = figure_image(drawn(label))
    ET.fromstring(image.content)  # noqa: S314 - our own
    assert b"script" not in image.content
    assert b"<!--" not in image.content
