"""Write a figure to files, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from quasiratio.atomic_files import scratch_directory
from quasiratio.errors import InvalidInputError
from quasiratio.plots.settled_layout import settled_layout
from quasiratio.plots.style import figure_style

__all__ = ["save_figure"]

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
            for path, suffix in zip(rendered, formats, strict=True):
                figure.savefig(path, format=suffix, metadata=_METADATA.get(suffix))
            for path, place in zip(rendered, paths, strict=True):
                path.replace(place)
    except OSError as error:
        msg = f"Could not write {str(paths[0])!r} ({error.strerror}); expected a place that can be written."
        raise InvalidInputError(msg) from error
    return paths
