"""What came out of a model that was applied: the counts over all events, and what a user should know of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasiratio.errors import (
    NegativeDensityWarning,
    QuasiratioWarning,
    SupportWarning,
    UntrustworthyFitWarning,
)
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.metrics.weights import WeightSums
from quasiratio.wording import percent
from quasiratio.workflows.running_counts import EventCounts, OutsideRange

__all__ = ["AppliedFiles"]


@dataclass(frozen=True)
class AppliedFiles:
    """What was written.

    Attributes:
        path: The new file.
        source: The events that were read, for people.
        weight: Expression of the weight before; one where there is none.
        columns: The columns that were added.
        counts: What was counted over all events.
        fit_check: What the fit thought of itself.
    """

    path: Path
    source: str
    weight: str | None
    columns: tuple[str, ...]
    counts: EventCounts
    fit_check: FitCheck

    @property
    def n_events(self) -> int:
        """Events written."""
        return self.counts.before.n_events

    @property
    def before(self) -> WeightSums:
        """Sums of the weights as they were."""
        return self.counts.before

    @property
    def after(self) -> WeightSums:
        """Sums of the new weights; infinite ratios are left out."""
        return self.counts.after

    @property
    def ratio_range(self) -> tuple[float, float]:
        """Smallest and largest finite ratio."""
        return self.counts.lowest, self.counts.highest

    @property
    def n_nonpositive(self) -> int:
        """Events where the estimated reference density is zero or negative."""
        return self.counts.n_nonpositive

    @property
    def n_infinite(self) -> int:
        """Events whose ratio is infinite or undefined, as that density is zero."""
        return self.counts.n_infinite

    @property
    def outside(self) -> tuple[OutsideRange, ...]:
        """Events outside the training range, feature by feature; empty where it is not known."""
        return self.counts.ranges.result()

    @property
    def n_unselected(self) -> int:
        """Events that the selection of the fit would have left out."""
        return self.counts.n_unselected

    @property
    def share_seen(self) -> float:
        """Estimated share of the events that the model was trained on, and predicts nevertheless.

        See `DataFingerprint.share_seen`; zero for a `Reweighter` with folds.
        """
        return self.counts.seen.share

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "output": str(self.path),
            "n_events": self.n_events,
            "columns": self.columns,
            "weight": self.weight,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "ratio_range": self.ratio_range,
            "n_nonpositive_reference": self.n_nonpositive,
            "n_infinite_ratios": self.n_infinite,
            "n_outside_selection_of_fit": self.n_unselected,
            "share_seen_in_training": self.share_seen,
            "outside_training_range": {feature.name: feature.outside for feature in self.outside},
            "fit_check": self.fit_check.status,
        }

    def warnings(self) -> list[QuasiratioWarning]:
        """Return what a user should know before using the new weights; a fit that failed its check stands first."""
        found: list[QuasiratioWarning] = []
        if self.fit_check.status == "failed":
            found.append(UntrustworthyFitWarning(str(self.fit_check)))
        notable = [str(feature) for feature in self.outside if feature.is_notable]
        if notable:
            msg = (
                f"Values lie outside the range of the training data: {', '.join(notable)}. The ratio at its "
                "edge is used; check units and selection."
            )
            found.append(SupportWarning(msg))
        if self.n_unselected:
            msg = (
                f"{percent(self.n_unselected / self.n_events)} of the events do not pass the selection of the fit. The "
                "ratio is extrapolated there; apply the same selection."
            )
            found.append(SupportWarning(msg))
        if self.n_infinite:
            msg = (
                f"The ratio of {self.n_infinite} of {self.n_events} events ({percent(self.n_infinite / self.n_events)}) is "
                "infinite or undefined, as the estimated reference density is zero there. It is written as it comes "
                "out; leave these events out."
            )
            found.append(NegativeDensityWarning(msg))
        if self.n_nonpositive:
            msg = (
                f"The estimated reference density is zero or negative for {self.n_nonpositive} of {self.n_events} "
                f"events ({percent(self.n_nonpositive / self.n_events)}); their ratio is written as it comes out, and may "
                "be large."
            )
            found.append(NegativeDensityWarning(msg))
        return found
