"""Write a report to its file."""

from __future__ import annotations

from pathlib import Path

from quasiratio.atomic_files import write_file
from quasiratio.errors import InvalidInputError
from quasiratio.report.content import Report

__all__ = ["write_report"]


def write_report(report: Report, path: Path) -> None:
    """Write one self-contained HTML file, or leave what was there.

    Versions and date are added at its foot.

    Args:
        report: What to show.
        path: The file; its directory must exist.

    Example:
        >>> import tempfile
        >>> from quasiratio.report import Section, Table
        >>> section = Section("Closure", [Table(["observable", "chi2"], [["<script>", 1.234]])])
        >>> report = Report("A test", "Closes.", [section], "quasiratio demo", status="good")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     write_report(report, Path(directory) / "report.html")
        ...     page = (Path(directory) / "report.html").read_text(encoding="utf-8")
        >>> "1.23<" in page, "&lt;script&gt;" in page
        (True, True)
    """
    from quasiratio.report.page import page_text  # noqa: PLC0415 - loads Matplotlib

    path = Path(path)
    if not path.parent.is_dir():
        msg = (
            f"Got the directory {str(path.parent)!r} for a report; expected one that exists. Create it first."
        )
        raise InvalidInputError(msg)
    write_file(path, page_text(report).encode("utf-8"))
