"""What a command does with files, callable from Python: read, check, work, and write all or nothing.

What to use when:

- `inspect_files`: what samples are like, and which method suits them, before anything is trained.
- `fit_files`: the ratio of two samples, as a model in a directory; an interrupted fit can go on.
- `apply_files`: copy a file of any length with the ratio and the new weight of every event.
- `apply_each_file`: the same for many files, one output for each, by many processes or machines; it can go on after a kill.
- `evaluate_files`: does the reweighted reference look like the target? A report with figures and numbers.
- `positive_files`, `positive_each_file`: copy a file, or each of many, with positive weights that have the same
  expectations.
- `inspect_eft_files`, `fit_eft_files`, `evaluate_eft_files`, `apply_eft_files`: one sample with weights at several parameter
  points.
- `demo_files`: four methods on a pair of samples whose exact ratio is known.

Paths are those of the command line: `file.root:tree`, `.parquet`, `.npz`, patterns, addresses and `@files.txt`; weights and selections are
expressions of columns. Each returns a frozen result. Files that are there are kept unless `overwrite=True`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from quasiratio.workflows.apply_each import AppliedEach, apply_each_file
from quasiratio.workflows.apply_files import apply_files
from quasiratio.workflows.apply_result import AppliedFiles
from quasiratio.workflows.eft_closure import EftClosure
from quasiratio.workflows.eft_evaluation import AppliedEft, EvaluatedEft, apply_eft_files, evaluate_eft_files
from quasiratio.workflows.eft_files import FittedEft, fit_eft_files, inspect_eft_files
from quasiratio.workflows.eft_inspection import EftAxis, EftPoint, InspectedEft
from quasiratio.workflows.eft_samples import EftSample, read_eft_sample
from quasiratio.workflows.evaluate_files import EvaluatedFiles, evaluate_files
from quasiratio.workflows.fit_files import FittedFiles, fit_files
from quasiratio.workflows.inspect_files import InspectedFiles, inspect_files
from quasiratio.workflows.positive_each import PositiveEach, positive_each_file
from quasiratio.workflows.positive_files import PositiveFiles, positive_files

if TYPE_CHECKING:
    from quasiratio.workflows.demo import DemoFiles as DemoFiles
    from quasiratio.workflows.demo import demo_files as demo_files

__all__ = [
    "AppliedEach",
    "AppliedEft",
    "AppliedFiles",
    "DemoFiles",
    "EftAxis",
    "EftClosure",
    "EftPoint",
    "EftSample",
    "EvaluatedEft",
    "EvaluatedFiles",
    "FittedEft",
    "FittedFiles",
    "InspectedEft",
    "InspectedFiles",
    "PositiveEach",
    "PositiveFiles",
    "apply_each_file",
    "apply_eft_files",
    "apply_files",
    "demo_files",
    "evaluate_eft_files",
    "evaluate_files",
    "fit_eft_files",
    "fit_files",
    "inspect_eft_files",
    "inspect_files",
    "positive_each_file",
    "positive_files",
    "read_eft_sample",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name in ("DemoFiles", "demo_files"):  # they draw, and figures are slow to import
        return getattr(importlib.import_module("quasiratio.workflows.demo"), name)
    msg = f"module 'quasiratio.workflows' has no attribute {name!r}"
    raise AttributeError(msg)
