"""What comes out of a model that is applied to a file: new columns, sums, and what to watch."""

from __future__ import annotations

from dataclasses import dataclass

from quasiratio.errors import NegativeDensityWarning, QuasiratioWarning, SupportWarning
from quasiratio.wording import percent
from quasiratio.workflows.feature_ranges import OutsideRange
from quasiratio.workflows.weight_sums import WeightSums

__all__ = ["AppliedModel", "NewColumns"]


@dataclass(frozen=True)
class NewColumns:
    """Names of the columns that are added.

    Attributes:
        ratio: The ratio; with members also `<ratio>_std` and `<ratio>_member_0`, `_1`, ...
        weight: The new weight.
    """

    ratio: str = "ratio"
    weight: str = "weight_reweighted"

    def of_members(self, n_members: int) -> list[str]:
        """Return the names for the spread and each member.

        Example:
            >>> NewColumns().of_members(2)
            ['ratio_std', 'ratio_member_0', 'ratio_member_1']
        """
        return [f"{self.ratio}_std", *(f"{self.ratio}_member_{k}" for k in range(n_members))]


@dataclass(frozen=True)
class AppliedModel:
    """What was done to a file.

    Attributes:
        n_events: Events written.
        columns: The columns that were added.
        before: Sums of the weights as they were.
        after: Sums of the new weights.
        ratio_range: Smallest and largest ratio.
        n_nonpositive: Events where the estimated reference density is zero or negative.
        n_infinite: Events whose ratio is infinite or undefined, as that density is zero; the sums of the new
            weights and the range of ratios leave them out.
        outside: Events outside the training range, feature by feature; empty where it is not known.
        n_unselected: Events that the selection of the fit would have left out.
        share_seen: Estimated share of the events that the model was trained on, and predicts nevertheless (see
            `DataFingerprint.share_seen`); zero for a `Reweighter` with folds.
    """

    n_events: int
    columns: tuple[str, ...]
    before: WeightSums
    after: WeightSums
    ratio_range: tuple[float, float]
    n_nonpositive: int
    n_infinite: int
    outside: tuple[OutsideRange, ...]
    n_unselected: int
    share_seen: float = 0.0

    def warnings(self) -> list[QuasiratioWarning]:
        """Return what a user should know before using the new weights."""
        found: list[QuasiratioWarning] = []
        notable = [str(feature) for feature in self.outside if feature.is_notable]
        if notable:
            msg = (
                f"Values lie outside the range of the training data: {', '.join(notable)}. The ratio is "
                "extrapolated there; check units and selection."
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
