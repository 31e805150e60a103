"""Images as addresses that carry them, so that a page needs no other file."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quasiratio.plots.figure_files import FigureImage

__all__ = ["data_address"]

_RESERVED = {"%": "%25", "#": "%23", "<": "%3C", ">": "%3E", '"': "'", "&": "%26", "\n": "%0A"}


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
