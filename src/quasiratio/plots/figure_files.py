"""A figure as files, all or none, and as one image small enough to stand inside a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from PIL import Image

from quasiratio.atomic_files import place, scratch_directory
from quasiratio.errors import InvalidInputError
from quasiratio.plots.style import figure_style

__all__ = ["Figure", "FigureImage", "figure_image", "save_figure", "settled_layout"]


@contextmanager
def settled_layout(figure: Figure) -> Iterator[None]:
    """Keep the panels where they are now for as long as this lasts.

    Constrained layout measures every label anew for each file, which takes as long as the drawing itself, and
    may differ by a pixel between formats.

    Args:
        figure: The figure; one that is empty, settled already, or without a layout engine is left alone.

    Example:
        >>> figure = Figure(layout="constrained")
        >>> axes = figure.subplots()
        >>> with settled_layout(figure):
        ...     figure.get_layout_engine().execute(figure)  # does nothing
        >>> type(figure.get_layout_engine()).__name__
        'ConstrainedLayoutEngine'
    """
    engine = figure.get_layout_engine()
    if not figure.axes or engine is None or isinstance(engine, PlaceHolderLayoutEngine):
        yield
        return
    with figure_style():
        engine.execute(figure)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


_LARGEST_SVG = 96_000
_MOST_SHORTENED = 2
"""Matplotlib's SVG becomes a quarter to a third shorter here, and never twice as short."""
_DOTS_PER_INCH = 200
_N_COLORS = 256
_PREAMBLE = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?!\d*e)")
_COORDINATES = re.compile(r'(?<= )(d|x|y)="([^"]*)"')  # but no transform, where small factors matter


@dataclass(frozen=True)
class FigureImage:
    """One image and the size at which to show it.

    Attributes:
        media_type: `"image/svg+xml"` or `"image/png"`.
        content: The file.
        width: Width on the screen, in CSS pixels.
        height: Height likewise.
    """

    media_type: Literal["image/svg+xml", "image/png"]
    content: bytes
    width: int
    height: int


def figure_image(figure: Figure, *, largest_svg: int = _LARGEST_SVG) -> FigureImage:
    """Render a figure as SVG or, where that is large, as PNG.

    Letters in the SVG are outlines, so that it looks the same wherever it is opened, and it carries no date: the
    same figure gives the same bytes. The PNG has a palette, and twice the pixels of the screen.

    Args:
        figure: The figure.
        largest_svg: Up to this many bytes the SVG, which stays sharp when enlarged, is taken.

    Example:
        >>> from quasiratio.plots import weight_figure
        >>> image = figure_image(weight_figure({"target": [1.0, 1.0, 1.0, -1.0]}))
        >>> image.media_type, image.width, image.content[:4]
        ('image/svg+xml', 864, b'<svg')
    """
    width, height = (round(96 * float(inches)) for inches in figure.get_size_inches())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names may be in any script
        with settled_layout(figure), figure_style():
            svg = _svg(figure, largest_svg)
            if svg is None:
                return FigureImage("image/png", _png(figure), width, height)
    return FigureImage("image/svg+xml", svg, width, height)


class _TooLargeError(Exception):
    """More was written than a stream takes."""


class _ShortStream(io.StringIO):
    """Text up to a length; who writes more is stopped."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.longest = longest

    def write(self, text: str) -> int:
        if self.tell() + len(text) > self.longest:
            raise _TooLargeError
        return super().write(text)


def _svg(figure: Figure, largest: int) -> bytes | None:
    """Return the SVG, or None if it is too large; a crowded figure is not drawn to its end to find out."""
    stream = _ShortStream(_MOST_SHORTENED * largest)
    with mpl.rc_context({"svg.fonttype": "path"}):
        try:
            figure.savefig(stream, format="svg", metadata={"Date": None})
        except _TooLargeError:
            return None
    text = _PREAMBLE.sub("", stream.getvalue())
    text = _COORDINATES.sub(lambda match: f'{match[1]}="{_rounded(match[2])}"', text)
    short = re.sub(r">\s+<", "><", text).strip().encode()
    return short if len(short) <= largest else None


def _rounded(coordinates: str) -> str:
    """Return coordinates to a hundredth of a point, with single spaces."""
    shorter = _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), coordinates)
    return " ".join(shorter.split())


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH)
    with Image.open(stream) as drawn:
        opaque = drawn.convert("RGB")
    palette = opaque.quantize(_N_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    compressed = io.BytesIO()
    palette.save(compressed, format="PNG", optimize=True)
    return compressed.getvalue()


_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}


def save_figure(figure: Figure, stem: Path, *, formats: Sequence[str] = ("png", "pdf")) -> tuple[Path, ...]:
    """Write `stem.png`, `stem.pdf`, ... and return their paths.

    Every format is rendered under a temporary name beside its place before the first is renamed, so that an
    error leaves what was there before. The files carry no date: the same figure gives the same bytes.

    Args:
        figure: The figure to write.
        stem: Path without a suffix; its directory must exist.
        formats: Suffixes that Matplotlib knows, without the dot.
    """
    stem = Path(stem)
    if not stem.parent.is_dir():
        msg = (
            f"Got the directory {str(stem.parent)!r} for a figure; expected one that exists. Create it first."
        )
        raise InvalidInputError(msg)
    unknown = sorted(set(formats) - set(figure.canvas.get_supported_filetypes()))
    if unknown:
        msg = f"Got the figure formats {unknown}; expected formats of Matplotlib such as png, pdf or svg."
        raise InvalidInputError(msg)
    paths = tuple(stem.with_name(f"{stem.name}.{suffix}") for suffix in formats)
    try:
        with (
            scratch_directory(stem.parent) as workspace,
            settled_layout(figure),
            figure_style(),
        ):
            rendered = [workspace / path.name for path in paths]
            for staged, suffix in zip(rendered, formats, strict=True):
                figure.savefig(staged, format=suffix, metadata=_METADATA.get(suffix))
            for finished, path in zip(rendered, paths, strict=True):
                place(finished, path)
    except OSError as error:
        msg = f"Could not write {str(paths[0])!r} ({error.strerror}); expected a place that can be written."
        raise InvalidInputError(msg) from error
    return paths
