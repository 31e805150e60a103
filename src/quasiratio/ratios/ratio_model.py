"""What every ratio model has: scaled features, stacked networks, members and their combination."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.losses import RatioLoss
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["RatioModel", "RatioPredictions", "RatioValues", "RatioView"]

_CHUNK_ROWS = 2**13


class RatioValues(NamedTuple):
    """Ratios, and where the estimated reference density is zero or negative (`None`: it cannot be)."""

    ratio: Tensor
    nonpositive_reference: Tensor | None


class RatioPredictions(NamedTuple):
    """Predictions for a set of events, before normalisation."""

    ratio: npt.NDArray[np.float64]
    members: npt.NDArray[np.float64]
    n_nonpositive_reference: int


class RatioModel(nn.Module, ABC):
    """Raw features in, ratio out, for `n_members` members at once.

    Args:
        scaling: Turns raw features into network inputs.
        network: All networks of all members; member `k` owns the `k`-th block of rows.
        n_members: Number of members.
    """

    def __init__(self, scaling: FeatureScaling, network: StackedMlp, n_members: int) -> None:
        super().__init__()
        self.scaling = scaling
        self.network = network
        self.n_members = n_members
        self.tuned_with: RatioLoss | None = None

    def outputs(self, inputs: Tensor) -> Tensor:
        """Evaluate every network on scaled inputs, `(n, d)` for all or `(n_members, n, d)` for each."""
        if inputs.dim() == 3:
            inputs = inputs.repeat_interleave(self.network.n_networks // len(inputs), dim=0)
        result: Tensor = self.network(inputs)
        return result

    @abstractmethod
    def member_values(self, outputs: Tensor) -> RatioValues:
        """Turn network outputs into ratios of shape `(n_members, n)`."""

    @abstractmethod
    def average(self, outputs: Tensor) -> Tensor:
        """Average the networks of all members into those of one, in the same shape with one member."""

    def combined_values(self, outputs: Tensor) -> RatioValues:
        """Return the ratio of the whole ensemble, of shape `(1, n)`.

        Members are averaged where their training risk is convex, so that by Jensen's inequality the
        average is never worse than the members are on average: in the networks' outputs, or, for a
        tuned model, in the raw coordinate of the tuning loss.
        """
        if self.n_members == 1 or self.tuned_with is None:
            return self.member_values(self.average(outputs) if self.n_members > 1 else outputs)
        ratios, nonpositive = self.member_values(outputs)
        loss = self.tuned_with
        mean = loss.link.ratio(loss.average(loss.link.raw(ratios)))[None]
        return RatioValues(mean, None if nonpositive is None else nonpositive.any(dim=0, keepdim=True))

    @torch.inference_mode()
    def predict(self, features: npt.NDArray[np.float32], *, members: bool = False) -> RatioPredictions:
        """Predict in chunks of constant memory; the recombination runs in float64.

        Args:
            features: `(n, d)` raw features.
            members: Whether to fill in the ratios of the single members as well.
        """
        n_events = len(features)
        ratio = np.empty(n_events)
        member_ratios = np.empty((self.n_members if members else 0, n_events))
        n_nonpositive = 0
        device = self.scaling.mean.device
        size = math.ceil(_CHUNK_ROWS / self.network.n_networks)
        for start in range(0, n_events, size):
            chunk = torch.tensor(features[start : start + size], device=device)
            outputs = self.outputs(self.scaling(chunk)).double()
            values = self.combined_values(outputs)
            ratio[start : start + size] = values.ratio[0].cpu().numpy()
            if values.nonpositive_reference is not None:
                n_nonpositive += int(values.nonpositive_reference.sum())
            if members:
                member_ratios[:, start : start + size] = self.member_values(outputs).ratio.cpu().numpy()
        return RatioPredictions(ratio, member_ratios, n_nonpositive)


class RatioView(nn.Module):
    """A ratio model seen as a map from scaled features to member ratios, for tuning."""

    def __init__(self, model: RatioModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ratios of shape `(n_members, n)`."""
        return self.model.member_values(self.model.outputs(inputs)).ratio
