"""Reports of a fit to documents and back."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from quasiratio.estimators.auto_report import AutoReport, CandidateRow
from quasiratio.estimators.densities import AssumedDensity
from quasiratio.estimators.event_sketch import EventSketch
from quasiratio.estimators.fingerprint import DataFingerprint
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.estimators.support import SupportDiagnostic
from quasiratio.estimators.trials import Trial, TrialReport
from quasiratio.metrics import RatioRisk
from quasiratio.model_files import report_documents as documents
from quasiratio.model_files.document import Document, as_measured, from_measured

__all__ = [
    "check_document",
    "density_document",
    "fingerprint_document",
    "measured_document",
    "measured_numbers",
    "report_document",
    "stored_check",
    "stored_density",
    "stored_fingerprint",
    "stored_report",
    "stored_support",
    "stored_trials",
    "support_document",
    "trials_document",
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


def check_document(check: FitCheck) -> documents.FitCheckDocument:
    """Describe the check of a fit."""
    return documents.FitCheckDocument(
        status=check.status,
        n_events=check.n_events,
        effective_share=as_measured(check.effective_share),
        largest_share=as_measured(check.largest_share),
        worst_events=list(check.worst_events),
        risk_difference=measured_document(documents.RiskDocument, check.risk_difference),
        reach=[as_measured(value) for value in check.reach],
        near_cap=as_measured(check.near_cap),
        peak_fraction=as_measured(check.peak_fraction),
        helped=check.helped,
        reasons=list(check.reasons),
    )


def stored_check(document: documents.FitCheckDocument | None) -> FitCheck:
    """Make the check of a fit again; models of the first version have none."""
    if document is None:
        nan = float("nan")
        reasons = ("it was made before fits were checked.",)
        return FitCheck("unknown", 0, nan, nan, (), RatioRisk(nan, nan), (nan, nan), reasons=reasons)
    low, high = (from_measured(value) for value in document.reach)
    return FitCheck(
        document.status,
        document.n_events,
        from_measured(document.effective_share),
        from_measured(document.largest_share),
        tuple(document.worst_events),
        RatioRisk(**measured_numbers(document.risk_difference)),
        (low, high),
        from_measured(document.near_cap),
        from_measured(document.peak_fraction),
        document.helped,
        tuple(document.reasons),
    )


def density_document(density: AssumedDensity) -> documents.AssumedDensityDocument:
    """Describe what was assumed of a density."""
    return documents.AssumedDensityDocument(**dataclasses.asdict(density))


def stored_density(document: documents.AssumedDensityDocument | None) -> AssumedDensity:
    """Make the assumption again; the first version assumed nothing."""
    if document is None:
        return AssumedDensity("any", None, "the model was made before densities were tested")
    return AssumedDensity(document.sign, document.floor, document.reason)


def trials_document(report: TrialReport | None) -> documents.TrialReportDocument | None:
    """Describe what was tried."""
    if report is None:
        return None
    trials = [measured_document(documents.TrialDocument, trial) for trial in report.trials]
    return documents.TrialReportDocument(trials=trials, chosen=report.chosen, batch_size=report.batch_size)


def stored_trials(document: documents.TrialReportDocument | None) -> TrialReport | None:
    """Make the report of the trials again; the first version tried nothing."""
    if document is None:
        return None
    trials = tuple(Trial(**measured_numbers(trial)) for trial in document.trials)
    return TrialReport(trials, document.chosen, document.batch_size)


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
