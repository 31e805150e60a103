"""One self-contained HTML page from results: verdict, sortable tables, figures, and how to repeat it.

What to use when:

- `write_report` writes a `Report`: sections of `Text`, `Facts`, `Table` and `Picture`.
- `evaluate_model` judges a fitted model on two samples; `evaluation_verdict` says what its `Evaluation` means, and
  `evaluation_report` makes the report of it, as `quasiratio evaluate` does with files.
- `omnibus_test` asks a classifier whether it can tell the reweighted reference from the target.

The page opens without a network and asks for nothing: style, script and images are in the file, and its content
security policy forbids everything else. Strings of users are text everywhere.
"""

from quasiratio.report.chapters import evaluation_report
from quasiratio.report.closure_quality import ClosureQuality, closure_qualities
from quasiratio.report.closure_verdict import Verdict, evaluation_verdict
from quasiratio.report.content import Facts, Link, Picture, Report, Section, Table, Text
from quasiratio.report.evaluation import Evaluation, evaluate_model
from quasiratio.report.omnibus import OmnibusTest, omnibus_test
from quasiratio.report.origins import EvaluatedModel, SampleSource
from quasiratio.report.writing import write_report

__all__ = [
    "ClosureQuality",
    "EvaluatedModel",
    "Evaluation",
    "Facts",
    "Link",
    "OmnibusTest",
    "Picture",
    "Report",
    "SampleSource",
    "Section",
    "Table",
    "Text",
    "Verdict",
    "closure_qualities",
    "evaluate_model",
    "evaluation_report",
    "evaluation_verdict",
    "omnibus_test",
    "write_report",
]
