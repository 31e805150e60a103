"""What a model was trained on, in a few numbers: enough to recognise the data, too little to rebuild them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.columns import FeatureMatrix
from quasiratio.estimators.event_sketch import EventSketch, SeenEvents, sketches_by_label
from quasiratio.metrics.duplicates import row_hashes
from quasiratio.sample import WeightedSample

__all__ = ["DataFingerprint", "data_fingerprint"]


@dataclass(frozen=True)
class DataFingerprint:
    """The events of a fit.

    Attributes:
        n_events: Number of events, both classes together.
        sum_of_weights: Sum of their signed weights.
        ranges: Smallest and largest value of each feature.
        sha256: Checksum of features, labels and weights, in the order of the events.
        sketches: Sketch of the reference and of the target events (or of all, where there is one class); empty for
            models of older versions.
    """

    n_events: int
    sum_of_weights: float
    ranges: dict[str, tuple[float, float]]
    sha256: str
    sketches: tuple[EventSketch, ...] = ()

    def seen(self, X: Any) -> SeenEvents:  # noqa: ANN401 - what `WeightedSample` takes
        """Count the events that are recognised; add up the counts of parts of a sample."""
        hashes = row_hashes(WeightedSample(X).features)
        counted = [sketch.counted(hashes) for sketch in self.sketches]
        return SeenEvents(tuple(within for within, _ in counted), tuple(hits for _, hits in counted))

    def share_seen(self, X: Any) -> float:  # noqa: ANN401
        """Estimate which share of these events took part in the training.

        An event is recognised by its features, from a sample of the training events; zero where fewer than five
        are. For events that a model has seen its ratio shares their fluctuations: use
        `Reweighter(ratio, n_folds=5)` to predict every event by a model that has not.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(4000, 2)).astype(np.float32)
            >>> fingerprint = data_fingerprint(["x", "y"], X, None, np.ones(4000))
            >>> fingerprint.share_seen(X), fingerprint.share_seen(rng.normal(size=(4000, 2)))
            (1.0, 0.0)
        """
        return self.seen(X).share


def data_fingerprint(
    names: Sequence[str],
    features: FeatureMatrix,
    labels: npt.NDArray[np.bool_] | None,
    weights: npt.NDArray[np.float64],
) -> DataFingerprint:
    """Summarise checked events. All bytes enter the checksum, which takes about a second per gigabyte.

    Example:
        >>> data_fingerprint(["x"], np.array([[1.0], [3.0]], np.float32), None, np.ones(2)).ranges
        {'x': (1.0, 3.0)}
    """
    checksum = hashlib.sha256(np.array(features.shape, dtype="<i8").tobytes())
    checksum.update(np.ascontiguousarray(features, dtype=features.dtype.newbyteorder("<")).data)
    if labels is not None:
        checksum.update(np.ascontiguousarray(labels, dtype="u1").data)
    checksum.update(np.ascontiguousarray(weights, dtype="<f8").data)
    columns = torch.from_numpy(
        np.require(features, requirements=["C", "W"])
    )  # NumPy is slow along a long first axis
    lowest, highest = columns.amin(dim=0).tolist(), columns.amax(dim=0).tolist()
    ranges = {name: (low, high) for name, low, high in zip(names, lowest, highest, strict=True)}
    sketches = sketches_by_label(features, labels)
    return DataFingerprint(len(features), float(weights.sum()), ranges, checksum.hexdigest(), sketches)
