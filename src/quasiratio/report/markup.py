"""The blocks of a report as HTML; every string of the user passes through `safe`."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from quasiratio.plots.figure_files import Figure, FigureImage, figure_image
from quasiratio.report.content import Block, Cell, Facts, Link, Picture, Section, Table, Text
from quasiratio.report.safe_text import anchor, number_text, paragraphs, plain_number, safe

__all__ = ["IndexEntry", "PageBody", "data_address"]

_RESERVED = {"%": "%25", "#": "%23", "<": "%3C", ">": "%3E", '"': "'", "&": "%26", "\n": "%0A"}


@dataclass
class IndexEntry:
    """A line of the index, and the lines under it.

    Args:
        title: What it says.
        address: The `id` it points to.
        entries: Pictures of a section.
    """

    title: str
    address: str
    entries: list[IndexEntry] = field(default_factory=list)


class PageBody:
    """Sections as HTML, with the index that belongs to them.

    Args:
        sections: The sections.

    Example:
        >>> body = PageBody([Section("Data <b>", [Text("Two files."), Facts({"seed": 3})])])
        >>> body.index[0].address
        'data-b'
        >>> "<h2>Data &lt;b&gt;</h2>" in body.html
        True
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        self._taken = {"main", "search", "top", "found", "verdict", "lightbox", "repeat", "command"}
        self.index: list[IndexEntry] = []
        self._drawn: dict[int, FigureImage] = {}  # a figure that is shown twice is drawn once
        self.html = "\n".join([self._section(section) for section in sections])

    def _section(self, section: Section) -> str:
        address = anchor(section.title, self._taken)
        entry = IndexEntry(section.title, address)
        self.index.append(entry)
        parts: list[str] = []
        gallery: list[str] = []
        for block in section.blocks:
            if isinstance(block, Picture):
                gallery.append(self._picture(block, entry))
                continue
            parts += _gallery(gallery)
            gallery = []
            parts.append(_block(block, section.title))
        parts += _gallery(gallery)
        body = "\n".join(parts)
        return f'<section id="{address}" class="part">\n<h2>{safe(section.title)}</h2>\n{body}\n</section>'

    def _picture(self, picture: Picture, entry: IndexEntry) -> str:
        image = picture.image or self._image(picture.figure)
        name = picture.title or picture.caption or "Figure"
        address = anchor(f"figure {picture.title}", self._taken)
        heading = ""
        if picture.title:
            entry.entries.append(IndexEntry(picture.title, address))
            heading = f"<h3>{safe(picture.title)}</h3>\n"
        described = ". ".join(text.rstrip(".") for text in (picture.title, picture.caption) if text)
        wide = " wide" if image.width > 1.2 * image.height and image.width > 800 else ""
        return (
            f'<figure id="{address}" class="picture{wide}" tabindex="-1">\n{heading}'
            f'<button type="button" class="enlarge" aria-label="Enlarge: {safe(name)}" aria-haspopup="dialog">'
            f'<img src="{data_address(image)}" alt="{safe(described)}" width="{image.width}" height="{image.height}" '
            f'loading="lazy" decoding="async"></button>\n'
            f"<figcaption>{safe(picture.caption)}</figcaption>\n</figure>"
        )

    def _image(self, figure: Figure) -> FigureImage:
        if id(figure) not in self._drawn:
            self._drawn[id(figure)] = figure_image(figure)
        return self._drawn[id(figure)]


def _gallery(figures: list[str]) -> list[str]:
    return ['<div class="gallery">\n' + "\n".join(figures) + "\n</div>"] if figures else []


def _block(block: Block, section_title: str) -> str:
    if isinstance(block, Text):
        return f'<div class="prose">\n{paragraphs(block.paragraph)}\n</div>'
    if isinstance(block, Facts):
        entries = "\n".join(
            f"<div><dt>{safe(name)}</dt><dd>{_shown(value)}</dd></div>"
            for name, value in block.entries.items()
        )
        return f'<dl class="facts">\n{entries}\n</dl>'
    if isinstance(block, Table):
        return _table(block, section_title)
    if isinstance(block, Link):
        return f'<p class="prose"><a href="{safe(quote(block.address))}">{safe(block.label)}</a></p>'
    msg = f"no markup for {type(block).__name__}"  # pragma: no cover - Section refuses such blocks
    raise TypeError(msg)


def _table(table: Table, section_title: str) -> str:
    if not table.columns or not table.rows:
        caption = f"<strong>{safe(table.caption)}</strong> " if table.caption else ""
        return f'<p class="empty">{caption}This table has no rows.</p>'
    numeric = [
        all(_is_number(row[i]) or row[i] is None for row in table.rows) for i in range(len(table.columns))
    ]
    headings = "".join(
        f'<th scope="col" aria-sort="none"{_class(numeric[i])}>'
        f'<button type="button" class="sort">{safe(column)}<span class="arrow" aria-hidden="true"></span></button></th>'
        for i, column in enumerate(table.columns)
    )
    rows = "\n".join(
        "<tr>" + "".join(_cell(value, numeric[i], i == 0) for i, value in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    label = safe(table.caption or section_title)
    caption = f"<caption>{safe(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="table-box" role="region" aria-label="Table: {label}" tabindex="0">\n<table>\n{caption}\n'
        f"<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _cell(value: Cell, numeric: bool, is_first: bool) -> str:
    tag = 'th scope="row"' if is_first else "td"
    close = "th" if is_first else "td"
    return f"<{tag}{_class(numeric)}{_sort_key(value)}>{_shown(value)}</{close}>"


def _class(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _sort_key(value: Cell) -> str:
    """Return the attribute that sorting reads: a number before rounding, nothing where a value is missing."""
    number = plain_number(value)
    if value is None or (number is not None and math.isnan(number)):
        return ' data-sort=""'
    return "" if number is None else f' data-sort="{float(number)!r}"'


def _is_number(value: object) -> bool:
    return plain_number(value) is not None


def _shown(value: Cell) -> str:
    if value is None:
        return '<span aria-label="missing">–</span>'
    number = plain_number(value)
    return safe(value if number is None else number_text(number))


def data_address(image: FigureImage) -> str:
    """Return the `data:` address of an image, fit for a quoted attribute.

    An image behind such an address cannot run scripts, load anything, or share names with its page. SVG is
    kept as text where that works, which is shorter than base64.

    Example:
        >>> from quasiratio.plots.figure_files import FigureImage
        >>> data_address(FigureImage("image/svg+xml", b'<svg id="a"/>', 10, 10))
        "data:image/svg+xml,%3Csvg id='a'/%3E"
        >>> data_address(FigureImage("image/png", b"PNG", 10, 10))
        'data:image/png;base64,UE5H'
    """
    if image.media_type == "image/svg+xml" and b"'" not in image.content:
        text = "".join(_RESERVED.get(letter, letter) for letter in image.content.decode())
        return f"data:image/svg+xml,{text}"
    return f"data:{image.media_type};base64,{base64.b64encode(image.content).decode()}"
