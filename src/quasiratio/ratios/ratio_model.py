"""What every ratio model has: scaled features, stacked networks, members and their combination."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from quasiratio.columns import FeatureMatrix
from quasiratio.ratios.double_precision import USUAL_NOISE, DoubleNetworks, needs_double, rounding_noise

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.losses import RatioLoss
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["OutputView", "RatioModel", "RatioPredictions", "RatioValues", "RatioView"]

_CHUNK_ROWS = 2**15


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

    Attributes:
        tuned_with: The loss that tuned the model as a whole, if any.
        output_noise: Relative rounding error of the networks' outputs in float32.
    """

    def __init__(self, scaling: FeatureScaling, network: StackedMlp, n_members: int) -> None:
        super().__init__()
        self.scaling = scaling
        self.network = network
        self.n_members = n_members
        self.tuned_with: RatioLoss | None = None
        self.output_noise = USUAL_NOISE

    def outputs(self, inputs: Tensor) -> Tensor:
        """Evaluate every network on scaled inputs, `(n, d)` for all or `(n_members, n, d)` for each."""
        if inputs.dim() == 3:
            inputs = inputs.repeat_interleave(self.network.n_networks // len(inputs), dim=0)
        return self.bounded(self.network(inputs))

    def bounded(self, outputs: Tensor) -> Tensor:
        """Impose on the networks' outputs what the model knows of the densities; nothing by default."""
        return outputs

    @abstractmethod
    def member_values(self, outputs: Tensor) -> RatioValues:
        """Turn network outputs into ratios of shape `(n_members, n)`."""

    @abstractmethod
    def sensitivity(self, outputs: Tensor) -> Tensor:
        r"""Return $\sigma_r / \delta$, `(n_members, n)`: what relative errors of the outputs do to the ratio.

        It decides which events need double precision (see `double_precision`); a few digits are enough.
        """

    @abstractmethod
    def average(self, outputs: Tensor) -> Tensor:
        """Average the networks of all members into those of one, in the same shape with one member."""

    def log_odds_of_reference(self, outputs: Tensor) -> Tensor | None:  # noqa: ARG002
        """Return the logarithm of the odds of a negative reference weight, where the model has such odds.

        Args:
            outputs: Outputs of one member, or of the average of all.
        """
        return None

    @torch.inference_mode()
    def reference_asymmetry(self, features: FeatureMatrix) -> npt.NDArray[np.float64] | None:
        """Return the estimated sign asymmetry of the reference at each event, or `None` where there is none."""
        device = self.scaling.mean.device
        parts = []
        for start in range(0, len(features), _CHUNK_ROWS):
            outputs = self.outputs(
                self.scaling(self.scaling.taken(features[start : start + _CHUNK_ROWS], device))
            )
            averaged = self.average(outputs) if self.n_members > 1 else outputs
            log_odds = self.log_odds_of_reference(averaged.double())
            if log_odds is None:
                return None
            parts.append(torch.tanh(-0.5 * log_odds).flatten().cpu().numpy())
        return np.concatenate(parts) if parts else np.empty(0)

    def combined_values(self, outputs: Tensor) -> RatioValues:
        """Return the ratio of the whole ensemble, of shape `(1, n)`.

        Members are averaged where their training risk is convex, so that by Jensen's inequality the
        average is never worse than the members are on average: in the networks' outputs, or, for a
        tuned model, in the raw coordinate of the tuning loss.
        """
        return self._combined(outputs)[0]

    def _combined(self, outputs: Tensor) -> tuple[RatioValues, Tensor]:
        """Return the ratio of the whole ensemble and its sensitivity."""
        if self.n_members == 1 or self.tuned_with is None:
            return self._single(self.average(outputs) if self.n_members > 1 else outputs)
        (ratios, nonpositive), sensitivities = self._single(outputs)
        loss = self.tuned_with
        mean = loss.link.ratio(loss.average(loss.link.raw(ratios)))[None]
        values = RatioValues(mean, None if nonpositive is None else nonpositive.any(dim=0, keepdim=True))
        return values, sensitivities.square().mean(dim=0, keepdim=True).sqrt()

    def _single(self, outputs: Tensor) -> tuple[RatioValues, Tensor]:
        """Return the ratios of single members and their sensitivities."""
        return self.member_values(outputs), self.sensitivity(outputs.float())

    @torch.inference_mode()
    def measure_noise(self, features: FeatureMatrix) -> None:
        """Set `output_noise` from the rounding errors at these events."""
        events = self.scaling.taken(features, self.scaling.mean.device)
        exact = self.bounded(DoubleNetworks(self.scaling, self.network).outputs(events))
        self.output_noise = rounding_noise(self.outputs(self.scaling(events)).double(), exact)

    @torch.inference_mode()
    def predict(self, features: FeatureMatrix, *, members: bool = False) -> RatioPredictions:
        """Predict in chunks of constant memory.

        Networks run in float32 and the recombination in float64; events whose ratio would suffer from the
        rounding of the networks are evaluated in float64 altogether.

        Args:
            features: `(n, d)` raw features.
            members: Whether to fill in the ratios of the single members as well.
        """
        n_events = len(features)
        ratio = np.empty(n_events)
        member_ratios = np.empty((self.n_members if members else 0, n_events))
        n_nonpositive = 0
        device = self.scaling.mean.device
        exact = DoubleNetworks(self.scaling, self.network)
        size = math.ceil(_CHUNK_ROWS / self.network.n_networks)
        for start in range(0, n_events, size):
            chunk = self.scaling.taken(features[start : start + size], device)
            outputs = self.outputs(self.scaling(chunk)).double()
            values = self._refined(self._combined, outputs, chunk, exact)
            ratio[start : start + size] = values.ratio[0].cpu().numpy()
            if values.nonpositive_reference is not None:
                n_nonpositive += int(values.nonpositive_reference.sum())
            if members:
                rows = self._refined(self._single, outputs, chunk, exact).ratio
                member_ratios[:, start : start + size] = rows.cpu().numpy()
        return RatioPredictions(ratio, member_ratios, n_nonpositive)

    def _refined(
        self,
        evaluate: Callable[[Tensor], tuple[RatioValues, Tensor]],
        outputs: Tensor,
        features: Tensor,
        exact: DoubleNetworks,
    ) -> RatioValues:
        """Evaluate, and where rounding matters evaluate again in float64."""
        (ratio, nonpositive), sensitivity = evaluate(outputs)
        rough = needs_double(ratio, sensitivity, self.output_noise)
        if rough.any():
            better, _ = evaluate(self.bounded(exact.outputs(features[rough])))
            ratio = ratio.clone()
            ratio[:, rough] = better.ratio
            if nonpositive is not None and better.nonpositive_reference is not None:
                nonpositive[:, rough] = better.nonpositive_reference
        return RatioValues(ratio, nonpositive)


class OutputView(nn.Module):
    """A ratio model seen as a map from scaled features to its bounded outputs, for training."""

    def __init__(self, model: RatioModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of shape `(n_networks, n, n_outputs)`."""
        return self.model.outputs(inputs)


class RatioView(nn.Module):
    """A ratio model seen as a map from scaled features to member ratios, for tuning."""

    def __init__(self, model: RatioModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ratios of shape `(n_members, n)`."""
        return self.model.member_values(self.model.outputs(inputs)).ratio
