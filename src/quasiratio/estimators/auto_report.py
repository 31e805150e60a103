"""The table that explains an automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quasiratio.metrics import RatioRisk

__all__ = ["AutoReport", "CandidateRow"]


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
