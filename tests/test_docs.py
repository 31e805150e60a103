"""The documentation runs: every Python block, page by page, and what it says it prints."""

import contextlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

import quasiratio
from quasiratio.errors import QuasiratioWarning

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of Python, the line it starts at, and what the page says it prints."""

    code: str
    line: int
    output: str | None


def python_blocks(text: str) -> list[Block]:
    """Find the fenced Python blocks; a text block right after one is its output."""
    fences = list(FENCE.finditer(text))
    blocks = []
    for index, fence in enumerate(fences):
        if fence["info"].strip() != "python":
            continue
        output = None
        if index + 1 < len(fences) and fences[index + 1]["info"].strip() == "text":
            between = text[fence.end() : fences[index + 1].start()]
            output = fences[index + 1]["body"] if not between.strip() else None
        blocks.append(Block(fence["body"], text[: fence.start("body")].count("\n") + 1, output))
    return blocks


def test_blocks_are_found_with_their_output() -> None:
    text = "a\n```python\nprint(1)\n```\n\n```text\n1\n```\nb\n```python\nx = 2\n```\nc\n```text\nno\n```\n"
    assert python_blocks(text) == [Block("print(1)\n", 3, "1\n"), Block("x = 2\n", 11, None)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs(page: Path) -> None:
    blocks = python_blocks(page.read_text(encoding="utf-8"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        padded = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the page
        printed = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore", QuasiratioWarning)  # short trainings may well deserve them
            exec(compile(padded, str(page), "exec"), namespace)  # noqa: S102
        if block.output is not None:
            assert printed.getvalue() == block.output, f"output of the block at line {block.line}"


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", reference, re.MULTILINE))
    classes = {name for name in quasiratio.__all__ if name[0].isupper()}
    metrics = set(quasiratio.metrics.__all__)
    distributions = set(quasiratio.distributions.__all__)
    losses = {type(make()).__name__ for make in quasiratio.losses.LOSSES.values()}
    assert not (classes | metrics | distributions | losses) - documented


def test_every_loss_is_in_the_table() -> None:
    page = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    for name in quasiratio.losses.LOSSES:
        assert f"| `{name}` |" in page


def test_site_builds_without_warnings_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for page in tmp_path.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|link|iframe)[^>]*?(?:src|href)=[\"']?(https?:[^\"' >]+)", html)
        assert not fetched, page
        assert "katex.min.js" in html
