"""One self-contained HTML page from results: verdict, sortable tables, figures, and how to repeat it.

What to use when:

- `write_report` writes a `Report`: sections of `Text`, `Facts`, `Table` and `Picture`.
- `quasiratio.report.evaluation_report` makes the report of an `Evaluation`, as `quasiratio evaluate` does.

The page opens without a network and asks for nothing: style, script and images are in the file, and its content
security policy forbids everything else. Strings of users are text everywhere.
"""

from quasiratio.report.content import Facts, Link, Picture, Report, Section, Table, Text
from quasiratio.report.writing import write_report

__all__ = ["Facts", "Link", "Picture", "Report", "Section", "Table", "Text", "write_report"]
