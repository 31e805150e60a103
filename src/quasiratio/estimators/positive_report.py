"""What happened to a sample whose weights were made positive, and what that is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from quasiratio.columns import FeatureMatrix
from quasiratio.model_files.document import Document, Measured, measured_document, measured_numbers
from quasiratio.sample import WeightedSample, size_of_sums
from quasiratio.wording import percent

__all__ = ["N_REPORT_BINS", "PositiveReport", "PositiveReportDocument", "training_variance"]

FloatArray = npt.NDArray[np.float64]
N_REPORT_BINS = 20
"""Bins of each feature in which the report states the error of the training."""


class PositiveReportDocument(Document):
    """`PositiveReport`."""

    negative_fraction_before: Measured
    negative_fraction_after: Measured
    negative_density_fraction: Measured
    flattened_fraction: Measured
    effective_size_before: Measured
    effective_size_after: Measured
    effective_size_with_training: Measured = "nan"


@dataclass(frozen=True)
class PositiveReport:
    r"""What happened to the fitted sample.

    The sum of squares of the new weights knows nothing of the error of the network that made them. It is the
    same for all events of a region, and grows with the bin: over the whole sample nothing is gained, as the
    sum of weights is that of the signed sample, with its error. So the second gain is stated for bins of a
    usual size, twenty with equally many events for each feature (the formula is in
    `quasiratio.metrics.HistogramBand`):

    $$n_\mathrm{with\ training} = \frac{(\sum v)^2}{\sum v^2 + \langle\sum_b T_{bb}\rangle_\mathrm{features}}$$

    Attributes:
        negative_fraction_before: Fraction of events with a negative weight before.
        negative_fraction_after: The same after; not zero only where the density itself is negative.
        negative_density_fraction: Share of the absolute weight where the density is negative.
        flattened_fraction: Share of the absolute weight where the estimate is negative, but not
            significantly: the weights there are zero.
        effective_size_before: $(\sum w)^2 / \sum w^2$ before.
        effective_size_after: The same after.
        effective_size_with_training: Events of weight one that would know the bins of the features as well as
            the new weights do, the error of the training included; NaN for a single network, whose error is not
            known. It then lies between `effective_size_before` (a network that resolves every bin) and
            `effective_size_after` (one without error).
    """

    negative_fraction_before: float
    negative_fraction_after: float
    negative_density_fraction: float
    flattened_fraction: float
    effective_size_before: float
    effective_size_after: float
    effective_size_with_training: float = math.nan

    @property
    def gain(self) -> float:
        """Effective size after over before, as if the network had no error."""
        return self.effective_size_after / self.effective_size_before

    @property
    def gain_with_training(self) -> float:
        """The gain that is left with the error of the training; NaN for a single network."""
        return self.effective_size_with_training / self.effective_size_before

    @property
    def gain_sentence(self) -> str:
        """Both gains in words.

        Example:
            >>> print(PositiveReport(0.3, 0.0, 0.0, 0.0, 100.0, 500.0, 300.0).gain_sentence)
            gain 5.00 without the error of the training, 3.00 with it (in 20 bins of each feature)
        """
        alone = f"gain {self.gain:.2f} without the error of the training, "
        if math.isnan(self.gain_with_training):
            low, high = sorted((1.0, self.gain))
            return alone + f"between {low:.2f} and {high:.2f} with it, which one network does not know"
        return alone + f"{self.gain_with_training:.2f} with it (in {N_REPORT_BINS} bins of each feature)"

    def __str__(self) -> str:
        return (
            f"negative weights {percent(self.negative_fraction_before)} -> {percent(self.negative_fraction_after)}, "
            f"effective size {self.effective_size_before:.6g} -> {self.effective_size_after:.6g}: "
            f"{self.gain_sentence}; negative density over {percent(self.negative_density_fraction)} of |w|, "
            f"flattened to zero over {percent(self.flattened_fraction)}"
        )

    def document(self) -> PositiveReportDocument:
        """Describe the report."""
        return measured_document(PositiveReportDocument, self)

    @classmethod
    def stored(cls, document: PositiveReportDocument) -> Self:
        """Make the report again."""
        return cls(**measured_numbers(document))

    @classmethod
    def of_weights(
        cls,
        weights: FloatArray,
        new_weights: FloatArray,
        *,
        estimated_negative: npt.NDArray[np.bool_],
        flattens: bool,
        training_variance: float,
    ) -> PositiveReport:
        """Summarise a sample before and after.

        Args:
            weights: Signed weights.
            new_weights: What they became.
            estimated_negative: Events where the estimated density is negative.
            flattens: Whether these events got weights of zero.
            training_variance: What the training adds to the sum of squares; NaN where it is not known.
        """
        abs_weights = np.abs(weights)
        share = float(abs_weights[estimated_negative].sum() / abs_weights.sum())
        before = WeightedSample(np.zeros(len(weights)), weights)
        after = WeightedSample(np.zeros(len(weights)), new_weights)
        squares = float(np.square(new_weights).sum())
        return cls(
            before.negative_fraction,
            after.negative_fraction,
            0.0 if flattens else share,
            share if flattens else 0.0,
            before.effective_size,
            after.effective_size,
            size_of_sums(after.sum_of_weights, squares + training_variance),
        )


def training_variance(features: FeatureMatrix, member_weights: FloatArray) -> float:
    r"""Return $\sum_b T_{bb}$ over the bins of a feature, in the mean over the features.

    Args:
        features: `(n, d)` features.
        member_weights: `(n_members, n)` weights of each member.

    Example:
        >>> x = np.arange(40, dtype=np.float32)[:, None]
        >>> training_variance(x, np.array([np.full(40, 1.0), np.full(40, 1.5)]))  # 20 bins of 2 and 3
        10.0
    """
    if len(member_weights) < 2:
        return math.nan
    sums = []
    for column in features.T:
        inner = np.unique(np.quantile(column, np.arange(1, N_REPORT_BINS) / N_REPORT_BINS))
        bins = np.searchsorted(inner, column, side="left")
        contents = np.array([np.bincount(bins, row, minlength=len(inner) + 1) for row in member_weights])
        sums.append(float(contents.var(axis=0, ddof=1).sum()))
    return float(np.mean(sums))
