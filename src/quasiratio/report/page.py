"""The page of a report: template, style and script from the package, content from the report."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from string import Template

from quasiratio.provenance import versions_of
from quasiratio.report.content import Report
from quasiratio.report.markup import IndexEntry, PageBody
from quasiratio.report.safe_text import paragraphs, safe

__all__ = ["page_text"]

_LABELS = {"good": "Verdict: good", "fair": "Verdict: fair", "poor": "Verdict: poor", "info": "Result"}
_LIBRARIES = ("quasiratio", "torch", "numpy", "python")


def page_text(report: Report) -> str:
    """Return the whole HTML file.

    Example:
        >>> page = page_text(Report("Closure of <pt>", "Closes.", [], "quasiratio demo", status="good"))
        >>> page.startswith("<!doctype html>"), "<h1>Closure of &lt;pt&gt;</h1>" in page
        (True, True)
    """
    body = PageBody(report.sections)
    style, script = _resource("page.css"), _resource("page.js")
    facts = _foot(report)
    return Template(_resource("page.html")).substitute(
        policy=_policy(style, script),
        generator=safe(f"quasiratio {facts['quasiratio']}"),
        title=safe(report.title),
        subtitle=paragraphs(report.subtitle, "subtitle"),
        style=style,
        script=script,
        index=_index(body.index),
        status=report.status,
        label=_LABELS[report.status],
        verdict=paragraphs(report.verdict),
        body=body.html,
        command=safe(report.command),
        provenance="\n".join(
            f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>" for name, value in facts.items()
        ),
    )


def _foot(report: Report) -> dict[str, str]:
    """Return with what, and when, the page was made: date, versions, and the seed where a fact names one."""
    seeds = [str(value) for name, value in report.facts.items() if name.strip().lower() == "seed"]
    versions = versions_of(*_LIBRARIES, absent="not installed")
    return {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **({"seed": seeds[0]} if seeds else {}),
        **{name.replace("python", "Python"): version for name, version in versions.items()},
        "system": f"{platform.system()} {platform.machine()}",
    }


def _index(entries: Sequence[IndexEntry]) -> str:
    lines = []
    for entry in entries:
        below = f"\n<ol>\n{_index(entry.entries)}\n</ol>\n" if entry.entries else ""
        lines.append(f'<li><a href="#{entry.address}">{safe(entry.title)}</a>{below}</li>')
    return "\n".join(lines)


def _resource(name: str) -> str:
    return files("quasiratio.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Forbid everything but this style, this script, and images that stand in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
