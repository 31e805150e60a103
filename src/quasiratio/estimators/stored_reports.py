"""Reports of a fit to documents and back."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from quasiratio.estimators.auto_report import AutoReport, CandidateRow
from quasiratio.estimators.event_sketch import EventSketch
from quasiratio.estimators.fingerprint import DataFingerprint
from quasiratio.estimators.support import SupportDiagnostic
from quasiratio.metrics import RatioRisk
from quasiratio.persistence import report_documents as documents
from quasiratio.persistence.document import Document, as_measured, from_measured

__all__ = [
    "fingerprint_document",
    "measured_document",
    "measured_numbers",
    "report_document",
    "stored_fingerprint",
    "stored_report",
    "stored_support",
    "support_document",
]

SomeDocument = TypeVar("SomeDocument", bound=Document)


def fingerprint_document(fingerprint: DataFingerprint) -> documents.FingerprintDocument:
    """Describe the training data."""
    return documents.FingerprintDocument(
        n_events=fingerprint.n_events,
        sum_of_weights=fingerprint.sum_of_weights,
        ranges={name: list(bounds) for name, bounds in fingerprint.ranges.items()},
        sha256=fingerprint.sha256,
        sketches=[
            documents.SketchDocument(
                hashes="".join(f"{value:016x}" for value in sketch.hashes), is_complete=sketch.is_complete
            )
            for sketch in fingerprint.sketches
        ],
    )


def stored_fingerprint(document: documents.FingerprintDocument) -> DataFingerprint:
    """Make the summary of the training data again."""
    ranges = {name: (low, high) for name, (low, high) in document.ranges.items()}
    sketches = tuple(
        EventSketch(
            tuple(int(sketch.hashes[start : start + 16], 16) for start in range(0, len(sketch.hashes), 16)),
            sketch.is_complete,
        )
        for sketch in document.sketches
    )
    return DataFingerprint(document.n_events, document.sum_of_weights, ranges, document.sha256, sketches)


def support_document(support: SupportDiagnostic) -> documents.SupportDocument:
    """Describe where a ratio can be trusted."""
    return documents.SupportDocument(
        outside_range={name: as_measured(fraction) for name, fraction in support.outside_range.items()},
        largest_supported_ratio=as_measured(support.largest_supported_ratio),
        beyond_support=as_measured(support.beyond_support),
        n_reference=support.n_reference,
    )


def stored_support(document: documents.SupportDocument) -> SupportDiagnostic:
    """Make the support diagnostic again."""
    return SupportDiagnostic(
        {name: from_measured(fraction) for name, fraction in document.outside_range.items()},
        from_measured(document.largest_supported_ratio),
        from_measured(document.beyond_support),
        document.n_reference,
    )


def report_document(report: AutoReport) -> documents.ReportDocument:
    """Describe an automatic choice."""
    return documents.ReportDocument(
        rows=[
            documents.CandidateRowDocument(
                name=row.name,
                risk=measured_document(documents.RiskDocument, row.risk),
                difference=measured_document(documents.RiskDocument, row.difference),
                weight=as_measured(row.weight),
            )
            for row in report.rows
        ],
        best=report.best,
        dropped=list(report.dropped),
        stacked_risk=as_measured(report.stacked_risk),
        single_risk=as_measured(report.single_risk),
        reason=report.reason,
    )


def stored_report(document: documents.ReportDocument) -> AutoReport:
    """Make the report of an automatic choice again."""
    rows = tuple(
        CandidateRow(
            row.name,
            RatioRisk(**measured_numbers(row.risk)),
            RatioRisk(**measured_numbers(row.difference)),
            from_measured(row.weight),
        )
        for row in document.rows
    )
    risks = from_measured(document.stacked_risk), from_measured(document.single_risk)
    return AutoReport(rows, document.best, tuple(document.dropped), *risks, document.reason)


def measured_document(kind: type[SomeDocument], values: Any) -> SomeDocument:  # noqa: ANN401
    """Describe a dataclass of numbers by a document with the same fields."""
    return kind(
        **{field.name: as_measured(getattr(values, field.name)) for field in dataclasses.fields(values)}
    )


def measured_numbers(document: Document) -> dict[str, float]:
    """Return the numbers of such a document by name."""
    return {name: from_measured(getattr(document, name)) for name in type(document).model_fields}
