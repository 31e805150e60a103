"""Adding a loss, an estimator, a metric, a file format and a study, each once, in as many files as ARCHITECTURE.md says.

A copy of the package gets the new files and the lines in old ones; what is new must then work everywhere, with no other
file touched.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import quasiratio

SOURCE = Path(quasiratio.__file__).parent
ARCHITECTURE = SOURCE.parents[1] / "ARCHITECTURE.md"

HALVED = """
from dataclasses import dataclass
from typing import ClassVar

import torch

from quasiratio.losses.links import ExponentialLink
from quasiratio.losses.ratio_loss import RatioLoss


@dataclass(frozen=True)
class Halved(RatioLoss):
    factor: float = 0.5

    name: ClassVar[str] = "halved"
    link: ClassVar[ExponentialLink] = ExponentialLink()
    requires_positive: ClassVar[tuple] = ((1.0, 0.0), (0.0, 1.0))

    def reference(self, raw):
        return self.factor * torch.nn.functional.softplus(raw)

    def target(self, raw):
        return self.factor * torch.nn.functional.softplus(-raw)
"""
POWER_MODEL = """
from typing import Literal

from quasiratio.ratios.ratio_model import RatioModel, RatioModelDocument, RatioValues


class PowerModelDocument(RatioModelDocument):
    kind: Literal["power"]
    power: float


class PowerModel(RatioModel):
    document_type = PowerModelDocument

    def __init__(self, scaling, network, n_members, power):
        super().__init__(scaling, network, n_members)
        self.power = power

    def member_values(self, outputs):
        return RatioValues((self.power * outputs[..., 0]).exp(), None)

    def sensitivity(self, outputs):
        return self.member_values(outputs).ratio * (1.0 + outputs[..., 0].abs())

    def average(self, outputs):
        return outputs.mean(dim=0, keepdim=True)

    def document_fields(self):
        return {"kind": "power", "power": self.power}

    @classmethod
    def from_document(cls, document, stored):
        return cls(stored.scaling, stored.network, document.n_members, document.power)

    def add_onnx_members(self, graph, outputs, *, n_members):
        return graph.add("Exp", graph.add("Mul", graph.add("Squeeze", outputs, graph.axes(-1)), self.power))

    def add_onnx_average(self, graph, outputs):
        return graph.add("ReduceMean", outputs, graph.axes(0), keepdims=1)
"""
POWER_RATIO = """
from dataclasses import dataclass

from quasiratio.estimators.single_model import SingleModelRatio, TrainedModel
from quasiratio.losses import loss_by_name
from quasiratio.ratios.power import PowerModel
from quasiratio.ratios.ratio_model import OutputView
from quasiratio.training import RatioObjective


@dataclass(eq=False, repr=False)
class PowerRatio(SingleModelRatio):
    power: float = 1.5

    model_type = PowerModel

    def train_model(self, fit, floors):
        model = PowerModel(fit.scaling, fit.network(1), fit.n_members, self.power)
        training, validation = fit.signed_pools()
        history, _ = fit.train(OutputView(model), RatioObjective(loss_by_name("bce")), [training], [validation])
        return TrainedModel(model, (history,))
"""
LARGEST = '''
import numpy as np


def largest_share(weights):
    """Return the share of the largest weight."""
    sizes = np.abs(weights)
    return float(sizes.max() / sizes.sum())
'''
CSV = """
from dataclasses import dataclass

import numpy as np

from quasiratio.io.column import Column, kind_of_dtype
from quasiratio.io.file_format import FileFormat


@dataclass(frozen=True)
class CsvFile:
    path: object
    table: object

    unreadable = frozenset()
    source = property(lambda self: str(self.path))
    n_events = property(lambda self: len(self.table))
    columns = property(
        lambda self: {n: Column(n, kind_of_dtype(self.table.dtype[n]), self.table.dtype[n]) for n in self.table.dtype.names}
    )

    def bytes_per_event(self, names):
        return 8.0 * len(names)

    def chunks(self, names, chunk_events):
        for start in range(0, len(self.table), chunk_events):
            yield {name: self.table[name][start : start + chunk_events] for name in names}

    def metadata(self):
        return {}


class CsvSink:
    def __init__(self, new):
        self.file = new.path.open("w", encoding="utf-8")

    def unwritable(self, columns, chunk):
        return [name for name, column in columns.items() if not column.is_numeric]

    def append(self, columns, chunk):
        if self.file.tell() == 0:
            self.file.write(",".join(columns) + "\\n")
        np.savetxt(self.file, np.column_stack([chunk[name] for name in columns]), fmt="%.17g", delimiter=",")

    def finish(self, metadata):
        self.file.close()

    def abandon(self):
        self.file.close()


def open_csv_file(location):
    return CsvFile(location.path, np.genfromtxt(location.path, delimiter=",", names=True))


CSV = FileFormat(open_csv_file, CsvSink, compressions=(None,))
"""
COIN = """
from quasiratio.studies import Presentation, Row, Study, Task


