"""The README's example runs and prints what the README says; its files and links exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"-?\d+\.\d*")
TOLERANCE = 0.12  # other thread counts and versions of PyTorch give other bits


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_readme_says() -> None:
    (code,), (expected,) = blocks("python"), blocks("text")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(expected.splitlines())
    for printed, promised in zip(done.stdout.splitlines(), expected.splitlines(), strict=True):
        words = [re.sub(r"[\[\]]", " ", NUMBER.sub("#", line)).split() for line in (printed, promised)]
        assert words[0] == words[1]  # NumPy pads numbers as their digits come out
        numbers = [[float(number) for number in NUMBER.findall(line)] for line in (printed, promised)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.0 if "exact" in promised else TOLERANCE)


def test_local_links_and_figures_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert "docs/assets/ratio.png" in links
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert (ROOT / "docs/assets/ratio.png").stat().st_size < 200_000


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^make (\w+)", blocks("console")[0], flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
