"""One self-contained HTML page from results: verdict, sortable tables, figures, and how to repeat it.

What to use when:

- `write_report` writes a `Report`: sections of `Text`, `Facts`, `Table` and `Picture`.
- `evaluate_model` judges a fitted model on two samples; `evaluation_verdict` says what its `Evaluation` means, and
  `evaluation_report` makes the report of it, as `quasiratio evaluate` does with files.
- `omnibus_test` asks a classifier whether it can tell the reweighted reference from the target.

The page opens without a network and asks for nothing: style, script and images are in the file, and its content
security policy forbids everything else. Strings of users are text everywhere.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quasiratio.report.chapters import evaluation_report as evaluation_report
    from quasiratio.report.closure_quality import ClosureQuality as ClosureQuality
    from quasiratio.report.closure_quality import closure_qualities as closure_qualities
    from quasiratio.report.closure_verdict import Verdict as Verdict
    from quasiratio.report.closure_verdict import evaluation_verdict as evaluation_verdict
    from quasiratio.report.content import Facts as Facts
    from quasiratio.report.content import Link as Link
    from quasiratio.report.content import Picture as Picture
    from quasiratio.report.content import Report as Report
    from quasiratio.report.content import Section as Section
    from quasiratio.report.content import Table as Table
    from quasiratio.report.content import Text as Text
    from quasiratio.report.evaluation import Evaluation as Evaluation
    from quasiratio.report.evaluation import evaluate_model as evaluate_model
    from quasiratio.report.omnibus import OmnibusTest as OmnibusTest
    from quasiratio.report.omnibus import omnibus_test as omnibus_test
    from quasiratio.report.origins import EvaluatedModel as EvaluatedModel
    from quasiratio.report.origins import SampleSource as SampleSource
    from quasiratio.report.writing import write_report as write_report

_HOMES = {
    "ClosureQuality": "closure_quality",
    "EvaluatedModel": "origins",
    "Evaluation": "evaluation",
    "Facts": "content",
    "Link": "content",
    "OmnibusTest": "omnibus",
    "Picture": "content",
    "Report": "content",
    "SampleSource": "origins",
    "Section": "content",
    "Table": "content",
    "Text": "content",
    "Verdict": "closure_verdict",
    "closure_qualities": "closure_quality",
    "evaluate_model": "evaluation",
    "evaluation_report": "chapters",
    "evaluation_verdict": "closure_verdict",
    "omnibus_test": "omnibus",
    "write_report": "writing",
}
"""Names by module, loaded when first used: only some of them draw, and figures are slow to import."""

__all__ = [*_HOMES]  # noqa: PLE0604 - listed once


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _HOMES:
        msg = f"module 'quasiratio.report' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"quasiratio.report.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
