"""What a model was trained on, in a few numbers: enough to recognise the data, too little to rebuild them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["DataFingerprint", "data_fingerprint"]


@dataclass(frozen=True)
class DataFingerprint:
    """The events of a fit.

    Attributes:
        n_events: Number of events, both classes together.
        sum_of_weights: Sum of their signed weights.
        ranges: Smallest and largest value of each feature.
        sha256: Checksum of features, labels and weights, in the order of the events.
    """

    n_events: int
    sum_of_weights: float
    ranges: dict[str, tuple[float, float]]
    sha256: str


def data_fingerprint(
    names: Sequence[str],
    features: npt.NDArray[np.float32],
    labels: npt.NDArray[np.bool_] | None,
    weights: npt.NDArray[np.float64],
) -> DataFingerprint:
    """Summarise checked events. All bytes enter the checksum, which takes about a second per gigabyte.

    Example:
        >>> data_fingerprint(["x"], np.array([[1.0], [3.0]], np.float32), None, np.ones(2)).ranges
        {'x': (1.0, 3.0)}
    """
    checksum = hashlib.sha256(np.array(features.shape, dtype="<i8").tobytes())
    checksum.update(np.ascontiguousarray(features, dtype="<f4").data)
    if labels is not None:
        checksum.update(np.ascontiguousarray(labels, dtype="u1").data)
    checksum.update(np.ascontiguousarray(weights, dtype="<f8").data)
    columns = torch.from_numpy(
        np.require(features, requirements=["C", "W"])
    )  # NumPy is slow along a long first axis
    lowest, highest = columns.amin(dim=0).tolist(), columns.amax(dim=0).tolist()
    ranges = {name: (low, high) for name, low, high in zip(names, lowest, highest, strict=True)}
    return DataFingerprint(len(features), float(weights.sum()), ranges, checksum.hexdigest())
