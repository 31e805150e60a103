"""Draw the figures of the documentation, each by the code of the page that shows it: `make figures`."""

from __future__ import annotations

import sys
from pathlib import Path

from docs_extensions.page_code import run
from PIL import Image

from quasiratio.plots import save_figure

DOCS = Path(__file__).parents[1] / "docs"


def draw(page: Path) -> list[Path]:
    """Run a page and write its figures, compressed as far as it goes without a loss."""
    written = []
    for path, figure in run(page, compare=False):
        save_figure(figure, path.with_suffix(""), formats=(path.suffix[1:],))
        if path.suffix == ".png":
            with Image.open(path) as image:
                opaque = image.convert("RGB")
            opaque.save(path, optimize=True)
        written.append(path)
    return written


if __name__ == "__main__":
    pages = [Path(name) for name in sys.argv[1:]] or sorted((DOCS / "tutorials").glob("*.md"))
    for page in pages:
        print(f"== {page}", flush=True)  # noqa: T201
        for path in draw(page.resolve()):
            print(f"{path.relative_to(DOCS)}  {path.stat().st_size / 1000:.0f} kB")  # noqa: T201
