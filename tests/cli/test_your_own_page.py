"""The page about one's own: its files as it has them, its configuration and its commands, in a process of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import quasiratio

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "your-own.md"
RUN = """
import shlex, sys
from typer.testing import CliRunner
from quasiratio.cli.main import app
for command in sys.argv[1:]:
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    print(command, result.exit_code, result.output, result.exception, sep="\\n")
    assert result.exit_code == 0
"""


def files_of_the_page() -> dict[str, str]:
    found = re.findall(
        r"^.*?[Pp]ut (?:it|this) into `([\w.]+)`:\n\n```\w+\n(.*?)^```$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return dict(found)


def commands_of_the_page() -> list[str]:
    return re.findall(r"^\$ (quasiratio .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, mean in (("reference", 0.0), ("target", 0.4)):
        columns = {"x": rng.normal(mean, 1.0, 1500), "y": rng.normal(0.0, 1.0, 1500)}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    for name, text in files_of_the_page().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_as_it_stands(directory: Path) -> None:
    assert set(files_of_the_page()) == {"my_loss.py", "bounded_ratio.py", "fit.yaml"}
    commands = [
        f"{command} --steps 20" if command.startswith("quasiratio fit") else command
        for command in commands_of_the_page()
    ]
    assert {shlex.split(one)[1] for one in commands} == {"fit", "models", "apply", "evaluate", "export"}
    source = str(Path(quasiratio.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", RUN, *commands],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{source}:{directory}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "parameters.largest: 1.5" in done.stdout
    assert "None 20 steps" not in done.stdout
    made = {"model", "reweighted.parquet", "report", "model.onnx", "angle", "angle.onnx"}
    assert made <= {path.name for path in directory.iterdir()}