def tasks(settings):
    return [Task(f"seed-{s}", {"seed": s}, rows=[f"coin-{s}"]) for s in range(settings["seeds"])]


def compute(arguments):
    yield Row(f"coin-{arguments['seed']}", {"value": arguments["seed"] % 2})


def present(settings, rows):
    return Presentation(f"{len(rows)} coins.")


STUDY = Study("coin", "Is it fair?", {"smoke": {"seeds": 2}}, tasks, compute, present)
"""

NEW_FILES = {
    "A loss": {"losses/halved.py": HALVED},
    "An estimator with a new model": {"ratios/power.py": POWER_MODEL, "estimators/power.py": POWER_RATIO},
    "A metric": {"metrics/largest.py": LARGEST},
    "A file format": {"io/formats/csv.py": CSV},
    "A study": {"studies/coin/__init__.py": COIN},
}
NEW_LINES = {
    "A loss": ("registry.py", '        "lsif": ', '        "halved": "quasiratio.losses.halved:Halved",\n'),
    "An estimator with a new model": (
        "registry.py", '        "auto": ', '        "power": "quasiratio.estimators.power:PowerRatio",\n',
    ),
    "A metric": (
        "metrics/__init__.py", "from quasiratio.metrics.histogram", "from quasiratio.metrics.largest import largest_share\n",
    ),
    "A file format": ("registry.py", '        ".npz": ', '        ".csv": "quasiratio.io.formats.csv:CSV",\n'),
}  # fmt: skip

ALL_OF_IT = """
import sys, warnings
import numpy as np
import onnxruntime
from typer.testing import CliRunner
import quasiratio as qr
from quasiratio.cli.main import app

assert qr.__file__.startswith(sys.argv[1]), qr.__file__
warnings.simplefilter("ignore", qr.errors.QuasiratioWarning)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(600, 2)).astype(np.float32), np.arange(600) % 2
X += 0.5 * y[:, None].astype(np.float32)
QUICK = dict(max_steps=15, hidden_layers=(4,), random_state=0, n_members=2)


def everywhere(model, name):
    model.fit(X, y).save(name)
    again = qr.load(name)
    assert type(again) is type(model)
    assert np.array_equal(again.predict_members(X), model.predict_members(X))
    again.export_onnx(f"{name}.onnx")
    ratio = onnxruntime.InferenceSession(f"{name}.onnx").run(["ratio"], {"features": X})[0]
    assert np.allclose(ratio, model.predict_ratio(X), rtol=1e-5)


# A loss: from its package, by name, stored and exported.
from quasiratio.losses import Halved
assert "Halved" in qr.losses.__all__
everywhere(qr.DirectRatio(loss="halved", **QUICK), "with-loss")
assert qr.load("with-loss").loss_ == Halved()

# An estimator: at the top, by name, stored and exported.
assert "PowerRatio" in qr.__all__
everywhere(qr.PowerRatio(power=2.0, **QUICK), "estimator")

# A metric.
assert qr.metrics.largest_share(np.array([1.0, -3.0])) == 0.75

# A format, in which the rest is read and written.
for label, name in enumerate(("a", "b")):
    with qr.io.create_table(f"{name}.csv") as table:
        table.append({"x": X[y == label, 0], "z": X[y == label, 1]})


def run(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output


run("fit", "a.csv", "b.csv", "-o", "model", "--method", "power", "--steps", "10")
run("apply", "model", "a.csv", "-o", "out.csv")
assert list(qr.io.open_table("out.csv").columns) == ["x", "z", "ratio", "weight_reweighted"]
assert "halved" in run("fit", "--help") and "power" in run("fit", "--help")

# A study.
assert "coin" in run("study", "list")
run("study", "coin", "-o", "study", "--preset", "smoke", "--jobs", "1")
"""


def files_said() -> dict[str, int]:
    numbers = {"one": 1, "two": 2, "three": 3}
    found = re.findall(
        r"^\*\*(A[^:*]+): (\w+) (?:files?|folder)\.\*\*", ARCHITECTURE.read_text(), re.MULTILINE
    )
    return {what: numbers[number] for what, number in found}


@pytest.mark.parametrize("what", NEW_FILES)
def test_as_many_files_as_are_said(what: str) -> None:
    assert files_said()[what] == len(NEW_FILES[what]) + (what in NEW_LINES)


def test_each_is_added_once_and_works_everywhere(tmp_path: Path) -> None:
    package = tmp_path / "src" / "quasiratio"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for files in NEW_FILES.values():
        for name, content in files.items():
            (package / name).parent.mkdir(exist_ok=True)
            (package / name).write_text(content, encoding="utf-8")
    for name, before, line in NEW_LINES.values():
        text = (package / name).read_text(encoding="utf-8")
        assert text.count(f"\n{before}") == 1
        (package / name).write_text(text.replace(f"\n{before}", f"\n{line}{before}"), encoding="utf-8")
    script = f"import sys; sys.path.insert(0, {str(package.parent)!r})\n{ALL_OF_IT}"
    done = subprocess.run(
        [sys.executable, "-c", script, str(package)],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(package.parent), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
