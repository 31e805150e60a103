"""The commands on the page about the command line run, one after the other, as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import awkward as ak
import numpy as np
import pytest
import uproot
from typer.testing import CliRunner

from quasiratio.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
N_EVENTS = 2000


def documented_commands() -> list[str]:
    blocks = re.findall(
        r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return [
        line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, mean in (("reference", 0.0), ("target", 0.3)):
        with uproot.recreate(f"{name}.root") as file:
            file["events"] = {
                "event": np.arange(N_EVENTS),
                "pt": np.exp(rng.normal(3.5 + mean, 0.5, N_EVENTS)),
                "eta": rng.normal(0.0, 1.0, N_EVENTS).astype(np.float32),
                "n_jets": rng.poisson(2.0 + mean, N_EVENTS).astype(np.int32),
                "jet_pt": ak.unflatten(rng.exponential(30.0, 2 * N_EVENTS), np.full(N_EVENTS, 2)),
                "w_gen": rng.choice([1.0, -1.0], N_EVENTS, p=[0.9, 0.1]),
                "w_pu": rng.uniform(0.9, 1.1, N_EVENTS),
            }
    commands = documented_commands()
    assert {shlex.split(command)[1] for command in commands} == {
        "inspect", "fit", "evaluate", "apply", "positive", "export", "models",
    }  # fmt: skip
    for command in commands:
        line, _, output = command.partition(" > ")
        arguments = shlex.split(line)
        assert arguments.pop(0) == "quasiratio"
        if arguments[0] in ("fit", "positive") and "--print-config" not in arguments:
            arguments += ["--steps", "20"]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{command}: {result.stderr}"
        if output:
            Path(output).write_text(result.stdout)
    made = {"model", "model-b", "fit.yaml", "report", "reweighted.root", "positive.root", "model.onnx"}
    assert made <= {path.name for path in tmp_path.iterdir()}
    with uproot.open("reweighted.root") as file:
        assert {"jet_pt", "ratio", "weight_reweighted"} <= set(file["events"].keys())
