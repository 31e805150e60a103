"""The table that explains an automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from quasiratio.estimators.fit_check import RiskDocument
from quasiratio.metrics import RatioRisk
from quasiratio.model_files.document import Document, Measured, Name, as_measured, from_measured

__all__ = ["AutoReport", "AutoReportDocument", "CandidateRow"]


class CandidateRowDocument(Document):
    """`CandidateRow`."""

    name: Name
    risk: RiskDocument
    difference: RiskDocument
    weight: Measured


class AutoReportDocument(Document):
    """`AutoReport`."""

    rows: list[CandidateRowDocument]
    best: Name
    dropped: list[Name]
    stacked_risk: Measured
    single_risk: Measured
    reason: Name


@dataclass(frozen=True)
class CandidateRow:
    """One candidate: its validation risk, the paired difference to the best, and its weight in the stack."""

    name: str
    risk: RatioRisk
    difference: RatioRisk
    weight: float


@dataclass(frozen=True)
class AutoReport:
    """What was tried, what was chosen, and why.

    Attributes:
        rows: One per candidate.
        best: The candidate with the lowest risk; no row is below it.
        dropped: Candidates that were left out: the reference density may be negative, they could not be fitted, or
            failed their check.
        stacked_risk: Cross-validated risk of the stack; NaN where nothing was stacked.
        single_risk: Cross-validated risk of the best single candidate.
        reason: The choice in one line.
    """

    rows: tuple[CandidateRow, ...]
    best: str
    dropped: tuple[str, ...]
    stacked_risk: float
    single_risk: float
    reason: str

    def __str__(self) -> str:
        width = max(len("candidate"), *(len(row.name) for row in self.rows))
        lines = [f"{'candidate':<{width}}  {'risk J':>10}  {'J - J(best), paired':>24}  {'weight':>7}"]
        for row in self.rows:
            difference = f"{row.difference.value:+.6f} +- {row.difference.error:.6f}"
            lines.append(
                f"{row.name:<{width}}  {row.risk.value:>10.6f}  {difference:>24}  {row.weight:>7.3f}"
            )
        return "\n".join([*lines, f"choice: {self.reason}"])

    def document(self) -> AutoReportDocument:
        """Describe the choice."""
        return AutoReportDocument(
            rows=[
                CandidateRowDocument(
                    name=row.name,
                    risk=RiskDocument.of(row.risk),
                    difference=RiskDocument.of(row.difference),
                    weight=as_measured(row.weight),
                )
                for row in self.rows
            ],
            best=self.best,
            dropped=list(self.dropped),
            stacked_risk=as_measured(self.stacked_risk),
            single_risk=as_measured(self.single_risk),
            reason=self.reason,
        )

    @classmethod
    def stored(cls, document: AutoReportDocument) -> Self:
        """Make the report again."""
        rows = tuple(
            CandidateRow(row.name, row.risk.restored(), row.difference.restored(), from_measured(row.weight))
            for row in document.rows
        )
        risks = from_measured(document.stacked_risk), from_measured(document.single_risk)
        return cls(rows, document.best, tuple(document.dropped), *risks, document.reason)
