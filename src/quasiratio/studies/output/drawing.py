"""The figures of a study as files and as images for its page, drawn by several processes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quasiratio.atomic_files import write_file

if TYPE_CHECKING:
    from quasiratio.plots.figure_files import Figure, FigureImage
    from quasiratio.report import Picture

__all__ = ["draw_pictures"]


def draw_pictures(
    pictures: Mapping[str, Picture], directory: Path, executor: Executor | None
) -> dict[str, Picture]:
    """Write every figure as PDF and PNG, and return the pictures with the images for the page.

    Args:
        pictures: Figures by the stem of their files.
        directory: Where the files go; it must exist.
        executor: Processes that share this machine's files, or `None` to draw here.
    """
    images: dict[str, FigureImage] = {}
    if executor is not None:
        with suppress(BrokenExecutor):  # a process was killed; this one is still here
            largest_first = sorted(pictures, key=lambda name: -len(pictures[name].figure.axes))
            futures = {
                name: executor.submit(_drawn, pictures[name].figure, directory / name)
                for name in largest_first
            }
            images = {name: future.result() for name, future in futures.items()}
    return {
        name: replace(picture, image=images.get(name) or _drawn(picture.figure, directory / name))
        for name, picture in pictures.items()
    }


def _drawn(figure: Figure, stem: Path) -> FigureImage:
    from quasiratio.plots import save_figure, settled_layout  # noqa: PLC0415 - loads Matplotlib
    from quasiratio.plots.figure_files import figure_image  # noqa: PLC0415

    with settled_layout(figure):
        image = figure_image(figure)
        if image.media_type == "image/png":  # sharp enough for a file, too
            write_file(stem.with_name(f"{stem.name}.png"), image.content)
            save_figure(figure, stem, formats=("pdf",))
        else:
            save_figure(figure, stem, formats=("pdf", "png"))
    return image
